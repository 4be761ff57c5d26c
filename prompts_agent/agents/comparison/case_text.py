"""The text of a case that was measured here: title, costs and the four sections of its body."""

from __future__ import annotations

from dataclasses import dataclass

from prompts_agent.agents.comparison.comparison import Comparison, FindingShift, Run
from prompts_agent.agents.model_text import dims_text
from prompts_agent.errors import ModelError
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.layout.mesh import Axis
from prompts_agent.model.catalog import find_model
from prompts_agent.model.count import parameters
from prompts_agent.model.spec import ModelSpec
from prompts_agent.units import format_bytes, format_flops, format_seconds
from prompts_agent.workload.workload import Workload

__all__ = ["Told", "case_body", "case_costs", "case_title"]

_MOST_FINDINGS = 6
_LIMITS = (
    "One job on one cluster, so other batches, sequences and models are not covered. Where the "
    "findings above are not there, their gain is not either."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a case tells: findings run from the slower to the faster run."""

    found: Comparison
    workload: Workload
    slow: Run
    fast: Run
    findings: tuple[FindingShift, ...]
    change: str | None

    @property
    def gain(self) -> float:
        """Throughput of the faster run ÷ that of the slower; batch and sequence are the same."""
        return self.slow.step_time_s / self.fast.step_time_s

    @property
    def model(self) -> str:
        """A public name, else what kind of model it is and how large."""
        spec = self.workload.model
        kind = "dense" if spec.moe is None else "MoE"
        size = format_flops(parameters(spec).total).replace(" ", "")
        return spec.name if _is_public(spec) else f"{kind} {size}"


def _is_public(spec: ModelSpec) -> bool:
    """The catalogue has it under that name with those dims: a name from a file may be private."""
    try:
        return find_model(spec.name) == spec
    except ModelError:
        return False


def case_title(told: Told) -> str:
    """`llama3.1-8b on 64 v6e: data 2 → 4, tensor 4 → 2 gave 1.25×, measured here`."""
    topology = told.workload.topology
    done = _moves_text(told) or "a change outside the mesh"
    return f"{told.model} on {topology.devices} {topology.chip}: {done} gave {told.gain:.2f}×, " + (
        "measured here"
    )


def _moves_text(told: Told) -> str:
    slow, fast = told.slow.degrees or {}, told.fast.degrees or {}
    pairs = [(axis, slow.get(axis, 1), fast.get(axis, 1)) for axis in Axis]
    return ", ".join(f"{axis} {old} → {new}" for axis, old, new in pairs if old != new)


def case_costs(told: Told) -> str:
    """What rose: memory and parts of the step; that nothing else was measured."""
    rose = []
    if told.slow.hbm_peak_bytes and told.fast.hbm_peak_bytes:
        sizes = [format_bytes(run.hbm_peak_bytes or 0) for run in (told.slow, told.fast)]
        rose.append(f"peak HBM of a device {sizes[0]} → {sizes[1]}")
    sign = 1 if told.found.direction == "faster" else -1
    rose += [
        f"{part.what} {format_seconds(abs(part.change_s))} a step more"
        for part in told.found.parts
        if part.change_s is not None and sign * part.change_s > 0 and part.within_noise is False
    ]
    return f"{'; '.join(rose)}." if rose else "No part of the step rose; memory was not measured."


def case_body(told: Told) -> str:
    """The four sections of a recipe."""
    sections = {
        "Change": _change(told),
        "Why it works": _why(told),
        "When it does not": _LIMITS,
        "See it in the trace": _check(told),
    }
    return "\n\n".join(f"## {title}\n\n{text}" for title, text in sections.items())


def _change(told: Told) -> str:
    workload, topology = told.workload, told.workload.topology
    meshes = f"From {told.slow.mesh} to {told.fast.mesh}"
    if told.slow.degrees == told.fast.degrees:
        meshes = f"The mesh stays {told.slow.mesh}"
    lines = [f"{meshes}, on {topology.devices} {topology.chip} ({topology})."]
    if told.change is not None:
        lines.append(f"What was changed: {told.change.strip().rstrip('.')}.")
    if told.found.direction == "slower":
        lines.append("It was tried the other way round, and was slower.")
    lines.append(
        f"The job: {workload.phase}, {workload.global_batch} sequences of {workload.sequence} "
        f"tokens a step; {dims_text(workload.model)}."
    )
    return "\n".join(lines)


def _why(told: Told) -> str:
    slow, fast = told.slow, told.fast
    floor = told.found.noise.floor_s
    noise = "" if floor is None else f", noise {format_seconds(floor)}"
    before, after = format_seconds(slow.step_time_s), format_seconds(fast.step_time_s)
    lines = [
        f"Measured here, {slow.steps} steps against {fast.steps}:",
        "",
        f"    step {before} > {after}, {told.gain:.2f}× the throughput{noise}",
    ]
    shifts = [_finding_line(item) for item in told.findings[:_MOST_FINDINGS]]
    return "\n".join([*lines, *(["", *shifts] if shifts else []), *_prediction(told)])


def _finding_line(item: FindingShift) -> str:
    name = _finding_name(item)
    if item.before_s is None and item.after_s is None:
        what = {"both": "in both", "before": "gone", "after": "new"}[item.found]
        return f"- {name}: {what}"
    known = ["unknown" if s is None else format_seconds(s) for s in (item.before_s, item.after_s)]
    noise = " (within the noise)" if item.within_noise else ""
    return f"- {name}: {known[0]} → {known[1]} a step{noise}"


def _finding_name(item: FindingShift) -> str:
    """In our words alone: the trace's own name of an axis may be private."""
    kind = item.kind.value.replace("_", " ")
    if item.kind is not FindingKind.EXPOSED_COLLECTIVE:
        return kind
    over = " and ".join(item.axes) if item.axes else "an axis of unknown meaning"
    return f"exposed {item.what.split()[1]} over {over}"


def _prediction(told: Told) -> list[str]:
    outcome = told.found.outcome
    if outcome is None or outcome.gain_error is None or outcome.predicted_gain is None:
        return []
    within = {True: ", inside", False: ", outside", None: ""}[outcome.inside]
    bounds = f"{within} its 90% interval" if within else ""
    tried = "" if told.found.direction == "faster" else ", for the way it was tried"
    return [
        "",
        f"The estimate had said {outcome.predicted_gain:.2f}×{tried}; measured was "
        f"{100 * abs(outcome.gain_error):.0f}% {'more' if outcome.gain_error >= 0 else 'less'}"
        f"{bounds}.",
    ]


def _check(told: Told) -> str:
    saved = format_seconds(told.slow.step_time_s - told.fast.step_time_s)
    fallen = [
        f"{_finding_name(item)} by {format_seconds(-item.change_s)}"
        for item in told.findings
        if item.change_s is not None and item.change_s < 0 and item.within_noise is False
    ]
    more = f"; {', '.join(fallen)}" if fallen else ""
    return f"The step falls by {saved}{more}."
