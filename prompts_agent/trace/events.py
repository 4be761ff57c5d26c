"""Chrome trace events out of JSON text: strictly where that works, else whatever can be saved.

Real files break in three ways: kernel names with bare backslashes and control bytes
(pytorch/kineto#336, pytorch/pytorch#136180), a writer that died half-way, and a trailing `{}`
(google/perfetto#6251).
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prompts_agent.errors import DamagedTraceError, EmptyTraceError
from prompts_agent.trace.unpack import read_json_bytes

__all__ = ["JsonTrace", "Span", "as_int", "as_number", "picoseconds", "read_json_trace", "spans"]

EVENT_LIMIT = 1_000_000
"""Where XProf's converter to Chrome JSON stops (jax-ml/jax#21295)."""

_NEAR_LIMIT = 950_000
_MAX_US = 4e12
"""46 days either way of the median: what is further off is a broken time stamp, and int64
picoseconds reach 106 days."""

_BAD_ESCAPE = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
_LONE_SURROGATE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_EVENTS_KEY = re.compile(r'"traceEvents"\s*:\s*\[')


@dataclass(slots=True)
class JsonTrace:
    """A parsed file: `header` is everything but the events."""

    header: dict[str, Any]
    events: list[dict[str, Any]]
    caveats: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Span:
    """A complete event (`ph` = X) with sound times; `args` is empty where the event has none."""

    name: str
    category: str
    start_us: float
    duration_us: float
    pid: Any
    tid: Any
    args: dict[str, Any]


def read_json_trace(path: Path) -> JsonTrace:
    """Reads a Chrome JSON trace, mending what can be mended and saying so in `caveats`.

    Raises `DamagedTraceError` where no event can be saved, `EmptyTraceError` where there is none.
    """
    data = read_json_bytes(path)
    caveats: list[str] = []
    document = _parse_strictly(data)
    if document is None:
        document, caveat = _salvage(path, data)
        caveats.append(caveat)
    header: dict[str, Any] = {}
    events: Any = document
    if isinstance(document, dict):
        events = document.pop("traceEvents", None)
        header = document
    if not isinstance(events, list) or not events:
        raise EmptyTraceError(
            f"{path} holds no events",
            rule="a trace holds a list `traceEvents`",
            cure="Capture again, with work on the device between start and stop.",
        )
    if len(events) >= _NEAR_LIMIT and len(events) <= EVENT_LIMIT * 1.05:
        caveats.append(
            f"{path.name} holds {len(events):,} events: the converter stops at {EVENT_LIMIT:,}, so "
            "it is probably cut. Give the *.xplane.pb, or capture fewer steps"
        )
    return JsonTrace(header, [event for event in events if isinstance(event, dict)], caveats)


def _parse_strictly(data: bytes) -> Any:
    import orjson

    try:
        return orjson.loads(data)
    except (orjson.JSONDecodeError, RecursionError):
        return None


def _salvage(path: Path, data: bytes) -> tuple[Any, str]:
    """Mends escapes and control bytes; failing that, keeps what precedes the damage."""
    text = _BAD_ESCAPE.sub(r"\\\\", data.decode("utf-8", errors="replace"))
    text = _LONE_SURROGATE.sub(r"\\ufffd", text)
    decoder = json.JSONDecoder(strict=False)
    try:
        document = decoder.decode(text)
    except (ValueError, RecursionError):
        events = _events_before_damage(decoder, text)
    else:
        return document, f"{path.name} is invalid JSON (escapes or control bytes): mended"
    if not events:
        raise DamagedTraceError(
            f"{path} is damaged JSON, and no event precedes the damage",
            rule="a trace is a JSON object with `traceEvents`, or a list of events",
            cure="Copy it again; if the writer died, capture again with fewer steps.",
        )
    document = _header_before(text, decoder)
    document["traceEvents"] = events
    return document, (
        f"{path.name} is cut off or damaged: {len(events):,} events before the damage were read, "
        "what follows is lost"
    )


def _events_before_damage(decoder: json.JSONDecoder, text: str) -> list[Any]:
    match = _EVENTS_KEY.search(text)
    start = match.end() if match else text.find("[") + 1
    events: list[Any] = []
    if not match and not text.lstrip().startswith("["):
        return events
    position = start
    while True:
        while position < len(text) and text[position] in " \t\r\n,":
            position += 1
        try:
            event, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return events
        events.append(event)


def _header_before(text: str, decoder: json.JSONDecoder) -> dict[str, Any]:
    """The keys in front of `traceEvents`: PyTorch writes the device properties there."""
    match = _EVENTS_KEY.search(text)
    if match is None:
        return {}
    try:
        header = decoder.decode(text[: match.start()].rstrip().rstrip(",") + "}")
    except (ValueError, RecursionError):
        return {}
    return header if isinstance(header, dict) else {}


def as_number(value: object) -> float | None:
    """A finite number, or None. Strings of digits count: args hold counters as strings."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def as_int(value: object) -> int | None:
    """A whole number that is not negative and fits 64 bits, or None."""
    number = as_number(value)
    if number is None or not 0 <= number < 2**63:
        return None
    if isinstance(value, str) and value.isdecimal() and len(value) < 20:
        return int(value)  # exact, where a float holds 53 bits
    return value if isinstance(value, int) else int(number)


def spans(events: list[dict[str, Any]]) -> tuple[list[Span], int]:
    """The complete events with sound times, and how many had none.

    Events without `ph` or `name` (a trailing `{}`) are no complete events and are not counted.
    """
    found: list[Span] = []
    broken = 0
    for event in events:
        if event.get("ph") != "X" or not isinstance(event.get("name"), str):
            continue
        start, duration = as_number(event.get("ts")), as_number(event.get("dur", 0))
        if start is None or duration is None or not 0 <= duration < _MAX_US or abs(start) > 1e18:
            broken += 1
            continue
        args = event.get("args")
        category = event.get("cat")
        found.append(
            Span(
                event["name"],
                category if isinstance(category, str) else "",
                start,
                duration,
                _hashable(event.get("pid")),
                _hashable(event.get("tid")),
                args if isinstance(args, dict) else {},
            )
        )
    kept = _near_median(found)
    return kept, broken + len(found) - len(kept)


def _hashable(value: object) -> int | str | None:
    if isinstance(value, int | str):
        return value
    return None if value is None else str(value)


def _near_median(found: list[Span]) -> list[Span]:
    if not found:
        return found
    middle = sorted(span.start_us for span in found)[len(found) // 2]
    return [span for span in found if abs(span.start_us - middle) <= _MAX_US]


def picoseconds(value_us: float) -> int:
    """Microseconds to whole picoseconds."""
    return round(value_us * 1e6)
