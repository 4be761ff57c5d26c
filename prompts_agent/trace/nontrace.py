"""Files that people hand over in place of a trace: how each is recognised, and its own cure.

Recognition is by content. A name is looked at only where the content decides nothing, because
several of these formats have no magic number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from prompts_agent.errors import DamagedTraceError, EmptyTraceError, TraceError, WrongFormatError

__all__ = ["REPLACEMENT", "empty", "mangled", "refuse_known", "unknown"]

REPLACEMENT = b"\xef\xbf\xbd"
"""U+FFFD in UTF-8: what a text-mode copy puts in the place of each byte that is not UTF-8."""

_SSTABLE_TAIL = bytes.fromhex("57fb808b247547db")
"""What ends a LevelDB table: 0xdb4775248b80fb57, little-endian (table/format.h)."""

_GIVE = "Give the *.xplane.pb that jax.profiler wrote, or PyTorch's *.pt.trace.json.gz."
_EXPORT = "Export it: `nsys export --type sqlite --output report.sqlite {name}`, then give that."
_UNPACK = "Unpack it first and give the directory."


@dataclass(frozen=True, slots=True)
class _Known:
    matches: Callable[[bytes, bytes], bool]
    what: str
    cure: str


def _starts(*magics: bytes) -> Callable[[bytes, bytes], bool]:
    return lambda head, _: head.startswith(magics)


def _markup(head: bytes, _: bytes) -> bool:
    return head.lstrip(b"\xef\xbb\xbf \t\r\n")[:14].lower().startswith((b"<!doctype", b"<html"))


_KNOWN = (
    _Known(
        _starts(b"version https://git-lfs.github.com/spec/"),
        "a Git LFS pointer, not the file that it stands for",
        "Run `git lfs pull` in that repository.",
    ),
    _Known(
        _markup,
        "an HTML page, as a log-in or error page saved under the name of a download",
        "Download the raw file again.",
    ),
    _Known(_starts(b"\x89PNG\r\n"), "a PNG image", f"A picture holds no events. {_GIVE}"),
    _Known(_starts(b"\xff\xd8\xff"), "a JPEG image", f"A picture holds no events. {_GIVE}"),
    _Known(_starts(b"GIF8"), "a GIF image", f"A picture holds no events. {_GIVE}"),
    _Known(_starts(b"%PDF-"), "a PDF document", _GIVE),
    _Known(_starts(b"\x7fELF"), "a program or shared library (ELF)", _GIVE),
    _Known(
        _starts(b"PAR1"),
        "a Parquet table",
        "Of an nsys-jax bundle give the *.sqlite or the HLO dump.",
    ),
    _Known(_starts(b"PK\x03\x04", b"PK\x05\x06"), "a zip archive", _UNPACK),
    _Known(lambda head, _: head[257:262] == b"ustar", "a tar archive", _UNPACK),
    _Known(_starts(b"\x28\xb5\x2f\xfd"), "compressed with zstd", "Run `zstd -d {name}` first."),
    _Known(_starts(b"\xfd7zXZ\x00"), "compressed with xz", "Run `xz -dk {name}` first."),
    _Known(_starts(b"BZh"), "compressed with bzip2", "Run `bunzip2 -k {name}` first."),
    _Known(_starts(b"\x89HDF"), "an HDF5 file", _GIVE),
    _Known(_starts(b"NVR\x00"), "a report of Nsight Compute, which profiles single kernels", _GIVE),
    _Known(
        _starts(b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"),
        "a Python pickle, as torch.cuda.memory._dump_snapshot writes",
        f"A memory snapshot holds no kernels, and is not unpickled here. {_GIVE}",
    ),
    _Known(
        lambda head, _: b"brain.Event:" in head[:64],
        "a TensorBoard event file, which holds scalars and no device events",
        "The trace lies beside it, in plugins/profile/<run>/: give the log directory.",
    ),
    _Known(
        lambda _, tail: tail.endswith(_SSTABLE_TAIL),
        "an SSTABLE that xprof cached for its trace viewer",
        "Give the *.xplane.pb beside it.",
    ),
    _Known(
        lambda head, _: head.lstrip().startswith((b"module @", b"module {", b"#loc")),
        "StableHLO (MLIR), which is the program before XLA partitioned it",
        "Dump the compiled program: `XLA_FLAGS=--xla_dump_to=DIR`, then give the "
        "*after_optimizations.txt, or `jitted.lower(...).compile().as_text()`.",
    ),
)

_BY_NAME = (
    ((".nsys-rep", ".qdrep"), "an Nsight Systems report in NVIDIA's own format", _EXPORT),
    ((".ncu-rep",), "a report of Nsight Compute, which profiles single kernels", _GIVE),
    (
        (".op_stats.pb", ".op_stats_v2.pb", ".sstable"),
        "a result that xprof cached, which goes stale when traces change",
        "Give the *.xplane.pb beside it.",
    ),
    (
        (".prof", ".pprof"),
        "a pprof profile, as jax.profiler.save_device_memory_profile writes",
        f"It holds live buffers and no times. {_GIVE}",
    ),
)


def refuse_known(path: Path, head: bytes, tail: bytes) -> None:
    """Raises `WrongFormatError` where the content is of a known kind that is no trace."""
    for known in _KNOWN:
        if known.matches(head, tail):
            raise _wrong(path, known.what, known.cure)


def unknown(path: Path, head: bytes, *, protobuf: str | None = None) -> TraceError:
    """The error for content that no rule knows; `protobuf` says what its wire looked like."""
    name = path.name.lower()
    if head.startswith(b"\r\n") and protobuf is None:
        return mangled(path, "each line feed is preceded by a carriage return")
    for suffixes, what, cure in _BY_NAME:
        if name.endswith(suffixes):
            return _wrong(path, what, cure)
    if protobuf is not None:
        return _wrong(path, protobuf, _GIVE)
    if _is_text(head):
        return _wrong(path, "plain text", f"Neither JSON of a profiler nor HLO. {_GIVE}")
    return _wrong(path, f"of no known format (begins {head[:8].hex(' ')})", _GIVE)


def empty(path: Path) -> EmptyTraceError:
    """The error for a file of zero bytes."""
    return EmptyTraceError(
        f"{path} is empty (0 bytes)",
        rule="the profiler had not written when the job ended, or the disk was full",
        cure="Capture again, and let jax.profiler.stop_trace() return before the job exits.",
    )


def mangled(path: Path, seen: str) -> DamagedTraceError:
    """The error for a binary trace that went through a text-mode copy."""
    return DamagedTraceError(
        f"{path} was copied in text mode: {seen}",
        rule="the bytes that were replaced are lost, so the trace cannot be repaired",
        cure="Copy the original again in binary mode (scp, rsync, `kubectl cp`, git with "
        "`*.pb binary` in .gitattributes).",
    )


def _is_text(head: bytes) -> bool:
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:  # else a character that the head cuts in two
            return False
        text = head[: error.start].decode("utf-8")
    return all(character.isprintable() or character in "\t\r\n\f" for character in text)


def _wrong(path: Path, what: str, cure: str) -> WrongFormatError:
    return WrongFormatError(
        f"{path} is {what}", rule="this is no trace", cure=cure.replace("{name}", path.name)
    )
