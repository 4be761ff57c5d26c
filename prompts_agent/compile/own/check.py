"""Check: does somebody's own JAX function compile for a topology, and what does it need there."""

from __future__ import annotations

import tempfile
from pathlib import Path

from prompts_agent.compile.child import Run, run_child
from prompts_agent.compile.final_program import final_program
from prompts_agent.compile.judge import Evidence, judged
from prompts_agent.compile.outcome import CompiledFit, Outcome
from prompts_agent.compile.own.request import OwnRequest, checked_name
from prompts_agent.compile.request import Until
from prompts_agent.compile.schedule.summary import schedule_of
from prompts_agent.compile.schedule.transfers import UnplacedTransfers
from prompts_agent.compile.target import target_of
from prompts_agent.compile.toolchain import Toolchain, find_toolchain, how_to_get
from prompts_agent.compile.watch import Watch
from prompts_agent.errors import InputError, PromptsError
from prompts_agent.estimate.calibration import load_calibration
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.hardware.topology import Topology
from prompts_agent.trace.hlo.mesh import Mesh

__all__ = ["check_function"]

_WORKER = "prompts_agent.compile.own.worker"
MEMORY_LIMIT_BYTES = 8 * 2**30
_THEIRS = ("importing", "making its arguments", "tracing")
"""Stages in which a failure is the program's own, and no word of the compiler."""


def check_function(
    function: str,
    arguments: str,
    topology: Topology,
    *,
    directory: Path,
    until: Until = Until.MEMORY,
    timeout_s: float = 600.0,
    memory_limit_bytes: int | None = MEMORY_LIMIT_BYTES,
) -> CompiledFit:
    """Compile `module:function` with the abstract arguments that `module:arguments` is or returns.

    Modules are looked for in `directory` first. Raises `InputError` where the function cannot be
    imported or traced, `HardwareError` for a chip that nothing compiles for.
    """
    checked_name(function, "--fn")
    checked_name(arguments, "--args")
    target, toolchain = target_of(topology), find_toolchain(find_chip(topology.chip))
    known = CompiledFit(
        outcome=Outcome.NO_COMPILER,
        topology=str(topology),
        program=f"{function} of your own, with the arguments of {arguments}.",
        flags=target.flags,
    )
    if toolchain is None:
        return known.model_copy(update={"reason": how_to_get(find_chip(topology.chip))})
    request = OwnRequest(
        function=function,
        arguments=arguments,
        directory=str(directory),
        target=target,
        compiler=toolchain.compiler,
        until=until,
        memory_limit_bytes=memory_limit_bytes,
    )
    known = known.model_copy(update={"toolchain": str(toolchain), "versions": toolchain.versions})
    return _compiled(request, toolchain, known, topology, timeout_s)


def _compiled(
    request: OwnRequest,
    toolchain: Toolchain,
    known: CompiledFit,
    topology: Topology,
    timeout_s: float,
) -> CompiledFit:
    target, until = request.target, request.until
    with tempfile.TemporaryDirectory(prefix="prompts-compile-") as name:
        folder = Path(name)
        (folder / "dump").mkdir()
        (folder / "request.json").write_text(request.model_dump_json(), encoding="utf-8")
        run = run_child(
            _WORKER,
            folder,
            done=Watch(folder, target.platform, until),
            timeout_s=timeout_s,
            memory_limit_bytes=request.memory_limit_bytes,
        )
        evidence = Evidence.read(target, until, folder, run)
        _require_program(request, folder, run, evidence)
        mesh = _mesh(evidence)
        update = _schedule(topology, folder, mesh) if until is not Until.MEMORY else {}
    known = known.model_copy(
        update={
            "knowledge": evidence.lowered.get("knowledge"),
            "wall_s": run.wall_s,
            "cpu_s": run.cpu_s,
            "host_memory_bytes": run.memory_bytes,
            "stopped_early": not evidence.result,
            "notes": evidence.notes(toolchain),
        }
        | update
    )
    return judged(target, known, run, evidence, lambda *_: ())


def _require_program(request: OwnRequest, folder: Path, run: Run, evidence: Evidence) -> None:
    """Raises `InputError` where it never came to the compiler."""
    try:
        stage = (folder / "stage").read_text(encoding="utf-8")
    except OSError:
        stage = "importing"
    error = str(evidence.result.get("error", ""))
    if stage not in _THEIRS or evidence.lowered:
        return
    lines = error.splitlines() or run.stderr.strip().splitlines()[-1:] or ["it ended its process"]
    raise InputError(
        f"{request.function} with {request.arguments}",
        rule=f"{stage} failed: {' '.join(lines)[:500].rstrip('.')}",
        cure=_CURES[stage],
    )


_CURES = {
    "importing": "Run this where `python -c 'import MODULE'` works, with jax installed.",
    "making its arguments": "Let it be a tuple of jax.ShapeDtypeStruct, or a function that returns "
    "one; a function of one argument is given the devices, for a Mesh and its NamedSharding.",
    "tracing": "Check that the function takes these arguments: jax.eval_shape(FUNCTION, *ARGS).",
}


def _mesh(evidence: Evidence) -> Mesh | None:
    """That of the arguments; None where they lie on one device."""
    axes = evidence.lowered.get("mesh") or ()
    return Mesh(tuple((str(name), int(size)) for name, size in axes), named=True) if axes else None


def _schedule(topology: Topology, folder: Path, mesh: Mesh | None) -> dict[str, object]:
    """The schedule of a program whose axes lie on links that nobody has told us."""
    found = final_program(folder)
    if found is None:
        return {}
    data, generated = found
    chip = find_chip(topology.chip)
    constants = load_calibration().constants(
        chip.platform, "xla" if chip.platform == "gpu" else None, chip.name
    )
    try:
        transfers = UnplacedTransfers(mesh, topology, constants)
        return {"schedule": schedule_of(data, chip, transfers, constants, generated=generated)}
    except PromptsError as error:
        return {"notes": (f"The scheduled program could not be read: {error.rule}.",)}
