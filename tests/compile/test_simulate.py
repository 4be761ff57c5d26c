"""Simulated traces: written from a small scheduled program, read back as any trace.

The program is golden/layers-tpu (see test_schedule.py): five layers over fsdp = 2 and tensor = 4.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from compile_build import layout, llama, tiny
from typer.testing import CliRunner

from prompts_agent.cli.app import app
from prompts_agent.compile.final_program import load_program
from prompts_agent.compile.request import Until
from prompts_agent.compile.schedule.records import Schedule
from prompts_agent.compile.schedule.summary import schedule_of
from prompts_agent.compile.schedule.transfers import LayoutTransfers
from prompts_agent.compile.schedule_reading import constants_for
from prompts_agent.compile.simulate.simulate import packed, simulate, simulated_trace
from prompts_agent.errors import CompileError, HardwareError
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.model.catalog import find_model
from prompts_agent.trace.profile import Profile
from prompts_agent.trace.read import profile as profile_of
from prompts_agent.trace.read import read
from prompts_agent.trace.xspace.messages import xspace

GOLDEN = Path(__file__).parent / "golden" / "layers-tpu.hlo.pb.gz"
LAYOUT = layout(fsdp=2, tensor=4)
JOB = tiny()  # on v5e:2x4, as the program is


def program() -> bytes:
    found = load_program(GOLDEN)
    assert found is not None
    return found


def written(tmp_path: Path, **more: Any) -> Path:
    path = tmp_path / "what_if.xplane.pb.gz"
    trace = simulated_trace(program(), LAYOUT, JOB, by="libtpu 1", **more)
    path.write_bytes(packed(trace, path))
    return path


def schedule() -> Schedule:
    constants = constants_for(JOB)
    transfers = LayoutTransfers(LAYOUT, JOB.topology, constants)
    return schedule_of(program(), find_chip("v5e"), transfers, constants, generated=True)


def same(profile: Profile, meant: Schedule) -> None:
    """Step time, and exposed and whole time of each collective by kind and axis."""
    assert profile.step is not None
    # A trace counts in picoseconds; a step has up to some ten thousand ends to round.
    assert profile.step.median_s == pytest.approx(meant.step_time_s, rel=1e-6)
    assert profile.step.period_s == pytest.approx(meant.step_time_s, rel=1e-6)
    seen = {(use.kind.value, use.axis): use for use in profile.collectives}
    assert set(seen) == {(use.kind, use.axis) for use in meant.collectives}
    for use in meant.collectives:
        found = seen[use.kind, use.axis]
        assert found.count == use.count
        assert found.bytes == use.bytes
        assert found.exposed_s == pytest.approx(use.exposed_s, rel=1e-6, abs=1e-8)


def test_what_was_written_is_what_is_read(tmp_path: Path) -> None:
    profile = profile_of([written(tmp_path)])
    same(profile, schedule())
    assert profile.device_kind == "v5e"
    assert [(axis.name, axis.size) for axis in profile.mesh] == [("fsdp", 2), ("tensor", 4)]
    assert profile.devices_in_job == 8
    assert profile.flops_per_step == 5 * 2 * 1024 * 256 * 1024


def test_it_says_that_it_is_simulated(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert any("no device ran this" in caveat for caveat in read([path]).file.caveats)
    # XProf shows a space's warnings.
    space = xspace().FromString(gzip.decompress(path.read_bytes()))
    assert space.warnings[0].startswith("Simulated by prompts")


def test_steps_follow_each_other(tmp_path: Path) -> None:
    profile = profile_of([written(tmp_path, steps=5)])
    assert profile.step is not None
    # The first and the last of four or more are dropped.
    assert profile.step.count == 3


def test_a_loop_is_unrolled_under_its_own_event(tmp_path: Path) -> None:
    space = xspace().FromString(gzip.decompress(written(tmp_path, steps=1).read_bytes()))
    device = next(plane for plane in space.planes if plane.name == "/device:TPU:0")
    (ops,) = [line for line in device.lines if line.name == "XLA Ops"]
    names = [device.event_metadata[e.metadata_id].display_name for e in ops.events]
    loop = next(name for name in names if name.startswith("while"))
    assert names.count(loop) == 1
    reduce = next(use.ops[0] for use in schedule().collectives if use.kind == "all-reduce")
    assert names.count(reduce) == 5
    spans = {n: (e.offset_ps, e.duration_ps) for n, e in zip(names, ops.events, strict=True)}
    start, length = spans[loop]
    assert all(
        start <= e.offset_ps and e.offset_ps + e.duration_ps <= start + length
        for n, e in zip(names, ops.events, strict=True)
        if n == reduce
    )


def test_no_gpu_trace_is_made_up() -> None:
    with pytest.raises(HardwareError, match="simulated for TPUs"):
        simulate(layout(fsdp=8), llama("h100:1x8"))


def test_without_a_compiler_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prompts_agent.compile.fit.find_toolchain", lambda chip: None)
    with pytest.raises(CompileError, match=r"prompts-agent\[tpu\]"):
        simulate(layout(fsdp=16), llama())
    job, path = tmp_path / "job.yaml", tmp_path / "what_if.xplane.pb"
    job.write_text(
        "model: llama2-7b\nhardware: v5e:4x4\nphase: pretrain\nglobal_batch: 16\nsequence: 4096\n",
        encoding="utf-8",
    )
    arguments = ["simulate", str(job), "--layout", "fsdp=16", "-o", str(path)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 3
    assert not path.exists()


def test_a_file_is_not_replaced_silently(tmp_path: Path) -> None:
    job, path = tmp_path / "job.yaml", tmp_path / "what_if.xplane.pb"
    job.write_text("model: llama2-7b\n", encoding="utf-8")
    path.write_bytes(b"mine")
    done = CliRunner().invoke(app, ["simulate", str(job), "-l", "fsdp=16", "-o", str(path)])
    assert done.exit_code == 2
    assert path.read_bytes() == b"mine"


@pytest.mark.usefixtures("tpu_compiler")
def test_a_compiled_layout_makes_the_round_trip(tmp_path: Path) -> None:
    job = llama("v5e:2x4", model=find_model("llama2-7b").model_copy(update={"layers": 2}))
    trace, answer = simulate(layout(fsdp=2, tensor=4), job, until=Until.SCHEDULE)
    path = tmp_path / "what_if.xplane.pb"
    path.write_bytes(packed(trace, path))
    assert answer.schedule is not None
    same(profile_of([path]), answer.schedule)


XPROF = """
import json, sys
from xprof.convert import raw_to_tool_data
def tool(name):
    options = {"host": "simulated", "use_saved_result": False}
    return json.loads(raw_to_tool_data.xspace_to_tool_data([sys.argv[1]], name, options)[0])
profile = tool("op_profile")["byProgram"]
print(json.dumps({
    "programs": [child["name"] for child in profile["children"]],
    "flops": profile["metrics"]["rawFlops"],
    "step_ms": float(tool("overview_page")[0]["p"]["active_steptime_ms_average"]),
}))
"""


@pytest.mark.skipif(find_spec("xprof") is None, reason="XProf is not installed")
def test_xprof_opens_it(tmp_path: Path) -> None:
    path = tmp_path / "what_if.xplane.pb"
    path.write_bytes(simulated_trace(program(), LAYOUT, JOB, by="libtpu 1"))
    done = subprocess.run(
        [sys.executable, "-c", XPROF, str(path)], capture_output=True, text=True, check=True
    )
    seen = json.loads(done.stdout.splitlines()[-1])
    assert "jit_step(1)" in seen["programs"]
    # Three steps of 5 × 2 × 1024 × 256 × 1024 FLOPs.
    assert seen["flops"] == 3 * 5 * 2 * 1024 * 256 * 1024
    assert seen["step_ms"] == pytest.approx(1e3 * schedule().step_time_s, abs=0.01)
