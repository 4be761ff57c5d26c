"""Enumeration: every legal layout of a space, in one table.

Complete by construction: all ordered factorisations of the fast domain and of the domains over the
allowed axes (of all devices, where degrees decide the split), times every choice of every knob. A
row is dropped by a rule of legality and by nothing else; what is slow is for the estimate to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from prompts_agent.errors import LayoutError
from prompts_agent.layout.domains import (
    DIVIDED_BY_EXPERT,
    EXPERT,
    domain_size,
    domains,
    fill,
    fill_with_divided,
)
from prompts_agent.layout.factorisations import divisors, factorisations
from prompts_agent.layout.layout import PipelineSchedule, Remat
from prompts_agent.layout.legality import keep, knob_rules, mesh_rules
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.space import Space
from prompts_agent.layout.table import KV_DTYPES, REMATS, SCHEDULES, LayoutTable

__all__ = ["Enumeration", "enumerate_layouts"]

IntColumn = NDArray[np.int64]

_AXES = tuple(Axis)
_CHUNK_MESHES = 1 << 16
_CHUNK_ROWS = 1 << 18
MAX_ROWS = 20_000_000
"""A table of so many rows takes 3.6 GB; beyond it the search needs constraints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Enumeration:
    """Every legal layout, sorted by mesh (ici of pipeline slowest) and then by knobs.

    `considered` counts what was checked: each mesh that breaks a rule once, since no knob mends
    it, and each choice of knobs on the others. `meshes` counts the meshes among them.
    """

    table: LayoutTable
    considered: int
    meshes: int


def enumerate_layouts(space: Space) -> Enumeration:
    """Enumerate the space. The order is deterministic.

    Raises `LayoutError` where more than MAX_ROWS layouts are legal.
    """
    tables: list[LayoutTable] = []
    considered = meshes = rows = 0
    for ici, dcn in _mesh_chunks(space):
        chunk = _mesh_table(ici, dcn, space)
        meshes += len(chunk)
        fitting = chunk.take(keep(chunk, space, mesh_rules(space)))
        considered += len(chunk) - len(fitting)
        for full in _with_knobs(fitting, space):
            considered += len(full)
            tables.append(full.take(keep(full, space, knob_rules(space))))
            rows += len(tables[-1])
            _check_size(rows)
    tables = tables or [_mesh_table(*_no_meshes(), space)]
    return Enumeration(table=_joined(tables), considered=considered, meshes=meshes)


def _check_size(rows: int) -> None:
    if rows > MAX_ROWS:
        raise LayoutError(
            f"more than {MAX_ROWS} legal layouts",
            rule="the search holds every legal layout in memory",
            cure="Narrow the workload's constraints: axes, max_degree, microbatches or remat.",
        )


def _no_meshes() -> tuple[IntColumn, IntColumn]:
    empty = np.ones((0, len(_AXES)), dtype=np.int64)
    return empty, empty


