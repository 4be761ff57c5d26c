"""A result appears whole, where it was asked for, or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from prompts_agent.cli import output as output_module
from prompts_agent.cli.output import check_output, write_result
from prompts_agent.cli.run import format_of
from prompts_agent.errors import OutputError


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_writes_utf8_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "report.txt"
    write_result("a → b\n", target, force=False)
    assert target.read_bytes() == "a → b\n".encode()
    assert names(tmp_path) == ["report.txt"]


def test_permissions_are_those_of_a_new_file(tmp_path: Path) -> None:
    write_result("x", tmp_path / "report.txt", force=False)
    (tmp_path / "plain").write_text("x")
    modes = {stat.S_IMODE((tmp_path / n).stat().st_mode) for n in ("report.txt", "plain")}
    assert len(modes) == 1


def test_an_existing_file_is_kept_without_force(tmp_path: Path) -> None:
    target = tmp_path / "report.txt"
    target.write_text("mine")
    with pytest.raises(OutputError, match="--force"):
        write_result("yours", target, force=False)
    assert target.read_text() == "mine"
    write_result("yours", target, force=True)
    assert target.read_text() == "yours"
    assert names(tmp_path) == ["report.txt"]


def test_a_file_that_appears_meanwhile_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "report.txt"
    monkeypatch.setattr(output_module, "check_output", lambda *_args, **_kwargs: None)
    target.write_text("mine")
    with pytest.raises(OutputError, match="meanwhile"):
        write_result("yours", target, force=False)
    assert target.read_text() == "mine"
    assert names(tmp_path) == ["report.txt"]


def test_a_link_keeps_pointing(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    link = tmp_path / "link.txt"
    link.symlink_to("real.txt")
    write_result("new", link, force=True)
    assert link.is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_directory_and_missing_parent(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="directory"):
        check_output(tmp_path, force=True)
    with pytest.raises(OutputError, match="there is no directory"):
        check_output(tmp_path / "no" / "report.txt", force=False)


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args: object, **_kwargs: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OutputError, match="No space left"):
        write_result("x", tmp_path / "report.txt", force=False)
    assert names(tmp_path) == []


def test_a_device_is_written_to_as_it_is() -> None:
    write_result("x", Path(os.devnull), force=False)
    assert not Path(os.devnull).is_file()


def test_format_is_the_flags_then_the_suffixes() -> None:
    assert format_of(None, None) == "text"
    assert format_of(None, Path("r.json")) == "json"
    assert format_of(None, Path("r.MD")) == "markdown"
    assert format_of(None, Path("r.txt")) == "text"
    assert format_of("text", Path("r.json")) == "text"
