"""From what a user gives to items: none left out in silence, each once."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from prompts_agent.batch.item import date_in, item_of, job_of
from prompts_agent.batch.remote import fetch
from prompts_agent.batch.sizes import parse_size
from prompts_agent.batch.sources import find_items
from prompts_agent.batch.tree import addresses, items_below
from prompts_agent.errors import InputError, SettingError, TraceNotFoundError


def touch(root: Path, *names: str, content: bytes = b"x") -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def found(*sources: str) -> list[str]:
    return [item.address for item in find_items(sources).items]


def test_a_directory_has_a_row_a_job(tmp_path: Path) -> None:
    touch(
        tmp_path,
        # Two hosts of one run, and another run.
        "logs/plugins/profile/2026_01_01_10_00_00/host0.xplane.pb",
        "logs/plugins/profile/2026_01_01_10_00_00/host1.xplane.pb",
        "logs/plugins/profile/2026_01_02_10_00_00/host0.xplane.pb",
        # jax's JSON beside the XSpace of the same host.
        "flat/a.xplane.pb",
        "flat/a.trace.json.gz",
        "flat/b.trace.json.gz",
        # Two workers of one torch job, and two cycles of one worker.
        "torch/node_1.1700000000000.pt.trace.json",
        "torch/node_2.1700000000000.pt.trace.json",
        "cycles/node_1.1700000000000.pt.trace.json",
        "cycles/node_1.1700000100000.pt.trace.json",
        "nsys/run.sqlite",
        "README.md",
        "flat/a.op_stats.pb",
        "notes.txt",
    )
    skipped: Counter[str] = Counter()
    names = [os.path.relpath(name, tmp_path) for name in items_below(tmp_path, skipped)]
    assert names == [
        "cycles/node_1.1700000000000.pt.trace.json",
        "cycles/node_1.1700000100000.pt.trace.json",
        "flat/a.xplane.pb",
        "flat/b.trace.json.gz",
        "logs/plugins/profile/2026_01_01_10_00_00",
        "logs/plugins/profile/2026_01_02_10_00_00",
        "nsys/run.sqlite",
        "torch",
    ]
    assert skipped == {".md": 1, ".pb": 1, ".txt": 1}


def test_programs_are_one_job_a_dump(tmp_path: Path) -> None:
    hlo = b"HloModule jit_step\n\nENTRY main {\n  ROOT p = f32[2]{0} parameter(0)\n}\n"
    touch(tmp_path, "dump/module_1.txt", "dump/module_2.txt", "one/module.txt", content=hlo)
    touch(tmp_path, "mixed/module.txt", content=hlo)
    touch(tmp_path, "mixed/t.xplane.pb")
    names = [os.path.relpath(name, tmp_path) for name in items_below(tmp_path, Counter())]
    assert names == ["dump", "mixed/module.txt", "mixed/t.xplane.pb", "one/module.txt"]


def test_an_empty_trace_in_a_directory_is_a_row(tmp_path: Path) -> None:
    touch(tmp_path, "a.xplane.pb", content=b"")
    assert found(str(tmp_path)) == [str(tmp_path / "a.xplane.pb")]


def test_remote_names_are_grouped_like_files() -> None:
    assert addresses(
        [
            "s3://b/logs/plugins/profile/r1/h0.xplane.pb",
            "s3://b/logs/plugins/profile/r1/h1.xplane.pb",
            "s3://b/x.xplane.pb",
        ]
    ) == ["s3://b/logs/plugins/profile/r1", "s3://b/x.xplane.pb"]


def test_patterns_files_and_repeats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "a/x.pb", "b/y.pb", "b/odd[1].pb")
    monkeypatch.chdir(tmp_path)
    assert found("*/?.pb", "a/x.pb") == [str(tmp_path / "a/x.pb"), str(tmp_path / "b/y.pb")]
    assert found("b/odd[1].pb") == [str(tmp_path / "b/odd[1].pb")]  # a name before a pattern
    assert found("a/../b/y.pb") == [str(tmp_path / "b/y.pb")]
    with pytest.raises(TraceNotFoundError, match=r"none\*"):
        found("none*")


def test_a_directory_without_a_trace_says_what_it_holds(tmp_path: Path) -> None:
    touch(tmp_path, "a.md", "b.md", "c.cfg")
    with pytest.raises(TraceNotFoundError, match=r"1 × \.cfg, 2 × \.md"):
        found(str(tmp_path))


ROWS = [
    {"path": "t/a.xplane.pb", "workload": "w/a.yaml", "job": "llama", "date": "2026-01-31"},
    {"path": "/abs/b.xplane.pb", "hours_per_week": "84"},
]


def manifest(tmp_path: Path, kind: str) -> Path:
    path = tmp_path / f"list.{kind}"
    if kind == "csv":
        with path.open("w", encoding="utf-8-sig", newline="") as file:  # as Excel writes it
            writer = csv.DictWriter(file, ["path", "workload", "job", "date", "hours_per_week"])
            writer.writeheader()
            writer.writerows(ROWS)
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    else:
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        names = ["path", "workload", "job", "date", "hours_per_week"]
        table = pa.table({name: [row.get(name) for row in ROWS] for name in names})
        parquet.write_table(table, path)
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_manifests(kind: str, tmp_path: Path) -> None:
    one, two = find_items([str(manifest(tmp_path, kind))]).items
    assert one.address == str(tmp_path / "t/a.xplane.pb")  # from where the manifest lies
    assert one.workload == str(tmp_path / "w/a.yaml")
    assert one.job == "llama"
    assert one.recorded_at == datetime(2026, 1, 31, tzinfo=UTC)
    assert one.hours_per_week is None
    assert (two.address, two.workload, two.hours_per_week) == ("/abs/b.xplane.pb", None, 84.0)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "file,job\nx,y\n", "row 1 has no path"),
        ("a.csv", "path\n", "has no row"),
        ("a.csv", "path,date\nx,31.01.2026\n", "row 1: date '31.01.2026'"),
        ("a.csv", "path,hours_per_week\nx,1\ny,200\n", "row 2: hours_per_week"),
        ("a.jsonl", '{"path": "x"}\n[1]\n', r"line 2: \[1\]"),
        ("a.jsonl", '{"path": \n', "line 1"),
        ("a.parquet", "path\nx\n", "cannot be read"),
    ],
)
def test_wrong_manifests_say_where(name: str, text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=said):
        find_items([str(tmp_path / name)])


def test_one_trace_with_two_workloads_is_two_items() -> None:
    one, two = (item_of("/t/a.pb", workload=name) for name in ("/w/a.yaml", "/w/b.yaml"))
    assert one.key != two.key
    assert one.key == item_of("/t/a.pb", workload="/w/a.yaml", job="another name").key


@pytest.mark.parametrize(
    ("address", "job", "date"),
    [
        (
            "/logs/llama/plugins/profile/2026_01_31_12_30_05",
            "/logs/llama",
            datetime(2026, 1, 31, 12, 30, 5, tzinfo=UTC),
        ),
        ("/t/llama-2026-01-31.xplane.pb", "/t/llama", datetime(2026, 1, 31, tzinfo=UTC)),
        ("/t/20260131/llama.xplane.pb", "/t/20260131/llama", datetime(2026, 1, 31, tzinfo=UTC)),
        # 1,700,000,000 s after 1970 is 2023-11-14 22:13:20 UTC.
        (
            "/t/node_7.1700000000000.pt.trace.json.gz",
            "/t/node_7",
            datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),
        ),
        ("/t/2026-13-45.pb", "/t/2026-13-45", None),
        ("s3://b/llama.xplane.pb", "s3://b/llama", None),
    ],
)
def test_jobs_and_dates_from_names(address: str, job: str, date: datetime | None) -> None:
    assert (job_of(address), date_in(address)) == (job, date)


def test_addresses_of_fsspec(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    touch(tmp_path, "runs/a.xplane.pb", "runs/deep/b.xplane.pb", "runs/notes.md", content=b"abc")
    root = f"file://{tmp_path}"
    listed = find_items([f"{root}/runs"])
    assert [item.address for item in listed.items] == [
        f"{root}/runs/a.xplane.pb",
        f"{root}/runs/deep/b.xplane.pb",
    ]
    assert listed.skipped == {".md": 1}
    assert found(f"{root}/runs/*.pb") == [f"{root}/runs/a.xplane.pb"]
    assert found(f"{root}/runs/a.xplane.pb") == [f"{root}/runs/a.xplane.pb"]
    got = fetch(f"{root}/runs/a.xplane.pb", tmp_path)
    assert (got.name, got.read_bytes()) == ("a.xplane.pb", b"abc")
    whole = fetch(f"{root}/runs", tmp_path / "into")
    assert (whole / "deep/b.xplane.pb").read_bytes() == b"abc"
    with pytest.raises(TraceNotFoundError, match="cannot be read"):
        fetch(f"{root}/none", tmp_path)


def test_addresses_in_an_archive(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    import zipfile

    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("a.xplane.pb", b"abc")
    address = f"zip://a.xplane.pb::file://{tmp_path}/t.zip"
    assert found(address) == [address]
    assert found(f"zip://*.pb::file://{tmp_path}/t.zip") == [address]
    assert fetch(address, tmp_path / "into").read_bytes() == b"abc"


def test_a_scheme_without_a_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec")

    def missing(_: str) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    with pytest.raises(SettingError) as caught:
        find_items(["s3://bucket/logs"])
    assert caught.value.cure == "pip install 'prompts-agent[s3]'"


def test_an_unknown_scheme() -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(SettingError, match="no such scheme"):
        find_items(["nope://x/y"])


@pytest.mark.parametrize(
    ("text", "size"),
    [("8GiB", 8 * 2**30), ("500MB", 500_000_000), ("2g", 2_000_000_000), ("1.5 KiB", 1536)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "GiB", "-1GiB", "8 parsecs"])
def test_wrong_sizes(text: str) -> None:
    with pytest.raises(InputError, match="a number and a unit"):
        parse_size(text)
