"""What a compiled program does otherwise than its layout meant, from schedules made by hand."""

from __future__ import annotations

from typing import Any

from compile_build import layout, llama

from prompts_agent.compile.schedule.records import CompiledCollective, Schedule
from prompts_agent.compile.schedule.scheduled import Scheduled
from prompts_agent.compile.schedule.surprises import surprises
from prompts_agent.compile.schedule.timeline import Span, Timeline
from prompts_agent.layout.layout import Layout
from prompts_agent.model.catalog import find_model
from prompts_agent.trace.hlo.program import HloProgram, Instruction
from prompts_agent.trace.hlo.shape import Shape
from prompts_agent.workload.workload import Workload

GB = 10**9
JOB = llama()  # 6.7e9 parameters, 32 layers, embed 4096, 16 sequences of 4096


def collective(kind: str, axis: str, size: float, exposed_s: float = 0.1) -> CompiledCollective:
    return CompiledCollective(
        kind=kind, axis=axis, group_size=4, count=1, bytes=int(size), total_s=exposed_s,
        exposed_s=exposed_s,
    )  # fmt: skip


def found(
    cut: Layout,
    *uses: CompiledCollective,
    job: Workload = JOB,
    spans: tuple[Span, ...] = (),
    body: tuple[Instruction, ...] = (),
) -> dict[str, Any]:
    schedule = Schedule(
        clock="", step_time_s=1.0, by_cycles_s=None, by_roofline_s=1.0, compute_s=1.0,
        exposed_collectives_s=0.0, exposed_host_s=0.0, exposed_memory_s=0.0, matmul_flops=0.0,
        collectives=uses, loops=(), generated=False,
    )  # fmt: skip
    program = HloProgram(name="jit_step", program_id=1, entry="main", computations={"main": body})
    scheduled = Scheduled(program=program, cycles={}, algorithm={}, opaque_flops={})
    step = Timeline("main", spans=list(spans), duration_s=1.0)
    return {one.kind: one for one in surprises(scheduled, step, schedule, cut, job)}


def test_gradients_that_are_reduced_whole() -> None:
    told = found(layout(fsdp=16), collective("all-reduce", "fsdp", 13.5 * GB, 0.34))
    one = told["all-reduce for reduce-scatter"]
    # A reduce-scatter moves half of what an all-reduce does.
    assert (one.axis, one.bytes, one.seconds) == ("fsdp", 6_750_000_000, 0.17)
    assert "13.5 GB" in one.text


def test_a_reduce_scatter_and_small_sums_are_as_they_were_meant() -> None:
    cut = layout(fsdp=16)
    assert not found(cut, collective("reduce-scatter", "fsdp", 13.5 * GB))
    # Norms, a table: less than a quarter of the gradients of 6.7e9 weights in two bytes.
    assert not found(cut, collective("all-reduce", "fsdp", 0.1 * GB))
    # Copies of the weights are meant to be all-reduced.
    assert not found(layout(data=16), collective("all-reduce", "data", 13.5 * GB))


def test_residuals_that_sequence_parallel_did_not_cut() -> None:
    cut = layout(tensor=16, microbatch=16, sequence_parallel=True)
    whole = collective("all-reduce", "tensor", 86.7 * GB)
    told = found(cut, whole)["all-reduce for reduce-scatter"]
    assert told.axis == "tensor"
    assert "sequence_parallel is on" in told.text
    # Without it, an all-reduce is what the layout means.
    assert not found(layout(tensor=16, microbatch=16), whole)
    # Gradients of the tables, which both axes' ranks add to.
    assert not found(cut, collective("all-reduce", "fsdp+tensor", 86.7 * GB))
    assert not found(cut, collective("reduce-scatter", "tensor", 86.7 * GB))


def test_tokens_that_are_gathered_in_place_of_sent() -> None:
    job = llama("v5p:4x4x4", model=find_model("mixtral-8x7b"), global_batch=64)
    cut = layout(fsdp=8, expert=8)
    # 46.7e9 weights in two bytes, three times, are 280 GB: 2300 GB are no weights.
    gathered = collective("all-gather", "expert", 2300 * GB, 2.0)
    one = found(cut, gathered, job=job)["all-gather for all-to-all"]
    assert (one.seconds, one.bytes) == (2.0, 2300 * GB)
    assert not found(cut, collective("all-to-all", "expert", 16 * GB), job=job)


def test_copies_that_take_a_part_of_the_step() -> None:
    copy = Instruction(name="copy.1", opcode="copy", shape=Shape("bf16", (1024, 1024)))
    one = found(layout(fsdp=16), spans=(Span(copy, 0.0, 0.02),))["buffers bounced"]
    assert (one.seconds, one.bytes) == (0.02, 2 * 1024 * 1024)
    assert not found(layout(fsdp=16), spans=(Span(copy, 0.0, 0.005),))


def loop(*shapes: tuple[int, ...]) -> Instruction:
    carried = Shape("tuple", parts=tuple(Shape("bf16", dims) for dims in shapes))
    return Instruction(name="while.1", opcode="while", shape=carried, trip_count=32)


def test_activations_that_every_tensor_rank_holds() -> None:
    cut = layout(fsdp=2, tensor=8, microbatch=8)
    # 32 layers of 8 sequences of 4096 × 4096 in bf16 are 8.59 GB, of which 7/8 are held elsewhere.
    whole = loop((32, 8, 4096, 4096))
    one = found(cut, body=(whole,))["activations replicated"]
    assert one.bytes == 32 * 8 * 4096 * 4096 * 2 * 7 // 8
    assert "8.59 GB" in one.text
    # Cut in sequence, or stacked weights: [32, 4096, 4096] and [32, 32, 128, 4096].
    assert not found(cut, body=(loop((32, 8, 512, 4096), (32, 4096, 4096), (32, 32, 128, 4096)),))
    assert not found(layout(fsdp=16), body=(whole,))
