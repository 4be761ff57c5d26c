"""A comparison as a case of the knowledge base: what a team measured itself, for its next job.

Nothing of a trace but numbers goes in: axes and findings have our names, the model is told by its
dims (by its name only if that is a public one), and paths, hosts, users and op names stay out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from prompts_agent.agents.comparison.case_text import Told, case_body, case_costs, case_title
from prompts_agent.agents.comparison.comparison import Comparison, FindingShift, Run
from prompts_agent.agents.comparison.private import refuse_private
from prompts_agent.agents.report import Change, Proposal
from prompts_agent.errors import InputError
from prompts_agent.knowledge.query import architecture_of
from prompts_agent.knowledge.recipe import (
    HERE,
    KNOBS,
    MAX_DEVICES,
    MAX_SEQUENCE,
    Applies,
    AxisMove,
    DrawnFrom,
    KnobMove,
    Recipe,
)
from prompts_agent.knowledge.vocabulary import FindingKind, RecipeKind
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.workload import Workload

__all__ = ["case_of"]

_NEAR = 4
"""A measurement speaks for jobs of a quarter to four times the devices and the sequence."""
_MOST_CHANGE = 200
"""Characters of what a person says was changed."""


def case_of(
    found: Comparison,
    workload: Workload | None,
    proposal: Proposal | None = None,
    change: str | None = None,
) -> Recipe:
    """The case that leads from the slower run to the faster one, whichever came first.

    `proposal` was followed, and lends its knobs; `change` says what was changed, where the mesh is
    the same. Raises `InputError` where the runs are not of one job, the difference is not more than
    noise, or what a case has to state is not known.
    """
    _refuse_what_teaches_nothing(found)
    known = _job(found, workload)
    slow, fast, findings = _ordered(found)
    moves = _moves(slow.degrees or {}, fast.degrees or {})
    knobs = _knobs(found, proposal)
    if change is not None and (len(change) > _MOST_CHANGE or "\n" in change):
        raise InputError(
            f"--change of {len(change)} characters",
            rule=f"it is one line of at most {_MOST_CHANGE}",
            cure="Shorten it.",
        )
    if not moves and not knobs and change is None:
        raise InputError(
            f"the mesh is the same: {slow.mesh or 'unknown'}",
            rule="a case says what was changed, and the traces do not tell it",
            cure='Say it in a line: --change "prefetch two batches to the device".',
        )
    told = Told(found=found, workload=known, slow=slow, fast=fast, findings=findings, change=change)
    recipe = Recipe(
        id=_id(found, known, moves),
        title=case_title(told),
        kind=RecipeKind.CASE,
        drawn_from=DrawnFrom(source=HERE, workload=f"{told.model} {known.phase}"[:80]),
        applies=_applies(known, findings),
        changes=moves,
        knobs=knobs,
        sharding=bool(moves or knobs),
        costs=case_costs(told),
        body=case_body(told),
    )
    refuse_private(recipe)
    return recipe


def _refuse_what_teaches_nothing(found: Comparison) -> None:
    if not found.alike:
        differing = ", ".join(item.what for item in found.likeness if item.same is False)
        raise InputError(
            f"{differing} differ",
            rule="a case is two runs of one job, so that the layout alone made the difference",
            cure="Compare runs of the same model, chips, batch and sequence.",
        )
    if found.direction in ("within_noise", "unknown"):
        why = (
            "the change is within the noise, so there is nothing to learn from it"
            if found.direction == "within_noise"
            else "the noise is not known, so nothing says that the change is more"
        )
        raise InputError(
            f"{found.step.before_s:.4g} s → {found.step.after_s:.4g} s a step",
            rule=why,
            cure="Capture ten or more steady steps of both runs.",
        )


def _job(found: Comparison, workload: Workload | None) -> Workload:
    meshes = (found.before.degrees, found.after.degrees)
    if workload is not None and None not in meshes:
        return workload
    missing = "the job" if workload is None else "the mesh of both runs"
    raise InputError(
        f"{missing} is not known",
        rule="a case states model, chips, phase, batch and both meshes",
        cure="Give the job with --workload FILE, and traces that hold their HLO.",
    )


def _ordered(found: Comparison) -> tuple[Run, Run, tuple[FindingShift, ...]]:
    """(slower run, faster run, findings from slower to faster)."""
    if found.direction == "faster":
        return found.before, found.after, found.findings
    other = {"both": "both", "before": "after", "after": "before"}
    turned = tuple(
        item.model_copy(
            update={
                "before_s": item.after_s,
                "after_s": item.before_s,
                "change_s": None if item.change_s is None else -item.change_s,
                "found": other[item.found],
            }
        )
        for item in found.findings
    )
    return found.after, found.before, turned


def _moves(slow: Mapping[Axis, int], fast: Mapping[Axis, int]) -> tuple[AxisMove, ...]:
    sizes = {axis: (slow.get(axis, 1), fast.get(axis, 1)) for axis in Axis}
    return tuple(
        AxisMove.model_validate(
            {
                "axis": axis,
                "move": "set_one" if new == 1 else "raise" if new > old else "lower",
            }
        )
        for axis, (old, new) in sizes.items()
        if old != new
    )


def _knobs(found: Comparison, proposal: Proposal | None) -> tuple[KnobMove, ...]:
    """Knobs of the proposal that was followed, where it is what ran and it was the faster one."""
    outcome = found.outcome
    if proposal is None or outcome is None or outcome.not_scored or found.direction != "faster":
        return ()
    return tuple(_knob(change) for change in proposal.changes if change.what in KNOBS)


def _knob(change: Change) -> KnobMove:
    if change.direction in ("raise", "lower"):
        return KnobMove.model_validate({"knob": change.what, "move": change.direction})
    switches: dict[str, bool | str] = {"on": True, "off": False}
    return KnobMove(knob=change.what, value=switches.get(change.after, change.after))


def _applies(workload: Workload, findings: tuple[FindingShift, ...]) -> Applies:
    there = [f for f in findings if f.found != "after"]
    cured = [f for f in there if _is_cured(f)] or there
    kinds = tuple(dict.fromkeys(f.kind for f in cured)) or (FindingKind.NONE,)
    axes = tuple(dict.fromkeys(axis for f in cured for axis in f.axes))
    devices, sequence = workload.topology.devices, workload.sequence
    return Applies(
        phases=(workload.phase,),
        chips=(workload.topology.chip,),
        architectures=architecture_of(workload.model)[:1],
        findings=kinds,
        **({"axes": axes} if axes else {}),
        min_devices=max(1, devices // _NEAR),
        max_devices=min(devices * _NEAR, MAX_DEVICES),
        min_sequence=max(1, sequence // _NEAR),
        max_sequence=min(sequence * _NEAR, MAX_SEQUENCE),
    )


def _is_cured(finding: FindingShift) -> bool:
    """It costs less by more than noise; or it is gone, where it has no seconds."""
    if finding.change_s is None:
        return finding.found == "before"
    return finding.change_s < 0 and finding.within_noise is False


def _id(found: Comparison, workload: Workload, moves: tuple[AxisMove, ...]) -> str:
    """`here-v6e-8-raise-data-lower-tensor-1f3a9c27`: the same traces give the same id."""
    digests = [run.trace.sha256 if run.trace else "" for run in (found.before, found.after)]
    code = hashlib.sha256("\n".join(digests).encode()).hexdigest()[:8]
    named = [word for move in moves for word in (move.move.replace("_", "-"), move.axis)]
    parts = ("here", workload.topology.chip, str(workload.topology.devices), *named, code)
    return "-".join(parts)
