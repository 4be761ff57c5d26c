"""Conversions at the border: SI inside, human units only where text is printed.

Trace files count picoseconds, data sheets decimal gigabytes, allocators binary ones. Each is
converted once, here, so that no other file holds a power of ten.
"""

from __future__ import annotations

import math

__all__ = [
    "GB",
    "GIB",
    "KB",
    "MB",
    "TB",
    "TERA",
    "format_bytes",
    "format_flops",
    "format_seconds",
    "seconds_from_ms",
    "seconds_from_ns",
    "seconds_from_ps",
    "seconds_from_us",
]

KB, MB, GB, TB = 10**3, 10**6, 10**9, 10**12
GIB = 2**30
TERA = 10**12


def seconds_from_ps(value_ps: float) -> float:
    """Picoseconds (XSpace) to seconds."""
    return value_ps / 1e12


def seconds_from_ns(value_ns: float) -> float:
    """Nanoseconds (Nsight, XLine.timestamp_ns) to seconds."""
    return value_ns / 1e9


def seconds_from_us(value_us: float) -> float:
    """Microseconds (Chrome JSON, Kineto) to seconds."""
    return value_us / 1e6


def seconds_from_ms(value_ms: float) -> float:
    """Milliseconds to seconds."""
    return value_ms / 1e3


def _scaled(value: float, steps: list[tuple[float, str]]) -> str:
    # 999.5 would print as "1000" at three digits: step up to the next unit instead.
    reached = (step for step in steps if abs(value) >= 0.9995 * step[0])
    scale, unit = next(reached, steps[-1])
    scaled = value / scale
    digits = 2 if abs(scaled) < 10 else 1 if abs(scaled) < 100 else 0
    return f"{scaled:.{digits}f} {unit}"


def format_seconds(value_s: float) -> str:
    """Three significant digits in s, ms or µs; `0.7841` → `784 ms`, `2.5` → `2.50 s`."""
    if value_s == 0:
        return "0 s"
    return _scaled(value_s, [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")])


def format_bytes(value_bytes: float) -> str:
    """Decimal units, as data sheets print them: `16e9` → `16.0 GB`."""
    if value_bytes == 0:
        return "0 B"
    steps = [(1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")]
    return _scaled(value_bytes, steps)


def format_flops(value: float) -> str:
    """FLOP or FLOP/s without its unit's tail: `1.97e14` → `197 T`."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    steps = [(1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1.0, "")]
    return _scaled(value, steps)
