"""The language model's part of a report in lines; every renderer escapes what it shows of them."""

from __future__ import annotations

from typing import NamedTuple

from prompts_agent.agents.opinion import Attack, Considered, Opinion, Spent
from prompts_agent.agents.report import Report
from prompts_agent.report.figures import title
from prompts_agent.units import format_bytes, format_seconds

__all__ = ["TITLE", "Part", "opinion_lines", "opinion_parts"]

TITLE = "What the language model adds"


class Part(NamedTuple):
    """A label and its lines."""

    label: str
    lines: tuple[str, ...]


def opinion_lines(opinion: Opinion) -> tuple[str, ...]:
    """Who was asked and what it took; what came of it where little did."""
    lines = [f"{opinion.model} at {opinion.endpoint}: {_spent(opinion.spent)}"]
    if opinion.spent.stopped is not None:
        lines.append(
            f"It was asked no more: {opinion.spent.stopped}. The rest is the answer without it."
        )
    if not _said_anything(opinion):
        lines.append("It gave no usable answer. This report is the one without it.")
    return tuple(lines)


def opinion_parts(report: Report) -> tuple[Part, ...]:
    """Its sentences, in the order of the agents."""
    opinion = report.opinion
    if opinion is None:
        return ()
    titles = {item.recipe_id: item.title for item in report.evidence}
    parts = [
        Part("story", tuple(item.text for item in opinion.story)),
        Part("capture", tuple(item.text for item in opinion.capture_next)),
        Part("asked", tuple(opinion.queries)),
        Part(
            "set aside",
            tuple(
                f"{titles.get(item.recipe_id, item.recipe_id)}: {item.reason}"
                for item in opinion.evidence
                if not item.kept
            ),
        ),
        Part("order", _order(opinion)),
        *_of_proposals(report, opinion),
        Part("considered", tuple(_considered(item) for item in opinion.considered)),
        Part("rejected", _refused(opinion)),
        Part("no answer", opinion.failures),
    ]
    return tuple(part for part in parts if part.lines)


def _of_proposals(report: Report, opinion: Opinion) -> list[Part]:
    parts = []
    for proposal in report.proposals:
        rank = proposal.rank
        parts.append(Part(f"for {rank}", tuple(i.text for i in opinion.cases.get(rank, ()))))
        attacks = tuple(_attack(item) for item in opinion.attacks if item.rank == rank)
        parts.append(Part(f"against {rank}", attacks))
    return parts


def _attack(attack: Attack) -> str:
    wrong = f" Wrong if: {attack.falsified_by}" if attack.falsified_by else ""
    back = " (sent back)" if attack.sent_back else ""
    return f"{attack.kind}{back}: {attack.text}{wrong}"


def _order(opinion: Opinion) -> tuple[str, ...]:
    if opinion.order is None:
        return ()
    before = ", ".join(map(str, opinion.order.before))
    return (f"By its choice; their ranks without it are {before}. {opinion.order.reason}".strip(),)


def _considered(item: Considered) -> str:
    name = item.suggested if item.layout is None else title(item.layout)
    pieces = [f"{name}: {item.verdict}, {item.why}"]
    if item.step_time_s is not None:
        step = format_seconds(item.step_time_s)
        within = ""
        if item.low_s is not None and item.high_s is not None:
            within = f" (90 %: {format_seconds(item.low_s)}–{format_seconds(item.high_s)})"
        pieces.append(f"predicted {step}{within}")
    if item.hbm_bytes is not None and item.hbm_limit_bytes is not None:
        pieces.append(f"{format_bytes(item.hbm_bytes)} of {format_bytes(item.hbm_limit_bytes)}")
    reason = f". It says: {item.reason}" if item.reason else ""
    return "; ".join(pieces) + reason


def _refused(opinion: Opinion) -> tuple[str, ...]:
    return tuple(f"{item.node}: {item.reason} × {item.count}" for item in opinion.refused)


def _spent(spent: Spent) -> str:
    about = "about " if spent.tokens_estimated else ""
    used = spent.input_tokens + spent.output_tokens
    calls = f"{spent.calls} call{'s' if spent.calls != 1 else ''}"
    pieces = [
        calls,
        f"{spent.seconds:.1f} of {spent.seconds_limit:g} s",
        f"{about}{used:,} of {spent.tokens_limit:,} tokens",
    ]
    if spent.usd is not None:
        limit = "" if spent.usd_limit is None else f" of {spent.usd_limit:g}"
        pieces.append(f"{spent.usd:.4f}{limit} USD")
    return ", ".join(pieces)


def _said_anything(opinion: Opinion) -> bool:
    return bool(
        opinion.story
        or opinion.capture_next
        or opinion.queries
        or opinion.evidence
        or opinion.order
        or opinion.cases
        or opinion.considered
        or opinion.attacks
    )
