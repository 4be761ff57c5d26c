"""Events of a line as numpy columns, decoded from the wire without one object per event.

A 500 MB trace holds 17 million events; a protobuf object for each costs ten times as long and far
more memory than the columns. Everything here works on blocks of a few megabytes.

How event boundaries are found without walking: every byte that could be the tag of an event
(0x22) is a candidate, and its length says where the next event starts. Candidates that no
candidate leads to, starting from the block's first byte, are dropped until none is left to drop;
since each step leads forward, what remains is exactly the chain from the first byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prompts_agent.trace.xspace.file import LineIndex, XSpaceFile
from prompts_agent.trace.xspace.messages import xevent
from prompts_agent.trace.xspace.wire import fields

__all__ = ["EventBlock", "decode_varints", "event_blocks"]

_EVENT_TAG = 0x22  # XLine.events = 4, length-delimited
_ID_TAG, _OFFSET_TAG, _DURATION_TAG = 0x08, 0x10, 0x18
_NO_OFFSET = -(2**63)
_BLOCK_BYTES = 1 << 20
_PADDING = 16
_SHRINKING_ROUNDS = 6
_CHECKED_EVENTS = 16

Int64s = NDArray[np.int64]
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class EventBlock:
    """Consecutive events. `start[i]:end[i]` are the bytes of event i in `data`.

    `stats[i]` is where its stats begin (equal to `end[i]` without stats). Events that only count
    occurrences have no place in time and are left out.
    """

    data: Bytes
    start: Int64s
    end: Int64s
    stats: Int64s
    metadata_id: Int64s
    offset_ps: Int64s
    duration_ps: Int64s

    def __len__(self) -> int:
        return int(self.start.shape[0])

    def select(self, kept: NDArray[np.bool_]) -> EventBlock:
        """The events that `kept` says."""
        return EventBlock(
            self.data,
            self.start[kept],
            self.end[kept],
            self.stats[kept],
            self.metadata_id[kept],
            self.offset_ps[kept],
            self.duration_ps[kept],
        )

    def message(self, index: int) -> Any:
        """Event `index` as an XEvent, for the few that need a closer look."""
        return xevent().FromString(self.data[self.start[index] : self.end[index]].tobytes())


def event_blocks(
    file: XSpaceFile,
    line: LineIndex,
    block_bytes: int = _BLOCK_BYTES,
    *,
    wanted: Int64s | None = None,
) -> Iterator[EventBlock]:
    """The line's events in order. An event that the file's end cuts is left out.

    `wanted` are sorted metadata ids; other events are passed over, at half the cost.
    """
    position, size = line.events, block_bytes
    canonical = True
    while position < line.end:
        raw = file.read(position, min(position + size, line.end))
        data = np.frombuffer(raw + b"\0" * _PADDING, np.uint8)
        start, end, consumed = _boundaries(data, len(raw))
        if consumed == 0:
            step = _skip_other_field(raw, last=position + len(raw) >= line.end)
            if step:
                position += step
            elif position + len(raw) >= line.end:
                return
            else:
                size *= 2  # one event is larger than the block
            continue
        if wanted is not None:
            hit = _has_id(data, start, wanted)
            start, end = start[hit], end[hit]
        if start.shape[0]:
            block, canonical = _decode(data, start, end, canonical)
            yield block
        position, size = position + consumed, block_bytes


def _has_id(data: Bytes, start: Int64s, wanted: Int64s) -> NDArray[np.bool_]:
    """Whether an event may have one of the ids; one that does not begin with its id may."""
    if not wanted.shape[0] or not start.shape[0]:
        return np.zeros(start.shape[0], np.bool_)
    ids, _ = _short_varints(data, start + 1)
    nearest = wanted[np.minimum(np.searchsorted(wanted, ids), wanted.shape[0] - 1)]
    hit: NDArray[np.bool_] = (nearest == ids) | (data[start] != _ID_TAG)
    return hit


def _skip_other_field(raw: bytes, *, last: bool) -> int:
    """Length of the field that is no event at the start of `raw`; 0 where it is not whole."""
    found = next(fields(raw, 0, len(raw)), None)
    if found is None or not found.complete:
        return len(raw) if last else 0
    return found.end


def _boundaries(data: Bytes, size: int) -> tuple[Int64s, Int64s, int]:
    """Starts and ends of the events that follow each other from byte 0, and the bytes consumed."""
    tags = np.flatnonzero(data[:size] == _EVENT_TAG)
    if not tags.shape[0] or tags[0] != 0:
        return tags[:0], tags[:0], 0
    for sieve in (_begins_like_event, None):
        chosen = tags if sieve is None else tags[sieve(data, tags)]
        length, width = _short_varints(data, chosen + 1)
        body = chosen + 1 + width
        after = body + length
        whole = (after <= size) & (after > chosen)
        if sieve is not None:
            # After an event comes another; the last of the line is found in the next round.
            whole &= (data[np.minimum(after, size)] == _EVENT_TAG) | (after == size)
        chosen, body, after = chosen[whole], body[whole], after[whole]
        if chosen.shape[0] and chosen[0] == 0:
            _, body, after = _chain_from_zero(chosen, body, after, size)
            # A sieve that does not fit this writer stops the chain early: look again without it.
            if 2 * after[-1] > size:
                break
        elif sieve is None:
            return tags[:0], tags[:0], 0
    return body, after, int(after[-1])


def _begins_like_event(data: Bytes, tags: Int64s) -> Int64s:
    """Which candidates begin with an id and an offset, as nearly all events do.

    A stat has the same tag, but its id is followed by a value of another type; of chance bytes one
    in a thousand passes. Events above 16 kB, and ids above 16383, need the slower way.
    """
    body = tags + 2 + (data[tags + 1] > 127)
    first = np.flatnonzero(data[body] == _ID_TAG)
    at = body[first] + 1
    begins: NDArray[np.bool_] = data[at + 1 + (data[at] > 127)] == _OFFSET_TAG
    chosen: Int64s = first[begins]
    return chosen


def _chain_from_zero(
    tags: Int64s, body: Int64s, after: Int64s, size: int
) -> tuple[Int64s, Int64s, Int64s]:
    reached = np.zeros(size + 1, np.bool_)
    for _ in range(_SHRINKING_ROUNDS):
        reached[:] = False
        reached[after] = True
        reached[0] = True
        keep = reached[tags]
        if keep.all():
            return tags, body, after
        tags, body, after = tags[keep], body[keep], after[keep]
    keep = _reachable(tags, after)
    return tags[keep], body[keep], after[keep]


def _reachable(tags: Int64s, after: Int64s) -> NDArray[np.bool_]:
    """Candidates that the first one leads to, by pointer doubling: for long chains of false ones.

    After k rounds the first 2^k links are known; the last slot stands for "beyond the candidates".
    """
    count = tags.shape[0]
    link = np.searchsorted(tags, after)
    known = link < count
    known[known] = tags[link[known]] == after[known]
    jump = np.append(np.where(known, link, count), count)
    reached = np.zeros(count + 1, np.bool_)
    reached[0] = True
    for _ in range(count.bit_length() + 1):
        reached[jump[reached]] = True
        jump = jump[jump]
    return reached[:count]


def decode_varints(data: Bytes, position: Int64s) -> tuple[Int64s, Int64s]:
    """Values and widths of the varints at `position`; `data` is padded by at least 16 bytes.

    Varints of nine or ten bytes (negative numbers, mostly) are decoded one by one.
    """
    words = np.ndarray((data.shape[0] - 7,), "<u8", buffer=data.data, strides=(1,))[position]
    stops = ~words & np.uint64(0x8080808080808080)
    lowest = stops & (np.uint64(0) - stops)
    below = lowest - np.uint64(1)  # all ones where no stop bit is set: a long varint
    width = (np.bitwise_count(below).astype(np.int64) >> 3) + 1
    value = words & below & np.uint64(0x7F7F7F7F7F7F7F7F)
    # Squeeze the seven payload bits of each byte together: 8×7 → 4×14 → 2×28 → 56 bits.
    value = (value & np.uint64(0x007F007F007F007F)) | (
        (value & np.uint64(0x7F007F007F007F00)) >> np.uint64(1)
    )
    value = (value & np.uint64(0x00003FFF00003FFF)) | (
        (value & np.uint64(0x3FFF00003FFF0000)) >> np.uint64(2)
    )
    value = (value & np.uint64(0x0FFFFFFF)) | (
        (value & np.uint64(0x0FFFFFFF00000000)) >> np.uint64(4)
    )
    result = value.astype(np.int64)
    if (stops == 0).any():
        for row in np.flatnonzero(stops == 0):
            result[row], width[row] = _long_varint(data, int(position[row]))
    return result, width


def _short_varints(data: Bytes, position: Int64s) -> tuple[Int64s, Int64s]:
    """The same, faster where most are one byte long."""
    value = data[position].astype(np.int64)
    width = np.ones(position.shape[0], np.int64)
    long = np.flatnonzero(value > 127)
    if long.shape[0]:
        value[long], width[long] = decode_varints(data, position[long])
    return value, width


def _long_varint(data: Bytes, position: int) -> tuple[int, int]:
    value = width = 0
    while width < 10:
        byte = int(data[position + width])
        value |= (byte & 127) << (7 * width)
        width += 1
        if byte < 128:
            break
    value %= 2**64
    return value - 2**64 if value >= 2**63 else value, width


def _decode(data: Bytes, start: Int64s, end: Int64s, canonical: bool) -> tuple[EventBlock, bool]:
    if canonical:
        block, kept = _decode_fast(data, start, end)
        if _agrees(block):
            return (block if kept is None else block.select(kept)), True
    return _decode_slow(data, start, end), False


def _decode_fast(
    data: Bytes, start: Int64s, end: Int64s
) -> tuple[EventBlock, NDArray[np.bool_] | None]:
    """Columns of fields 1, 2 and 3, read up to the first stat; and which events have a time."""
    count = start.shape[0]
    columns = {tag: np.zeros(count, np.int64) for tag in (_ID_TAG, _OFFSET_TAG, _DURATION_TAG)}
    columns[_OFFSET_TAG][:] = _NO_OFFSET
    stats = end.copy()
    rows: Any = slice(None)  # all, until the events differ in their fields
    position, limit = start, end
    while position.shape[0]:
        tag = data[position]
        value, width = decode_varints(data, position + 1)
        open_ = position < limit
        for number, column in columns.items():
            hit = open_ & (tag == number)
            if hit.all():
                column[rows] = value
            elif hit.any():
                index = np.flatnonzero(hit) if isinstance(rows, slice) else rows[hit]
                column[index] = value[hit]
        more = open_ & ((tag & 7) == 0)
        stopped = open_ & ~more
        if stopped.any():
            index = np.flatnonzero(stopped) if isinstance(rows, slice) else rows[stopped]
            stats[index] = position[stopped]
        if more.all():
            position = position + 1 + width
            continue
        rows = np.flatnonzero(more) if isinstance(rows, slice) else rows[more]
        position, limit = position[more] + 1 + width[more], limit[more]
    block = EventBlock(
        data, start, end, stats, columns[_ID_TAG], columns[_OFFSET_TAG], columns[_DURATION_TAG]
    )
    return block, _timed(block)


def _timed(block: EventBlock) -> NDArray[np.bool_] | None:
    """Which events have a time, None for all; puts 0 where an event leaves its offset out.

    An event without an offset begins with its line, or only counts occurrences: a field that comes
    after its stats.
    """
    unsaid = np.flatnonzero(block.offset_ps == _NO_OFFSET)
    if not unsaid.shape[0]:
        return None
    timed = np.ones(len(block), np.bool_)
    for row in unsaid.tolist():
        timed[row] = block.message(row).WhichOneof("data") != "num_occurrences"
    block.offset_ps[unsaid] = 0
    return timed


def _agrees(block: EventBlock) -> bool:
    """Whether a few events read the same through protobuf, which takes fields in any order."""
    step = max(1, len(block) // _CHECKED_EVENTS)
    for index in range(0, len(block), step):
        event = block.message(index)
        if event.metadata_id != block.metadata_id[index]:
            return False
        if event.WhichOneof("data") == "num_occurrences":
            continue
        if (event.offset_ps, event.duration_ps) != (
            block.offset_ps[index],
            block.duration_ps[index],
        ):
            return False
    return True


def _decode_slow(data: Bytes, start: Int64s, end: Int64s) -> EventBlock:
    """Through protobuf, for writers that put fields out of order."""
    decode = xevent().FromString
    raw = data.tobytes()
    events = [decode(raw[a:b]) for a, b in zip(start.tolist(), end.tolist(), strict=True)]
    timed = np.array([event.WhichOneof("data") != "num_occurrences" for event in events])
    block = EventBlock(
        data,
        start,
        end,
        start,
        np.array([event.metadata_id for event in events], np.int64),
        np.array([event.offset_ps for event in events], np.int64),
        np.array([event.duration_ps for event in events], np.int64),
    )
    return block.select(timed)
