"""Session: the model's side of one run: asks, gates, asks once more, records, and counts.

Nothing here raises for what a model or its server does: a question that gets no usable answer
gives None, and the deterministic text stands.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel

from prompts_agent.agents.llm.answers import schema_of
from prompts_agent.agents.llm.budget import Budget
from prompts_agent.agents.llm.client import Asker, Client, Message, Question, Reply
from prompts_agent.agents.llm.config import LlmConfig
from prompts_agent.agents.llm.failure import LlmFailure
from prompts_agent.agents.llm.parse import parse_object
from prompts_agent.agents.llm.run_record import CallLine, RunRecord, sha256_of
from prompts_agent.agents.llm.spans import Spans
from prompts_agent.agents.llm.template import template
from prompts_agent.agents.opinion import Opinion, Refused

__all__ = ["Rejection", "Session", "Task", "endpoint_of"]

A = TypeVar("A")
TURNS = 2
"""A rejected answer is asked for once more."""
_ECHO = 3000
"""Characters of a rejected reply that go back with the second question."""
_MOST_REASONS = 8


@dataclass(frozen=True, slots=True)
class Rejection:
    """Something of an answer that a gate turned away: a few fixed words, and what it was."""

    reason: str
    what: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(Generic[A]):
    """A question of one agent."""

    node: str
    data: Mapping[str, Any]
    inputs: tuple[str, ...]
    """Ids that `data` holds."""
    form: type[BaseModel]
    judge: Callable[[Mapping[str, Any]], tuple[A, list[Rejection]]]
    """What of a reply stands, and what was turned away."""


def endpoint_of(config: LlmConfig) -> str:
    """Scheme, host and port: what may be shown."""
    parts = urlsplit(config.base_url)
    return f"{parts.scheme}://{parts.netloc}"


@dataclass(slots=True)
class Session:
    """One run's model, budget and record. `asker` None: the client for `config`."""

    config: LlmConfig
    asker: Asker | None = None
    record: RunRecord | None = None
    budget: Budget = field(init=False)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Lines for the user, about the run and not about the job."""
    keeps_checkpoints: bool = False
    """An interrupted run can be resumed."""
    resumes: bool = False
    """This run goes on from where one of the same request was interrupted."""
    _spans: Spans = field(default_factory=Spans)

    def __post_init__(self) -> None:
        self.budget = Budget(self.config)
        if self.asker is None:
            self.asker = Client(self.config, self.budget)

    def consult(self, task: Task[A]) -> A | None:
        """What of the model's answer stands; None where there is none."""
        kept: A | None = None
        messages = first_messages(task)
        for turn in range(1, TURNS + 1):
            question = Question(
                node=task.node, messages=tuple(messages), schema=schema_of(task.form)
            )
            try:
                reply = self._ask(question)
            except LlmFailure as failure:
                self._failed(task, question, turn, failure)
                return kept
            raw = parse_object(reply.text)
            rejected = [_formless(reply)]
            if raw is not None and raw.keys() & task.form.model_fields.keys():
                outcome = _judged(task, raw)
                kept = outcome[0] if outcome[0] is not None else kept
                rejected = outcome[1]
            self._note(task, question, turn, reply, rejected)
            if not rejected:
                return kept
            messages = second_messages(task, reply.text, rejected)
        return kept

    def _ask(self, question: Question) -> Reply:
        if self.asker is None:
            raise LlmFailure("unavailable", "no client")
        with self._spans.chat(question.node, self.config) as span:
            reply = self.asker.ask(question)
            span.answered(reply.input_tokens, reply.output_tokens)
            return reply

    def _failed(self, task: Task[A], question: Question, turn: int, failure: LlmFailure) -> None:
        if failure.kind != "unavailable":  # the failure before it is there already
            self.failures.append(f"{task.node}: {failure}"[:200])
        self._write(self._line(task, question, turn, failure=str(failure)))

    def _note(
        self,
        task: Task[A],
        question: Question,
        turn: int,
        reply: Reply,
        rejected: Sequence[Rejection],
    ) -> None:
        for item in rejected:
            self.refused[task.node, item.reason] += 1
        line = self._line(task, question, turn)
        self._write(
            line.model_copy(
                update={
                    "mode": reply.mode,
                    "attempts": reply.attempts,
                    "input_tokens": reply.input_tokens,
                    "output_tokens": reply.output_tokens,
                    "tokens_estimated": reply.tokens_estimated,
                    "latency_s": round(reply.seconds, 3),
                    "raw": reply.text,
                    "rejected": tuple(
                        {"reason": item.reason, "what": item.what} for item in rejected
                    ),
                }
            )
        )

    def _line(
        self, task: Task[A], question: Question, turn: int, failure: str | None = None
    ) -> CallLine:
        return CallLine(
            node=task.node,
            turn=turn,
            inputs=task.inputs,
            template=template(task.node).label,
            prompt_sha256=sha256_of(question.text),
            model=self.config.model,
            seed=self.config.seed,
            failure=failure,
        )

    def _write(self, line: CallLine) -> None:
        if self.record is not None:
            self.record.write(line)

    @property
    def traces(self) -> bool:
        """Questions become spans."""
        return self._spans.active

    def close(self) -> None:
        """The run is over: nothing more is asked."""
        if isinstance(self.asker, Client):
            self.asker.close()

    def account(self, opinion: Opinion) -> Opinion:
        """The opinion with what was spent, refused and failed so far."""
        return opinion.model_copy(
            update={
                "spent": self.budget.spent(),
                "refused": tuple(
                    Refused(node=node, reason=reason, count=count)
                    for (node, reason), count in sorted(self.refused.items())
                ),
                "failures": tuple(self.failures),
            }
        )

    def take_up(self, opinion: Opinion) -> None:
        """Go on from a run that was interrupted: what it spent is spent."""
        spent = opinion.spent
        self.budget.calls = spent.calls
        self.budget.seconds = spent.seconds
        self.budget.input_tokens = spent.input_tokens
        self.budget.output_tokens = spent.output_tokens
        self.budget.estimated = spent.tokens_estimated
        self.refused = Counter({(r.node, r.reason): r.count for r in opinion.refused})
        self.failures = list(opinion.failures)

    def opinion(self) -> Opinion:
        """An opinion that holds nothing yet."""
        return Opinion(
            model=self.config.model,
            endpoint=endpoint_of(self.config),
            spent=self.budget.spent(),
        )


