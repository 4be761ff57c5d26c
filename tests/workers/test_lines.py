"""Lines survive a kill at any byte, and a disk that is full."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from prompts_agent.workers.lines import Lines


def lines(path: Path) -> Lines:
    return Lines(path / "journal.jsonl")


def test_what_was_appended_is_read_back(tmp_path: Path) -> None:
    journal = lines(tmp_path / "new")
    assert list(journal.read()) == []
    journal.append(b"a")
    journal.append(b"b")
    assert list(journal.read()) == [b"a", b"b"]


def test_a_line_cut_anywhere_is_forgotten_and_its_place_taken(tmp_path: Path) -> None:
    journal = lines(tmp_path)
    for cut in range(6):
        journal.path.write_bytes(b"first\n" + b"other"[:cut])
        assert list(journal.read()) == [b"first"]
        journal.append(b"second")
        journal.close()
        assert journal.path.read_bytes() == b"first\nsecond\n"


def test_a_first_line_that_was_cut_leaves_nothing(tmp_path: Path) -> None:
    journal = lines(tmp_path)
    journal.path.write_bytes(b"x" * 200_000)  # more than one block
    journal.append(b"a")
    assert journal.path.read_bytes() == b"a\n"


def test_a_long_line_that_was_cut_is_found_over_several_blocks(tmp_path: Path) -> None:
    journal = lines(tmp_path)
    journal.path.write_bytes(b"a\n" + b"x" * 200_000)
    journal.append(b"b")
    assert journal.path.read_bytes() == b"a\nb\n"


def test_a_full_disk_adds_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = lines(tmp_path)
    journal.append(b"a")
    real, calls = os.write, []

    def write(descriptor: int, data: memoryview) -> int:
        calls.append(len(data))
        if len(calls) == 1:
            return real(descriptor, data[:3])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OSError, match="No space"):
        journal.append(b"second")
    monkeypatch.undo()
    assert journal.path.read_bytes() == b"a\n"
    journal.append(b"b")
    assert list(journal.read()) == [b"a", b"b"]
