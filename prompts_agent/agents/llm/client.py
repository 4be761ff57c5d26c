"""Client: one question to an OpenAI-compatible endpoint, with retries inside the run's budget."""

from __future__ import annotations

import importlib
import json
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from prompts_agent.agents.llm.budget import Budget, rough_tokens
from prompts_agent.agents.llm.config import OPENAI_URL, LlmConfig, is_here
from prompts_agent.agents.llm.failure import LlmFailure
from prompts_agent.agents.llm.wire import bounded, classified, redacted, retry_after_s, within

__all__ = ["Asker", "Client", "Message", "Mode", "Question", "Reply", "request_body"]

Mode = Literal["json_schema", "json_object", "text"]
"""How the reply's form is asked for; a server that refuses one is asked in the next way."""
_MODES: tuple[Mode, ...] = ("json_schema", "json_object", "text")
Message = Mapping[str, str]
"""`role` and `content`."""

_SAMPLING = ("seed", "temperature")
_FIRST_PAUSE_S = 0.5
_LONGEST_REPLY = 20_000
"""Characters of a reply that are looked at and recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked: messages, and the JSON Schema of the answer under its name."""

    node: str
    messages: tuple[Message, ...]
    schema: Mapping[str, Any]

    @property
    def text(self) -> str:
        """All of it, for counting tokens and for the hash."""
        return json.dumps([list(map(dict, self.messages)), self.schema], ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back."""

    text: str
    input_tokens: int
    output_tokens: int
    tokens_estimated: bool
    seconds: float
    attempts: int
    mode: Mode
    cut: bool = False
    """The server ended it at the limit of tokens."""


class Asker(Protocol):
    """Whatever answers questions: the client, a record that is replayed, a script in a test."""

    def ask(self, question: Question) -> Reply:
        """The reply. Raises `LlmFailure`."""
        ...


def request_body(
    config: LlmConfig,
    question: Question,
    *,
    reply_tokens: int,
    mode: Mode,
    without: Collection[str] = (),
) -> dict[str, Any]:
    """The JSON body of a request; `without` are parameters that the server does not know."""
    body: dict[str, Any] = {
        "model": config.model,
        "messages": [dict(message) for message in question.messages],
        "max_completion_tokens": reply_tokens,
        "stream": False,
        "seed": config.seed,
    }
    if config.temperature is not None:
        body["temperature"] = config.temperature
    if config.base_url != OPENAI_URL:
        # The older name, which some servers know alone; OpenAI refuses it beside the newer one.
        body["max_tokens"] = reply_tokens
    if mode == "json_schema":
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": question.node, "schema": question.schema, "strict": True},
        }
    elif mode == "json_object":
        body["response_format"] = {"type": "json_object"}
    return {name: value for name, value in body.items() if name not in without}


class Client:
    """Asks through `langchain_openai.ChatOpenAI`, which is imported at the first question."""

    def __init__(
        self,
        config: LlmConfig,
        budget: Budget,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._config, self._budget, self._sleep = config, budget, sleep
        self._key = config.api_key.get_secret_value() if config.api_key is not None else None
        self._mode = 0
        self._without: frozenset[str] = frozenset()
        self._answered = False
        self._down: str | None = None
        self._deadline = 0.0
        self._http: Any = None

    def ask(self, question: Question) -> Reply:
        """The reply to one question. Raises `LlmFailure`, and then at once for every later one
        where the endpoint showed that it will not answer.
        """
        if self._down is not None:
            raise LlmFailure("unavailable", self._down)
        try:
            return self._with_retries(question)
        except LlmFailure as failure:
            if failure.kind in ("refused", "connection", "rate limit", "server error"):
                self._down = f"the model did not answer before ({failure.kind})"
                self._budget.stopped = self._budget.stopped or self._down
            raise

    def _with_retries(self, question: Question) -> Reply:
        last: LlmFailure | None = None
        started = self._budget.seconds
        attempt, failed = 0, 0
        while failed <= self._config.retries:
            attempt += 1
            pause: float | None = None
            try:
                return self._once(question, attempt, started)
            except LlmFailure as failure:
                last = failure
                if failure.kind in ("budget", "refused", "timeout", "too long"):
                    # What was too slow or too long once would be so again, and cost as much.
                    raise
                if failure.kind == "bad request":
                    if not self._simplify(failure):
                        raise
                    continue
                pause = getattr(failure, "pause_s", None)
            failed += 1
            if failed <= self._config.retries:
                self._wait(pause if pause is not None else _FIRST_PAUSE_S * 2 ** (failed - 1), last)
        if last is not None and last.kind == "server error" and not self._answered:
            # Some servers fail on a schema that they cannot read, and say no more than that.
            self._mode = max(self._mode, _MODES.index("json_object"))
            return self._once(question, attempt + 1, started)
        raise last if last is not None else LlmFailure("no text", "no attempt was made")

    def _simplify(self, failure: LlmFailure) -> bool:
        """Leave out what the server may not know; False where nothing is left to leave out."""
        text = failure.detail.lower()
        named = {name for name in _SAMPLING if re.search(rf"\b{name}\b", text)}
        if named:
            named = set(_SAMPLING)
        if self._config.base_url != OPENAI_URL and "max_completion_tokens" in text:
            named.add("max_completion_tokens")  # the older name stays
        if named - self._without:
            self._without |= named
            return True
        if self._mode + 1 < len(_MODES):
            self._mode += 1
            return True
        if not self._without >= set(_SAMPLING):
            self._without |= set(_SAMPLING)
            return True
        return False

    def _wait(self, seconds: float, why: LlmFailure) -> None:
        if seconds >= self._budget.remaining_s:
            raise LlmFailure(why.kind, f"{why.detail}; no time is left to try again")
        self._sleep(seconds)
        self._budget.waited(seconds)

    def _once(self, question: Question, attempt: int, started: float) -> Reply:
        prompt = rough_tokens(question.text)
        reply_tokens = self._budget.admit(prompt)
        limit = self._budget.call_limit_s
        mode = _MODES[self._mode]
        _load()
        before = self._budget.now()
        try:
            message = within(limit, lambda: self._send(question, reply_tokens, limit))
        except Exception as error:  # noqa: BLE001 - whatever a server provokes, the run goes on
            self.close()
            failure = classified(error, self._key)
            failure.pause_s = retry_after_s(error)  # type: ignore[attr-defined]
            # A server that was too slow may have counted the prompt all the same.
            late = failure.kind == "timeout"
            self._budget.charge(prompt if late else 0, 0, estimated=late)
            raise failure from None
        finally:
            self._budget.waited(self._budget.now() - before)
        text = redacted(_text_of(message), self._key)
        input_tokens, output_tokens, counted = _usage(message, prompt, rough_tokens(text))
        self._budget.charge(input_tokens, output_tokens, estimated=not counted)
        self._answered = True
        cut = _finish_reason(message) == "length"
        if not text.strip():
            # Whoever thinks for longer than the limit does so again: no second try.
            why = f"no text came within the limit of {reply_tokens} tokens (reply_tokens)"
            raise LlmFailure("too long", why) if cut else LlmFailure("no text", "an empty reply")
        return Reply(
            text=text[:_LONGEST_REPLY],
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            tokens_estimated=not counted,
            seconds=self._budget.seconds - started,
            attempts=attempt,
            mode=mode,
            cut=cut,
        )

    def _send(self, question: Question, reply_tokens: int, limit: float) -> Any:
        self._deadline = time.monotonic() + limit
        body = request_body(
            self._config,
            question,
            reply_tokens=reply_tokens,
            mode=_MODES[self._mode],
            without=self._without,
        )
        return self._chat(body, limit).invoke(_roles(question.messages))

    def _chat(self, body: Mapping[str, Any], limit: float) -> Any:
        import openai
        from langchain_openai import ChatOpenAI

        if self._http is None:
            # No redirects, and no proxy on the way to this machine: prompts go to the endpoint that
            # was named, and nowhere else.
            self._http = openai.DefaultHttpxClient(
                follow_redirects=False,
                trust_env=not is_here(self._config.base_url),
                event_hooks={"response": [bounded(lambda: self._deadline)]},
            )
        # As `response_format=` it would be parsed there, and a reply that was cut off would come as
        # an error without its tokens.
        extra = {name: body[name] for name in ("max_tokens", "response_format") if name in body}
        return ChatOpenAI(
            model=self._config.model,
            base_url=self._config.base_url,
            api_key=self._config.api_key or (lambda: "none"),
            max_completion_tokens=body.get("max_completion_tokens"),
            seed=body.get("seed"),
            temperature=body.get("temperature"),
            timeout=limit,
            max_retries=0,
            use_responses_api=False,
            http_client=self._http,
            extra_body=extra or None,
            output_version="v0",
        )

    def close(self) -> None:
        """End the connection, and with it what a call that failed may still read in its thread; a
        later question opens another.
        """
        if self._http is not None:
            self._http.close()
            self._http = None


def _load() -> None:
    """Import the client: the seconds that it takes are no waiting for the model."""
    importlib.import_module("langchain_openai")


def _usage(message: Any, prompt: int, reply: int) -> tuple[int, int, bool]:
    """Tokens of prompt and reply as the server counted them; else the given estimates."""
    usage = getattr(message, "usage_metadata", None) or {}
    given, made = usage.get("input_tokens"), usage.get("output_tokens")
    if isinstance(given, int) and isinstance(made, int) and given > 0 and made > 0:
        return given, made, True
    return prompt, reply, False


def _finish_reason(message: Any) -> object:
    return (getattr(message, "response_metadata", None) or {}).get("finish_reason")


def _roles(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in messages]


def _text_of(message: Any) -> str:
    """The text of a reply, whose content may be a list of parts."""
    content = message.content
    if isinstance(content, str):
        return content
    return "".join(
        part if isinstance(part, str) else str(part.get("text", ""))
        for part in content
        if isinstance(part, str | dict)
    )
