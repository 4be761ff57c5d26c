"""From paths to the files of one job: directories, several hosts, several runs, and dead ends."""

from __future__ import annotations

import gzip
import hashlib
import os
from pathlib import Path

import pytest
from trace_samples import HLO_TEXT, chrome, kineto, nsys, save, three_steps, xspace

from prompts_agent.errors import DamagedTraceError, TraceError, TraceNotFoundError
from prompts_agent.trace.discover import discover
from prompts_agent.trace.sniff import TraceFormat


def log_directory(root: Path, *runs: str, hosts: tuple[str, ...] = ("vm0",)) -> Path:
    for run in runs:
        for host in hosts:
            save(root / "plugins" / "profile" / run / f"{host}.xplane.pb", xspace(events=len(run)))
    return root


def test_a_bare_file(tmp_path: Path) -> None:
    path = save(tmp_path / "t1v-n-0.xplane.pb", xspace())
    found = discover([path])
    assert found.format is TraceFormat.XSPACE
    assert [(file.path, file.host) for file in found.files] == [(path, "t1v-n-0")]
    assert found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found.size_bytes == path.stat().st_size
    assert found.session is None
    assert found.caveats == ()
    assert found.trace_file().files == 1


def test_the_digest_is_of_the_bytes_on_disk_also_when_compressed(tmp_path: Path) -> None:
    path = save(tmp_path / "a.trace.json.gz", chrome())
    assert discover([path]).sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("start", ["", "plugins", "plugins/profile", "plugins/profile/2026_01_02"])
def test_any_directory_above_the_trace_will_do(tmp_path: Path, start: str) -> None:
    log_directory(tmp_path, "2026_01_02", hosts=("vm0", "vm1"))
    found = discover([str(tmp_path / start)])
    assert [file.host for file in found.files] == ["vm0", "vm1"]
    assert found.session == "2026_01_02"


def test_the_digest_of_several_files_does_not_depend_on_their_order(tmp_path: Path) -> None:
    one, two = save(tmp_path / "a.pb", xspace(1)), save(tmp_path / "b.pb", xspace(2))
    digests = sorted(hashlib.sha256(path.read_bytes()).hexdigest() for path in (one, two))
    expected = hashlib.sha256("\n".join(digests).encode()).hexdigest()
    assert discover([one, two]).sha256 == discover([two, one]).sha256 == expected


def test_of_several_runs_the_last_by_name_is_taken_and_the_others_are_named(tmp_path: Path) -> None:
    log_directory(tmp_path, "run_9", "run_10", "run_2")
    found = discover([tmp_path])
    assert found.session == "run_10"
    assert len(found.files) == 1
    assert "3 runs found" in found.caveats[0]
    assert "run_9" in found.caveats[0]
    assert "run_2" in found.caveats[0]


def test_xprofs_cache_beside_the_trace_is_ignored(tmp_path: Path) -> None:
    log_directory(tmp_path, "run")
    run = tmp_path / "plugins" / "profile" / "run"
    hlo = b"\x0a\x0c\x0a\x04step\x12\x04main"
    (run / "jit_step(7).hlo_proto.pb").write_bytes(hlo)
    (run / "ALL_HOSTS.op_stats_v2.pb").write_bytes(xspace())
    (run / "vm0.SSTABLE").write_bytes(xspace())
    assert [file.host for file in discover([tmp_path]).files] == ["vm0"]


def test_xspace_is_preferred_to_the_json_beside_it(tmp_path: Path) -> None:
    plane = save(tmp_path / "vm0.xplane.pb", xspace())
    json = save(tmp_path / "vm0.trace.json.gz", chrome())
    assert discover([tmp_path]).files[0].path == plane
    named = discover([json])
    assert named.files[0].path == plane
    assert "in place of vm0.trace.json.gz" in named.caveats[0]


def test_a_run_in_another_format_elsewhere_is_named(tmp_path: Path) -> None:
    save(tmp_path / "run_1" / "vm0.xplane.pb", xspace())
    save(tmp_path / "run_2" / "vm0.trace.json.gz", chrome())
    found = discover([tmp_path])
    assert found.format is TraceFormat.XSPACE
    assert found.caveats == (f"not read: the chrome trace in {tmp_path / 'run_2'}",)


def test_json_is_read_where_the_xspace_beside_it_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "vm0.xplane.pb").write_bytes(xspace(4).decode("utf-8", "replace").encode())
    json = save(tmp_path / "vm0.trace.json.gz", chrome())
    for given in (tmp_path, json):
        found = discover([given])
        assert found.format is TraceFormat.CHROME
        assert "copied in text mode" in found.caveats[0]


def test_several_paths_are_the_hosts_of_one_job(tmp_path: Path) -> None:
    paths = [save(tmp_path / f"vm{k}.xplane.pb", xspace(1, 4 + k)) for k in range(3)]
    assert [file.host for file in discover(paths).files] == ["vm0", "vm1", "vm2"]


