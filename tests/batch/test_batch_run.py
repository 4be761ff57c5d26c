"""A batch: each row for itself, one writer, and nothing lost whatever happens to the process."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from batch_build import HERE, PATHS, comparable, items, request

from prompts_agent.batch.item import Shard
from prompts_agent.batch.journal import Begun, Journal, rows_in
from prompts_agent.batch.merge import merge
from prompts_agent.batch.row import Row
from prompts_agent.batch.run import run_batch
from prompts_agent.batch.settings import Settings
from prompts_agent.batch.store import Store, report_path
from prompts_agent.errors import InputError, OutputError
from prompts_agent.workers.lines import Lines
from prompts_agent.workers.outcome import Limits

BATCH = (sys.executable, os.fspath(HERE / "batch_build.py"))
NAMES = [f"slow{k:02d}" for k in range(20)]
FEW = NAMES[:6]


@pytest.fixture(autouse=True)
def _found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", PATHS)


def lines(directory: Path) -> list[Row]:
    return [entry for entry in Journal(directory).entries() if isinstance(entry, Row)]


def test_each_way_to_fail_costs_its_row_and_has_its_reason(tmp_path: Path) -> None:
    names = ["a", "crash", "eat", "damaged", "poor", "silent", "b"]
    limits = Limits(timeout_s=60, memory_bytes=400 * 2**20)
    ended = run_batch(items(names), request(tmp_path, jobs=2, limits=limits))
    assert ended.finished
    found = {row.item.address.rpartition("/")[2]: row for row in rows_in(tmp_path).values()}
    assert {name: (found[name].status, found[name].reason) for name in names} == {
        "a": ("done", None),
        "crash": ("crashed", "SIGSEGV"),
        "eat": ("out_of_memory", "memory limit"),
        "damaged": ("bad_input", "DamagedTraceError"),
        "poor": ("cannot_tell", "NotDiagnosableError"),
        "silent": ("cannot_tell", "the trace tells nothing"),
        "b": ("done", None),
    }
    assert found["damaged"].message == "damaged is cut off"
    report = found["b"].report
    assert report is not None
    assert json.loads(report_path(tmp_path, report).read_bytes())["of"] == "b"


def test_a_hang_costs_its_row(tmp_path: Path) -> None:
    run_batch(items(["hang"]), request(tmp_path, limits=Limits(timeout_s=0.5)))
    (row,) = rows_in(tmp_path).values()
    assert (row.status, row.message) == ("timed_out", "no answer within 0.5 s")


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    run_batch(items(["a", "damaged"]), request(tmp_path))
    told: list[str] = []
    ended = run_batch(
        items(["a", "b", "damaged"]), request(tmp_path), on_row=lambda row: told.append(row.key)
    )
    assert told == [items(["b"])[0].key]
    assert (ended.total, ended.rows) == (3, 3)


def test_failed_rows_are_done_again_when_asked(tmp_path: Path) -> None:
    run_batch(items(["a", "damaged"]), request(tmp_path))
    told: list[str] = []
    again = request(tmp_path, retry_failed=True)
    run_batch(items(["a", "damaged"]), again, on_row=lambda row: told.append(row.key))
    assert told == [items(["damaged"])[0].key]
    assert len(rows_in(tmp_path)) == 2


def test_stopping_keeps_what_was_done_and_the_rest_follows(tmp_path: Path) -> None:
    done: list[str] = []
    ended = run_batch(
        items(NAMES),
        request(tmp_path, jobs=2),
        on_row=lambda row: done.append(row.key),
        stop=lambda: len(done) >= 3,
    )
    assert not ended.finished
    assert 3 <= ended.rows <= 6  # two run, and one may be on its way to each
    assert ended.rows == len(done) == len(lines(tmp_path))
    assert run_batch(items(NAMES), request(tmp_path, jobs=2)).finished
    assert len(lines(tmp_path)) == len(NAMES)


def test_other_flags_are_refused(tmp_path: Path) -> None:
    run_batch(items(["a"]), request(tmp_path))
    with pytest.raises(InputError, match="--target was not given"):
        run_batch(items(["a"]), request(tmp_path, settings=Settings(target="v5e:4x4")))


def test_one_batch_at_a_time_has_a_directory(tmp_path: Path) -> None:
    with (
        Store(tmp_path),
        pytest.raises(OutputError, match=f"another batch .process {os.getpid()} on "),
        Store(tmp_path),
    ):
        pass
    with Store(tmp_path):  # the lock went with its holder
        pass


def test_shards_share_a_directory(tmp_path: Path) -> None:
    with Store(tmp_path, Shard(index=1, count=2)), Store(tmp_path, Shard(index=2, count=2)):
        pass


def test_a_file_system_that_is_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(OutputError, match="Read-only file system") as caught:
        run_batch(items(["a"]), request(tmp_path / "out"))
    assert caught.value.cure == "Write somewhere else."


def test_a_place_that_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(OutputError, match="File exists"):
        run_batch(items(["a"]), request(tmp_path / "out"))


@pytest.mark.parametrize("where", ["report", "journal"])
def test_a_full_disk_stops_the_batch_and_damages_nothing(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    calls: list[int] = []
    kind = Store if where == "report" else Lines
    method = "write_report" if where == "report" else "append"
    real = getattr(kind, method)

    def write(*arguments: object) -> None:
        calls.append(1)
        if len(calls) > 3:
            raise full
        real(*arguments)

    monkeypatch.setattr(kind, method, write)
    with pytest.raises(OutputError, match="No space left") as caught:
        run_batch(items(FEW), request(tmp_path))
    assert "what is done is kept" in caught.value.cure
    monkeypatch.undo()
    monkeypatch.setenv("PYTHONPATH", PATHS)
    assert 1 < len(lines(tmp_path)) <= 3
    assert run_batch(items(FEW), request(tmp_path)).finished
    assert len(lines(tmp_path)) == len(FEW)


def test_killed_at_any_moment_it_goes_on(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    run_batch(items(NAMES), request(whole, jobs=2))
    chance = random.Random(7)
    command = [
        *BATCH,
        os.fspath(cut),
        json.dumps(NAMES),
    ]
    kills = 0
    for _ in range(12):
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.4, 0.9))
        kills += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
        if len(rows_in(cut)) == len(NAMES):
            break
    assert kills > 1
    subprocess.run(command, check=True)
    assert len(lines(cut)) == len(NAMES)  # nothing lost, nothing done twice
    assert comparable(cut) == comparable(whole)
    reports = {path.name for path in whole.glob("reports/*/*/*")}
    assert {path.name for path in cut.glob("reports/*/*/*")} == reports
    assert not (cut / "scratch").exists()


def test_children_die_with_the_parent(tmp_path: Path) -> None:
    command = [*BATCH, os.fspath(tmp_path), '["hang"]']
    process = subprocess.Popen(command)
    family: list[int] = []
    deadline_s = time.monotonic() + 30
    while len(family) < 2 and time.monotonic() < deadline_s:
        time.sleep(0.05)
        family = descendants(process.pid)
    assert len(family) >= 2  # a worker and its task
    process.kill()
    process.wait()
    while any(map(alive, family)) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert not any(map(alive, family))


def descendants(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    children = [int(child) for child in path.read_text().split()] if path.exists() else []
    return [*children, *(far for child in children for far in descendants(child))]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_shards_have_every_item_once_and_merge(tmp_path: Path) -> None:
    whole, parts, merged = tmp_path / "whole", tmp_path / "parts", tmp_path / "merged"
    names = [f"a{k}" for k in range(9)]
    run_batch(items(names), request(whole))
    for index in (1, 2, 3):
        run_batch(items(names), request(parts, shard=Shard(index=index, count=3)))
    found = merge([parts], merged)
    assert (found.rows, found.journals, found.repeated) == (9, 3, 0)
    assert comparable(merged) == comparable(whole)
    assert run_batch(items(names), request(merged)).finished  # and nothing is left to do
    assert len(lines(merged)) == 9


def test_a_shard_that_is_missing_or_not_done_is_told(tmp_path: Path) -> None:
    names = [f"a{k}" for k in range(9)]
    for index in (1, 3):
        run_batch(items(names), request(tmp_path / "p", shard=Shard(index=index, count=3)))
    with pytest.raises(InputError, match="shard 2/3 is not there"):
        merge([tmp_path / "p"], tmp_path / "m")
    merge([tmp_path / "p"], tmp_path / "m", partial=True)
    second = [item for item in items(names) if Shard(index=2, count=3).has(item)]
    run_batch(
        items(names), request(tmp_path / "p", shard=Shard(index=2, count=3)), stop=lambda: True
    )
    with pytest.raises(InputError, match=f"-2-of-3.jsonl has 0 of {len(second)} rows"):
        merge([tmp_path / "p"], tmp_path / "n")


def test_an_empty_shard_is_a_shard(tmp_path: Path) -> None:
    for index in (1, 2):
        run_batch(items(["a"]), request(tmp_path / "p", shard=Shard(index=index, count=2)))
    assert merge([tmp_path / "p"], tmp_path / "m").rows == 1


def test_a_foreign_line_is_an_error_with_its_number(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text("not json\n")
    with pytest.raises(InputError, match="line 1: not json"):
        list(Journal(tmp_path).entries())


def test_a_journal_says_what_was_asked(tmp_path: Path) -> None:
    run_batch(items(["a"]), request(tmp_path))
    head = next(iter(Journal(tmp_path).entries()))
    assert isinstance(head, Begun)
    assert (head.items, head.settings) == (1, Settings())


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "a/b", "1/0", "-1/4"])
def test_wrong_shards(text: str) -> None:
    with pytest.raises(InputError, match="from 1/n to n/n"):
        Shard.parse(text)
