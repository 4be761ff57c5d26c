"""The lazy index: what it finds, what it salvages, what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from trace_build import Trace

from prompts_agent.errors import DamagedTraceError, EmptyTraceError
from prompts_agent.trace.xspace.columns import event_blocks
from prompts_agent.trace.xspace.file import XSpaceFile


def sample(devices: int = 2) -> bytes:
    trace = Trace()
    for k in range(devices):
        ops = [(f"%fusion.{j} = f32[8]{{0}} fusion(%p)", 10.0 * j, 5.0) for j in range(200)]
        trace.tpu(k, ops, [("jit_f(7)", 0.0, 2000.0)])
    trace.plane("/host:CPU").line("python", [("work", 0.0, 9.0)] * 50)
    trace.message.hostnames.append("vm0")
    trace.message.warnings.append("dropped 3 events")
    return trace.bytes()


def test_the_index() -> None:
    with XSpaceFile.open(sample()) as file:
        assert [plane.name for plane in file.planes] == [
            "/device:TPU:0",
            "/device:TPU:1",
            "/host:CPU",
        ]
        assert [line.name for line in file.planes[0].lines] == ["XLA Modules", "XLA Ops"]
        assert (file.hostnames, file.warnings) == (["vm0"], ["dropped 3 events"])
        assert file.plane_head(file.planes[0]).event_metadata[1].display_name == "fusion.0"
        assert file.caveats == []


def test_a_file_reads_like_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "t.pb"
    path.write_bytes(sample())
    with XSpaceFile.open(path) as one, XSpaceFile.open(path.read_bytes()) as other:
        assert one.planes == other.planes
        assert one.read(3, 30) == other.read(3, 30)


def test_every_cut_keeps_what_lies_before_it() -> None:
    whole = sample()
    with XSpaceFile.open(whole) as file:
        ends = [plane.end for plane in file.planes]
    for size in range(ends[0], len(whole), 97):
        with XSpaceFile.open(whole[:size]) as file:
            complete = [plane for plane in file.planes if plane.complete]
            assert len(complete) == sum(end <= size for end in ends)
            assert bool(file.caveats) == (size not in ends)
            for _, line in file.lines():
                counted = sum(len(block) for block in event_blocks(file, line))
                assert counted <= 200
                if line.complete and line.name == "XLA Ops":
                    assert counted == 200


def test_a_cut_plane_has_events_but_no_names() -> None:
    whole = sample(1)
    with XSpaceFile.open(whole) as file:
        ops = file.planes[0].lines[1]
    with XSpaceFile.open(whole[: ops.events + 500]) as file:
        plane = file.planes[0]
        assert not plane.has_names
        assert 0 < sum(len(block) for block in event_blocks(file, plane.lines[1])) < 200
        assert "cut off" in file.caveats[0]


def test_two_copies_are_one() -> None:
    data = sample()
    with XSpaceFile.open(data + data) as file:
        assert len(file.planes) == 3
        assert "twice" in file.caveats[0]


def test_two_traces_in_one_file_are_refused() -> None:
    with pytest.raises(DamagedTraceError, match="two different planes '/device:TPU:0'"):
        XSpaceFile.open(sample(1) + sample(1).replace(b"fusion.1", b"fusion.X"))


def test_a_text_mode_copy_is_refused() -> None:
    mangled = sample().decode("utf-8", "replace").encode()
    with pytest.raises(DamagedTraceError, match="text mode"):
        XSpaceFile.open(mangled)


def test_nothing() -> None:
    with pytest.raises(EmptyTraceError, match="no bytes"):
        XSpaceFile.open(b"")
    with pytest.raises(EmptyTraceError, match="no planes"):
        XSpaceFile.open(b"\x22\x02vm")


@pytest.mark.parametrize("data", [b"\x0f\x01", b"\x00\x01\x02", b"\x0a", b"{}", b"\x08\x01"])
def test_other_bytes(data: bytes) -> None:
    with pytest.raises((DamagedTraceError, EmptyTraceError)):
        XSpaceFile.open(data)