def test_differing_formats_are_refused(tmp_path: Path) -> None:
    paths = [save(tmp_path / "a.pb", xspace()), save(tmp_path / "b.json", kineto(three_steps()))]
    with pytest.raises(TraceError, match="one job has one format"):
        discover(paths)


def test_one_host_twice_is_refused(tmp_path: Path) -> None:
    paths = [save(tmp_path / day / "vm0.xplane.pb", xspace()) for day in ("mon", "tue")]
    with pytest.raises(TraceError, match="'vm0' occurs twice"):
        discover(paths)
    with pytest.raises(TraceError, match="'vm0' occurs twice"):
        discover([paths[0], paths[0]])


@pytest.mark.parametrize(
    ("url", "command"),
    [
        ("gs://bucket/logs/run", "gcloud storage cp --recursive gs://bucket/logs/run ."),
        ("s3://bucket/run", "aws s3 cp --recursive s3://bucket/run ./trace"),
        ("https://host/t.json.gz", "curl -LO https://host/t.json.gz"),
    ],
)
@pytest.mark.parametrize("kind", [str, Path])
def test_remote_paths_get_their_copy_command(url: str, command: str, kind: type) -> None:
    with pytest.raises(TraceError) as caught:
        discover([kind(url)])
    assert command in caught.value.cure


def test_nothing_there(tmp_path: Path) -> None:
    (tmp_path / "neighbour.pb").touch()
    with pytest.raises(TraceNotFoundError) as caught:
        discover([tmp_path / "absent.pb"])
    assert "neighbour.pb" in caught.value.cure
    with pytest.raises(TraceNotFoundError):
        discover([])
    with pytest.raises(TraceNotFoundError):
        discover(["nul\0byte"])


def test_a_directory_without_traces_lists_what_it_holds(tmp_path: Path) -> None:
    for name in ("a.png", "b.png", "notes.txt"):
        (tmp_path / name).write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(9))
    (tmp_path / "host.xplane.pb").touch()
    with pytest.raises(TraceNotFoundError) as caught:
        discover([tmp_path])
    assert "2 × .png" in caught.value.value
    assert "host.xplane.pb: is empty (0 bytes)" in caught.value.value
    assert "plugins/profile" in caught.value.rule
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(TraceNotFoundError, match="no files"):
        discover([empty])


def test_a_circle_of_links_ends(tmp_path: Path) -> None:
    log_directory(tmp_path, "run")
    (tmp_path / "plugins" / "up").symlink_to(tmp_path)
    (tmp_path / "plugins" / "self").symlink_to("self")
    assert discover([tmp_path]).session == "run"
    with pytest.raises(TraceNotFoundError):
        discover([tmp_path / "plugins" / "self"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_without_permission(tmp_path: Path) -> None:
    path = save(tmp_path / "vm0.xplane.pb", xspace())
    path.chmod(0)
    with pytest.raises(TraceNotFoundError, match="cannot be read"):
        discover([path])
    with pytest.raises(TraceNotFoundError, match="Not readable"):
        discover([tmp_path])


def test_ranks_of_pytorch_in_one_directory(tmp_path: Path) -> None:
    for rank in range(2):
        for cycle in (1700000000000, 1700000009999):
            name = f"node{rank}_42.{cycle}.pt.trace.json.gz"
            save(tmp_path / name, kineto(three_steps(), rank=rank))
    found = discover([tmp_path])
    assert found.format is TraceFormat.KINETO
    assert [(file.host, "9999" in file.path.name) for file in found.files] == [
        ("node0_42", True),
        ("node1_42", True),
    ]
    assert "2 earlier traces of the same workers" in found.caveats[0]


def test_of_a_dump_the_largest_optimised_program_is_taken(tmp_path: Path) -> None:
    (tmp_path / "module_0001.init.before_optimizations.txt").write_text(HLO_TEXT * 9)
    (tmp_path / "module_0001.init.gpu_after_optimizations.txt").write_text(HLO_TEXT)
    (tmp_path / "module_0002.step.gpu_after_optimizations.txt").write_text(HLO_TEXT + "\n" * 99)
    found = discover([tmp_path])
    assert found.format is TraceFormat.HLO_TEXT
    assert [file.path.name[:18] for file in found.files] == ["module_0002.step.g"]
    assert "3 programs found" in found.caveats[0]


def test_of_several_nsight_exports_one_is_taken(tmp_path: Path) -> None:
    for name in ("a.sqlite", "b.sqlite"):
        nsys(tmp_path / name)
    found = discover([tmp_path])
    assert [file.path.name for file in found.files] == ["b.sqlite"]
    assert "2 SQLite exports" in found.caveats[0]


def test_a_file_name_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"vm\xff.xplane.pb")
    try:
        path.write_bytes(xspace())
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    assert discover([path]).files[0].host == "vm?"


def test_a_damaged_file_that_was_named_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "vm0.xplane.pb"
    path.write_bytes(gzip.compress(xspace(2))[:40])
    with pytest.raises(DamagedTraceError):
        discover([path])
