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


def faults(tmp_path: Path, **replaced: str) -> list[str]:
    """Rules broken by the straggler recipe with the named `PARTS` replaced."""
    text = STRAGGLER
    for old, new in replaced.items():
        text = text.replace(PARTS[old], new, 1)
    write(tmp_path, "straggler-is-not-sharding", text)
    return [problem.rule for problem in check(tmp_path)]


PARTS = {
    "url": "https://arxiv.org/abs/2505.05713",
    "number": "One device at 90% of its clock makes a step of 1.0 s last 1.1 s on all. ",
    "costs": "Spare capacity, or a smaller job for a while.",
    "kind": "kind: principle",
    "findings": "findings: [straggler]",
    "false": "sharding: false",
    "changes": "changes: []",
    "devices": "min_devices: 2",
}


@pytest.mark.parametrize(
    ("replaced", "rule"),
    [
        ({"url": "https://10.0.0.7/wiki"}, "a source is public"),
        ({"url": "https://wiki.corp/page"}, "a source is public"),
        ({"url": "https://arxiv.org/pdf/2505.05713"}, "arXiv is linked as /abs/NNNN.NNNNN"),
        ({"url": "https://arxiv.org/abs/2402.15627"}, "a source is listed once"),
        ({"url": "https://example.org/?utm_source=x"}, "a link carries no tracking"),
        ({"url": "http://example.org"}, "a source is a public https address"),
        ({"costs": "40 TFLOPS less."}, "the unit is written TFLOP/s or FLOPs"),
        ({"costs": "A link of 50 GBps."}, "the unit is written GB/s"),
        ({"costs": "A card of 400 Gbps."}, "the unit is written Gb/s"),
        ({"costs": "Takes 40GB."}, "the unit is written a space between number and unit"),
        ({"costs": "Falls to 140% MFU."}, "a share of the peak lies above 0 and up to 100%"),
        ({"number": ""}, "the relation is worked out once with numbers"),
        (
            {"false": "sharding: true", "changes": "changes: [{axis: tensor, move: lower}]"},
            "a rule that moves the layout is worked out for a named chip",
        ),
        (
            {"kind": "kind: case"},
            "a case says what it was drawn from, a principle does not",
        ),
        (
            {"kind": "kind: case\ndrawn_from: {source: someone, workload: x}"},
            "a source of cases is owner/name, arXiv:number, or here for one's own",
        ),
    ],
)
def test_addresses_units_shares_and_chips(
    tmp_path: Path, replaced: dict[str, str], rule: str
) -> None:
    assert rule in faults(tmp_path, **replaced)


def test_bounds_beyond_any_job(tmp_path: Path) -> None:
    assert faults(tmp_path, devices="min_devices: 99999999") == [
        "input should be less than or equal to 1048576"
    ]


def test_units_that_are_written_well(tmp_path: Path) -> None:
    fine = "40 TFLOP/s, 2.2e12 FLOPs, 50 GB/s, 400 Gb/s, 1.5 ms, 8 µs, A100-80GB, 58% MFU, `40GB`."
    assert faults(tmp_path, costs=fine) == []


def test_a_title_that_is_nearly_another(tmp_path: Path) -> None:
    write(tmp_path, "straggler-is-not-sharding", STRAGGLER)
    other = (SOURCE / "input-bound-is-not-sharding.md").read_text(encoding="utf-8")
    start = STRAGGLER.index("title: ")
    title = STRAGGLER[start : STRAGGLER.index("\n", start)]
    lines = other.splitlines()
    lines[2] = title.replace("One slow", "A slow")
    text = "\n".join(lines).replace(
        "(straggler-is-not-sharding.md)", "(input-bound-is-not-sharding.md)"
    )
    write(tmp_path, "input-bound-is-not-sharding", text + "\n")
    assert [problem.rule for problem in check(tmp_path)] == [
        "another recipe's title is much like it"
    ]
