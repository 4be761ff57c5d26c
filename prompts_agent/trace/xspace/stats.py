"""Stats: of planes and event names as dicts, of whole blocks of events as columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prompts_agent.trace.xspace.columns import EventBlock, decode_varints

__all__ = ["StatColumns", "StatNames", "stat_columns"]

Int64s = NDArray[np.int64]

# XStat's tags: metadata_id, and the forms of a value.
_ID, _DOUBLE, _UINT, _INT, _STR, _BYTES, _REF = 0x08, 0x11, 0x18, 0x20, 0x2A, 0x32, 0x38
_STATS_TAG = 0x22  # XEvent.stats
ABSENT = np.int64(-(2**63))


class StatNames:
    """The stat names of one plane, and the values of stats by name."""

    def __init__(self, plane: Any) -> None:
        self._names: dict[int, str] = {k: v.name for k, v in plane.stat_metadata.items()}

    def name(self, stat_id: int) -> str | None:
        """The name of a stat, or the string that a reference stands for."""
        return self._names.get(stat_id)

    def find(self, name: str) -> int | None:
        """The id of a stat's name."""
        return next((key for key, value in self._names.items() if value == name), None)

    def values(self, stats: Iterable[Any]) -> dict[str, Any]:
        """Values by name, references resolved; stats without a name or a value are left out."""
        found: dict[str, Any] = {}
        for stat in stats:
            kind = stat.WhichOneof("value")
            name = self._names.get(stat.metadata_id)
            if kind is None or name is None:
                continue
            value = getattr(stat, kind)
            found[name] = self._names.get(value) if kind == "ref_value" else value
        return found


class StatColumns:
    """One int64 column per wanted stat: a number, or a reference to a string of `strings`.

    `ABSENT` where an event has no such stat. Strings that lie in the event itself get ids below
    -1, so that both forms can be told apart from each other and looked up with `text`.
    """

    def __init__(self, columns: dict[str, Int64s], names: StatNames, inline: list[str]) -> None:
        self.columns = columns
        self._names = names
        self._inline = inline

    def text(self, value: int) -> str | None:
        """The string that a value refers to."""
        if value == ABSENT:
            return None
        if value <= -2 and -2 - value < len(self._inline):
            return self._inline[-2 - value]
        return self._names.name(value)


def stat_columns(
    block: EventBlock,
    names: StatNames,
    wanted: Mapping[str, int],
    inline: dict[str, int] | None = None,
) -> StatColumns:
    """Columns of the `wanted` stats (name → stat id) of all events of a block.

    `inline` interns strings across blocks of one plane.
    """
    inline = {} if inline is None else inline
    columns = {name: np.full(len(block), ABSENT, np.int64) for name in wanted}
    data = block.data
    rows = np.flatnonzero(block.stats < block.end)
    position, limit = block.stats[rows], block.end[rows]
    while rows.shape[0]:
        is_stat = data[position] == _STATS_TAG
        rows, position, limit = rows[is_stat], position[is_stat], limit[is_stat]
        length, width = decode_varints(data, position + 1)
        body = position + 1 + width
        _take(block, rows, body, wanted, columns, inline)
        position = body + length
        more = position < limit
        rows, position, limit = rows[more], position[more], limit[more]
    return StatColumns(columns, names, list(inline))


def _take(
    block: EventBlock,
    rows: Int64s,
    body: Int64s,
    wanted: Mapping[str, int],
    columns: dict[str, Int64s],
    inline: dict[str, int],
) -> None:
    data = block.data
    has_id = data[body] == _ID
    stat_id, width = decode_varints(data, body + 1)
    for name, wanted_id in wanted.items():
        hit = has_id & (stat_id == wanted_id)
        if not hit.any():
            continue
        at = (body + 1 + width)[hit]
        tag = data[at]
        value, value_width = decode_varints(data, at + 1)
        if (tag == _DOUBLE).any():
            words = np.ndarray((data.shape[0] - 7,), "<f8", buffer=data.data, strides=(1,))
            value = np.where(tag == _DOUBLE, words[at + 1], value).astype(np.int64)
        for row in np.flatnonzero(tag == _STR):
            start = int(at[row]) + 1 + int(value_width[row])
            text = data[start : start + int(value[row])].tobytes().decode("utf-8", "replace")
            value[row] = -2 - inline.setdefault(text, len(inline))
        value[tag == _BYTES] = ABSENT
        columns[name][rows[hit]] = value
