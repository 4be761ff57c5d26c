"""What a file is, from its content: every trace format, and everything that is none."""

from __future__ import annotations

import gzip
import io
import sqlite3
import struct
import zipfile
from pathlib import Path

import pytest
from trace_samples import HLO_TEXT, chrome, field, kineto, nsys, save, three_steps, xspace

from prompts_agent.errors import (
    DamagedTraceError,
    EmptyTraceError,
    TraceError,
    TraceNotFoundError,
    WrongFormatError,
)
from prompts_agent.trace.sniff import TraceFormat, sniff

HLO_PROTO = field(1, field(1, b"jit_step") + field(2, b"main") + field(3, field(1, b"main")))


def _zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("trace.parquet", b"PAR1")
    return buffer.getvalue()


def _tfevents() -> bytes:
    event = b"\x09" + struct.pack("<d", 1.7e9) + field(3, b"brain.Event:2")
    return struct.pack("<Q", len(event)) + b"\x01\x02\x03\x04" + event + b"\x05\x06\x07\x08"


TRACES = {
    "xspace": (xspace(), TraceFormat.XSPACE),
    "xspace whose first plane has id 0": (
        field(1, field(2, b"/host:CPU") + field(3, field(2, b"line"))),
        TraceFormat.XSPACE,
    ),
    "xspace with errors only": (
        field(2, b"CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"),
        TraceFormat.XSPACE,
    ),
    "hlo text": (HLO_TEXT.encode(), TraceFormat.HLO_TEXT),
    "hlo text after a comment": (b"// dumped\n\n" + HLO_TEXT.encode(), TraceFormat.HLO_TEXT),
    "hlo proto": (HLO_PROTO, TraceFormat.HLO_PROTO),
}


@pytest.mark.parametrize(("data", "expected"), TRACES.values(), ids=TRACES.keys())
@pytest.mark.parametrize("layers", [0, 1, 2])
def test_content_decides_and_not_the_name(
    tmp_path: Path, data: bytes, expected: TraceFormat, layers: int
) -> None:
    for _ in range(layers):
        data = gzip.compress(data)
    path = tmp_path / "misnamed.sqlite"
    path.write_bytes(data)
    assert sniff(path) is expected


def test_json_of_jax_and_of_pytorch_are_told_apart(tmp_path: Path) -> None:
    assert sniff(save(tmp_path / "a.pb", chrome())) is TraceFormat.CHROME
    assert sniff(save(tmp_path / "b.xplane.pb.gz", chrome())) is TraceFormat.CHROME
    assert sniff(save(tmp_path / "c", kineto(three_steps()))) is TraceFormat.KINETO
    assert sniff(save(tmp_path / "d", three_steps())) is TraceFormat.KINETO, "a bare list of events"


def test_nsight_export(tmp_path: Path) -> None:
    path = nsys(tmp_path / "report.json")
    assert sniff(path) is TraceFormat.NSIGHT
    packed = tmp_path / "report.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert sniff(packed) is TraceFormat.NSIGHT


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
SSTABLE = b"\x00\x01data" * 20 + bytes.fromhex("57fb808b247547db")
PPROF = field(1, field(1, 1) + field(2, 2)) + field(6, b"") + field(6, b"allocations")
OP_STATS = field(1, field(1, field(1, 5) + field(2, b"fusion")) + field(3, 9)) + field(
    2, b"\x0a\x00"
)
PERFETTO = field(1, field(8, 123) + field(10, 1) + field(11, b"\x08\x01"))

NOT_TRACES = {
    "lfs pointer": ("host.xplane.pb", POINTER, "LFS pointer", "git lfs pull"),
    "png": ("host.xplane.pb", b"\x89PNG\r\n\x1a\n" + bytes(50), "PNG", "xplane.pb"),
    "jpeg": ("x", b"\xff\xd8\xff\xe0" + bytes(50), "JPEG", "xplane.pb"),
    "pdf": ("x", b"%PDF-1.7\n" + bytes(50), "PDF", "xplane.pb"),
    "zip": ("x.pb", _zip(), "zip", "Unpack"),
    "elf": ("x", b"\x7fELF\x02\x01\x01" + bytes(50), "ELF", "xplane.pb"),
    "parquet": ("x", b"PAR1" + bytes(50) + b"PAR1", "Parquet", "sqlite"),
    "html": ("trace.json.gz", b"<!DOCTYPE html><html>Sign in</html>", "HTML", "Download the raw"),
    "html, shy": ("trace.json", b"\n\n <HTML>Sign in</HTML>", "HTML", "Download the raw"),
    "zstd": ("x.zst", b"\x28\xb5\x2f\xfd" + bytes(50), "zstd", "zstd -d x.zst"),
    "plain text": ("x.json", b"the profiler said nothing\n" * 9, "plain text", "xplane.pb"),
    "plain text that opens with a line feed": ("x", b"\nsome notes\n", "plain text", "xplane.pb"),
    "nsys report": (
        "run.nsys-rep",
        b"\x07\x91\x00\xff" * 40,
        "Nsight Systems",
        "nsys export --type",
    ),
    "pprof": ("memory.prof", PPROF, "pprof", "xplane.pb"),
    "pprof, gzip": ("memory.prof", gzip.compress(PPROF), "pprof", "xplane.pb"),
    "xprof's op stats": ("ALL_HOSTS.op_stats.pb", OP_STATS, "xprof cached", "beside it"),
    "xprof's sstable": ("host.SSTABLE", SSTABLE, "SSTABLE", "beside it"),
    "tensorboard events": (
        "events.out.tfevents.1.host",
        _tfevents(),
        "event file",
        "log directory",
    ),
    "perfetto": ("x.pftrace", PERFETTO, "no XSpace", "xplane.pb"),
    "stablehlo": ("x.txt", b"module @jit_f attributes {} {\n", "StableHLO", "xla_dump_to"),
    "pickle": ("snapshot.pickle", b"\x80\x04\x95" + bytes(50), "pickle", "not unpickled"),
    "noise": ("x.pb", bytes(range(255, 0, -1)), "no known format", "xplane.pb"),
    "config.json": ("config.json", b'{"hidden_size": 4096}', "no trace", "config"),
    "some tracer's json": (
        "viz.json",
        b'{"traceEvents": [{"ph": "X", "name": "f", "ts": 1, "dur": 1, "cat": "FEE"}]}',
        "neither jax nor PyTorch",
        "torch.profiler",
    ),
}


