"""What a file is, told from its content and never from its suffix.

Users rename, compress twice, and hand over whatever lies beside the trace; a reader that trusts
the suffix then fails with a parser's message, or worse, reads zeros.
"""

from __future__ import annotations

import codecs
import gzip
import re
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from prompts_agent.errors import DamagedTraceError, TraceNotFoundError, WrongFormatError
from prompts_agent.trace import nontrace
from prompts_agent.trace.xspace.wire import BYTES, VARINT, Field, WireError, fields

__all__ = ["HEAD_BYTES", "MAX_GZIP_LAYERS", "TraceFormat", "is_gzip", "sniff"]

HEAD_BYTES = 1 << 16
"""Enough for the first plane's name, the first JSON events, the first HLO computation."""

_JSON_HEAD_BYTES = 1 << 22
"""PyTorch may write megabytes of python_function events before anything telling."""

MAX_GZIP_LAYERS = 3
_GZIP = b"\x1f\x8b"


class TraceFormat(StrEnum):
    """The formats that have a reader."""

    XSPACE = "xspace"
    CHROME = "chrome"
    KINETO = "kineto"
    HLO_TEXT = "hlo-text"
    HLO_PROTO = "hlo-proto"
    NSIGHT = "nsight"


def is_gzip(path: Path) -> bool:
    """Whether the file begins as gzip does."""
    with path.open("rb") as file:
        return file.read(2) == _GZIP


def sniff(path: Path) -> TraceFormat:
    """The format of the trace at `path`, looking through up to three layers of gzip.

    Reads the head of the file (and, where that looks like a damaged XSpace, all of it). Raises
    `TraceNotFoundError`, `EmptyTraceError`, `DamagedTraceError` (cut-off gzip, text-mode copy) or
    `WrongFormatError` with the cure that fits what the file is.
    """
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise WrongFormatError(
                f"{path} is no regular file", rule="a trace is a file", cure="Give its path."
            )
        if size == 0:
            raise nontrace.empty(path)
        with path.open("rb") as file:
            return _sniff_open(path, file, size)
    except OSError as error:
        raise TraceNotFoundError(
            f"{path} cannot be read ({error.strerror or error})",
            rule="a trace must be readable by you",
            cure="Check the path and its permissions.",
        ) from error


def _sniff_open(path: Path, file: BinaryIO, size: int) -> TraceFormat:
    head = file.read(HEAD_BYTES)
    if not head.startswith(_GZIP):
        file.seek(max(0, size - 8))
        tail = file.read(8)
        file.seek(0)
        return _classify(path, file, head, tail)
    file.seek(0)
    stream: BinaryIO = file
    try:
        for _ in range(MAX_GZIP_LAYERS):
            stream = gzip.GzipFile(fileobj=stream, mode="rb")  # type: ignore[assignment]
            head = stream.read(HEAD_BYTES)
            if not head.startswith(_GZIP):
                break
            stream.seek(0)
        else:
            raise WrongFormatError(
                f"{path} is gzip within gzip, {MAX_GZIP_LAYERS} layers and more",
                rule="no profiler writes that",
                cure="Run gunzip on it until it is no longer gzip.",
            )
        if not head:
            raise nontrace.empty(path)
        return _classify(path, stream, head, b"")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DamagedTraceError(
            f"{path} is a gzip file that is cut off or damaged ({error})",
            rule="what follows the damage cannot be decompressed",
            cure="Copy it again, and compare sizes (or `gzip -t`) at both ends.",
        ) from error


def _classify(path: Path, file: BinaryIO, head: bytes, tail: bytes) -> TraceFormat:
    """`file` is read further only for JSON and for signs of a text-mode copy."""
    if head.startswith(b"SQLite format 3\x00"):
        return _sqlite(path)
    nontrace.refuse_known(path, head, tail)
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start in {b"{", b"["}:
        return _json(path, file)
    if _looks_like_hlo_text(head):
        return TraceFormat.HLO_TEXT
    return _protobuf(path, file, head)


def _looks_like_hlo_text(head: bytes) -> bool:
    for line in head.splitlines()[:200]:
        text = line.strip()
        if text.startswith((b"HloModule ", b"HloModule\t")):
            return True
        if text and not text.startswith((b"//", b"#", b"/*")):
            return False
    return False


def _sqlite(path: Path) -> TraceFormat:
    if is_gzip(path):
        return TraceFormat.NSIGHT  # the tables are looked at after decompression
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            database.text_factory = bytes  # damaged names are no text
            rows = database.execute("select name from sqlite_master where type in ('table','view')")
            tables = {name.decode("utf-8", "replace") for (name,) in rows}
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise DamagedTraceError(
            f"{path} is an SQLite file that cannot be opened ({error})",
            rule="an export that was cut off has no table of contents",
            cure="Run `nsys export --type sqlite` again.",
        ) from error
    if any(name.startswith(("CUPTI_ACTIVITY_KIND_", "TARGET_INFO_", "NVTX_")) for name in tables):
        return TraceFormat.NSIGHT
    what = "rocprof's" if any(name.startswith("rocpd") for name in tables) else "some program's"
    raise WrongFormatError(
        f"{path} is {what} SQLite database, without tables of Nsight Systems",
        rule="only SQLite exports of Nsight Systems are read",
        cure="For AMD GPUs give the trace of jax.profiler or torch.profiler instead.",
    )


