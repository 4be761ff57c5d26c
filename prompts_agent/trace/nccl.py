"""What PyTorch writes about a collective: bytes, group, ranks, and the axis behind the group."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prompts_agent.trace.events import as_int

__all__ = ["MAX_RANKS", "Collective", "ProcessGroups", "axis_of", "partition_of", "read_collective"]

MAX_RANKS = 1 << 20
"""No job has a million GPUs: a larger world or rank is damage, and would cost memory."""

_DTYPE_BYTES = {
    "float": 4,
    "float32": 4,
    "int": 4,
    "int32": 4,
    "double": 8,
    "float64": 8,
    "long": 8,
    "int64": 8,
    "half": 2,
    "float16": 2,
    "bfloat16": 2,
    "short": 2,
    "byte": 1,
    "char": 1,
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2fnuz": 1,
    "complexfloat": 8,
}
"""c10::ScalarType's names as ParamCommsUtils writes them, and torch's own."""

_AXES = {
    "dp": "data",
    "ddp": "data",
    "data": "data",
    "data_parallel": "data",
    "dp_replicate": "data",
    "fsdp": "fsdp",
    "dp_shard": "fsdp",
    "tp": "tensor",
    "tensor": "tensor",
    "tensor_parallel": "tensor",
    "tensor_model_parallel": "tensor",
    "cp": "context",
    "context": "context",
    "context_parallel": "context",
    "ep": "expert",
    "expert": "expert",
    "expert_model_parallel": "expert",
    "pp": "pipeline",
    "pipeline": "pipeline",
    "pipeline_model_parallel": "pipeline",
}
"""Dim names of DeviceMesh as torchtitan uses them, and Megatron-LM's group descriptions
(`TENSOR_MODEL_PARALLEL_GROUP`), lower case without `mesh_` and `_group`."""

_NAMELESS = {"", "default_pg", "undefined", "default"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """One collective's metadata; None where the trace does not say."""

    name: str | None
    bytes: int | None
    group_size: int | None
    ranks: tuple[int, ...] | None
    axis: str | None


class ProcessGroups:
    """The groups of `distributedInfo.pg_config`, by name, and the world that they divide."""

    def __init__(self, config: object, world_size: int | None = None) -> None:
        self.world_size = world_size
        self._ranks: dict[str, tuple[int, ...]] = {}
        for group in config if isinstance(config, list) else []:
            if isinstance(group, dict):
                ranks = _ranks(group.get("ranks"))
                if ranks is not None:
                    self._ranks[str(group.get("pg_name"))] = ranks

    def ranks(self, name: object) -> tuple[int, ...] | None:
        """The ranks of the group `name`, where the file lists them in full."""
        return self._ranks.get(str(name))


def partition_of(
    ranks: tuple[int, ...], world_size: int | None
) -> tuple[tuple[int, ...], ...] | None:
    """All groups of the mesh axis that `ranks` lie along; a rank's file lists its own only.

    Ranks of a mesh are row-major, so the groups of an axis are one another shifted: of 8 ranks
    (1, 3) has stride 2 and gives (0,2) (1,3) (4,6) (5,7). None where the ranks do not divide the
    world so. An unknown world is taken to be the group only where that begins at 0.
    """
    size = len(ranks)
    first, stride = min(ranks), 1
    if size > 1:
        stride = sorted(ranks)[1] - first
    block = stride * size
    world = world_size or (size if first == 0 and stride == 1 else 0)
    regular = stride > 0 and sorted(ranks) == list(range(first, first + block, stride))
    inside = max(ranks) < world
    if not regular or not inside or world % block or first % block >= stride:
        return None
    return tuple(
        tuple(range(start + inner, start + inner + block, stride))
        for start in range(0, world, block)
        for inner in range(stride)
    )


def axis_of(description: object) -> str | None:
    """The mesh axis that a group's description names, in this package's words where it is known."""
    if not isinstance(description, str):
        return None
    plain = description.strip().lower().removeprefix("mesh_").removesuffix("_group")
    if plain in _NAMELESS:
        return None
    if plain in _AXES:
        return _AXES[plain]
    return plain if re.fullmatch(r"[a-z][a-z0-9_]{0,31}", plain) else None


def read_collective(args: Mapping[str, Any], groups: ProcessGroups) -> Collective | None:
    """Reads the args of a NCCL kernel or a `record_param_comms`; None where they say nothing."""
    name = args.get("Collective name")
    size = as_int(args.get("Group size"))
    if not isinstance(name, str) and size is None:
        return None
    ranks = _ranks(args.get("Process Group Ranks"))
    if ranks is None or (size is not None and len(ranks) != size):  # shortened: "[0, 1, ..., 63]"
        ranks = groups.ranks(args.get("Process Group Name")) or _strided(args, size)
    if ranks is not None and size is not None and len(ranks) != size:
        ranks = None
    return Collective(
        name=name if isinstance(name, str) else None,
        bytes=_bytes(args),
        group_size=size or (len(ranks) if ranks else None),
        ranks=ranks,
        axis=axis_of(args.get("Process Group Description")),
    )


def _bytes(args: Mapping[str, Any]) -> int | None:
    """The larger of input and result, as XLA counts a collective's operand or result."""
    width = _DTYPE_BYTES.get(str(args.get("dtype", "")).lower().removeprefix("c10::"))
    counts = [as_int(args.get(key)) for key in ("In msg nelems", "Out msg nelems")]
    known = [count for count in counts if count is not None]
    return max(known) * width if known and width else None


def _ranks(value: object) -> tuple[int, ...] | None:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    if not isinstance(value, list) or not value:
        return None
    if not all(type(rank) is int and 0 <= rank < MAX_RANKS for rank in value):  # True is an int
        return None
    return tuple(value)


def _strided(args: Mapping[str, Any], size: int | None) -> tuple[int, ...] | None:
    """Ranks from start and stride: 0, stride 4, size 2 → (0, 4)."""
    start, stride = as_int(args.get("Global rank start")), as_int(args.get("Global rank stride"))
    if start is None or not stride or not size or start + stride * size > MAX_RANKS + stride:
        return None
    return tuple(range(start, start + stride * size, stride))
