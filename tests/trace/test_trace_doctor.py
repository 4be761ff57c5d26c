"""The doctor's advice, from profiles written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from prompts_agent.trace.doctor import examine
from prompts_agent.trace.profile import (
    Breakdown,
    CollectiveKind,
    CollectiveUse,
    MeshAxisUse,
    Profile,
    ProgramUse,
    StepTimes,
    TraceFile,
)

STEP = StepTimes(
    median_s=0.5, min_s=0.4, max_s=0.6, count=5, program="jit_step", derived_from="module runs"
)
WELL: dict[str, Any] = {
    "device_kind": "v6e",
    "device_label": "TPU v6 Lite",
    "devices_in_trace": 8,
    "devices_in_job": 8,
    "hosts": 2,
    "step": STEP,
    "breakdown": Breakdown(),
    "mesh": (MeshAxisUse(name="data", size=2), MeshAxisUse(name="model", size=4)),
    "programs": (ProgramUse(name="jit_step", program_id="7", runs=5, total_s=2.5, has_hlo=True),),
    "hbm_peak_bytes": 16_000_000_000,
}


def file_of(kind: str = "xspace", **more: Any) -> TraceFile:
    fields = {"sha256": "0" * 64, "format": kind, "files": 2, "size_bytes": 1000} | more
    return TraceFile(**fields)


def texts(file: TraceFile, **changes: Any) -> list[str]:
    sheet = examine(Profile(**(WELL | changes)), file)
    return [f"{item.what} | {item.why} | {item.how}" for item in sheet.advice]


def test_a_good_trace_needs_no_advice() -> None:
    sheet = examine(Profile(**WELL), file_of())
    assert sheet.advice == ()
    assert sheet.lacks == ()
    assert sheet.holds == (
        "8 of 8 devices on 2 hosts (TPU v6 Lite)",
        "step time 500 ms: module runs",
        "mesh data=2, model=4",
        "1 programs, 1 with their HLO",
        "peak memory 16.0 GB",
    )


UNSIZED = CollectiveUse(
    kind=CollectiveKind.ALL_REDUCE, axis=None, group_size=None, bytes=None, count=1,
    total_s=0.1, exposed_s=0.1,
)  # fmt: skip
NO_HLO = ProgramUse(name="jit_step", program_id="7", runs=5, total_s=2.5)


@pytest.mark.parametrize(
    ("file", "changes", "expected"),
    [
        (file_of(), {"step": None}, "jax.block_until_ready(state)"),
        (file_of("kineto"), {"step": None}, "profiler.step()"),
        (file_of("nsight"), {"step": None}, "nsys export --type sqlite"),
        (file_of(), {"step": STEP.model_copy(update={"count": 2})}, "Only 2 whole steps"),
        (file_of(), {"recompilations": 3}, "compiled 3 times inside the trace"),
        (file_of(), {"programs": (NO_HLO,)}, "enable_hlo_proto = True"),
        (file_of("chrome"), {}, "*.xplane.pb of the same capture"),
        (file_of("kineto"), {"collectives": (UNSIZED,)}, "PyTorch 2.4 or later"),
        (file_of("nsight"), {"collectives": (UNSIZED,)}, "NVTX payloads"),
        (file_of(), {"devices_in_trace": 4}, "4 of 8 devices"),
        (file_of(), {"hbm_peak_bytes": None}, "memory_analysis()"),
        (file_of("kineto"), {"hbm_peak_bytes": None}, "profile_memory=True"),
        (file_of(), {"structure_only": True}, "Capture on the real devices"),
        (file_of("hlo-text"), {"structure_only": True, "step": None}, "Capture a run"),
        (file_of(size_bytes=600_000_000), {}, "python_tracer_level = 0"),
        (
            file_of(caveats=("vm0: the profiler reported: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",)),
            {},
            "NVreg_RestrictProfilingToAdminUsers=0",
        ),
        (
            file_of(),
            {"missing": ("HLO ops behind 9 of 10 distinct kernels (run from a command buffer)",)},
            "--xla_gpu_enable_command_buffer=",
        ),
        (
            file_of(),
            {"devices_in_trace": 0, "step": None},
            "raise_error_on_start_failure",
        ),
    ],
)
def test_one_lack_gets_its_advice(file: TraceFile, changes: dict[str, Any], expected: str) -> None:
    assert any(expected in text for text in texts(file, **changes))
