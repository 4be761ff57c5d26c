"""Decompression, guarded: traces come from anywhere, and 1 MB of gzip can hold 1 GB of zeros."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from prompts_agent.errors import DamagedTraceError, TraceError
from prompts_agent.trace.sniff import MAX_GZIP_LAYERS, is_gzip
from prompts_agent.units import format_bytes

__all__ = [
    "MAX_JSON_BYTES",
    "MAX_RATIO",
    "MAX_UNPACKED_BYTES",
    "read_json_bytes",
    "unpack",
]

MAX_UNPACKED_BYTES = 16 * 10**9
"""No profiler writes more: XSpace stops at 2 GB, the limit of a protobuf message."""

MAX_RATIO = 200
"""Decompressed ÷ compressed bytes. Profiles reach 21 (measured: 53.7 MB of Kineto JSON in 2.7 MB
was the most of seven); zeros reach 1030, the most that deflate can."""

_RATIO_FLOOR_BYTES = 64 * 10**6
"""Below this much output a high ratio harms nobody, and small repetitive traces have one."""

MAX_JSON_BYTES = 1_000_000_000
"""Above this JSON is refused."""

_MEMORY_PER_JSON_BYTE = 6.5
"""Objects per byte of text (measured: 5.1 of Kineto's, 2.5 of jax's), and the text itself."""

_CHUNK_BYTES = 1 << 20


def unpack(path: Path, directory: Path) -> Path:
    """`path` itself, or where it is gzip its content as a file of the same name in `directory`."""
    if not is_gzip(path):
        return path
    target = directory / path.name.removesuffix(".gz")
    with target.open("wb") as file:
        for chunk in _decompressed(path, MAX_UNPACKED_BYTES):
            file.write(chunk)
    return target


def read_json_bytes(path: Path, *, limit_bytes: int = MAX_JSON_BYTES) -> bytes:
    """The text of a JSON trace, decompressed. Raises `TraceError` where it is too large to parse.

    The refusal comes before the memory is gone: parsed JSON takes several times its text.
    """
    size = path.stat().st_size
    if not is_gzip(path):
        _refuse_large(path, size, limit_bytes)
        data = path.read_bytes()
    else:
        data = b"".join(_decompressed(path, limit_bytes))
    need = int(len(data) * _MEMORY_PER_JSON_BYTE)
    if need > _physical_memory_bytes():
        raise _too_large(path, len(data), f"parsing takes about {format_bytes(need)} of memory")
    return data


def _physical_memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # not every platform tells
        return 1 << 62


def _too_large(path: Path, size: int, rule: str) -> TraceError:
    return TraceError(
        f"{path} holds {format_bytes(size)} of JSON",
        rule=rule,
        cure="Give the *.xplane.pb instead (jax writes it beside the JSON; it is read piecewise), "
        "or capture 2 to 5 steps without Python stacks (with_stack=False).",
    )


def _refuse_large(path: Path, size: int, limit_bytes: int) -> None:
    if size > limit_bytes:
        raise _too_large(path, size, f"more than {format_bytes(limit_bytes)} is not parsed")


def _decompressed(path: Path, limit_bytes: int) -> Iterator[bytes]:
    packed = path.stat().st_size
    total = 0
    try:
        with path.open("rb") as file:
            stream = _innermost(file)
            while chunk := stream.read(_CHUNK_BYTES):
                total += len(chunk)
                if total > max(_RATIO_FLOOR_BYTES, MAX_RATIO * packed):
                    raise TraceError(
                        f"{path} ({format_bytes(packed)}) decompresses to more than "
                        f"{format_bytes(total)}",
                        rule=f"no profile shrinks {MAX_RATIO} times: this is a gzip bomb or not a "
                        "profile",
                        cure="Decompress it yourself and give the result, if you trust it.",
                    )
                if total > limit_bytes:
                    limit = format_bytes(limit_bytes)
                    raise _too_large(path, total, f"more than {limit} is not decompressed")
                yield chunk
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DamagedTraceError(
            f"{path} is a gzip file that is cut off or damaged after {format_bytes(total)} of "
            f"content ({error})",
            rule="what follows the damage cannot be decompressed",
            cure="Copy it again, and compare sizes (or `gzip -t`) at both ends.",
        ) from error


def _innermost(file: BinaryIO) -> BinaryIO:
    stream: BinaryIO = file
    for _ in range(MAX_GZIP_LAYERS):
        magic = stream.read(2)
        stream.seek(0)
        if magic != b"\x1f\x8b":
            break
        stream = gzip.GzipFile(fileobj=stream, mode="rb")  # type: ignore[assignment]
    return stream
