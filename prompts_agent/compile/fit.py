"""Fit: does a layout compile for its chips, and how many bytes of HBM does it need.

Each compile is a child process that is ended as soon as the compiler has assigned memory, which on
TPUs is after about a fiftieth of a whole compile. Answers are cached by content.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from prompts_agent.compile import cache
from prompts_agent.compile.advice import advice
from prompts_agent.compile.child import Ended, run_child
from prompts_agent.compile.judge import Evidence, judged
from prompts_agent.compile.outcome import Buffers, CompiledFit, Outcome
from prompts_agent.compile.program import described, differences, unsupported
from prompts_agent.compile.request import Request, Until, key_of
from prompts_agent.compile.schedule_reading import read_schedule
from prompts_agent.compile.stage import in_stages
from prompts_agent.compile.target import target_of
from prompts_agent.compile.toolchain import Toolchain, find_toolchain, how_to_get
from prompts_agent.compile.watch import Watch
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
        compiled, cut = in_stages(workload, layout)
        target = target_of(compiled.topology)
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
        workload=compiled,
        layout=cut,
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
        evidence = Evidence.read(request.target, request.until, directory, run)
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

    def advise(held: Buffers | None, need: int, limit: int) -> tuple[str, ...]:
        return advice(held, need, limit, request.layout, request.workload)

    return judged(request.target, known, run, evidence, advise)
