"""Figures as every renderer prints them: shares, speedups, intervals, and the headline."""

from __future__ import annotations

import re

from prompts_agent.agents.report import Predicted, Proposal, Report, Rung, Verdict
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.units import format_bytes, format_seconds

__all__ = [
    "ABSTENTION_TITLES",
    "RUNG_WORDS",
    "hbm",
    "hbm_share",
    "headline",
    "key_checks",
    "latencies",
    "share",
    "short_sha",
    "speedup",
    "step_terms",
    "step_time",
    "term_name",
    "title",
]

RUNG_WORDS: dict[Rung, str] = {
    "estimated": "by arithmetic: legality, memory and time model",
    "compiled": "the compiler for this topology accepted it and gave its memory",
    "measured": "it ran, and its trace was read",
}

_LATENCIES = {"serving.ttft_s": "TTFT", "serving.tpot_s": "TPOT"}

ABSTENTION_TITLES = {
    "not_sharding": "It is not sharding",
    "cannot_tell": "This input cannot tell",
    "already_best": "Today's mesh is the best that was found",
    "nothing_fits": "No layout fits",
}


def share(value: float) -> str:
    """`0.1873` → `19 %`; below one percent `<1 %`, so that nothing real prints as zero."""
    percent = 100 * value
    return "<1 %" if 0 < percent < 1 else f"{percent:.0f} %"


def speedup(predicted: Predicted) -> tuple[str, str]:
    """(`1.36×`, `1.28–1.46×`); `unknown` and "" where today's layout is not known."""
    if predicted.speedup is None:
        return "unknown", ""
    if predicted.speedup_low is None or predicted.speedup_high is None:
        return f"{predicted.speedup:.2f}×", ""
    bounds = f"{predicted.speedup_low:.2f}–{predicted.speedup_high:.2f}×"
    return f"{predicted.speedup:.2f}×", bounds


def step_time(predicted: Predicted) -> tuple[str, str]:
    """(`1.61 s`, `1.50–1.74 s`); the bounds share a unit where they can."""
    if predicted.step_time_s is None:
        return "unknown", ""
    if predicted.low_s is None or predicted.high_s is None:
        return format_seconds(predicted.step_time_s), ""
    return format_seconds(predicted.step_time_s), between(predicted.low_s, predicted.high_s)


def between(low_s: float, high_s: float) -> str:
    """`1.50–1.74 s`, `950 ms–1.10 s`."""
    low, high = format_seconds(low_s), format_seconds(high_s)
    low_number, low_unit = low.split(" ")
    same = low_unit == high.split(" ")[1]
    return f"{low_number if same else low}–{high}"


def hbm(proposal: Proposal) -> str:
    """`14.2 GB of 16.0 GB`; the compiler's figure where there is one."""
    held, limit = _hbm_bytes(proposal)
    return f"{format_bytes(held)} of {format_bytes(limit)}"


def hbm_share(proposal: Proposal) -> float:
    """Use over limit; 0 for a limit of 0, which no chip has."""
    held, limit = _hbm_bytes(proposal)
    return held / limit if limit > 0 else 0.0


def _hbm_bytes(proposal: Proposal) -> tuple[int, int]:
    need, predicted = proposal.verdict.compiled, proposal.predicted
    if need is None:
        return predicted.hbm_bytes, predicted.hbm_limit_bytes
    return need.hbm_need_bytes, need.hbm_limit_bytes or predicted.hbm_limit_bytes


def short_sha(sha256: str) -> str:
    """Twelve digits: enough to tell any two traces of a team apart."""
    return sha256[:12]


def title(layout: Layout) -> str:
    """The mesh, with its split over domains and an expert axis that is no factor marked."""
    parts = []
    for axis, size in layout.mesh.root.items():
        if size.size == 1:
            continue
        split = f" ({size.ici}×{size.dcn} DCN)" if size.dcn > 1 and size.ici > 1 else ""
        split = " (DCN)" if size.dcn > 1 and size.ici == 1 else split
        inside = "÷" if axis is Axis.EXPERT and layout.expert_divides else ""
        parts.append(f"{inside}{axis} {size.size}{split}")
    return " × ".join(parts) if parts else "one device"


_CLEARLY_FASTER = 1.02
"""Repeated runs of one layout differ by one or two percent."""


def headline(report: Report) -> str:
    """The answer in one sentence."""
    if report.abstained is not None and not report.proposals:
        return ABSTENTION_TITLES[report.abstained.kind]
    if not report.proposals:
        return "No proposal"
    best = report.proposals[0]
    gain, bounds = speedup(best.predicted)
    if best.predicted.speedup is not None:
        within = f" (90%: {bounds})" if bounds else ""
        if best.predicted.speedup < _CLEARLY_FASTER:
            # The whole range is what makes it worth a run; the middle alone would not.
            return f"{title(best.layout)} may be faster: {gain} today's throughput{within}"
        return f"{title(best.layout)} is predicted at {gain} today's throughput{within}"
    time, bounds = step_time(best.predicted)
    if best.predicted.step_time_s is not None:
        within = f" (90%: {bounds})" if bounds else ""
        return f"{title(best.layout)} is predicted at {time} a step{within}"
    return f"{title(best.layout)} is the best layout that was found"


def key_checks(verdict: Verdict, most: int = 4) -> tuple[tuple[str, ...], int]:
    """The checks that decide most often, memory and compiler, after the first ones; and how many
    are left out.
    """
    decisive = [c for c in verdict.checks if re.search(r"memory|HBM|compil|TTFT|TPOT|at once", c)][
        :most
    ]
    rest = [c for c in verdict.checks if c not in decisive]
    shown = (*rest[: max(0, most - len(decisive))], *decisive)
    return shown, len(verdict.checks) - len(shown)


def term_name(name: str) -> str:
    """`time.tensor_exposed_s` → `tensor exposed`."""
    bare = name.rsplit(".", 1)[-1]
    for unit in ("_s", "_bytes"):
        bare = bare.removesuffix(unit)
    return bare.replace("_", " ")


def step_terms(proposal: Proposal, most: int = 5) -> list[tuple[str, float]]:
    """The largest parts of the predicted step, by name; totals are not parts."""
    parts = [
        (term_name(name), value)
        for name, value in proposal.terms.items()
        if name.endswith("_s") and name not in _LATENCIES and value > 0
    ]
    return sorted(parts, key=lambda item: -item[1])[:most]


def latencies(proposal: Proposal) -> list[tuple[str, str]]:
    """TTFT and TPOT where the estimate has them, each with its interval where there is one."""
    predicted = proposal.predicted
    bounds = {
        "serving.ttft_s": (predicted.ttft_low_s, predicted.ttft_high_s),
        "serving.tpot_s": (predicted.low_s, predicted.high_s),
    }
    found = []
    for name, words in _LATENCIES.items():
        if name in proposal.terms:
            low, high = bounds[name]
            value = proposal.terms[name]
            within = ""
            # Of prefill the step is the first token, and its interval is not that of a token.
            if low is not None and high is not None and low <= value <= high:
                within = f" ({between(low, high)})"
            found.append((words, f"{format_seconds(value)}{within}"))
    return found
