"""Fit: does a layout compile for its chips, and how many bytes of HBM does it need.

Each compile is a child process that is ended as soon as the compiler has assigned memory, which on
TPUs is after about a fiftieth of a whole compile. Answers are cached by content.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from prompts_agent.compile import cache
from prompts_agent.compile.advice import advice
from prompts_agent.compile.assignment import (
    Allocation,
    find_file,
    live_at_peak,
    live_ranges,
    need_bytes,
    read_assignment,
)
from prompts_agent.compile.breakdown import Shapes, buffers, largest_values
from prompts_agent.compile.child import Ended, Run, run_child
from prompts_agent.compile.outcome import CompiledFit, Outcome
from prompts_agent.compile.program import described, differences, unsupported
from prompts_agent.compile.refusal import Refusal, read_refusal
from prompts_agent.compile.request import Request, Until, key_of
from prompts_agent.compile.schedule_reading import read_schedule
from prompts_agent.compile.target import target_of
from prompts_agent.compile.toolchain import Toolchain, find_toolchain, how_to_get
from prompts_agent.compile.watch import Watch, assigned
from prompts_agent.errors import HardwareError
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.layout.layout import Layout
from prompts_agent.workload.workload import Workload

__all__ = ["fit", "fit_many"]

MEMORY_LIMIT_BYTES = 8 * 2**30
"""Of one compile; the largest measured took 2.5 GB, those that stop early 0.8 GB."""
TIMEOUT_S = 600.0
"""tpu7x takes 80 CPU seconds to memory assignment; the rest is for machines under load."""

_WORKER = "prompts_agent.compile.worker"
_KEPT = (Outcome.FITS, Outcome.DOES_NOT_FIT, Outcome.REFUSED)
"""Answers that the same compiler would give again."""


def fit(
    layout: Layout,
    workload: Workload,
    *,
    timeout_s: float = TIMEOUT_S,
    memory_limit_bytes: int | None = MEMORY_LIMIT_BYTES,
    use_cache: bool = True,
    until: Until = Until.MEMORY,
) -> CompiledFit:
    """Ask the compiler about one layout. Every failure is an `Outcome`, none is raised.

    Beyond `Until.MEMORY` the answer has the scheduled program too, and its HloProto is kept beside
    the answer (`cache.program_path`).
    """
    request, toolchain, early = _prepared(layout, workload, memory_limit_bytes, until)
    if request is None or toolchain is None:
        return early
    key = key_of(request, toolchain)
    known = cache.load(key) if use_cache else None
    if known is not None:
        return known.model_copy(update={"program": early.program, "differences": early.differences})
    early = early.model_copy(update={"key": key})
    found = _compiled(request, toolchain, early, timeout_s)
    if found.outcome in _KEPT:
        cache.store(key, found)
    return found


def fit_many(
    jobs: Sequence[tuple[Layout, Workload]],
    *,
    workers: int = 2,
    timeout_s: float = TIMEOUT_S,
    memory_limit_bytes: int | None = MEMORY_LIMIT_BYTES,
    use_cache: bool = True,
    until: Until = Until.MEMORY,
) -> list[CompiledFit]:
    """`fit` of each job, `workers` at a time, in the order of `jobs`."""

    def one(job: tuple[Layout, Workload]) -> CompiledFit:
        return fit(
            *job,
            timeout_s=timeout_s,
            memory_limit_bytes=memory_limit_bytes,
            use_cache=use_cache,
            until=until,
        )

    with ThreadPoolExecutor(max_workers=max(1, workers)) as pool:
        return list(pool.map(one, jobs))


def _prepared(
    layout: Layout, workload: Workload, memory_limit_bytes: int | None, until: Until
) -> tuple[Request | None, Toolchain | None, CompiledFit]:
    """The request and its compiler, and an answer with what is known before compiling."""
    chip = find_chip(workload.topology.chip)
    known = CompiledFit(outcome=Outcome.NO_COMPILER, topology=str(workload.topology))
    reason = unsupported(workload, layout)
    if reason is not None:
        return None, None, known.model_copy(update={"outcome": Outcome.NOT_BUILT, "reason": reason})
    try:
        target = target_of(workload.topology)
    except HardwareError as error:
        return None, None, known.model_copy(update={"reason": f"{error.rule}. {error.cure}"})
    known = known.model_copy(
        update={
            "program": described(workload, layout, target),
            "differences": differences(workload, layout),
            "flags": target.flags,
        }
    )
    toolchain = find_toolchain(chip)
    if toolchain is None:
        return None, None, known.model_copy(update={"reason": how_to_get(chip)})
    request = Request(
        workload=workload,
        layout=layout,
        target=target,
        compiler=toolchain.compiler,
        memory_limit_bytes=memory_limit_bytes,
        until=until,
    )
    return request, toolchain, known


def _compiled(
    request: Request, toolchain: Toolchain, known: CompiledFit, timeout_s: float
) -> CompiledFit:
    with tempfile.TemporaryDirectory(prefix="prompts-compile-") as name:
        directory = Path(name)
        (directory / "dump").mkdir()
        (directory / "request.json").write_text(request.model_dump_json(), encoding="utf-8")
        run = run_child(
            _WORKER,
            directory,
            done=Watch(directory, request.target.platform, request.until),
            timeout_s=timeout_s,
            memory_limit_bytes=request.memory_limit_bytes,
        )
        evidence = _Evidence.read(request, directory, run)
        if request.until is not Until.MEMORY:
            known = known.model_copy(update=read_schedule(request, directory, known.key))
    known = known.model_copy(
        update={
            "toolchain": str(toolchain),
            "versions": toolchain.versions,
            "knowledge": evidence.lowered.get("knowledge"),
            "wall_s": run.wall_s,
            "cpu_s": run.cpu_s,
            "host_memory_bytes": run.memory_bytes,
            "stopped_early": run.ended is Ended.STOPPED and not evidence.result,
            "notes": (*known.notes, *evidence.notes(toolchain)),
        }
    )
    return _judged(request, known, run, evidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evidence:
    """What a child left behind, parsed as far as it can be."""

    lowered: dict[str, Any]
    result: dict[str, Any]
    shapes: Shapes | None
    allocations: list[Allocation] | None
    live: set[str] | None

    @classmethod
    def read(cls, request: Request, directory: Path, run: Run) -> _Evidence:
        lowered, result = _json(directory / "lowered.json"), _json(directory / "result.json")
        dump = directory / "dump"
        finished = bool(result) or run.ended is Ended.STOPPED
        if run.ended is Ended.TIMED_OUT and request.until is Until.END:
            # Memory was assigned long before the whole compile ran out of its time.
            finished = assigned(directory, request.target.platform)
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
        found = []
        if not toolchain.tested:
            found.append(f"This reading of dumps was not tested with {toolchain}.")
        if self.allocations is None and self.need_bytes is not None:
            found.append("The dump could not be read; the need is that of a whole compile.")
        elif self.allocations is not None and self.live is None:
            found.append("The dump does not say what lives at the peak; temporaries are one class.")
        return tuple(found)


def _judged(request: Request, known: CompiledFit, run: Run, evidence: _Evidence) -> CompiledFit:
    error = str(evidence.result.get("error", ""))
    refusal = read_refusal(error)
    need, limit = evidence.need_bytes, request.target.hbm_limit_bytes
    if refusal is not None:
        # The printed figure has four digits; the assignment, where it agrees, has all of them.
        agrees = need is not None and abs(need - refusal.need_bytes) <= 0.005 * refusal.need_bytes
        need = need if agrees else refusal.need_bytes
        return _with_memory(request, known, evidence, need or refusal.need_bytes, refusal)
    if error or need is None:
        return known.model_copy(update=_failure(run, error))
    if limit is None:
        note = "How much of this chip's memory a program can be given is not published."
        known = known.model_copy(update={"notes": (*known.notes, note)})
    return _with_memory(request, known, evidence, need, None)


def _with_memory(
    request: Request,
    known: CompiledFit,
    evidence: _Evidence,
    need: int,
    refusal: Refusal | None,
) -> CompiledFit:
    limit = refusal.limit_bytes if refusal else request.target.hbm_limit_bytes
    held = shown = None
    if evidence.allocations is not None and evidence.shapes is not None:
        held = buffers(evidence.allocations, evidence.live, evidence.shapes)
        shown = largest_values(evidence.allocations, evidence.live, evidence.shapes)
    fits = refusal is None and (limit is None or need <= limit)
    told = advice(held, need, limit, request.layout, request.workload) if limit else ()
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
            "reason": "" if fits else _reason(request, need, limit, refusal),
            "advice": told,
        }
    )


def _reason(request: Request, need: int, limit: int | None, refusal: Refusal | None) -> str:
    accepted = "The compiler accepts it, the card cannot hold it"
    who = "The compiler refuses it" if refusal else accepted
    limit_gib = (limit or 0) / 2**30
    return (
        f"{who}: {need / 2**30:.2f} GiB of HBM a device, and {request.target.chip} has "
        f"{limit_gib:.2f} GiB."
    )


def _failure(run: Run, error: str) -> dict[str, object]:
    """Outcome and reason of a run that gave no need."""
    if run.ended is Ended.TIMED_OUT:
        return {"outcome": Outcome.TIMED_OUT, "reason": f"No answer after {run.wall_s:.0f} s."}
    if run.ended is Ended.OUT_OF_MEMORY or "bad_alloc" in error or "MemoryError" in error:
        reason = f"The compiler took {run.memory_bytes / 2**30:.1f} GiB of this machine's memory."
        return {"outcome": Outcome.OUT_OF_HOST_MEMORY, "reason": reason}
    if error:
        first = error.splitlines()[0]
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
