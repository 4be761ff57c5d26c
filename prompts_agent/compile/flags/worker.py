"""Worker: offers flags to the compiler with a program of one sum, until it takes the rest.

`python -m prompts_agent.compile.flags.worker DIRECTORY` reads `request.json` there and writes
`result.json`: for each flag that was refused, what the compiler said.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from prompts_agent.compile.flags.request import FlagsRequest
from prompts_agent.compile.worker import write_facts
from prompts_agent.workers.process import die_with_parent

__all__ = ["main"]

_BOOLS = {"true": True, "1": True, "false": False, "0": False}
_NOT_BOOL = "is not a valid bool value"


def main(directory: Path) -> None:
    """Try what `directory`/request.json has."""
    request = FlagsRequest.model_validate_json((directory / "request.json").read_bytes())
    try:
        facts: dict[str, Any] = {"refused": _refused(_smallest_program(request), request.flags)}
    except Exception as error:  # noqa: BLE001  (whatever it is, the parent says so)
        facts = {"error": f"{type(error).__name__}: {error}"}
    write_facts(directory / "result.json", facts)


def _refused(lowered: Any, flags: dict[str, str]) -> dict[str, str]:
    """A refusal takes milliseconds, for options are read before anything is compiled, and names
    its flag; what is left is offered again. A list that is accepted takes a tenth of a second.
    """
    left: dict[str, Any] = dict(flags)
    refused: dict[str, str] = {}
    while left and (error := _error(lowered, left)) is not None:
        name = next((word for word in re.findall(r"\w+", error) if word in left), None)
        if name is None:
            return refused | _one_by_one(lowered, left, error)
        text = str(left[name]).lower()
        if _NOT_BOOL in error and isinstance(left[name], str) and text in _BOOLS:
            # XLA's own options want a bool where libtpu's want the word.
            left[name] = _BOOLS[text]
            continue
        refused[name] = error
        del left[name]
    return refused


def _one_by_one(lowered: Any, flags: dict[str, Any], error: str) -> dict[str, str]:
    """What is refused alone; where nothing is, they clash, and the compiler's words stand."""
    alone = {name: _error(lowered, {name: value}) for name, value in flags.items()}
    found = {name: said for name, said in alone.items() if said is not None}
    return found or dict.fromkeys(flags, f"together with the others: {error}")


def _error(lowered: Any, options: dict[str, Any]) -> str | None:
    try:
        lowered.compile(compiler_options=options)
    except Exception as error:  # noqa: BLE001  (its words are the answer)
        return str(error).splitlines()[0]
    return None


def _smallest_program(request: FlagsRequest) -> Any:
    """A sum over all devices, so that flags about collectives have one to look at."""
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding

    from prompts_agent.compile.absent import absent_devices
    from prompts_agent.compile.reference.untyped import abstract, partition

    devices, _ = absent_devices(request.target, request.compiler)
    mesh = Mesh(np.array(devices), ("all",))
    cut, whole = (NamedSharding(mesh, partition(*axes)) for axes in (("all",), ()))
    rows = abstract((8 * len(devices), 128), np.dtype(np.float32), cut)
    return jax.jit(lambda x: x.sum(axis=0), out_shardings=whole).lower(rows)


if __name__ == "__main__":
    die_with_parent(os.getppid())
    main(Path(sys.argv[1]))