def _formless(reply: Reply) -> Rejection:
    if reply.cut:
        return Rejection("cut off", "the answer came to its limit of tokens; write a shorter one")
    return Rejection("not the form asked for", reply.text[:80])


def first_messages(task: Task[Any]) -> list[Message]:
    """The template, and the data as JSON."""
    return [
        {"role": "system", "content": template(task.node).text},
        {"role": "user", "content": laid_out(task.data)},
    ]


def laid_out(data: Mapping[str, Any]) -> str:
    """JSON with a line for every key and for every item of a list: short, and still readable."""
    parts = []
    for key, value in data.items():
        text = json.dumps(value, ensure_ascii=False)
        if isinstance(value, list) and value:
            rows = ",\n  ".join(json.dumps(item, ensure_ascii=False) for item in value)
            text = f"[\n  {rows}\n ]"
        parts.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}"


def second_messages(task: Task[Any], reply: str, rejected: Sequence[Rejection]) -> list[Message]:
    """The first question, the answer, and what was wrong with it."""
    reasons = [
        f"- {item.reason}: {item.what}" if item.what else f"- {item.reason}"
        for item in rejected[:_MOST_REASONS]
    ]
    again = "These parts were turned away. Write the whole answer again without them:\n"
    return [
        *first_messages(task),
        {"role": "assistant", "content": reply[:_ECHO]},
        {"role": "user", "content": again + "\n".join(reasons)},
    ]


def _judged(task: Task[A], raw: Mapping[str, Any]) -> tuple[A | None, list[Rejection]]:
    """A judge meets anything that JSON can hold; whatever it trips over is a wrong form."""
    try:
        return task.judge(raw)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError) as error:
        return None, [Rejection("not the form asked for", type(error).__name__)]
