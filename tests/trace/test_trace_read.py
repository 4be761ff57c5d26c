"""The way in: standard input, temporary files, lazy imports."""

from __future__ import annotations

import gc
import gzip
import io
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from trace_samples import HLO_TEXT, chrome, kineto, nsys, save, three_steps, xspace

from prompts_agent.errors import DamagedTraceError, PromptsError, WrongFormatError
from prompts_agent.trace.read import read


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go."""
    directory = tmp_path / "private"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return directory


def test_temporary_files_go_with_the_capture(tmp_path: Path, private: Path) -> None:
    path = tmp_path / "vm.xplane.pb.gz"
    path.write_bytes(gzip.compress(xspace(2)))
    capture = read([path])
    assert len(list(private.iterdir())) == 1
    assert capture.events(capture.devices[1]).modules
    del capture
    gc.collect()
    assert list(private.iterdir()) == []


def test_temporary_files_go_with_an_error(tmp_path: Path, private: Path) -> None:
    path = tmp_path / "vm.xplane.pb.gz"
    whole = gzip.compress(xspace(40, 400))
    path.write_bytes(whole[:-20])
    with pytest.raises(DamagedTraceError, match="cut off"):
        read([path])
    assert list(private.iterdir()) == []


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input(monkeypatch: pytest.MonkeyPatch, private: Path, packed: bool) -> None:
    data = xspace(2)
    stream = io.BytesIO(gzip.compress(data) if packed else data)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
    capture = read(["-"])
    assert capture.devices[0].host == "stdin"
    assert len(capture.devices) == 2
    del capture
    gc.collect()
    assert list(private.iterdir()) == []


def test_each_format_has_its_reader(tmp_path: Path) -> None:
    (tmp_path / "step.txt").write_text(HLO_TEXT)
    paths = {
        "xspace": save(tmp_path / "vm.xplane.pb", xspace()),
        "chrome": save(tmp_path / "c" / "vm.trace.json.gz", chrome()),
        "kineto": save(tmp_path / "r.json", kineto(three_steps())),
        "nsight": nsys(tmp_path / "r.sqlite"),
        "hlo-text": tmp_path / "step.txt",
    }
    for kind, path in paths.items():
        capture = read([path], deep=True)
        assert capture.file.format == kind
        assert capture.file.size_bytes == path.stat().st_size


def test_a_compiled_program_is_structure_without_time(tmp_path: Path) -> None:
    path = tmp_path / "step.txt"
    path.write_text(HLO_TEXT)
    capture = read([path])
    assert capture.devices == []
    assert capture.devices_in_job == 2
    (program,) = capture.programs.values()
    assert program.name == "jit_step"
    assert capture.missing == ["times of any kind: a compiled program is no run of it"]


def test_an_hlo_dump_without_an_entry_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "step.txt"
    path.write_text("HloModule jit_step\n\nnothing else\n")
    with pytest.raises(PromptsError):
        read([path])


def test_importing_the_way_in_is_light() -> None:
    code = (
        "import sys; import prompts_agent.trace.read; "
        "heavy = {'numpy', 'orjson', 'jax', 'google.protobuf', 'chromadb'} & set(sys.modules); "
        "sys.exit(str(heavy) if heavy else 0)"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_renamed_hlo_proto_is_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "vm0.xplane.pb"
    # hlo_module (1) with name (1), entry computation's name (2) and one computation (3).
    path.write_bytes(b"\x0a\x14\x0a\x04step\x12\x04main\x1a\x06\x0a\x04main")
    with pytest.raises(WrongFormatError, match="compiled program") as raised:
        read([path])
    assert "Give the *.xplane.pb" in raised.value.cure
