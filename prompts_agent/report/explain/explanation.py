"""Explanation: every term of one layout's estimate, with its formula, value and source."""

from __future__ import annotations

from typing import Literal, NamedTuple

from prompts_agent.agents.planner.terms import term_words
from prompts_agent.agents.report import Predicted, RankFactors, Report, WorkloadSummary
from prompts_agent.errors import InputError
from prompts_agent.estimate.calibration import Constants
from prompts_agent.estimate.formula import formula_of, is_total
from prompts_agent.estimate.sizes import dtype_bytes
from prompts_agent.estimate.symbols import symbols
from prompts_agent.hardware.topology import parse_topology
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.record import Record
from prompts_agent.workload.workload import Phase, Workload

__all__ = [
    "ConstantLine",
    "Explanation",
    "Ranked",
    "Sum",
    "SymbolLine",
    "TermLine",
    "explanation",
    "phase_of",
    "ranked",
    "sum_title",
]

_NO_FORMULA = "no formula in this version"
_NO_SOURCE = "unknown: the report is of another version"
_TOTALS = {
    Phase.PREFILL: "serving.ttft_s",
    Phase.DECODE: "serving.tpot_s",
    Phase.SERVE: "serving.tpot_s",
}
"""What the terms of time add up to, and so no line of its own."""
_WHOLE = 1e-6
"""Of a sum: what rounding may leave."""


class TermLine(Record):
    """One term. `share` is of its sum."""

    name: str
    words: str
    value: float
    share: float
    formula: str
    source: str
    constants: tuple[str, ...] = ()


class Sum(Record):
    """Terms, largest first, and what they add up to."""

    title: str
    unit: Literal["s", "bytes"]
    total: float
    low: float | None = None
    high: float | None = None
    limit: float | None = None
    scale: float | None = None
    """What the sum of the terms is multiplied by: measured ÷ estimated of today's layout."""
    terms: tuple[TermLine, ...]


class SymbolLine(Record):
    """A letter of the formulas with its value for this layout."""

    name: str
    value: float
    unit: str
    meaning: str
    source: str


class ConstantLine(Record):
    """A calibrated number that a term with a value has."""

    name: str
    value: float
    source: str


class Explanation(Record):
    """The whole estimate of one layout."""

    rank: int
    """0: today's layout."""
    layout: Layout
    knobs: str
    """What the layout sets besides the mesh, in words."""
    workload: str
    sums: tuple[Sum, ...]
    others: tuple[TermLine, ...] = ()
    """Figures that are no part of the sums, such as TTFT beside TPOT."""
    factors: RankFactors | None = None
    symbols: tuple[SymbolLine, ...] = ()
    constants: tuple[ConstantLine, ...] = ()
    notes: tuple[str, ...] = ()


class Ranked(NamedTuple):
    """A layout of the report that can be explained."""

    rank: int
    layout: Layout
    terms: dict[str, float]
    predicted: Predicted
    factors: RankFactors | None


def ranked(report: Report, rank: int) -> Ranked:
    """The proposal of that rank; 0 is today's layout. Raises `InputError` where it is not there."""
    for proposal in report.proposals:
        if proposal.rank == rank and proposal.terms:
            return Ranked(
                rank, proposal.layout, proposal.terms, proposal.predicted, proposal.factors
            )
    today = report.baseline
    if rank == 0 and today is not None and today.terms:
        limit = report.proposals[0].predicted.hbm_limit_bytes if report.proposals else 0
        predicted = Predicted(
            step_time_s=today.predicted_step_time_s,
            low_s=None,
            high_s=None,
            hbm_bytes=today.hbm_bytes or 0,
            hbm_limit_bytes=limit,
        )
        return Ranked(0, today.layout, today.terms, predicted, None)
    known = [str(proposal.rank) for proposal in report.proposals if proposal.terms]
    known += ["0 (today's layout)"] if today is not None and today.terms else []
    raise InputError(
        f"rank {rank}",
        rule="the report has no estimate of that rank",
        cure=f"Give one of {', '.join(known)}."
        if known
        else "Give a report with proposals: this one makes none.",
    )


def phase_of(report: Report) -> Phase:
    """Raises `InputError` for a report that planned for nothing."""
    if report.workload is None:
        raise InputError(
            "the report",
            rule="it knows no workload, so that it has no estimates",
            cure="Give one with proposals: diagnose with --workload, or plan.",
        )
    return report.workload.phase


def explanation(report: Report, rank: int) -> Explanation:
    """Everything that the report and the formulas say of one of its layouts."""
    phase, one = phase_of(report), ranked(report, rank)
    lines = [
        _line(name, value, one, phase)
        for name, value in one.terms.items()
        if not name.startswith("load.")
    ]
    sums = tuple(s for s in (_time(one, lines, report), _memory(one, lines)) if s is not None)
    shown = {line.name for part in sums for line in part.terms}
    used = {
        name for line in lines if line.value > 0.0 and line.name in shown for name in line.constants
    } - _without_effect(report, one.layout)
    return Explanation(
        rank=rank,
        layout=one.layout,
        knobs=_knobs(one.layout, phase),
        workload=_workload_text(report.workload),
        sums=sums,
        others=tuple(line for line in lines if line.name not in shown | {_TOTALS.get(phase)}),
        factors=one.factors,
        symbols=_symbols(report, one.layout),
        constants=tuple(
            ConstantLine(name=name, value=entry.value, source=entry.source)
            for name, entry in report.constants.items()
            if name in used
        ),
        notes=_notes(report),
    )


