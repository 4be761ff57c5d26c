"""Tables and answers of four captures of two jobs, worked out by hand."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from batch_build import stored

from prompts_agent.batch.answers_text import answers_text
from prompts_agent.batch.ask import Answered, Asked, answers, ask, parse_date
from prompts_agent.batch.columns import TABLES, TABLES_VERSION, mesh_text
from prompts_agent.batch.item import Item
from prompts_agent.batch.tables import build_tables
from prompts_agent.errors import InputError

pytest.importorskip("duckdb")
parquet = pytest.importorskip("pyarrow.parquet")

PARTS = ("compute_s", "exposed_collective_s", "host_transfer_s", "input_s", "idle_s")


def item(job: str, day: int, **more: Any) -> Item:
    when = datetime(2026, 1, day, tzinfo=UTC)
    return Item(address=f"/t/{job}-{day}.xplane.pb", job=job, recorded_at=when, **more)


def report(
    devices: int, mesh: dict[str, int], period_s: float, parts: tuple[float, ...], **more: Any
) -> dict[str, Any]:
    """What the tables read of a report."""
    return {
        "schema_version": "1.2",
        "trace": {"sha256": "ab" * 32, "format": "xspace", "files": 1, "size_bytes": 1000},
        "profile": {
            "device_kind": "v5p",
            "devices_in_job": devices,
            "hosts": 1,
            "step": {"median_s": period_s * 0.9, "period_s": period_s},
            "breakdown": dict(zip(PARTS, parts, strict=True)),
            "facts": [
                {"id": "step_time", "name": "step", "value": 0.5, "unit": "s", "source": "trace"},
                {"id": "kind", "name": "device", "value": "v5p", "unit": "", "source": "trace"},
            ],
        },
        "baseline": {"layout": {"mesh": {a: {"ici": n, "dcn": 1} for a, n in mesh.items()}}},
        "findings": [],
        "proposals": [],
        **more,
    }


def finding(kind: str, share: float, *, axis: str | None = None) -> dict[str, Any]:
    return {
        "id": kind,
        "kind": kind,
        "axis": axis,
        "title": f"=1+1 {kind}",
        "seconds_per_step": share,
        "share": share,
        "is_sharding": axis is not None,
        "fact_ids": ["step_time"],
    }


def proposal(
    mesh: dict[str, int], change: tuple[str, str, str], **predicted: Any
) -> dict[str, Any]:
    what, before, after = change
    return {
        "rank": 1,
        "layout": {"mesh": {axis: {"ici": size, "dcn": 1} for axis, size in mesh.items()}},
        "changes": [{"what": what, "before": before, "after": after, "direction": "lower"}],
        "predicted": {"hbm_bytes": 1, "hbm_limit_bytes": 2, **predicted},
        "rung": "estimated",
        "reasons": [{"text": "", "recipe_ids": ["a", "b"]}, {"text": "", "recipe_ids": ["a"]}],
    }


@pytest.fixture
def batch(tmp_path: Path) -> Path:
    advice = proposal(
        {"fsdp": 32, "tensor": 2},
        ("fsdp", "64", "32"),
        step_time_s=0.8,
        low_s=0.7,
        high_s=0.9,
        speedup=1.25,
        speedup_low=1.1,
        speedup_high=1.4,
    )
    other = proposal(
        {"data": 4, "tensor": 2},
        ("data", "8", "4"),
        step_time_s=1.25,
        low_s=1.1,
        high_s=3.0,
        speedup=2.0,
        speedup_low=0.8,
        speedup_high=2.2,
    )
    exposed = finding("exposed_collective", 0.3, axis="fsdp")
    idle = finding("idle_between_steps", 0.6)
    return stored(
        tmp_path,
        {
            item("llama", 1): report(
                64, {"fsdp": 64}, 1.0, (0.5, 0.3, 0.0, 0.1, 0.1), proposals=[advice],
                findings=[exposed],
            ),
            item("llama", 8): report(
                64, {"fsdp": 32, "tensor": 2}, 0.85, (0.6, 0.1, 0.0, 0.05, 0.1)
            ),
            item("gpt", 2, hours_per_week=84): report(
                8, {"data": 8}, 2.0, (1.0, 0.0, 0.0, 0.0, 1.0), proposals=[other]
            ),
            item("gpt", 9, hours_per_week=84): report(
                8, {"data": 8}, 2.5, (1.0, 0.0, 0.0, 0.0, 1.5), proposals=[other], findings=[idle]
            ),
        },
    )  # fmt: skip


def answer(batch: Path, name: str, asked: Asked | None = None) -> Answered:
    return next(found for found in answers(batch, asked) if found.name == name)


def test_where_chips_wait(batch: Path) -> None:
    # The latest of each: llama 64 × 168 = 10752 chip-hours, gpt 8 × 84 = 672.
    # compute 10752 × 0.6/0.85 + 672 × 1/2.5 = 7589.6 + 268.8; idle 1264.9 + 672 × 1.5/2.5 = 403.2
    assert {row[0]: row[1] for row in answer(batch, "waits").rows} == {
        "compute": 7858.4,
        "idle": 1668.1,
        "exposed communication": 1264.9,
        "input": 632.5,
    }
    shares = {row[0]: row[2] for row in answer(batch, "waits").rows}
    assert shares["compute"] == 68.8  # 7858.4 of 11424
    jobs = {row[0]: row[3] for row in answer(batch, "waits").rows}
    assert jobs == {"compute": 2, "idle": 2, "exposed communication": 1, "input": 1}


def test_which_jobs_gain(batch: Path) -> None:
    # llama runs what was proposed, and its last capture has no proposal.
    (row,) = answer(batch, "gains").rows
    assert row == ("gpt", "data 8 → 4", 8, 2.0, 0.8, "estimated", 336.0, -168.0)  # 672 × (1 - 1/2)


def test_which_findings_repeat(batch: Path) -> None:
    (row,) = answer(batch, "findings").rows
    assert row == ("idle_between_steps", None, 1, 60.0, 403.2, "no")


def test_what_got_worse(batch: Path) -> None:
    (row,) = answer(batch, "worse").rows
    assert row[:6] == ("gpt", "2026-01-02", "2026-01-09", 2000.0, 2500.0, 25.0)
    since = Asked(since=parse_date("2026-01-05", "--since"))
    assert answer(batch, "worse", since).rows == ()


def test_which_proposals_were_followed(batch: Path) -> None:
    (row,) = answer(batch, "followed").rows
    assert row[:3] == ("llama", "2026-01-08", "fsdp=64 → fsdp=32 tensor=2")
    assert row[3:] == (1000.0, 800.0, 850.0, -5.9, "yes")  # 0.8 / 0.85 - 1; 0.7 to 0.9


def test_tables_have_their_schema_and_provenance(batch: Path) -> None:
    place = build_tables(batch)
    for name, columns in TABLES.items():
        file = parquet.ParquetFile(place / f"{name}.parquet")
        assert file.schema_arrow.names == list(columns)
        assert file.schema_arrow.metadata[b"prompts.schema_version"] == TABLES_VERSION.encode()
    counts = [ask(batch, f"select count(*) from {name}").rows[0][0] for name in TABLES]
    assert counts == [4, 2, 3, 8]
    known = "trace_sha256, tool_version, kb_sha256, model_id, seed"
    told = {row for name in TABLES for row in ask(batch, f"select {known} from {name}").rows}
    assert told == {("ab" * 32, "1.0", "cd" * 32, None, None)}
    row = ask(batch, "select changes, changed, recipe_ids from proposals limit 1").rows[0]
    assert row == ("data 8 → 4", 1, ["a", "b"])
    facts = ask(batch, "select distinct fact_id, value, text from facts order by all").rows
    assert facts == (("kind", None, "v5p"), ("step_time", 0.5, None))


def test_tables_are_the_same_bytes_again(batch: Path) -> None:
    names = [f"{name}.parquet" for name in TABLES]
    first = {name: (build_tables(batch) / name).read_bytes() for name in names}
    (batch / "tables" / "tables.json").unlink()
    assert {name: (build_tables(batch) / name).read_bytes() for name in names} == first


def test_a_report_that_is_gone_is_told(batch: Path) -> None:
    next(batch.glob("reports/*/*/*.json")).unlink()
    with pytest.raises(InputError, match="the report of /t/"):
        build_tables(batch)


def test_wrong_questions(batch: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no_such_column"):
        ask(batch, "select no_such_column from jobs")
    with pytest.raises(InputError, match="selec"):
        ask(batch, "selec 1")
    with pytest.raises(InputError, match="there is no such directory"):
        ask(tmp_path / "none", "select 1")


def test_answers_as_text(batch: Path) -> None:
    found = [ask(batch, "select title, share, fact_ids from findings order by share")]
    assert found[0].rows[0] == ("=1+1 exposed_collective", 0.3, ["step_time"])
    rows = list(csv.reader(io.StringIO(answers_text(found, "csv", width=80))))
    # A spreadsheet must not compute what a trace was named.
    assert rows[1] == ["'=1+1 exposed_collective", "0.3", "step_time"]
    line = answers_text(found, "json", width=80).splitlines()[0]
    assert json.loads(line) == {
        "title": "=1+1 exposed_collective", "share": 0.3, "fact_ids": ["step_time"],
    }  # fmt: skip
    assert "exposed\\_collective" in answers_text(found, "markdown", width=80)
    page = answers_text(answers(batch), "text", width=80, unicode=False)
    assert page.isascii()
    assert max(map(len, page.splitlines())) <= 80 + 60  # notes are one line


@pytest.mark.parametrize(
    ("mesh", "text"),
    [
        ({"data": {"ici": 2, "dcn": 4}, "tensor": {"ici": 1, "dcn": 1}}, "data=8"),
        ({"fsdp": {"ici": 16}, "tensor": 4}, "fsdp=16 tensor=4"),
        ({}, "1 device"),
    ],
)
def test_meshes_as_text(mesh: dict[str, Any], text: str) -> None:
    assert mesh_text(mesh) == text


def test_the_documented_schema_is_that_of_the_tables() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "batch.md").read_text("utf-8")
    assert f"## Tables, schema {TABLES_VERSION}" in page
    documented: dict[str, dict[str, str]] = {}
    for line in page.splitlines():
        if line.startswith("### "):
            columns = documented.setdefault(line.removeprefix("### ").strip("`"), {})
        elif line.startswith("| `"):
            name, kind = (cell.strip(" `") for cell in line.split("|")[1:3])
            columns[name] = kind
    known = documented.pop("every table")
    assert {name: known | own for name, own in documented.items()} == TABLES