@pytest.mark.parametrize(
    ("name", "data", "seen", "cure"), NOT_TRACES.values(), ids=NOT_TRACES.keys()
)
def test_what_is_no_trace_is_named_with_its_own_cure(
    tmp_path: Path, name: str, data: bytes, seen: str, cure: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(WrongFormatError) as caught:
        sniff(path)
    assert seen in caught.value.value
    assert cure in caught.value.cure
    assert str(path) in caught.value.value


def test_an_empty_file_is_not_a_trace_of_zeros(tmp_path: Path) -> None:
    path = tmp_path / "host.xplane.pb"
    path.touch()
    with pytest.raises(EmptyTraceError, match="0 bytes"):
        sniff(path)
    path.write_bytes(gzip.compress(b""))
    with pytest.raises(EmptyTraceError):
        sniff(path)


def test_a_text_mode_copy_is_told_by_its_replacement_characters(tmp_path: Path) -> None:
    # What a text-mode copy does: every byte that is not UTF-8 becomes U+FFFD.
    mangled = xspace(4).decode("utf-8", "replace").encode()
    count = mangled.count(b"\xef\xbf\xbd")
    assert count > 100
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(mangled)
    with pytest.raises(DamagedTraceError) as caught:
        sniff(path)
    assert f"{count:,} bytes became EF BF BD" in caught.value.value
    assert "cannot be repaired" in caught.value.rule
    assert "binary mode" in caught.value.cure


def test_a_copy_with_carriage_returns_is_told_too(tmp_path: Path) -> None:
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(xspace().replace(b"\n", b"\r\n"))
    with pytest.raises(DamagedTraceError, match="carriage return"):
        sniff(path)


def test_a_sound_xspace_may_hold_a_replacement_character(tmp_path: Path) -> None:
    plane = field(1, 200) + field(2, "/host:CPU \ufffd".encode()) + field(3, field(1, 2**40 + 201))
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(field(1, plane))
    assert sniff(path) is TraceFormat.XSPACE


def test_gzip_that_is_cut_in_its_head(tmp_path: Path) -> None:
    path = tmp_path / "t.json.gz"
    whole = gzip.compress(HLO_TEXT.encode())
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DamagedTraceError, match="gzip file that is cut off"):
        sniff(path)


def test_gzip_in_gzip_without_end(tmp_path: Path) -> None:
    data = xspace()
    for _ in range(5):
        data = gzip.compress(data)
    path = tmp_path / "t.gz"
    path.write_bytes(data)
    with pytest.raises(WrongFormatError, match="gzip within gzip"):
        sniff(path)


def test_another_sqlite_database(tmp_path: Path) -> None:
    for table, whose in (("users", "some program's"), ("rocpd_api", "rocprof's")):
        path = tmp_path / f"{table}.sqlite"
        with sqlite3.connect(path) as database:
            database.execute(f"create table {table} (id)")
        database.close()
        with pytest.raises(WrongFormatError, match=whose):
            sniff(path)


def test_sqlite_that_is_cut_off(tmp_path: Path) -> None:
    path = nsys(tmp_path / "r.sqlite")
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(TraceError):
        sniff(path)


def test_a_path_that_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(TraceNotFoundError):
        sniff(tmp_path / "absent")
    with pytest.raises(TraceError):
        sniff(tmp_path)


@pytest.mark.real_traces
def test_every_real_trace_is_what_the_index_says(real_traces: Path) -> None:
    expected = {
        "tpu-vllm": TraceFormat.CHROME,
        "kineto": TraceFormat.KINETO,
        "hlo": TraceFormat.HLO_TEXT,
        "nsys": TraceFormat.NSIGHT,
        "gpu": TraceFormat.XSPACE,
        "tpu-v6e": TraceFormat.XSPACE,
    }
    for path in sorted(real_traces.iterdir()):
        kind = next((kind for start, kind in expected.items() if path.name.startswith(start)), None)
        if kind is not None:
            assert sniff(path) is kind, path.name
    with pytest.raises(DamagedTraceError, match="258,174 bytes became EF BF BD"):
        sniff(real_traces / "tpu-text-mangled.xplane.pb")
