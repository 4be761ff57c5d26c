"""Judge: from what a compile's process left behind to an answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from prompts_agent.compile.assignment import (
    Allocation,
    find_file,
    live_at_peak,
    live_ranges,
    need_bytes,
    read_assignment,
)
from prompts_agent.compile.breakdown import Shapes, buffers, largest_values
from prompts_agent.compile.child import Ended, Run
from prompts_agent.compile.outcome import Buffers, CompiledFit, Outcome
from prompts_agent.compile.refusal import Refusal, read_refusal
from prompts_agent.compile.request import Until
from prompts_agent.compile.target import Target
from prompts_agent.compile.toolchain import Toolchain
from prompts_agent.compile.watch import assigned

__all__ = ["Advise", "Evidence", "judged"]

Advise = Callable[[Buffers | None, int, int], tuple[str, ...]]
"""(what memory goes to, the need, the limit) → what would make it fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a child left behind, parsed as far as it can be."""

    lowered: dict[str, Any]
    result: dict[str, Any]
    shapes: Shapes | None
    allocations: list[Allocation] | None
    live: set[str] | None

    @classmethod
    def read(cls, target: Target, until: Until, directory: Path, run: Run) -> Evidence:
        """Dumps are parsed only of a compile that got as far as to finish them."""
        lowered, result = _json(directory / "lowered.json"), _json(directory / "result.json")
        dump = directory / "dump"
        finished = bool(result) or run.ended is Ended.STOPPED
        if run.ended is Ended.TIMED_OUT and until is Until.END:
            # Memory was assigned long before the whole compile ran out of its time.
            finished = assigned(directory, target.platform)
        assignment = _text(dump, "after_optimizations-buffer-assignment.txt") if finished else None
        ranges = _text(dump, "after_optimizations-live-range.txt") if finished else None
        try:
            shapes = Shapes.model_validate(lowered.get("shapes"))
        except ValidationError:
            shapes = None
        allocations = read_assignment(assignment) if assignment else None
        spans = live_ranges(ranges) if ranges else None
        return cls(
            lowered=lowered,
            result=result,
            shapes=shapes,
            allocations=allocations,
            live=live_at_peak(allocations, spans) if allocations and spans else None,
        )

    @property
    def need_bytes(self) -> int | None:
        """From the assignment; without one, arguments and temporaries of a whole compile."""
        if self.allocations is not None:
            return need_bytes(self.allocations)
        if "argument_bytes" in self.result:
            fresh = self.result["output_bytes"] - self.result["alias_bytes"]
            return int(self.result["argument_bytes"] + self.result["temporary_bytes"] + fresh)
        return None

    def notes(self, toolchain: Toolchain) -> tuple[str, ...]:
        """What limits the reading of this compile."""
        found = []
        if not toolchain.tested:
            found.append(f"This reading of dumps was not tested with {toolchain}.")
        if self.allocations is None and self.need_bytes is not None:
            found.append("The dump could not be read; the need is that of a whole compile.")
        elif self.allocations is not None and self.live is None:
            found.append("The dump does not say what lives at the peak; temporaries are one class.")
        return tuple(found)


def judged(
    target: Target, known: CompiledFit, run: Run, evidence: Evidence, advise: Advise
) -> CompiledFit:
    """`known` with outcome, need, and where the memory goes."""
    error = str(evidence.result.get("error", ""))
    refusal = read_refusal(error)
    need, limit = evidence.need_bytes, target.hbm_limit_bytes
    if refusal is not None:
        # The printed figure has four digits; the assignment, where it agrees, has all of them.
        agrees = need is not None and abs(need - refusal.need_bytes) <= 0.005 * refusal.need_bytes
        need = need if agrees else refusal.need_bytes
        return _with_memory(target, known, evidence, need or refusal.need_bytes, refusal, advise)
    if error or need is None:
        return known.model_copy(update=_failure(run, error, traced=bool(evidence.lowered)))
    if limit is None:
        note = "How much of this chip's memory a program can be given is not published."
        known = known.model_copy(update={"notes": (*known.notes, note)})
    return _with_memory(target, known, evidence, need, None, advise)


def _with_memory(
    target: Target,
    known: CompiledFit,
    evidence: Evidence,
    need: int,
    refusal: Refusal | None,
    advise: Advise,
) -> CompiledFit:
    limit = refusal.limit_bytes if refusal else target.hbm_limit_bytes
    held = shown = None
    if evidence.allocations is not None and evidence.shapes is not None:
        held = buffers(evidence.allocations, evidence.live, evidence.shapes)
        shown = largest_values(evidence.allocations, evidence.live, evidence.shapes)
    fits = refusal is None and (limit is None or need <= limit)
    told = advise(held, need, limit) if limit else ()
    return known.model_copy(
        update={
            "outcome": Outcome.FITS if fits else Outcome.DOES_NOT_FIT,
            # A GPU's compiler takes any need; only the comparison with the card says no.
            "compiles": refusal is None,
            "fits": fits if limit is not None else None,
            "hbm_need_bytes": need,
            "hbm_limit_bytes": limit,
            "buffers": held,
            "peak_values": shown or (),
            "reason": "" if fits else _reason(target, need, limit, refusal),
            "advice": told,
        }
    )


def _reason(target: Target, need: int, limit: int | None, refusal: Refusal | None) -> str:
    accepted = "The compiler accepts it, the card cannot hold it"
    who = "The compiler refuses it" if refusal else accepted
    limit_gib = (limit or 0) / 2**30
    return (
        f"{who}: {need / 2**30:.2f} GiB of HBM a device, and {target.chip} has {limit_gib:.2f} GiB."
    )


def _failure(run: Run, error: str, *, traced: bool) -> dict[str, object]:
    """Outcome and reason of a run that gave no need."""
    if run.ended is Ended.TIMED_OUT:
        return {"outcome": Outcome.TIMED_OUT, "reason": f"No answer after {run.wall_s:.0f} s."}
    if run.ended is Ended.OUT_OF_MEMORY or "bad_alloc" in error or "MemoryError" in error:
        reason = f"The compiler took {run.memory_bytes / 2**30:.1f} GiB of this machine's memory."
        return {"outcome": Outcome.OUT_OF_HOST_MEMORY, "reason": reason}
    if error:
        first = error.splitlines()[0]
        if not traced:
            # It never came to the compiler: that is no word about the layout.
            reason = f"The program could not be made: {first[:600]}"
            return {"outcome": Outcome.NOT_BUILT, "reason": reason}
        return {"outcome": Outcome.REFUSED, "compiles": False, "reason": first[:600]}
    signal_or_code = f"signal {-run.exit_code}" if run.exit_code < 0 else f"code {run.exit_code}"
    said = _last_words(run.stderr)
    return {
        "outcome": Outcome.CRASHED,
        "reason": f"The compiler's process ended with {signal_or_code}{said}",
    }


def _last_words(stderr: str) -> str:
    """The failed check, or the last line that was printed."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    checks = [line for line in lines if "Check failed" in line or "F0" in line[:2]]
    line = (checks or lines or [""])[-1]
    return f": {line[:400]}" if line else ", and it printed nothing."


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(directory: Path, ending: str) -> str | None:
    path = find_file(directory, ending)
    return path.read_text(encoding="utf-8", errors="replace") if path else None
