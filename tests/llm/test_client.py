"""The client against a real socket: forms, retries, budgets, and what never leaves in a message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr
from scripted_server import Answer, Body, completion, error, scripted_server

from prompts_agent.agents.llm.budget import Budget, rough_tokens
from prompts_agent.agents.llm.client import Client, Question, Reply
from prompts_agent.agents.llm.config import LlmConfig
from prompts_agent.agents.llm.failure import LlmFailure
from prompts_agent.agents.llm.wire import redacted

KEY = "sk-test-0123456789abcdef"
QUESTION = Question(
    node="analyst",
    messages=({"role": "system", "content": "answer"}, {"role": "user", "content": "{}"}),
    schema={"type": "object", "properties": {}, "additionalProperties": False},
)


def config(url: str, **changes: Any) -> LlmConfig:
    values = {"model": "scripted", "base_url": url, "api_key": SecretStr(KEY)} | changes
    return LlmConfig.model_validate(values)


def ask(url: str, **changes: Any) -> tuple[Reply, Budget]:
    made = config(url, **changes)
    budget = Budget(made)
    return Client(made, budget, sleep=lambda _seconds: None).ask(QUESTION), budget


def in_turn(*answers: Answer) -> Any:
    left: Iterator[Answer] = iter(answers)
    return lambda _request: next(left)


def test_a_reply_with_its_tokens() -> None:
    with scripted_server(in_turn(completion('{"a": 1}'))) as server:
        reply, budget = ask(server.url)
    assert reply.text == '{"a": 1}'
    assert (reply.input_tokens, reply.output_tokens, reply.attempts) == (100, 20, 1)
    assert (budget.input_tokens, budget.output_tokens, budget.calls) == (100, 20, 1)
    sent = server.requests[0]
    assert sent["response_format"]["json_schema"]["schema"] == QUESTION.schema
    assert sent["seed"] == 0
    assert sent["temperature"] == 0.0
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_a_reply_that_was_cut_off_is_a_reply_and_its_tokens_count() -> None:
    answer = completion('{"story": [{"ca', usage=(900, 64), finish="length")
    with scripted_server(in_turn(answer)) as server:
        reply, budget = ask(server.url)
    assert reply.cut
    assert reply.text == '{"story": [{"ca'
    assert (budget.input_tokens, budget.output_tokens, budget.calls) == (900, 64, 1)


def test_a_model_that_thinks_past_the_limit_is_not_asked_again() -> None:
    answer = completion("", usage=(900, 1500), finish="length")
    with scripted_server(lambda _request: answer) as server, pytest.raises(LlmFailure) as failed:
        ask(server.url, retries=2)
    assert failed.value.kind == "too long"
    assert len(server.requests) == 1


def test_a_proxy_does_not_stand_between_us_and_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with scripted_server(in_turn(completion("{}"))) as server:
        reply, _ = ask(server.url, retries=0)
    assert reply.text == "{}"


def test_a_server_without_token_counts_is_estimated() -> None:
    with scripted_server(in_turn(completion("abcdef", usage=None))) as server:
        reply, budget = ask(server.url)
    # 6 bytes ÷ 3
    assert reply.output_tokens == 2
    assert reply.tokens_estimated
    assert budget.spent().tokens_estimated


def test_a_server_without_json_schema_is_asked_more_simply() -> None:
    def answer(request: Body) -> Answer:
        form = request.get("response_format", {}).get("type", "text")
        return completion("{}") if form == "text" else error(400, f"{form} is not supported")

    with scripted_server(answer) as server:
        reply, _ = ask(server.url, retries=0)
    assert reply.mode == "text"
    assert [r.get("response_format", {}).get("type") for r in server.requests] == [
        "json_schema",
        "json_object",
        None,
    ]


@pytest.mark.parametrize("status", [500, 501, 422])
@pytest.mark.parametrize("message", ["failed to parse grammar", "internal error"])
def test_a_server_that_fails_on_a_schema_is_asked_more_simply(status: int, message: str) -> None:
    def answer(request: Body) -> Answer:
        refused = request.get("response_format", {}).get("type") == "json_schema"
        return error(status, message) if refused else completion("{}")

    with scripted_server(answer) as server:
        reply, _ = ask(server.url, retries=0)
    assert reply.mode == "json_object"
    assert len(server.requests) == 2


def test_a_server_that_fails_on_everything_is_left() -> None:
    with (
        scripted_server(lambda _request: error(500)) as server,
        pytest.raises(LlmFailure) as failed,
    ):
        ask(server.url, retries=1)
    assert failed.value.kind == "server error"
    # Twice as it was, and once with a simpler form.
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens and max_completion_tokens are mutually exclusive",
        '[{"type": "extra_forbidden", "loc": ["body", "max_completion_tokens"]}]',
    ],
)
def test_a_server_that_knows_one_name_for_the_limit(message: str) -> None:
    def answer(request: Body) -> Answer:
        return error(422, message) if "max_completion_tokens" in request else completion("{}")

    with scripted_server(answer) as server:
        reply, _ = ask(server.url, retries=0)
    assert reply.mode == "json_schema"
    assert server.requests[1]["max_tokens"] == 1500


def test_a_parameter_that_a_server_refuses_is_left_out() -> None:
    def answer(request: Body) -> Answer:
        refused = "temperature" in request
        return error(400, "temperature is not supported") if refused else completion("{}")

    with scripted_server(answer) as server:
        reply, _ = ask(server.url, retries=0)
    assert reply.mode == "json_schema"
    assert "seed" not in server.requests[1]


def test_retry_after_is_honoured() -> None:
    waits: list[float] = []
    answers = in_turn(error(429, "slow down", Retry_After="7"), error(503), completion("{}"))
    with scripted_server(answers) as server:
        made = config(server.url)
        budget = Budget(made)
        reply = Client(made, budget, sleep=waits.append).ask(QUESTION)
    # 7 s as asked for, then the second pause of the doubling: 0.5 s × 2.
    assert waits == [7.0, 1.0]
    assert reply.attempts == 3
    assert budget.seconds >= 8.0


def test_a_pause_longer_than_the_budget_is_not_waited_for() -> None:
    waits: list[float] = []
    with scripted_server(in_turn(error(429, Retry_After="120"))) as server:
        made = config(server.url)
        with pytest.raises(LlmFailure, match="no time is left"):
            Client(made, Budget(made), sleep=waits.append).ask(QUESTION)
    assert waits == []


def test_after_a_failure_that_will_not_pass_nothing_more_is_sent() -> None:
    with scripted_server(lambda _request: error(401, f"bad key {KEY}")) as server:
        made = config(server.url)
        budget = Budget(made)
        client = Client(made, budget, sleep=lambda _seconds: None)
        with pytest.raises(LlmFailure) as first:
            client.ask(QUESTION)
        with pytest.raises(LlmFailure, match="unavailable"):
            client.ask(QUESTION)
    assert first.value.kind == "refused"
    assert KEY not in str(first.value)
    assert len(server.requests) == 1
    assert budget.stopped is not None


def test_a_slow_server_is_left_at_the_time_limit() -> None:
    import threading

    release = threading.Event()

    def answer(_request: Body) -> Answer:
        release.wait(20)
        return completion("{}")

    with scripted_server(answer) as server:
        made = config(server.url, seconds=0.4, retries=0)
        budget = Budget(made)
        try:
            with pytest.raises(LlmFailure) as failed:
                Client(made, budget).ask(QUESTION)
        finally:
            release.set()
    assert failed.value.kind == "timeout"


def test_a_reply_of_a_megabyte_is_not_read() -> None:
    answer = completion("x" * 2**20)
    with scripted_server(lambda _request: answer) as server, pytest.raises(LlmFailure) as failed:
        ask(server.url)
    assert failed.value.kind == "too long"


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"choices": []}', b"[1]", b'{"choices": null}'])
def test_a_body_that_is_no_completion(body: bytes) -> None:
    answer = Answer(headers={"Content-Type": "application/json"}, body=body)
    with scripted_server(lambda _request: answer) as server, pytest.raises(LlmFailure):
        ask(server.url, retries=0)


def test_a_redirect_is_not_followed() -> None:
    with scripted_server(lambda _request: completion("{}")) as other:
        moved = Answer(307, {"Location": f"{other.url}/chat/completions"})
        with scripted_server(lambda _request: moved) as server, pytest.raises(LlmFailure):
            ask(server.url, retries=0)
    assert other.requests == []


def test_nobody_listens() -> None:
    with pytest.raises(LlmFailure) as failed:
        ask("http://127.0.0.1:9/v1", retries=0)
    assert failed.value.kind == "connection"


def test_the_token_budget_stops_before_sending() -> None:
    answer, tokens = completion("{}"), rough_tokens(QUESTION.text) + 63
    with scripted_server(lambda _request: answer) as server, pytest.raises(LlmFailure) as failed:
        ask(server.url, tokens=tokens)
    assert failed.value.kind == "budget"
    assert server.requests == []


def test_the_money_budget_counts_the_reply_that_is_asked_for() -> None:
    # 1500 tokens of reply at 1,000 USD a million are 1.50 USD.
    prices = {"usd_per_million_input": 0.0, "usd_per_million_output": 1000.0}
    with scripted_server(lambda _request: completion("{}", usage=(10, 100))) as server:
        with pytest.raises(LlmFailure, match=r"money budget of 1\.49 USD"):
            ask(server.url, usd=1.49, **prices)
        _, budget = ask(server.url, usd=1.51, **prices)
    assert budget.spent().usd == pytest.approx(0.1)


def test_a_key_that_a_server_echoes_is_taken_out() -> None:
    with scripted_server(lambda _request: completion(f"your key is {KEY}")) as server:
        reply, _ = ask(server.url)
    assert KEY not in reply.text
    assert redacted("Authorization: Bearer abc.def", None) == "[key]"
