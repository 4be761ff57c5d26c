"""Request: everything that decides what a compile gives, and the key of its result."""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from functools import cache
from pathlib import Path

from prompts_agent.compile.dropless import is_dropless
from prompts_agent.compile.target import Target
from prompts_agent.compile.toolchain import Toolchain
from prompts_agent.layout.layout import Layout
from prompts_agent.record import Record
from prompts_agent.workload.workload import Workload

__all__ = ["Request", "Until", "key_of"]

_HERE = Path(__file__).resolve().parent
_UNSEEN_MODEL = {
    "name", "family", "source", "max_sequence",
    "published_parameters", "published_source", "published_active_parameters",
}  # fmt: skip


class Until(StrEnum):
    """How far a compile goes."""

    MEMORY = "memory"
    """Until memory is assigned."""
    SCHEDULE = "schedule"
    """The same, and the scheduled program is dumped."""
    END = "end"
    """Through code generation, which gives the compiler's cycle counts."""


class Request(Record):
    """One compile. `compiler` is the package that has the compiler."""

    workload: Workload
    layout: Layout
    target: Target
    compiler: str
    memory_limit_bytes: int | None = None
    until: Until = Until.MEMORY


def key_of(request: Request, toolchain: Toolchain) -> str:
    """sha256 over what the result hangs on: program, topology, flags, compiler, and our own code.

    The program's text would be the most exact key, but making it takes jax and a second; the same
    text follows from the model's dims, the workload, the layout and the code that builds it.
    """
    workload = request.workload
    parts = {
        "model": workload.model.model_dump(mode="json", exclude=_UNSEEN_MODEL),
        "phase": workload.phase.value,
        "global_batch": workload.global_batch,
        "sequence": workload.sequence,
        "precision": workload.precision.model_dump(mode="json"),
        "dropless": workload.model.moe is not None and is_dropless(workload, request.layout),
        "input_tokens": workload.traffic.input_tokens if workload.traffic else None,
        "layout": request.layout.model_dump(mode="json"),
        "target": request.target.model_dump(mode="json"),
        "until": request.until.value,
        "versions": toolchain.versions,
        "code": _code(),
    }
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def _code() -> str:
    """A hash of the files that build the program and read the dump."""
    digest = hashlib.sha256()
    own = [*_HERE.rglob("*.py"), *_HERE.glob("data/*.yaml")]
    for path in sorted([*own, _HERE.parent / "layout" / "specs.py"]):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