def _mesh_chunks(space: Space) -> Iterator[tuple[IntColumn, IntColumn]]:
    """Every mesh, as ici and dcn sizes of shape (m, 6), in pieces that fit the cache."""
    axes = [a for a in space.axes if not (space.expert_divides and a is Axis.EXPERT)]
    if space.rank_order:
        degrees = _spread(space.topology.devices, axes)
        for start in range(0, len(degrees), _CHUNK_MESHES):
            yield _ranked(degrees[start : start + _CHUNK_MESHES], space)
        return
    inside = _spread(domain_size(space.topology), axes)
    across = _spread(domains(space.topology), [a for a in axes if a in space.dcn_axes])
    step = max(1, _CHUNK_MESHES // max(1, len(across)))
    for start in range(0, len(inside), step):
        ici = np.repeat(inside[start : start + step], len(across), axis=0)
        yield ici, np.tile(across, (len(inside[start : start + step]), 1))


def _spread(number: int, axes: Sequence[Axis]) -> IntColumn:
    """Ordered factorisations of `number` over `axes`, in six columns."""
    columns = sorted(_AXES.index(axis) for axis in set(axes))
    parts = factorisations(number, len(columns))
    sizes = np.ones((len(parts), len(_AXES)), dtype=np.int64)
    sizes[:, columns] = parts
    return sizes


def _ranked(degrees: IntColumn, space: Space) -> tuple[IntColumn, IntColumn]:
    """Splits that follow from degrees, with every expert degree that divides the ranks."""
    size = domain_size(space.topology)
    if not space.expert_divides:
        return fill(degrees, size)
    if space.model.moe is not None and Axis.EXPERT in space.axes:
        ranks = np.prod(degrees[:, _divided(space)], axis=1)
        whole = space.expert_whole
        rows, expert = _choices(ranks, lambda n: sorted({1, n}) if whole else divisors(n))
        degrees = degrees[rows]
        degrees[:, EXPERT] = expert
    return fill_with_divided(degrees, size)


def _divided(space: Space) -> tuple[int, ...]:
    """Columns of the axes that expert divides. In serving it stays inside a replica: data ranks
    that share their experts are the same job as attention_data groups of one replica.
    """
    if space.training:
        return DIVIDED_BY_EXPERT
    return tuple(column for column in DIVIDED_BY_EXPERT if _AXES[column] is not Axis.DATA)


def _choices(
    key: IntColumn, options: Callable[[int], Sequence[int]]
) -> tuple[IntColumn, IntColumn]:
    """Each row times the options of its key: row indices and chosen values, of equal length.

    >>> [column.tolist() for column in _choices(np.array([4, 1]), divisors)]
    [[0, 0, 0, 1], [1, 2, 4, 1]]
    """
    distinct, inverse = np.unique(key, return_inverse=True)
    values = [np.asarray(options(int(k)), dtype=np.int64) for k in distinct]
    counts = np.array([len(v) for v in values], dtype=np.int64)
    offsets = np.cumsum(counts) - counts
    per_row = counts[inverse]
    rows = np.repeat(np.arange(len(key), dtype=np.int64), per_row)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(per_row) - per_row, per_row)
    flat = np.concatenate(values) if values else np.empty(0, dtype=np.int64)
    return rows, flat[np.repeat(offsets[inverse], per_row) + place]


def _mesh_table(ici: IntColumn, dcn: IntColumn, space: Space) -> LayoutTable:
    """The meshes with every knob at its neutral value."""
    n = len(ici)
    remat = Remat.FULL if space.training else Remat.NONE

    def column(value: int) -> IntColumn:
        return np.full(n, value, dtype=np.int64)

    return LayoutTable(
        ici=ici,
        dcn=dcn,
        expert_divides=np.full(n, space.expert_divides),
        microbatch=column(1),
        gradient_accumulation=column(1),
        remat=column(REMATS.index(remat)),
        zero_stage=column(space.zero_stage),
        sequence_parallel=np.full(n, False),
        weights_over_context=np.full(n, space.weights_over_context),
        schedule=column(SCHEDULES.index(PipelineSchedule.ONE_F_ONE_B)),
        virtual_stages=column(1),
        attention_data=column(1),
        batch_limit=column(0),
        kv_dtype=column(KV_DTYPES.index(space.kv_dtype)),
    )


def _with_knobs(table: LayoutTable, space: Space) -> Iterator[LayoutTable]:
    """The legal meshes times every choice of knobs, in pieces of about _CHUNK_ROWS."""
    expand = _with_training_knobs if space.training else _with_serving_knobs
    # The widest expansions known: some hundred rows a mesh.
    step = _CHUNK_ROWS >> 7
    for start in range(0, len(table), step):
        yield expand(table.take(np.arange(start, min(start + step, len(table)))), space)


