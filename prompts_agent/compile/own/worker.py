"""Worker: imports a user's function and compiles it for absent devices.

`python -m prompts_agent.compile.own.worker DIRECTORY` reads `request.json` there, writes `stage` as
it goes, and `result.json` at the end.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import warnings
from pathlib import Path
from typing import Any

from prompts_agent.compile.own.request import OwnRequest
from prompts_agent.compile.request import Until
from prompts_agent.compile.worker import limit_memory, write_facts
from prompts_agent.workers.process import die_with_parent

__all__ = ["main"]


def main(directory: Path) -> None:
    """Compile what `directory`/request.json names."""
    request = OwnRequest.model_validate_json((directory / "request.json").read_bytes())
    limit_memory(request.memory_limit_bytes)
    stage = _Stage(directory)
    try:
        facts = _compile(request, directory, stage)
    except Exception as error:  # noqa: BLE001  (the user's or the compiler's own words are the result)
        facts = {"error": f"{type(error).__name__}: {error}", "stage": stage.now}
    write_facts(directory / "result.json", facts)


class _Stage:
    """What is being done, also for a parent that finds this process dead."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "stage"
        self.now = ""

    def set(self, name: str) -> None:
        self.now = name
        self._path.write_text(name, encoding="utf-8")


def _compile(request: OwnRequest, directory: Path, stage: _Stage) -> dict[str, Any]:
    import jax

    from prompts_agent.compile.absent import absent_devices

    sys.path.insert(0, request.directory)
    stage.set("importing")
    step = _named(request.function)
    arguments = _named(request.arguments)
    stage.set("finding the topology")
    devices, knowledge = absent_devices(request.target, request.compiler)
    stage.set("making its arguments")
    values = _placed(_arguments(arguments, devices), devices)
    stage.set("tracing")
    jitted = step if hasattr(step, "lower") else jax.jit(step)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lowered = jitted.lower(*values)
    facts = {"devices": len(devices), "knowledge": knowledge, "mesh": _mesh(values)}
    write_facts(directory / "lowered.json", facts)
    stage.set("compiling")
    options: dict[str, Any] = request.target.flags | {
        "xla_dump_to": os.fspath(directory / "dump"),
        "xla_dump_hlo_as_text": True,
        "xla_dump_hlo_as_proto": request.until is not Until.MEMORY,
    }
    compiled = lowered.compile(compiler_options=options)
    if request.until is Until.END:
        executable: Any = compiled.runtime_executable()
        (module,) = executable.hlo_modules()
        (directory / "module.pb").write_bytes(module.as_serialized_hlo_module_proto())
    analysis: Any = compiled.memory_analysis()
    return {
        "argument_bytes": int(analysis.argument_size_in_bytes),
        "temporary_bytes": int(analysis.temp_size_in_bytes),
        "output_bytes": int(analysis.output_size_in_bytes),
        "alias_bytes": int(analysis.alias_size_in_bytes),
    }


def _named(text: str) -> Any:
    module, _, path = text.partition(":")
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


def _arguments(given: Any, devices: list[Any]) -> tuple[Any, ...]:
    """What `abstract_args` is or returns; a function of one argument is given the devices."""
    if callable(given):
        wants = len(inspect.signature(given).parameters)
        given = given(devices) if wants else given()
    return given if isinstance(given, tuple) else (given,)


def _placed(values: tuple[Any, ...], devices: list[Any]) -> tuple[Any, ...]:
    """Abstract arrays, those without a sharding on the first device: jax would look for a real one.

    Once one argument lies on a mesh, the others go where jit puts them.
    """
    import jax
    from jax.sharding import SingleDeviceSharding

    from prompts_agent.compile.reference.untyped import abstract

    leaves = jax.tree.leaves(values)
    if any(getattr(leaf, "sharding", None) is not None for leaf in leaves):
        return values
    first = SingleDeviceSharding(devices[0])

    def on_first(leaf: Any) -> Any:
        return abstract(leaf.shape, leaf.dtype, first)

    placed: tuple[Any, ...] = jax.tree.map(on_first, values)
    return placed


def _mesh(values: tuple[Any, ...]) -> list[tuple[str, int]]:
    """Axes of the mesh that the first argument with one lies on; collectives are named by it."""
    import jax

    for leaf in jax.tree.leaves(values):
        mesh = getattr(getattr(leaf, "sharding", None), "mesh", None)
        if mesh is not None:
            return [(str(name), int(size)) for name, size in mesh.shape.items()]
    return []


if __name__ == "__main__":
    die_with_parent(os.getppid())
    main(Path(sys.argv[1]))
