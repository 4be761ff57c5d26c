"""Columns against protobuf's own decoding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts_agent.trace.xspace import columns
from prompts_agent.trace.xspace.columns import decode_varints, event_blocks
from prompts_agent.trace.xspace.file import XSpaceFile
from prompts_agent.trace.xspace.messages import xspace
from prompts_agent.trace.xspace.stats import ABSENT, StatNames, stat_columns

# Numbers at the edges of varint widths, and 34 = 0x22, which looks like an event's tag.
numbers = st.one_of(
    st.sampled_from([0, 1, 8, 16, 34, 127, 128, 8738, 2**21, 2**35, 2**56 - 1, 2**56, 2**63 - 1]),
    st.integers(-(2**63), 2**63 - 1),
)
stats = st.tuples(st.integers(0, 40), st.one_of(numbers, st.text(max_size=5), st.floats()))
events = st.tuples(
    numbers, numbers, numbers, st.lists(stats, max_size=4), st.sampled_from([False] * 9 + [True])
)


def space_of(rows: list[Any]) -> Any:
    space = xspace()()
    plane = space.planes.add(name="/device:TPU:0")
    line = plane.lines.add(name="XLA Ops", id=3, timestamp_ns=5)
    for metadata_id, offset, duration, event_stats, counted in rows:
        event = line.events.add(metadata_id=metadata_id, duration_ps=duration)
        if counted:
            event.num_occurrences = 4
        else:
            event.offset_ps = offset
        for key, value in event_stats:
            stat = event.stats.add(metadata_id=key)
            kind = {int: "int64_value", str: "str_value", float: "double_value"}[type(value)]
            setattr(stat, kind, value)
    line.duration_ps = 12345  # fields after the events, as some writers have them
    line.display_name = "x"
    return space


def columns_of(space: Any, block_bytes: int) -> list[list[int]]:
    with XSpaceFile.open(space.SerializeToString()) as file:
        blocks = list(event_blocks(file, file.planes[0].lines[0], block_bytes))
    return [
        [int(x) for block in blocks for x in getattr(block, name)]
        for name in ("metadata_id", "offset_ps", "duration_ps")
    ]


def expected(space: Any) -> list[list[int]]:
    kept = [
        event
        for event in space.planes[0].lines[0].events
        if event.WhichOneof("data") != "num_occurrences"
    ]
    return [
        [getattr(e, name) for e in kept] for name in ("metadata_id", "offset_ps", "duration_ps")
    ]


@given(st.lists(events, max_size=40), st.sampled_from([64, 300, 1 << 20]))
@settings(deadline=None)
def test_columns_are_what_protobuf_reads(rows: list[Any], block_bytes: int) -> None:
    space = space_of(rows)
    assert columns_of(space, block_bytes) == expected(space)


@given(events, st.integers(2, 60))
@settings(deadline=None)
def test_repeated_events(row: Any, times: int) -> None:
    """Equal events make long chains of equal false starts."""
    space = space_of([row] * times)
    assert columns_of(space, 1 << 20) == expected(space)


def test_long_false_chains_are_cut_by_doubling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_SHRINKING_ROUNDS", 0)
    space = space_of([(34, 34 * k, 8738, [(34, 34)] * 3, False) for k in range(200)])
    assert columns_of(space, 1 << 20) == expected(space)


def test_a_writer_that_puts_fields_out_of_order() -> None:
    # duration 7, offset 9, id 3: protobuf allows any order; and the same with an unknown field 6.
    event = bytes([0x18, 7, 0x10, 9, 0x08, 3])
    odd = bytes([0x30, 1]) + event
    line = b"".join(bytes([0x22, len(e)]) + e for e in (event, odd))
    plane = b"\x12\x01p" + bytes([0x1A, len(line)]) + line
    with XSpaceFile.open(bytes([0x0A, len(plane)]) + plane) as file:
        block = next(event_blocks(file, file.planes[0].lines[0]))
    assert block.metadata_id.tolist() == [3, 3]
    assert block.offset_ps.tolist() == [9, 9]
    assert block.duration_ps.tolist() == [7, 7]


@given(st.lists(numbers, min_size=1, max_size=20))
def test_varints(values: list[int]) -> None:
    encoded, positions = bytearray(), []
    for value in values:
        positions.append(len(encoded))
        rest = value % 2**64
        while rest >= 128:
            encoded.append(rest & 127 | 128)
            rest >>= 7
        encoded.append(rest)
    data = np.frombuffer(bytes(encoded) + b"\0" * 16, np.uint8)
    found, width = decode_varints(data, np.array(positions, np.int64))
    assert found.tolist() == values
    assert (np.array(positions) + width).tolist() == [*positions[1:], len(encoded)]


def test_only_wanted_events() -> None:
    space = space_of([(k % 5, k, 1, [], False) for k in range(50)])
    with XSpaceFile.open(space.SerializeToString()) as file:
        line = file.planes[0].lines[0]
        wanted = np.array([2, 4], np.int64)
        blocks = list(event_blocks(file, line, wanted=wanted))
        nothing = list(event_blocks(file, line, wanted=np.zeros(0, np.int64)))
    kept = [int(x) for block in blocks for x in block.metadata_id if x]
    assert kept == [2, 4] * 10
    assert nothing == []


def test_stats_as_columns() -> None:
    space = space_of(
        [
            (1, 0, 1, [(1, 77), (2, "lit"), (3, 2.5)], False),
            (1, 1, 1, [], False),
            (1, 2, 1, [(9, 5), (1, -3)], False),
        ]
    )
    plane = space.planes[0]
    for key, name in ((1, "run_id"), (2, "hlo_op"), (3, "ratio")):
        plane.stat_metadata[key].name = name
    names = StatNames(plane)
    wanted = {"run_id": 1, "hlo_op": 2, "ratio": 3}
    rows: dict[str, list[int]] = {name: [] for name in wanted}
    texts: list[str | None] = []
    inline: dict[str, int] = {}
    with XSpaceFile.open(space.SerializeToString()) as file:
        for block in event_blocks(file, file.planes[0].lines[0]):
            found = stat_columns(block, names, wanted, inline)
            for name, values in found.columns.items():
                rows[name] += values.tolist()
            texts += [found.text(int(x)) for x in found.columns["hlo_op"]]
    assert rows["run_id"] == [77, ABSENT, -3]
    assert rows["ratio"] == [2, ABSENT, ABSENT]
    assert texts == ["lit", None, None]
