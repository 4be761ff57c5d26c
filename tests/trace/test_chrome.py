"""jax's Chrome JSON: planes, lines, ops from their HLO text, and what the format lacks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from trace_samples import ALL_REDUCE, chrome, chrome_event, chrome_names, save

from prompts_agent.errors import EmptyTraceError, NotDiagnosableError
from prompts_agent.trace.capture import Capture, DeviceEvents
from prompts_agent.trace.read import read


def read_one(path: Path, document: object) -> Capture:
    return read([save(path / "vm0.trace.json.gz", document)])


def totals_ps(events: DeviceEvents) -> dict[str, int]:
    found: Counter[str] = Counter()
    for op, duration in zip(events.ops.op, events.ops.duration_ps, strict=True):
        found[events.table[op].opcode] += int(duration)
    return dict(found)


def test_two_chips_by_hand(tmp_path: Path) -> None:
    capture = read_one(tmp_path, chrome(devices=2, steps=3))
    assert [(d.host, d.index, d.label, d.platform) for d in capture.devices] == [
        ("vm0", 0, "TPU", "tpu"),
        ("vm0", 1, "TPU", "tpu"),
    ]
    assert capture.devices_in_job == 2
    for device in capture.devices:
        events = capture.events(device)
        assert [(run.name, run.program_id) for run in events.modules] == [("jit_step", 77)] * 3
        assert [run.start_ps for run in events.modules] == [0, 150_000_000, 300_000_000]
        assert {run.duration_ps for run in events.modules} == {100_000_000}
        assert totals_ps(events) == {"fusion": 3 * 70_000_000, "all-reduce": 3 * 30_000_000}
        assert events.windows is None


def test_ops_are_read_from_their_hlo_text(tmp_path: Path) -> None:
    capture = read_one(tmp_path, chrome(devices=4))
    events = capture.events(capture.devices[0])
    reduce = next(op for op in events.table if op.opcode == "all-reduce")
    assert reduce.name == "all-reduce.1"
    assert reduce.program_id == 77
    assert reduce.groups == ((0, 1, 2, 3),)
    assert reduce.group_size == 4
    assert reduce.collective_bytes == 2048, "1024 × 2 bytes"
    assert (reduce.flops, reduce.bytes) == (1024, 4096)
    fusion = next(op for op in events.table if op.name == "fusion.1")
    assert (fusion.category, fusion.groups, fusion.collective_bytes) == ("loop fusion", None, None)


OPS = {
    "%rs.1 = f32[256]{0} reduce-scatter(f32[1024]{0} %p), replica_groups={{0,1,2,3}}, "
    "dimensions={0}, to_apply=%add": ("reduce-scatter", 4096, False),
    "%ag.1 = (f32[256]{0}, f32[1024]{0}) all-gather-start(f32[256]{0} %p), "
    "replica_groups=[1,4]<=[4], dimensions={0}": ("all-gather-start", 4096, False),
    "%cd = bf16[64]{0:T(128)S(5)} copy-done((bf16[64]{0:S(5)}, bf16[64]{0}, u32[]{:S(2)}) %cs)": (
        "copy-done",
        None,
        True,
    ),
    "%cp = f32[8]{0} collective-permute(f32[8]{0} %p), source_target_pairs={{0,1},{1,0}}": (
        "collective-permute",
        32,
        False,
    ),
}


@pytest.mark.parametrize(("text", "expected"), OPS.items(), ids=[text[:6] for text in OPS])
def test_single_instructions(tmp_path: Path, text: str, expected: tuple[Any, ...]) -> None:
    document = chrome(devices=1, steps=1)
    document["traceEvents"].insert(-1, chrome_event(3, 1, "x.1", 50, 1, long_name=text))
    capture = read_one(tmp_path, document)
    op = next(op for op in capture.events(capture.devices[0]).table if op.text == text)
    assert (op.opcode, op.collective_bytes, op.is_host_transfer) == expected


def test_mesh_axes_by_name(tmp_path: Path) -> None:
    text = (
        "%ar = f32[8]{0} all-reduce(f32[8]{0} %p), "
        "replica_groups=mesh['data'=2,'model'=4] {'model'}, to_apply=%add"
    )
    document = chrome(devices=1, steps=1)
    document["traceEvents"].insert(-1, chrome_event(3, 1, "ar", 50, 1, long_name=text))
    capture = read_one(tmp_path, document)
    op = next(op for op in capture.events(capture.devices[0]).table if op.name == "ar")
    assert (op.axis, op.group_size) == ("model", 4)
    assert capture.devices_in_job == 8


def test_text_that_is_no_hlo_leaves_the_category(tmp_path: Path) -> None:
    document = chrome(devices=1, steps=1)
    args = {"long_name": "%x = f32[", "hlo_category": "convolution fusion"}
    document["traceEvents"].insert(-1, chrome_event(3, 1, "odd", 50, 1, **args))
    capture = read_one(tmp_path, document)
    op = next(op for op in capture.events(capture.devices[0]).table if op.text == "%x = f32[")
    assert op.opcode == "convolution fusion"


def test_names_of_ops_repeat_between_programs(tmp_path: Path) -> None:
    document = {"traceEvents": chrome_names(1)}
    for program, start in ((1, 0), (2, 100)):
        document["traceEvents"] += [
            chrome_event(3, 0, f"jit_f({program})", start, 50),
            chrome_event(3, 1, "fusion.1", start + 1, 10, model_flops=str(program)),
        ]
    document["traceEvents"].append(chrome_event(3, 1, "fusion.1", 500, 10))
    capture = read_one(tmp_path, document)
    table = capture.events(capture.devices[0]).table
    assert [(op.name, op.program_id, op.flops) for op in table] == [
        ("fusion.1", 1, 1),
        ("fusion.1", 2, 2),
        ("fusion.1", None, None),
    ]


def test_host_events_that_tell_something(tmp_path: Path) -> None:
    document = chrome(devices=1, steps=1)
    for name, args in (
        ("backend_compile_and_load", {}),
        ("tpu::System::TransferToDevice", {"size": "4096"}),
        ("tpu::System::TransferToDevice=>IssueEvent=>Done", {}),
        ("tpu::System::TransferFromDevice", {}),
        ("train", {"step_num": "12"}),
        ("$threading.py:637 wait", {}),
    ):
        document["traceEvents"].insert(-1, chrome_event(701, 5, name, 20, 5, **args))
    events = read_one(tmp_path, document).host_events
    assert [(event.kind, event.step) for event in events] == [
        ("compile", None),
        ("h2d", None),
        ("d2h", None),
        ("step", 12),
    ]


def test_gpu_streams(tmp_path: Path) -> None:
    events = chrome_names(2, "GPU")
    events += [
        chrome_event(
            3, 3, "gemm_fusion_dot", 0, 10, hlo_op="gemm_fusion_dot.1", hlo_module="jit_f"
        ),
        chrome_event(3, 3, ALL_REDUCE, 10, 5),
        chrome_event(3, 3, "MemcpyH2D", 20, 1),
        chrome_event(3, 1, "derived by the converter", 0, 10),
    ]
    capture = read_one(tmp_path, {"traceEvents": events})
    assert [device.active for device in capture.devices] == [True, False]
    table = capture.events(capture.devices[0]).table
    assert [(op.name[:17], op.opcode) for op in table] == [
        ("gemm_fusion_dot.1", "kernel"),
        ("ncclDevKernel_All", "all-reduce"),
        ("MemcpyH2D", "memcpy-h2d"),
    ]


def test_without_device_events(tmp_path: Path) -> None:
    document = {"traceEvents": [*chrome_names(2), chrome_event(701, 1, "f", 0, 5)]}
    with pytest.raises(NotDiagnosableError) as caught:
        read_one(tmp_path, document)
    assert "2 to 5 steps" in caught.value.cure
    assert "block_until_ready" in caught.value.cure
    with pytest.raises(EmptyTraceError):
        read_one(tmp_path, {"traceEvents": [], "/": "/host:CPU", "x": '"/device:TPU:0"'})


@pytest.mark.real_traces
@pytest.mark.parametrize(("variant", "step_ms"), [("a", 66.9), ("b", 65.6)])
def test_vllm_on_two_chips(real_traces: Path, variant: str, step_ms: float) -> None:
    capture = read([real_traces / f"tpu-vllm-tp2-{variant}.trace.json.gz"])
    assert len(capture.devices) == capture.devices_in_job == 2
    for device in capture.devices:
        events = capture.events(device)
        runs = [run for run in events.modules if run.name == "jit_step_fun"]
        assert len(runs) == 1
        assert runs[0].duration_ps / 1e9 == pytest.approx(step_ms, rel=0.01)
        reduces = [op for op in events.ops.op if events.table[op].opcode == "all-reduce"]
        assert len(reduces) == 129
        assert 3.4 <= totals_ps(events)["all-reduce"] / 1e9 <= 3.6
        assert {op.groups for op in events.table if op.opcode == "all-reduce"} == {((0, 1),)}
