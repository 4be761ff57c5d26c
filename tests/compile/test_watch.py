"""A child is ended only when what it wrote is whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from prompts_agent.compile import watch
from prompts_agent.compile.watch import Watch

STEM = "module_0001.jit_step.sm_9.0_gpu_after_optimizations"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(watch.time, "monotonic", lambda: now[0])
    return now


def _write(directory: Path, ending: str, text: str = "x") -> None:
    (directory / "dump").mkdir(exist_ok=True)
    (directory / "dump" / f"{STEM}-{ending}").write_text(text, encoding="utf-8")


def test_every_file_must_be_there_and_have_stopped_growing(
    tmp_path: Path, clock: list[float]
) -> None:
    done = Watch(tmp_path, "gpu")
    assert not done()
    _write(tmp_path, "buffer-assignment.txt")
    _write(tmp_path, "memory-usage-report.txt", "")
    _write(tmp_path, "live-range.txt")
    clock[0] += 10
    assert not done(), "one is still empty"
    _write(tmp_path, "memory-usage-report.txt")
    assert not done(), "they have just come"
    _write(tmp_path, "live-range.txt", "xx")
    clock[0] += 10
    assert not done(), "one has grown"
    clock[0] += 0.1
    assert not done()
    clock[0] += 0.2
    assert done()


def test_a_result_is_enough(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text("{}", encoding="utf-8")
    assert Watch(tmp_path, "tpu")()
