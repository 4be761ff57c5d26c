"""The evaluation as Markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from prompts_agent.evaluate.bootstrap import Figure
from prompts_agent.evaluate.rules import RULE_SOURCES
from prompts_agent.evaluate.score import Score
from prompts_agent.evaluate.summary import Section, Table
from prompts_agent.evaluate.tuner import tuner_version
from prompts_agent.evaluate.worst import worst_markdown

__all__ = ["as_json", "as_markdown", "published", "shown", "with_interval"]


def shown(figure: Figure | None, kind: str) -> str:
    """`3.2%`, `0.85`, or `-` where a figure has no meaning."""
    if figure is None:
        return "-"
    return f"{figure.value:.1%}" if kind == "percent" else f"{figure.value:.2f}"


def with_interval(figure: Figure | None, kind: str) -> str:
    """The same with its 95% interval."""
    if figure is None:
        return "-"
    if kind == "percent":
        return f"{figure.value:.1%} ({figure.low:.1%} to {figure.high:.1%})"
    return f"{figure.value:.2f} ({figure.low:.2f} to {figure.high:.2f})"


def published() -> tuple[str, ...]:
    """Figures of others that were not computed here, with their source."""
    return (
        "AIConfigurator 0.12.0 on 242 pools of 8 GPUs (65 workloads, more than here): first choice "
        "right 84% dense, 52% experts; regret 1.4% and 8.3%; Kendall's tau 0.80 and 0.22; mean "
        "error of TTFT 42%, of TPOT 17%. Its authors publish the pools.",
        "The PROMPTS paper: adopted layout first in 7 of 8 cases of its own choice, among three in "
        "all.",
    )


def as_markdown(sections: Sequence[Section], scores: Sequence[Score], about: Sequence[str]) -> str:
    """The whole evaluation. `about` are sentences on what was run."""
    lines = ["# Evaluation", "", *(f"- {sentence}" for sentence in about), ""]
    lines += ["Intervals are 95% bootstrap intervals over workloads.", ""]
    for section in sections:
        lines += [f"## {section.name[:1].upper()}{section.name[1:]}", ""]
        lines += [f"{section.workloads} workloads.", ""]
        for table in section.tables:
            lines += [*_table(table), ""]
    lines += ["## Baselines", ""]
    lines += [f"- {name}: {text}." for name, text in RULE_SOURCES.items()]
    lines += [f"- {sentence}" for sentence in _notes()]
    lines += ["", "Published, not computed here:", ""]
    lines += [f"- {sentence}" for sentence in published()]
    lines += ["", "## Where it is most wrong", "", worst_markdown(scores)]
    return "\n".join(lines)


def _notes() -> tuple[str, ...]:
    tuner = tuner_version()
    return (
        "random: a legal mesh, or a run of the sweep, drawn evenly; expectations, exact.",
        f"tpe: optuna {tuner}, which is told the time of each run that it asks for."
        if tuner
        else "tpe: left out, optuna is not installed (`pip install prompts-agent[evaluate]`).",
        "no calibration: data-sheet figures, nothing overlaps, no latencies and margins.",
        "no placement: every axis lies in one fast domain.",
        "no preference: by estimated time and chance to fit alone.",
        "recipes decide near ties: of layouts whose costs are within 2%, the one that principles "
        "lead to. Proposals are not ranked so: recipes give reasons and change no rank.",
        "The compiler takes no part: proposals are estimated here, and `prompts evaluate --verify "
        "fit` scores those that it has accepted.",
        "40% of peak FLOP/s: 6 × active parameters × tokens at the utilisation of a good dense run "
        "(38 to 43%: arXiv 2407.21783, table 4).",
        "16 bytes a parameter: weights, gradients and optimizer state (arXiv 1910.02054), weights "
        "alone in serving, against the chip's memory.",
    )


def _table(table: Table) -> list[str]:
    workloads = max(f.workloads for line in table.lines for f in line.figures if f is not None)
    lines = [f"### {table.title} ({workloads} workloads)", ""]
    lines.append("| | " + " | ".join(table.columns) + " |")
    lines.append("|---" * (len(table.columns) + 1) + "|")
    for line in table.lines:
        cells = [with_interval(f, k) for f, k in zip(line.figures, table.kinds, strict=True)]
        lines.append(f"| {line.name} | " + " | ".join(cells) + " |")
    return lines


def as_json(sections: Sequence[Section], scores: Sequence[Score], about: Sequence[str]) -> str:
    """The same as JSON, with the score of every workload but not its single points."""
    data: dict[str, Any] = {
        "schema_version": 1,
        "about": list(about),
        "published": list(published()),
        "sections": [json.loads(section.model_dump_json()) for section in sections],
        "workloads": [
            json.loads(score.model_dump_json(exclude={"points", "facts"}, exclude_none=True))
            for score in scores
        ],
    }
    return json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
