"""What a language model adds, on a page and in Markdown: labelled, accounted for, escaped."""

from __future__ import annotations

from report_build import training

from prompts_agent.agents.opinion import (
    Attack,
    Considered,
    Judged,
    Opinion,
    Order,
    Refused,
    Said,
    Spent,
)
from prompts_agent.report.console.page import page_text
from prompts_agent.report.json_text import json_text
from prompts_agent.report.markdown import markdown_text
from prompts_agent.report.redact import redacted

SPENT = Spent(
    calls=4,
    seconds=12.34,
    seconds_limit=60.0,
    input_tokens=5000,
    output_tokens=700,
    tokens_limit=60_000,
)


def opinion(**changes: object) -> Opinion:
    values = {"model": "qwen", "endpoint": "http://127.0.0.1:8080", "spent": SPENT} | changes
    return Opinion.model_validate(values)


def page(held: Opinion) -> str:
    """On one line, so that where it wraps does not count."""
    return " ".join(page_text(training().model_copy(update={"opinion": held})).split())


def test_without_a_model_nothing_is_said() -> None:
    assert "language model" not in page_text(training())
    assert "language model" not in markdown_text(training())


def test_every_part_has_its_place() -> None:
    held = opinion(
        story=(Said(text="The gathers come first."),),
        capture_next=(Said(text="Capture the host."),),
        queries=("overlap gathers",),
        evidence=(Judged(recipe_id="some-recipe", kept=False, reason="Another chip."),),
        order=Order(before=(2, 1), reason="It spreads wider."),
        cases={1: (Said(text="It wins on fsdp."),)},
        considered=(
            Considered(
                suggested="tensor 64",
                verdict="no layout",
                why="its axes are no mesh of 16 devices",
                reason="More tensor.",
            ),
        ),
        attacks=(
            Attack(
                rank=1, kind="risk", text="Links are shared.", falsified_by="A trace.",
                sent_back=True,
            ),
        ),
        refused=(Refused(node="critic", reason="unknown id", count=2),),
        failures=("planner: timeout: no whole reply within 30.0 s",),
    )  # fmt: skip
    text = page(held)
    for line in (
        "qwen at http://127.0.0.1:8080: 4 calls, 12.3 of 60 s, 5,700 of 60,000 tokens",
        "• The gathers come first.",
        "• Capture the host.",
        "• overlap gathers",
        "some-recipe: Another chip.",
        "their ranks without it are 2, 1. It spreads wider.",
        "• It wins on fsdp.",
        "tensor 64: no layout, its axes are no mesh of 16 devices. It says: More tensor.",
        "risk (sent back): Links are shared. Wrong if: A trace.",
        "critic: unknown id × 2",
        "planner: timeout: no whole reply within 30.0 s",
    ):
        assert line in text, line
    shown = markdown_text(training().model_copy(update={"opinion": held}))
    assert "<summary>What the language model adds</summary>" in shown
    assert "- risk (sent back): Links are shared. Wrong if: A trace." in shown


def test_money_and_estimated_tokens() -> None:
    spent = SPENT.model_copy(
        update={
            "usd": 0.0123,
            "usd_limit": 0.5,
            "tokens_estimated": True,
            "stopped": "the time budget of 60 s is spent",
        }
    )
    text = page(opinion(spent=spent))
    assert "about 5,700 of 60,000 tokens, 0.0123 of 0.5 USD" in text
    assert "It was asked no more: the time budget of 60 s is spent." in text
    assert "It gave no usable answer. This report is the one without it." in text


def test_a_text_that_got_past_the_gate_is_still_escaped() -> None:
    evil = "<img src=x> @everyone [a](https://evil.example) \x1b[2J `x`"
    held = opinion(story=(Said(text=evil),), model="m\x1b[2J")
    assert "\x1b" not in page(held)
    shown = markdown_text(training().model_copy(update={"opinion": held}))
    for forbidden in ("<img", "@everyone", "[a](https", "\x1b", " `x`"):
        assert forbidden not in shown
    assert "\x1b" not in json_text(training().model_copy(update={"opinion": held}))


def test_redaction_reaches_what_a_model_said() -> None:
    report = training().model_copy(
        update={"opinion": opinion(story=(Said(text="It waits for /home/alice/x.pb now."),))}
    )
    shown = redacted(report)
    assert shown.opinion is not None
    assert shown.opinion.story[0].text == "It waits for [path] now."
    assert shown.opinion.cases == {}
