"""Final program: the scheduled HloProto that a compile left behind."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from prompts_agent.compile.assignment import find_file

__all__ = ["final_program", "load_program", "store_program"]

_DUMP = "after_optimizations.hlo.pb"
_MODULE = "module.pb"
_PALLAS = ("tpu_custom_call", "mosaic")


def final_program(directory: Path) -> tuple[bytes, bool] | None:
    """A serialized HloProto, and whether code was generated for it; None where there is none.

    After a whole compile the module is the executable's own, with cycle counts, and the buffer
    assignment the dump's. Kernels' own code is left out: it is most of the bytes and never read.
    """
    from google.protobuf.message import DecodeError

    from prompts_agent.trace.xspace.messages import hlo_proto, message_class

    dump, module = find_file(directory / "dump", _DUMP), directory / _MODULE
    try:
        proto = hlo_proto()()
        if dump is not None:
            proto.ParseFromString(dump.read_bytes())
        if module.exists():
            own = message_class("prompts_agent.hlo.HloModuleProto").FromString(module.read_bytes())
            proto.hlo_module.CopyFrom(own)
    except (OSError, DecodeError):
        return None
    if not proto.hlo_module.computations:
        return None
    _slim(proto)
    return proto.SerializeToString(deterministic=True), module.exists()


def _slim(proto: Any) -> None:
    del proto.buffer_assignment.logical_buffers[:]
    for computation in proto.hlo_module.computations:
        for instruction in computation.instructions:
            if instruction.custom_call_target in _PALLAS:
                instruction.backend_config = b""


def store_program(path: Path, data: bytes) -> None:
    """Compressed, at `path`; what cannot be written is compiled again when it is wanted."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        temporary.write_bytes(gzip.compress(data, mtime=0))
        temporary.replace(path)
    except OSError:
        return


def load_program(path: Path) -> bytes | None:
    """What `store_program` wrote; None where it is not there or damaged."""
    try:
        return gzip.decompress(path.read_bytes())
    except (OSError, EOFError):
        return None
