"""A journal survives a kill at any byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from prompts_agent.batch.journal import Entry, Journal
from prompts_agent.errors import InputError


def entry(path: str) -> Entry:
    return Entry(path=path, status="done", exit_code=0, wall_s=1.5, report="a.json")


def test_what_was_appended_is_read_back(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    assert list(journal.entries()) == []
    journal.append(entry("a"))
    journal.append(entry("b"))
    assert [e.path for e in journal.entries()] == ["a", "b"]


def test_a_line_cut_by_a_kill_is_forgotten_and_its_place_taken(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append(entry("a"))
    whole = journal.path.read_bytes()
    for cut in range(1, len(whole)):
        journal.path.write_bytes(whole + whole[:cut])
        journal.append(entry("b"))
        assert [e.path for e in journal.entries()][:1] == ["a"]
        assert [e.path for e in journal.entries()][-1:] == ["b"]


def test_a_foreign_line_is_an_error_with_its_number(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.path.write_text("not json\n")
    journal.append(entry("a"))
    with pytest.raises(InputError, match="line 1"):
        list(journal.entries())
