"""Changed files of a real repository, made for the test."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_build import git

from prompts_agent.ci.changed import changed_files, matching
from prompts_agent.errors import InputError


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """`main` moved on after the branch `work` left it."""
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "job.yml").write_text("ici_fsdp_parallelism: 16\n")
    git(tmp_path, "add", "."), git(tmp_path, "commit", "-qm", "one")
    git(tmp_path, "checkout", "-qb", "work")
    (tmp_path / "job.yml").write_text("ici_fsdp_parallelism: 8\n")
    (tmp_path / "näme with space.yml").write_text("x\n")
    git(tmp_path, "add", "."), git(tmp_path, "commit", "-qm", "two")
    git(tmp_path, "checkout", "-q", "main")
    (tmp_path / "other.yml").write_text("y\n")
    git(tmp_path, "add", "."), git(tmp_path, "commit", "-qm", "three")
    return tmp_path


def test_what_the_base_did_meanwhile_is_not_a_change(repository: Path) -> None:
    assert changed_files("main", "work", repository) == ("job.yml", "näme with space.yml")


def test_patterns() -> None:
    files = ("configs/a.yml", "configs/deep/b.yml", "src/c.py")
    assert matching(files, ["configs/*.yml"]) == ("configs/a.yml", "configs/deep/b.yml")
    assert matching(files, ["*.py", "*.toml"]) == ("src/c.py",)
    assert matching(files, ["docs/*"]) == ()


def test_an_unknown_commit_points_at_the_shallow_clone(repository: Path) -> None:
    with pytest.raises(InputError, match="fetch-depth: 0"):
        changed_files("a" * 40, "work", repository)


def test_a_commit_is_no_option(repository: Path) -> None:
    with pytest.raises(InputError, match="no name of a commit"):
        changed_files("--output=x", "work", repository)
