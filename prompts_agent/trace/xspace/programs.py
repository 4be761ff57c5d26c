"""Programs and versions, which lie in the metadata planes of a trace."""

from __future__ import annotations

import re
from typing import Any

from prompts_agent.errors import DamagedTraceError
from prompts_agent.trace.hlo.program import HloProgram
from prompts_agent.trace.hlo.proto import read_hlo_proto
from prompts_agent.trace.xspace.file import XSpaceFile
from prompts_agent.trace.xspace.stats import StatNames

__all__ = ["SIMULATED_STAT", "read_programs", "read_simulated", "read_versions"]

SIMULATED_STAT = "prompts_simulated"
"""Of the metadata plane of a trace that no device ran; its value says what it is."""
_METADATA_PLANE = "/host:metadata"
_HLO_STATS = ("hlo proto", "hlo_proto")  # "Hlo Proto", or "HLO Proto" since libtpu 0.0.37
_NAMED = re.compile(r"^(.*)\((\d+)\)$")


def _heads(file: XSpaceFile) -> list[Any]:
    return [
        file.plane_head(plane)
        for plane in file.planes
        if plane.name.startswith(_METADATA_PLANE) and plane.complete
    ]


def read_programs(file: XSpaceFile) -> tuple[dict[int, HloProgram], list[str]]:
    """Programs by unsigned id, and the names of those that could not be read.

    The id is in the entry's name, `jit_f(1219)`: the map's key is not always it.
    """
    programs: dict[int, HloProgram] = {}
    unreadable: list[str] = []
    for head in _heads(file):
        names = StatNames(head)
        for key, metadata in head.event_metadata.items():
            for stat in metadata.stats:
                if (names.name(stat.metadata_id) or "").lower() not in _HLO_STATS:
                    continue
                named = _NAMED.match(metadata.name)
                program_id = (int(named[2]) if named else key) % 2**64
                try:
                    programs[program_id] = read_hlo_proto(stat.bytes_value, program_id)
                except DamagedTraceError:
                    unreadable.append(metadata.name)
    return programs, unreadable


def read_versions(file: XSpaceFile) -> dict[str, str]:
    """`jax_version` and the like, in traces since 2026."""
    found: dict[str, str] = {}
    for head in _heads(file):
        for name, value in StatNames(head).values(head.stats).items():
            if name.endswith("_version") and isinstance(value, str):
                found[name] = value.splitlines()[0][:80] if value else value
    return found


def read_simulated(file: XSpaceFile) -> str | None:
    """What a simulated trace says of itself; None for a trace of a device."""
    for head in _heads(file):
        said = StatNames(head).values(head.stats).get(SIMULATED_STAT)
        if isinstance(said, str):
            return said[:400]
    return None