def sum_title(phase: Phase) -> str:
    """What the terms of time add up to."""
    if phase.is_training:
        return "Step time"
    return "Time to first token (TTFT)" if phase is Phase.PREFILL else "Time per token (TPOT)"


def _line(name: str, value: float, one: Ranked, phase: Phase) -> TermLine:
    found = formula_of(name, phase)
    memory = name.startswith("memory.")
    whole = one.predicted.hbm_bytes if memory else one.predicted.step_time_s
    return TermLine(
        name=name,
        words=term_words(name).removeprefix("memory for "),
        value=value,
        share=value / whole if whole else 0.0,
        formula=found.text if found is not None else _NO_FORMULA,
        source=found.source if found is not None else _NO_SOURCE,
        constants=found.constants if found is not None else (),
    )


def _time(one: Ranked, lines: list[TermLine], report: Report) -> Sum | None:
    total = one.predicted.step_time_s
    parts = [
        line
        for line in lines
        if line.name.startswith(("time.", "serving.")) and not is_total(line.name)
    ]
    if total is None or not parts:
        return None
    added = sum(line.value for line in parts)
    scaled = abs(added - total) <= _WHOLE * total
    return Sum(
        title=sum_title(phase_of(report)),
        unit="s",
        total=total,
        low=one.predicted.low_s,
        high=one.predicted.high_s,
        scale=None if scaled or added <= 0.0 else total / added,
        terms=_ordered(parts),
    )


def _memory(one: Ranked, lines: list[TermLine]) -> Sum | None:
    parts = [line for line in lines if line.name.startswith("memory.")]
    if not parts:
        return None
    return Sum(
        title="Memory of a device",
        unit="bytes",
        total=float(one.predicted.hbm_bytes),
        limit=float(one.predicted.hbm_limit_bytes) or None,
        terms=_ordered(parts),
    )


def _ordered(lines: list[TermLine]) -> tuple[TermLine, ...]:
    return tuple(sorted(lines, key=lambda line: (-line.value, line.name)))


def _knobs(layout: Layout, phase: Phase) -> str:
    if not phase.is_training:
        limit = "" if layout.batch_limit is None else f", batch limit {layout.batch_limit}"
        return f"attention data {layout.attention_data}, cache {layout.kv_dtype}{limit}"
    said = [
        f"microbatch {layout.microbatch}",
        f"accumulation {layout.gradient_accumulation}",
        f"remat {layout.remat}",
        f"ZeRO {layout.zero_stage}",
        f"{layout.virtual_stages} chunks a stage" if layout.virtual_stages > 1 else "",
        "sequence parallel" if layout.sequence_parallel else "",
    ]
    return ", ".join(one for one in said if one)


def _without_effect(report: Report, layout: Layout) -> frozenset[str]:
    """Constants of terms with a value that do not enter it, for this model, dtype and layout."""
    told, found = report.workload, set()
    if told is not None and told.dims is not None and told.dims.moe is None:
        found |= {"grouped_efficiency", "expert_imbalance", "serving_expert_efficiency"}
    precision = told.precision if told is not None else None
    if precision is not None and dtype_bytes(precision.compute) >= 2.0:
        found.add("low_precision_efficiency")
    if all(split.dcn == 1 for split in layout.mesh.root.values()):
        found |= {"network_efficiency", "network_latency_s"}
    found.add("tensor_overlap" if layout.sequence_parallel else "tensor_overlap_sharded")
    found.add("data_overlap" if layout.zero_stage >= 1 else "data_overlap_sharded")
    staged = layout.mesh.size(Axis.PIPELINE) > 1
    found.add("expert_overlap" if staged else "expert_overlap_staged")
    return frozenset(found)


def _workload_text(workload: WorkloadSummary | None) -> str:
    if workload is None:
        return ""
    return (
        f"{workload.name}, {workload.hardware}, {workload.devices} devices, {workload.phase}, "
        f"{workload.global_batch} sequences of {workload.sequence} tokens"
    )


def _symbols(report: Report, layout: Layout) -> tuple[SymbolLine, ...]:
    """None where the report is of a version that does not hold what they follow from."""
    told = report.workload
    if told is None or told.dims is None or told.precision is None or not report.constants:
        return ()
    workload = Workload(
        name=told.name,
        model=told.dims,
        topology=parse_topology(told.hardware),
        phase=told.phase,
        global_batch=told.global_batch,
        sequence=told.sequence,
        precision=told.precision,
        traffic=told.traffic,
    )
    constants = Constants(**{name: entry.value for name, entry in report.constants.items()})
    return tuple(
        SymbolLine(
            name=one.name,
            value=one.value,
            unit=one.unit,
            meaning=one.meaning,
            source=one.source,
        )
        for one in symbols(layout, workload, constants)
    )


def _notes(report: Report) -> tuple[str, ...]:
    found = []
    scale = report.baseline.scale if report.baseline is not None else None
    if scale is not None:
        found.append(
            f"Today's layout was measured: every time is the formulas' × {scale:.3f}, measured ÷ "
            "estimated of today's step."
        )
    if not report.constants:
        found.append(
            "The report is of an earlier version and holds no constants: their values are not "
            "shown. Write it again to see them."
        )
    return tuple(found)
