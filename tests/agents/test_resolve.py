"""Who the job is: workload file over flags over trace; whose step time was measured."""

from __future__ import annotations

import pytest
from agents_build import layout, parameter, profile, workload

from prompts_agent.agents.baseline import same_hardware, today_of
from prompts_agent.agents.request import DiagnoseRequest
from prompts_agent.agents.resolve import resolve
from prompts_agent.errors import HardwareError, ModelError
from prompts_agent.layout.mesh import Axis
from prompts_agent.trace.profile import MeshAxisUse
from prompts_agent.workload.workload import Measured, Objective


def mesh(**sizes: int) -> tuple[MeshAxisUse, ...]:
    return tuple(MeshAxisUse(name=name, size=size) for name, size in sizes.items())


def test_flags_make_a_job() -> None:
    request = DiagnoseRequest(model="llama3.1-8b", target="v5e:4x4", global_batch=32, sequence=2048)
    job = resolve(request, None).workload
    assert job is not None
    assert (job.model.layers, job.topology.devices) == (32, 16)
    assert any("throughput is assumed" in text for text in job.assumptions)


def test_what_flags_lack_is_asked_for() -> None:
    job = resolve(DiagnoseRequest(), None)
    assert job.workload is None
    assert [next(w for w in text.split() if w.startswith("--")) for text in job.missing] == [
        "--model", "--target", "--batch", "--sequence",
    ]  # fmt: skip
    asked = DiagnoseRequest(model="llama3.1-8b", sequence=2048)
    assert [t[:14] for t in resolve(asked, None).missing] == ["Name the hardw", "Give the globa"]


def test_only_what_the_trace_does_not_tell_is_asked_for() -> None:
    # The device and the number of devices are known, model and batch are not.
    missing = resolve(DiagnoseRequest(sequence=2048), profile()).missing
    flags = [word for text in missing for word in text.split() if word.startswith("--")]
    assert {"--model", "--batch", "--phase"} <= set(flags)
    assert not {"--target", "--sequence"} & set(flags)


def test_a_trace_of_other_devices_still_tells_its_degrees() -> None:
    # data-like 4 × model 2 on 8 devices; the plan is for 16.
    traced = profile(
        devices_in_job=8, device_kind="cpu", structure_only=True, mesh=mesh(fsdp=4, mdl=2)
    )
    job = resolve(DiagnoseRequest(workload=workload()), traced)
    assert job.workload is not None
    assert job.workload.baseline is None
    assert job.traced == {Axis.FSDP: 4, Axis.TENSOR: 2}
    assert any("fsdp 4 × tensor 2 on 8 devices" in text for text in job.caveats)
    assert not any("not known" in text for text in job.caveats)


@pytest.mark.parametrize(
    ("flags", "error"),
    [({"model": "llamma-9"}, ModelError), ({"target": "v99:2x2"}, HardwareError)],
)
def test_flags_that_name_nothing_are_errors(flags: dict[str, str], error: type[Exception]) -> None:
    with pytest.raises(error):
        resolve(DiagnoseRequest.model_validate(flags), None)


def test_a_flag_replaces_its_field_of_the_workload_file() -> None:
    measured = Measured(layout=layout(fsdp=16), step_time_s=1.0, source="file")
    file = workload(baseline=layout(fsdp=16), baseline_measured=measured)
    request = DiagnoseRequest(workload=file, objective=Objective.LATENCY)
    job = resolve(request, None).workload
    assert job is not None
    assert job.objective is Objective.LATENCY
    assert job.baseline_measured == measured
    moved = resolve(DiagnoseRequest(workload=file, target="v5p:2x2x4"), None).workload
    assert moved is not None
    assert moved.topology.chip == "v5p"
    # What was measured on v5e says nothing of v5p.
    assert moved.baseline_measured is None


def test_todays_layout_and_time_come_from_the_trace() -> None:
    job = resolve(DiagnoseRequest(workload=workload()), profile(mesh=mesh(fsdp=4, mdl=4)))
    assert job.workload is not None
    assert job.axes == {"fsdp": Axis.FSDP, "mdl": Axis.TENSOR}
    assert job.workload.baseline is not None
    assert job.workload.baseline.mesh.used() == {Axis.FSDP: 4, Axis.TENSOR: 4}
    measured = job.workload.baseline_measured
    assert measured is not None
    assert measured.step_time_s == 1.0
    # The trace does not hold them, so they are assumed, and said to be.
    assert any("Remat" in text for text in job.workload.assumptions)
    assert job.caveats == ()


@pytest.mark.parametrize(
    "shape",
    [
        {"fsdp": 4, "banana": 4},  # a name that means nothing
        {"fsdp": 4, "tensor": 2},  # 8 of 16 devices
        {"fsdp": 1, "tensor": 1},
    ],
)
def test_a_mesh_that_is_not_the_workloads_is_no_baseline(shape: dict[str, int]) -> None:
    today = today_of(workload(), profile(mesh=mesh(**shape)))
    assert today.layout is None
    assert not today.measured
    assert today.degrees == {}
    assert any("not known" in text for text in today.caveats)


def test_another_target_than_the_traces_is_not_calibrated() -> None:
    traced = profile(device_kind="v6e")
    job = resolve(DiagnoseRequest(workload=workload()), traced)
    assert not same_hardware(workload(), traced)
    assert job.workload is not None
    assert job.workload.baseline_measured is None
    assert any("does not calibrate" in text for text in job.caveats)


def test_axes_without_a_name_are_told_by_what_they_cut() -> None:
    weight = parameter("w", (4096, 512), global_shape=(4096, 4096), tiles=(1, 8))
    batch = parameter("tokens", (16, 2048), dtype="s32", global_shape=(32, 2048), tiles=(2, 1))
    traced = profile(mesh=mesh(axis0=2, axis1=8), parameters=(weight, batch))
    job = resolve(DiagnoseRequest(workload=workload()), traced)
    assert job.axes == {"axis0": Axis.DATA, "axis1": Axis.TENSOR}
    assert job.workload is not None
    assert job.workload.baseline is not None
    assert job.workload.baseline.mesh.used() == {Axis.DATA: 2, Axis.TENSOR: 8}
    assert any("axis1 is taken as tensor" in text for text in job.workload.assumptions)


def test_a_baseline_that_breaks_a_rule_is_not_compared_with() -> None:
    job = resolve(DiagnoseRequest(workload=workload(baseline=layout(fsdp=16))), profile())
    assert job.workload is not None
    assert job.workload.baseline is None
    assert job.traced == {Axis.FSDP: 16}
    assert any("the global batch is 32" in text for text in job.caveats)


def test_a_trace_of_another_mesh_than_the_files_baseline_calibrates_nothing() -> None:
    # 32 sequences ÷ 16 shards = 1 × 2.
    file = layout(fsdp=16).model_copy(update={"gradient_accumulation": 2})
    job = resolve(DiagnoseRequest(workload=workload(baseline=file)), profile())
    assert job.workload is not None
    assert job.workload.baseline == file
    assert job.workload.baseline_measured is None
    assert any("calibrates" in text for text in job.caveats)