_DEVICE_PROCESS = re.compile(rb'"/(?:device|host):[A-Za-z]')
_KINETO_SIGN = re.compile(
    rb'"(?:deviceProperties|distributedInfo|schemaVersion|traceName|ac2g)"|ProfilerStep#'
    rb'|"cat"\s*:\s*"(?:kernel|Kernel|cpu_op|Operator|gpu_memcpy|cuda_runtime|Runtime|'
    rb'python_function|user_annotation|overhead)"'
)


def _json(path: Path, file: BinaryIO) -> TraceFormat:
    file.seek(0)
    head = file.read(_JSON_HEAD_BYTES)
    if _KINETO_SIGN.search(head):
        return TraceFormat.KINETO
    if _DEVICE_PROCESS.search(head):
        return TraceFormat.CHROME
    keys = re.findall(rb'"([A-Za-z_]{1,30})"\s*:', head[:4096])
    seen = ", ".join(dict.fromkeys(key.decode() for key in keys[:6]))
    if b'"traceEvents"' in head or b'"ph"' in head:
        raise WrongFormatError(
            f"{path} is a Chrome trace of neither jax nor PyTorch (keys: {seen})",
            rule="it names no devices, so it cannot tell what they did",
            cure="Give the *.xplane.pb of jax.profiler or the trace of torch.profiler.",
        )
    raise WrongFormatError(
        f"{path} is JSON, but no trace" + (f" (keys: {seen})" if seen else ""),
        rule="a trace holds `traceEvents`",
        cure="A workload or model config is given by its own option; here give a trace.",
    )


def _protobuf(path: Path, file: BinaryIO, head: bytes) -> TraceFormat:
    if not _control_bytes(head):
        raise nontrace.unknown(path, head)  # text happens to parse: a line feed is tag 1, length
    try:
        kind = _message_kind(head)
    except WireError:
        kind = "none"
    if kind != "hlo":
        _refuse_mangled(path, file, head)
    if kind == "xspace":
        return TraceFormat.XSPACE
    if kind == "hlo":
        return TraceFormat.HLO_PROTO
    if kind == "none":
        raise nontrace.unknown(path, head)
    raise nontrace.unknown(path, head, protobuf=kind)


def _message_kind(head: bytes) -> str:
    """Tells XSpace, HloProto, pprof, OpStats and Perfetto apart by their first nested fields.

    All begin with field 1 as nested message. In it, XPlane has {1: varint id, 2: name, 3: lines},
    and no field 1 of bytes; HloModuleProto has {1: name, 2: entry name, 3: computations}, both
    readable text; pprof's ValueType has two varints; OpStats has {1: messages that are no text}.
    """
    first = next(fields(head, 0, len(head)), None)
    if first is None or first.wire != BYTES or first.number > 4:
        return "none"
    if first.number in {2, 3, 4}:
        # An XSpace without planes: errors (2), warnings (3), host names (4). HloProto's
        # buffer_assignment is field 3, but its module comes first.
        text = head[first.value : first.end]
        return "xspace" if _readable(text) else "none"
    inner: list[Field] = []
    with suppress(WireError):  # damage further in is the reader's to judge
        inner.extend(islice(fields(head, first.value, first.end), 8))
    if not inner:
        return "xspace" if first.end == first.value and len(head) > 2 else "none"
    shapes = [(field.number, field.wire) for field in inner]
    if shapes == [(1, VARINT), (2, VARINT)]:
        return "a pprof profile, as jax.profiler.save_device_memory_profile writes"
    if shapes[0] == (1, BYTES):
        name = head[inner[0].value : inner[0].end]
        if _readable(name) and name:
            return "hlo"
        return "a result that xprof cached (OpStats), which goes stale when traces change"
    if all(_is_xplane_field(*shape) for shape in shapes):
        return "xspace"
    return "a protobuf message that is no XSpace (a Perfetto trace?)"


def _is_xplane_field(number: int, wire: int) -> bool:
    return (number == 1 and wire == VARINT) or (2 <= number <= 6 and wire == BYTES)


def _readable(data: bytes) -> bool:
    try:
        return data.decode("utf-8").isprintable()
    except UnicodeDecodeError:
        return False


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    file.seek(0)
    while chunk := file.read(1 << 20):
        yield chunk


def _refuse_mangled(path: Path, file: BinaryIO, head: bytes) -> None:
    """Raises `DamagedTraceError` for a binary file in which every foreign byte became EF BF BD.

    Such a file is valid UTF-8 throughout, which a real XSpace never is: its time stamps are
    varints, whose bytes above 0x7F follow no UTF-8 pattern.
    """
    if nontrace.REPLACEMENT not in head:
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    count = 0
    try:
        for chunk in _chunks(file):
            count += decoder.decode(chunk).count("\ufffd")
    except UnicodeDecodeError:
        return
    raise nontrace.mangled(path, f"{count:,} bytes became EF BF BD")


def _control_bytes(head: bytes) -> bool:
    return any(byte < 0x20 and byte not in b"\t\n\r\f" for byte in head)
