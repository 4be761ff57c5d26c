"""Host events that mean something to a diagnosis, by their names in jax's traces."""

from __future__ import annotations

import re

__all__ = ["host_event_kind"]

_KINDS = (
    (
        "compile",
        re.compile(r"^(?:backend_compile|TfrtTpuCompiler::Compile|XlaCompile|TSL:XlaCompile)"),
    ),
    ("h2d", re.compile(r"^(?:tpu::System::TransferToDevice|TransferToDevice|BufferFromHost\w*)$")),
    ("d2h", re.compile(r"^(?:tpu::System::TransferFromDevice|TransferFromDevice)$")),
    ("infeed", re.compile(r"^(?:Infeed\w*|TransferToInfeed\w*)", re.IGNORECASE)),
    ("input", re.compile(r"^(?:Iterator::|IteratorGetNext|PyGrain|grain\.)")),
)
"""Only the outermost event of each: `TransferToDevice=>IssueEvent` lies within its parent."""


def host_event_kind(name: str) -> str | None:
    """compile, h2d, d2h, infeed, input; None for the rest."""
    return next((kind for kind, pattern in _KINDS if pattern.match(name)), None)
