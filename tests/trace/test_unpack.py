"""Decompression: private, bounded, and honest about damage."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from trace_samples import chrome, save, xspace

from prompts_agent.errors import DamagedTraceError, TraceError
from prompts_agent.trace import unpack as unpack_module
from prompts_agent.trace.unpack import read_json_bytes, unpack


def test_a_plain_file_is_left_where_it_is(tmp_path: Path) -> None:
    path = save(tmp_path / "a.pb", xspace())
    assert unpack(path, tmp_path / "never made") == path


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_content_comes_out_whole(tmp_path: Path, layers: int) -> None:
    data = xspace(3)
    packed = data
    for _ in range(layers):
        packed = gzip.compress(packed)
    path = tmp_path / "a.pb.gz"
    path.write_bytes(packed)
    (tmp_path / "out").mkdir()
    assert unpack(path, tmp_path / "out").read_bytes() == data


def test_a_gzip_bomb_is_stopped_early(tmp_path: Path) -> None:
    # 300 MB of zeros pack to 0.3 MB, 1,000 to 1; profiles reach 21 to 1.
    path = tmp_path / "bomb.xplane.pb"
    with gzip.open(path, "wb", compresslevel=9) as file:
        for _ in range(300):
            file.write(bytes(1_000_000))
    assert path.stat().st_size < 400_000
    (tmp_path / "out").mkdir()
    with pytest.raises(TraceError, match="gzip bomb"):
        unpack(path, tmp_path / "out")
    assert (tmp_path / "out" / path.name).stat().st_size < 100_000_000
    with pytest.raises(TraceError, match="gzip bomb"):
        read_json_bytes(path)


def test_gzip_that_is_cut_off(tmp_path: Path) -> None:
    path = save(tmp_path / "a.trace.json.gz", chrome())
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DamagedTraceError) as caught:
        read_json_bytes(path)
    assert "gzip -t" in caught.value.cure


def test_json_above_the_limit_is_refused_with_a_way_out(tmp_path: Path) -> None:
    for name in ("a.json", "a.json.gz"):
        path = save(tmp_path / name, chrome())
        with pytest.raises(TraceError) as caught:
            read_json_bytes(path, limit_bytes=1000)
        assert "xplane.pb" in caught.value.cure


def test_json_that_would_not_fit_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(tmp_path / "a.json", chrome())
    monkeypatch.setattr(unpack_module, "_physical_memory_bytes", lambda: 10_000)
    with pytest.raises(TraceError, match="of memory"):
        read_json_bytes(path)
