"""Real XSpaces of public jobs. Figures were worked out from the raw planes, apart from this code.

tpu-v6e-host-offload: openxla/xprof, Apache-2.0. gpu-mi300x-*, gpu-gfx950-*: AMD-AGI/TraceLens, MIT.
gpu-v100-tf-bert: openxla/xprof, Apache-2.0.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from trace_build import trace_file

from prompts_agent.errors import DamagedTraceError
from prompts_agent.trace.capture import Capture
from prompts_agent.trace.measure.profile import measure
from prompts_agent.trace.profile import Profile
from prompts_agent.trace.second_source import ask_xprof
from prompts_agent.trace.xspace.reader import read_xspace

pytestmark = pytest.mark.real_traces

OFFLOAD = "tpu-v6e-host-offload.xplane.pb"
GPUS = [
    ("gpu-mi300x-jax-attention", "mi300x", 1),
    ("gpu-mi300x-jax-gemm", "mi300x", 1),
    ("gpu-mi300x-jax-elementwise", "mi300x", 1),
    ("gpu-gfx950-jax-fused-attention", "mi355x", 1),
]


def read(source: Path | bytes) -> Capture:
    return read_xspace([("host0", source)], trace_file())


def value(profile: Profile, fact_id: str) -> float:
    fact = profile.fact(fact_id)
    assert fact is not None, fact_id
    assert isinstance(fact.value, int | float)
    return fact.value


def test_host_offload_on_v6e(real_traces: Path) -> None:
    profile = measure(read(real_traces / OFFLOAD))
    assert profile.device_kind == "v6e"
    assert (profile.devices_in_trace, profile.devices_in_job) == (4, 8)
    assert profile.step is not None
    assert profile.step.program == "jit_f"
    assert profile.step.median_s == pytest.approx(0.7841, rel=0.005)
    assert [p.runs for p in profile.programs if p.name == "jit_f"] == [100]
    assert value(profile, "host_transfer.device0.total") == pytest.approx(76.05, abs=0.1)
    assert value(profile, "breakdown.host_transfer.share") == pytest.approx(0.97, abs=0.005)
    assert len(profile.stragglers) == 4
    # An iota in the field that later schemas dropped: [4,2]<=[2,4]T(1,0).
    assert [axis.size for axis in profile.mesh] == [2, 4]
    # Stack reserved by the program and heap together.
    assert profile.hbm_peak_bytes == pytest.approx(21.5e9, rel=0.01)
    assert profile.recompilations == 0


def test_half_the_file_keeps_the_devices(real_traces: Path) -> None:
    data = (real_traces / OFFLOAD).read_bytes()
    whole, half = measure(read(data)), read(data[: len(data) // 2])
    assert any("cut off" in caveat for caveat in half.file.caveats)
    salvaged = measure(half)
    assert salvaged.step is not None
    assert whole.step is not None
    assert salvaged.step.median_s == whole.step.median_s
    assert salvaged.breakdown == whole.breakdown


@pytest.mark.parametrize("part", [0.3, 0.9, 0.999])
def test_any_part_of_the_file(real_traces: Path, part: float) -> None:
    data = (real_traces / OFFLOAD).read_bytes()
    profile = measure(read(data[: int(len(data) * part)]))
    assert profile.step is not None
    assert profile.step.median_s == pytest.approx(0.7841, rel=0.005)


def test_a_file_cut_within_its_first_device(real_traces: Path) -> None:
    data = (real_traces / OFFLOAD).read_bytes()
    with pytest.raises(DamagedTraceError, match="cut off before any device"):
        read(data[: len(data) // 20])


def test_a_text_mode_copy(real_traces: Path) -> None:
    with pytest.raises(DamagedTraceError, match="copied in text mode"):
        read(real_traces / "tpu-text-mangled.xplane.pb")


@pytest.mark.parametrize(("name", "kind", "active"), GPUS)
def test_amd_gpus(real_traces: Path, name: str, kind: str, active: int) -> None:
    capture = read(real_traces / f"{name}.xplane.pb")
    profile = measure(capture)
    assert profile.device_kind == kind
    assert (len(capture.devices), profile.devices_in_trace) == (8, active)
    calls = [op for op in profile.top_ops if op.category == "custom-call"]
    assert bool(calls) == (name != "gpu-mi300x-jax-elementwise")
    assert all(op.flops is None for op in calls)
    assert profile.step is not None
    assert profile.step.median_s > 0


def test_an_older_layout_of_planes(real_traces: Path) -> None:
    """Eight planes: copies on device 0, the program on device 7."""
    profile = measure(read(real_traces / "gpu-mi300x-jax-conv-legacy.xplane.pb"))
    assert profile.step is not None
    assert profile.step.program == "jit_forward_3d_conv"
    assert (profile.devices_in_trace, profile.devices_in_job) == (1, 8)


def test_v100_without_hlo(real_traces: Path) -> None:
    capture = read(real_traces / "gpu-v100-tf-bert.xplane.pb")
    profile = measure(capture)
    assert profile.device_kind == "v100-16"
    assert (len(capture.devices), profile.devices_in_trace) == (8, 3)
    assert any("no HLO" in text for text in profile.missing)
    assert profile.step is None
    assert any(text.startswith("steps:") for text in profile.missing)


def test_xprof_agrees_on_peak_memory(real_traces: Path) -> None:
    path = real_traces / OFFLOAD
    found = ask_xprof(path)
    assert (found.reason, found.hbm_peak_bytes) == (None, read(path).hbm_peak_bytes)


def test_xprof_is_not_believed_without_reason(real_traces: Path) -> None:
    assert ask_xprof(real_traces / "tpu-text-mangled.xplane.pb").reason is not None
    assert "longer than" in (ask_xprof(real_traces / OFFLOAD, timeout_s=0.01).reason or "")


def test_a_program_as_text(real_traces: Path) -> None:
    """MaxText MoE step on 32 MI350: data 2 × pipeline 2 × expert 8. AMD-AGI/Primus, MIT."""
    from prompts_agent.trace.hlo.text import read_hlo_text

    text = (real_traces / "hlo-mi350-moe-dp2-pp2-ep8.txt").read_text()
    program = read_hlo_text(text)
    capture = Capture(
        file=trace_file(), devices=[], programs={0: program}, devices_in_job=program.device_count
    )
    profile = measure(capture)
    assert profile.structure_only
    assert [axis.size for axis in profile.mesh] == [2, 2, 8]
    found = {(use.kind.value, use.axis): use.count for use in profile.collectives}
    # 12 all-to-all pairs in loops of 9 iterations and 2 before them, over the eight experts.
    assert found["all-to-all", "axis2"] == 110
    assert found["collective-permute", "axis0"] == 63
    assert found["reduce-scatter", "axis2"] == 10
    kernel = next(p for p in profile.parameters if p.name.endswith("['logits_dense']['kernel']"))
    assert (kernel.local_shape, kernel.global_shape) == ((768, 32768), (6144, 32768))
    assert (kernel.tiles, kernel.replication) == ((8, 1), 4)
