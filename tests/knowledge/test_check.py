from __future__ import annotations

from pathlib import Path

import pytest

from prompts_agent.errors import RecipeError
from prompts_agent.knowledge.check import check
from prompts_agent.resources import data_directory

SOURCE = data_directory("knowledge_base")
STRAGGLER = (SOURCE / "straggler-is-not-sharding.md").read_text(encoding="utf-8")


def test_the_shipped_knowledge_base_is_clean() -> None:
    assert check(SOURCE) == []


def write(directory: Path, name: str, text: str) -> None:
    (directory / f"{name}.md").write_text(text, encoding="utf-8")


def test_every_kind_of_problem(tmp_path: Path) -> None:
    write(tmp_path, "straggler-is-not-sharding", STRAGGLER)
    copy = STRAGGLER.replace("id: straggler-is-not-sharding", "id: copy")
    write(tmp_path, "copy", copy.replace("Name the device", "Name [a device](gone.md)"))
    write(tmp_path, "broken", STRAGGLER.replace("kind: principle", "kind: idea"))
    write(tmp_path, "misnamed", STRAGGLER)
    (tmp_path / "notes.txt").write_text("", encoding="utf-8")
    problems = check(tmp_path)
    assert [(problem.file, problem.rule) for problem in problems] == [
        ("broken.md", "is not one of the known words"),
        ("copy.md", "bodies share less than 50% of their runs of 4 words"),
        ("copy.md", "a link leads to an https address or to <id>.md of another recipe"),
        ("copy.md", "two recipes have it"),
        ("misnamed.md", "the id is the file's name without .md"),
        ("notes.txt", "only *.md files directly in the directory are read"),
    ]
    assert all(problem.cure in str(problem) for problem in problems)


def test_no_such_directory(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="is not a directory"):
        check(tmp_path / "none")
