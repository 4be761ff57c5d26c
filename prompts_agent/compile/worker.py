"""Worker: compiles one reference program in a process of its own.

`python -m prompts_agent.compile.worker DIRECTORY` reads `request.json` there, writes `lowered.json`
before it compiles and `result.json` after. XLA dumps into `dump/` as it goes; the parent watches
that and ends this process as soon as memory is assigned, long before code generation is done.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

from prompts_agent.compile.expert_axis import without_expert_axis
from prompts_agent.compile.program import kernel_for
from prompts_agent.compile.request import Request, Until
from prompts_agent.workers.process import die_with_parent

__all__ = ["limit_memory", "main", "write_facts"]


def main(directory: Path) -> None:
    """Compile what `directory`/request.json asks for."""
    request = Request.model_validate_json((directory / "request.json").read_bytes())
    limit_memory(request.memory_limit_bytes)
    try:
        facts = _compile(request, directory)
    except Exception as error:  # noqa: BLE001  (the compiler's own words are the result)
        facts = {"error": f"{type(error).__name__}: {error}"}
    write_facts(directory / "result.json", facts)


def limit_memory(limit_bytes: int | None) -> None:
    """A second fence, for anonymous memory alone; the parent watches resident memory."""
    if limit_bytes is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (4 * limit_bytes, 4 * limit_bytes))


def _compile(request: Request, directory: Path) -> dict[str, Any]:
    from prompts_agent.compile.absent import absent_devices, absent_mesh
    from prompts_agent.compile.reference.build import build
    from prompts_agent.compile.reference.frame import Frame, axis_sizes
    from prompts_agent.compile.reference.shapes import shapes_of

    kernel = kernel_for(request.target, request.workload.model)
    if kernel == "cudnn":
        _assume_cudnn()
    started_s = time.monotonic()
    devices, knowledge = absent_devices(request.target, request.compiler)
    layout = without_expert_axis(request.layout)
    sizes = axis_sizes(layout)
    mesh = absent_mesh(devices, sizes, layout, request.target.slices)
    frame = Frame.of(
        mesh,
        request.layout,
        request.workload,
        kernel=kernel,
        one_hot=request.target.one_hot_lookup,
    )
    step = build(frame)
    lowered = step.lower()
    facts = {
        "device_kind": devices[0].device_kind,
        "devices": len(devices),
        "knowledge": knowledge,
        "shapes": shapes_of(frame, step).model_dump(mode="json"),
        "lowering_s": time.monotonic() - started_s,
    }
    write_facts(directory / "lowered.json", facts)
    options = request.target.flags | {
        "xla_dump_to": os.fspath(directory / "dump"),
        "xla_dump_hlo_as_text": True,
        "xla_dump_hlo_as_proto": request.until is not Until.MEMORY,
    }
    compiled = lowered.compile(compiler_options=options)
    if request.until is Until.END:
        (module,) = compiled.runtime_executable().hlo_modules()
        (directory / "module.pb").write_bytes(module.as_serialized_hlo_module_proto())
    analysis = compiled.memory_analysis()
    return {
        "argument_bytes": int(analysis.argument_size_in_bytes),
        "temporary_bytes": int(analysis.temp_size_in_bytes),
        "output_bytes": int(analysis.output_size_in_bytes),
        "alias_bytes": int(analysis.alias_size_in_bytes),
    }


def _assume_cudnn() -> None:
    """CuDNN's calls are only named in the program, so no cuDNN is needed to compile it.

    jax asks for its version first; where that question cannot be answered for it, the attention
    falls back to plain jax and the result says so.
    """
    try:
        from jax._src.cudnn import fused_attention_stablehlo as fused
    except ImportError:
        return
    if hasattr(fused, "check_cudnn_version"):
        fused.check_cudnn_version = lambda: 91000


def write_facts(path: Path, facts: dict[str, Any]) -> None:
    """All or nothing, because the parent reads it as soon as it is there."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(facts), encoding="utf-8")
    temporary.replace(path)


if __name__ == "__main__":
    die_with_parent(os.getppid())
    main(Path(sys.argv[1]))
