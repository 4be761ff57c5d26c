"""Is the compiler worth it: the agents' proposals with XLA's verdict beside those without."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from prompts_agent.agents.graph import run_plan
from prompts_agent.agents.report import Report
from prompts_agent.agents.request import DiagnoseRequest
from prompts_agent.compile.toolchain import find_toolchain
from prompts_agent.estimate.calibration import load_calibration
from prompts_agent.evaluate.bootstrap import Figure, mean_figure
from prompts_agent.evaluate.job import code_version
from prompts_agent.evaluate.journal import Journal
from prompts_agent.evaluate.score_adopted import place_in
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.record import Record
from prompts_agent.workload.workload import Workload

__all__ = ["CompiledCase", "compare_compiled", "compiled_lines", "with_compiler"]

_MEMORY = "of HBM a device"
"""In every sentence of the compiler about a need that is too large."""
_SAID = ("The compiler refuses it", "The compiler accepts it, the card cannot hold it")
_ROOMS = ("compile", "agents/critic")


class CompiledCase(Record):
    """One workload. Counts are of proposals; a place is the adopted mesh's, from 1."""

    workload: str
    place_without: int | None
    place_with: int | None
    first: int
    """Proposals without the compiler, which it was then asked about."""
    first_misfits: int
    """Of them, those that need more memory than there is."""
    first_refused: int
    """Of them, those that do not compile for another reason."""
    misfits: int
    """Everything that the compiler sent back over memory, replacements too."""
    refused: int
    proposed: int
    compiled: int
    """Of the proposals in the end, those that compiled and fit; the rest got no answer."""


def with_compiler(workloads: Sequence[Workload], limit: int | None = None) -> list[Workload]:
    """Workloads with an adopted layout whose chip has a compiler here; of more than
    `limit` as many, spread evenly over the list, smallest machines included.
    """
    known = [
        one
        for one in workloads
        if one.adopted is not None and find_toolchain(find_chip(one.topology.chip)) is not None
    ]
    if limit is None or limit >= len(known):
        return known
    return [known[k * len(known) // limit] for k in range(limit)]


def compare_compiled(
    workloads: Sequence[Workload],
    directory: Path | None = None,
    on_case: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[CompiledCase]:
    """Plans every workload twice. With a directory each finished one is a line of
    `compiled.jsonl`, and a run that was stopped goes on from there.
    """
    journal = Journal(directory, "compiled.jsonl", CompiledCase)
    known = journal.records()
    found = []
    for done, workload in enumerate(workloads):
        on_case(done, len(workloads))
        key = _key(workload)
        if key not in known:
            known[key] = _case(workload)
            journal.append(key, known[key])
        found.append(known[key])
    return found


def _key(workload: Workload) -> str:
    toolchain = find_toolchain(find_chip(workload.topology.chip))
    constants = load_calibration().model_dump_json()
    parts = (workload.model_dump_json(), constants, code_version(*_ROOMS), str(toolchain))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _case(workload: Workload) -> CompiledCase:
    hidden = workload.model_copy(update={"adopted": None, "alternatives": ()})
    without = run_plan(DiagnoseRequest(workload=hidden, verify="none"))
    found = run_plan(DiagnoseRequest(workload=hidden, verify="fit"))
    sent = {
        item.layout: _is_refused(item.reasons)
        for item in found.rejected
        if _by_compiler(item.reasons)
    }
    asked = [sent[p.layout] for p in without.proposals if p.layout in sent]
    return CompiledCase(
        workload=workload.name,
        place_without=_place(without, workload),
        place_with=_place(found, workload),
        first=len(without.proposals),
        first_misfits=asked.count(False),
        first_refused=asked.count(True),
        misfits=list(sent.values()).count(False),
        refused=list(sent.values()).count(True),
        proposed=len(found.proposals),
        compiled=sum(proposal.rung == "compiled" for proposal in found.proposals),
    )


def _by_compiler(reasons: Sequence[str]) -> bool:
    """What the critic's own rules turned away says nothing of the compiler."""
    return any(reason.startswith(_SAID) for reason in reasons)


def _is_refused(reasons: Sequence[str]) -> bool:
    return not any(_MEMORY in reason for reason in reasons)


def _place(report: Report, workload: Workload) -> int | None:
    return place_in([proposal.layout for proposal in report.proposals], workload)


def compiled_lines(cases: Sequence[CompiledCase]) -> Iterator[str]:
    """A small table, then what the compiler found."""
    if not cases:
        yield (
            "No workload with an adopted layout has its chip's compiler here: see "
            "`prompts verify` for how to get one."
        )
        return
    yield f"{len(cases)} workloads whose chip has a compiler here"
    yield f"{'':32}{'without':>10}{'with':>10}"
    for label, most in (("adopted first", 1), ("adopted among three", 3)):
        shares = [_share(cases, most, with_it=flag) for flag in (False, True)]
        yield f"{label:32}{shares[0]:>10.1%}{shares[1]:>10.1%}"
    first = sum(case.first for case in cases)
    misfits = sum(case.first_misfits for case in cases)
    refused = sum(case.first_refused for case in cases)
    proposed, compiled = (
        sum(case.proposed for case in cases),
        sum(case.compiled for case in cases),
    )
    valid = compiled / proposed if proposed else 0.0
    # Without it, those that it would have given no answer about are not known.
    yield f"{'proposals that compile and fit':32}{'':>10}{valid:>10.1%}"
    yield (
        f"Of {first} proposals that were estimated alone, the compiler found {misfits} too large "
        f"and refused {refused}."
    )
    yield (
        f"Of {proposed} proposals in the end, {compiled} compiled and fit and "
        f"{proposed - compiled} got no answer (no reference program, crash or time limit)."
    )
    change = _change(cases)
    if change is not None:
        value, low, high = (100.0 * part for part in (change.value, change.low, change.high))
        yield f"Change of first: {value:+.1f} points ({low:+.1f} to {high:+.1f})."


def _share(cases: Sequence[CompiledCase], most: int, *, with_it: bool) -> float:
    places = [case.place_with if with_it else case.place_without for case in cases]
    return sum(place is not None and place <= most for place in places) / len(cases)


def _change(cases: Sequence[CompiledCase]) -> Figure | None:
    return mean_figure(
        {
            case.workload: [float(case.place_with == 1) - float(case.place_without == 1)]
            for case in cases
        }
    )