def _with_serving_knobs(table: LayoutTable, space: Space) -> LayoutTable:
    allowed = space.attention_data
    rows, groups = _choices(
        table.size(Axis.TENSOR),
        lambda tensor: [d for d in divisors(tensor) if not allowed or d in allowed],
    )
    wide = _replaced(table.take(rows), attention_data=groups)
    if space.kv_dtypes:
        dtypes = [KV_DTYPES.index(name) for name in space.kv_dtypes]
        rows, dtype = _choices(np.zeros(len(wide), dtype=np.int64), lambda _: dtypes)
        wide = _replaced(wide.take(rows), kv_dtype=dtype)
    if not space.batch_limits:
        return wide
    share = -(-space.global_batch // wide.batch_shards)
    rows, limit = _choices(share, _limits)
    return _replaced(wide.take(rows), batch_limit=limit)


def _limits(share: int) -> list[int]:
    """No limit (0), and the powers of two below a replica's share of the sequences.

    >>> _limits(12)
    [0, 8, 4, 2, 1]
    """
    return [0, *(1 << k for k in reversed(range(max(share - 1, 0).bit_length())))]


def _with_training_knobs(table: LayoutTable, space: Space) -> LayoutTable:
    per_shard = space.global_batch // table.batch_shards
    rows, microbatch = _choices(
        per_shard,
        lambda batch: [d for d in divisors(batch) if _may(d, space.microbatches)],
    )
    accumulation = per_shard[rows] // microbatch
    in_flight = accumulation >= table.size(Axis.PIPELINE)[rows]
    # Below as many microbatches as stages nothing is legal, so nothing is multiplied out.
    rows, microbatch, accumulation = rows[in_flight], microbatch[in_flight], accumulation[in_flight]

    again, chunks = _choices(table.size(Axis.PIPELINE)[rows], lambda p: _chunks(p, space))
    rows, microbatch, accumulation = rows[again], microbatch[again], accumulation[again]

    switches = [int(s) for s in sorted(set(space.sequence_parallel))]
    again, switch = _choices(table.size(Axis.TENSOR)[rows], lambda t: switches if t > 1 else [0])
    rows, microbatch, accumulation = rows[again], microbatch[again], accumulation[again]
    chunks = chunks[again]

    remats = [REMATS.index(remat) for remat in space.remat]
    many = len(remats)
    schedules = np.where(
        chunks > 1,
        SCHEDULES.index(PipelineSchedule.INTERLEAVED),
        SCHEDULES.index(PipelineSchedule.ONE_F_ONE_B),
    )
    return _replaced(
        table.take(np.repeat(rows, many)),
        microbatch=np.repeat(microbatch, many),
        gradient_accumulation=np.repeat(accumulation, many),
        virtual_stages=np.repeat(chunks, many),
        schedule=np.repeat(schedules, many),
        sequence_parallel=np.repeat(switch.astype(np.bool_), many),
        remat=np.tile(np.array(remats, dtype=np.int64), len(rows)),
    )


def _may(value: int, allowed: Sequence[int]) -> bool:
    return not allowed or value in allowed


def _chunks(pipeline: int, space: Space) -> list[int]:
    """Chunks per stage: 1, and with a pipeline every number that divides the fullest stage's
    layers.
    """
    if pipeline == 1:
        return [1]
    wanted = divisors(-(-space.model.layers // pipeline))
    return [v for v in wanted if v == 1 or _may(v, space.virtual_stages)]


def _replaced(table: LayoutTable, **columns: NDArray[np.int64] | NDArray[np.bool_]) -> LayoutTable:
    kept = {f.name: getattr(table, f.name) for f in fields(table)}
    return LayoutTable(**(kept | columns))


def _joined(tables: Sequence[LayoutTable]) -> LayoutTable:
    return LayoutTable(
        **{
            f.name: np.concatenate([getattr(table, f.name) for table in tables])
            for f in fields(LayoutTable)
        }
    )
