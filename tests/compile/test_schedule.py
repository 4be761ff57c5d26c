"""The scheduled program, from two small ones that XLA compiled (golden/make_golden.py).

Both are five layers over fsdp = 2 and tensor = 4 in bf16: a layer gathers [256, 1024] of weights
over fsdp, multiplies 1024 rows of 256 by them, and sums [1024, 1024] over tensor. So a step has
5 × 2 × 1024 × 256 × 1024 FLOPs, gathers 5 × 512 KiB and reduces 5 × 2 MiB.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from compile_build import tiny

from prompts_agent.compile.final_program import load_program, store_program
from prompts_agent.compile.schedule.clock_ratio import clock_ratio
from prompts_agent.compile.schedule.records import Schedule
from prompts_agent.compile.schedule.scheduled import read_scheduled
from prompts_agent.compile.schedule.summary import schedule_of
from prompts_agent.compile.schedule.text import schedule_lines
from prompts_agent.compile.schedule.transfers import LayoutTransfers, UnplacedTransfers, mesh_of
from prompts_agent.errors import DamagedTraceError
from prompts_agent.estimate.calibration import Constants, load_calibration
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.hardware.topology import parse_topology
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Mesh
from prompts_agent.trace.hlo.collectives import Collective
from prompts_agent.trace.hlo.groups import DeviceGroups
from prompts_agent.trace.hlo.program import Instruction
from prompts_agent.trace.hlo.shape import Shape
from prompts_agent.trace.xspace.messages import hlo_proto

GOLDEN = Path(__file__).parent / "golden"
LAYOUT = Layout(mesh=Mesh.of(fsdp=2, tensor=4))
TOPOLOGY = {"tpu": "v5e:2x4", "gpu": "h100:1x8"}
KIB = 1024


def program(platform: str) -> bytes:
    found = load_program(GOLDEN / f"layers-{platform}.hlo.pb.gz")
    assert found is not None
    return found


def constants(platform: str) -> Constants:
    """Round shares, so that times can be worked out by hand."""
    known = load_calibration().constants(platform)
    shares = {"link_efficiency": 1.0, "hop_latency_s": 0.0}
    return known.model_copy(update=shares)


def schedule(platform: str) -> Schedule:
    topology = parse_topology(TOPOLOGY[platform])
    transfers = LayoutTransfers(LAYOUT, topology, constants(platform))
    chip = find_chip(topology.chip)
    return schedule_of(program(platform), chip, transfers, constants(platform), generated=True)


@pytest.mark.parametrize("platform", ["tpu", "gpu"])
def test_collectives_by_kind_axis_and_bytes(platform: str) -> None:
    found = {use.kind: use for use in schedule(platform).collectives}
    assert set(found) == {"all-gather", "all-reduce"}
    gather, reduce = found["all-gather"], found["all-reduce"]
    assert (gather.axis, gather.group_size, gather.count) == ("fsdp", 2, 5)
    assert gather.bytes == 5 * 512 * KIB
    assert (reduce.axis, reduce.group_size, reduce.count) == ("tensor", 4, 5)
    assert reduce.bytes == 5 * 2048 * KIB


@pytest.mark.parametrize("platform", ["tpu", "gpu"])
def test_a_loop_counts_with_its_trips(platform: str) -> None:
    found = schedule(platform)
    assert [loop.trips for loop in found.loops] == [5]
    assert found.matmul_flops == 5 * 2 * 1024 * 256 * 1024


def test_collectives_take_what_the_links_give() -> None:
    # tensor takes the four chips of v5e's 2x4 that lie in a line without a wrap, 45 GB/s one way:
    # 2 × 3/4 × 2 MiB ÷ 45 GB/s, five times. fsdp takes the two: 1/2 × 512 KiB ÷ 45 GB/s.
    found = {use.kind: use for use in schedule("tpu").collectives}
    link = find_chip("v5e").link
    assert link.kind == "torus"
    rate = link.link_bandwidth_bytes_per_s
    assert found["all-reduce"].total_s == pytest.approx(5 * 2 * 0.75 * 2048 * KIB / rate)
    assert found["all-gather"].total_s == pytest.approx(5 * 0.5 * 512 * KIB / rate)


def test_what_nothing_hides_is_exposed_and_the_parts_are_the_step() -> None:
    for platform in ("tpu", "gpu"):
        found = schedule(platform)
        exposed = found.exposed_collectives_s + found.exposed_host_s + found.exposed_memory_s
        assert found.compute_s + exposed == pytest.approx(found.step_time_s)
        by_axis = found.exposed_by_axis()
        assert set(by_axis) == {"fsdp", "tensor"}
        assert sum(by_axis.values()) == pytest.approx(found.exposed_collectives_s)


def test_a_tpu_has_cycle_counts_and_algorithms_after_code_generation() -> None:
    found = schedule("tpu")
    assert found.by_cycles_s == found.step_time_s
    assert found.by_roofline_s > 0
    algorithms = {use.kind: use.algorithm for use in found.collectives}
    assert algorithms["all-reduce"] == "RotatedPincerEmitter UniDirection1DRingStrategy"
    # The best that a matmul of 2684354560 FLOPs can take at the data sheet's 197 TFLOP/s.
    assert found.compute_s > 2684354560 / 197e12


def test_a_gpu_has_none_and_a_roofline_stands_in() -> None:
    found = schedule("gpu")
    assert found.by_cycles_s is None
    assert found.step_time_s == found.by_roofline_s


def test_lines_say_what_was_found() -> None:
    lines = "\n".join(schedule_lines(schedule("tpu")))
    assert "by the compiler's cycle counts" in lines
    assert "5 times" in lines
    assert "10.5 MB" in lines
    assert max(len(line) for line in lines.splitlines()) <= 80


def test_bodies_are_in_schedule_order() -> None:
    scheduled = read_scheduled(program("tpu"))
    place = {}
    for body in scheduled.program.computations.values():
        place |= {i.name: k for k, i in enumerate(body)}
    known = scheduled.program.instructions
    for i in known.values():
        for operand in i.operands:
            assert place[operand] < place[i.name], f"{i.name} before {operand}"


def test_a_program_without_a_schedule_is_refused() -> None:
    proto = hlo_proto().FromString(program("tpu"))
    proto.hlo_module.ClearField("schedule")
    with pytest.raises(DamagedTraceError, match="no schedule"):
        read_scheduled(proto.SerializeToString())


def test_bytes_that_are_no_program_are_refused() -> None:
    with pytest.raises(DamagedTraceError):
        read_scheduled(b"\x0a\xff\xff\xff")


def test_a_loop_whose_count_is_not_told_runs_once_and_says_so() -> None:
    proto = hlo_proto().FromString(program("tpu"))
    for computation in proto.hlo_module.computations:
        for instruction in computation.instructions:
            instruction.ClearField("literal")
    topology = parse_topology("v5e:2x4")
    found = schedule_of(
        proto.SerializeToString(),
        find_chip("v5e"),
        LayoutTransfers(LAYOUT, topology, constants("tpu")),
        constants("tpu"),
        generated=True,
    )
    assert [loop.trips for loop in found.loops] == [None]
    assert "once is assumed" in found.notes[0]
    assert found.matmul_flops == 2 * 1024 * 256 * 1024


def test_a_mesh_has_the_order_of_the_reference_program() -> None:
    # Tensor is innermost: devices 0 to 3 are one tensor group, 0 and 4 one of fsdp.
    mesh = mesh_of(LAYOUT)
    assert mesh.axis_of(DeviceGroups(((0, 1, 2, 3), (4, 5, 6, 7)))) == "tensor"
    assert mesh.axis_of(DeviceGroups(((0, 4), (1, 5), (2, 6), (3, 7)))) == "fsdp"


def test_tokens_go_over_expert_where_that_divides_other_ranks() -> None:
    # 16 devices, data 4 x tensor 4, experts over all tensor ranks and 2 of the data ranks.
    mesh = Mesh.of(data=4, tensor=4, expert=8)
    cut = Layout(mesh=mesh, expert_divides=True)
    transfers = LayoutTransfers(cut, parse_topology("v5e:4x4"), constants("tpu"))
    sent = Instruction(name="sent", opcode="all-to-all", shape=Shape("bf16", (1024,)))
    tensor = tuple(tuple(range(first, first + 4)) for first in (0, 4, 8, 12))

    def over(kind: str, groups: tuple[tuple[int, ...], ...]) -> str | None:
        return transfers.axis_of(Collective(kind, None, 2048, DeviceGroups(groups), sent))

    assert over("all-to-all", (tuple(range(8)), tuple(range(8, 16)))) == "expert"
    # A reshard, and what ranks add up.
    assert over("all-to-all", tensor) == "tensor"
    assert over("all-reduce", tensor) == "tensor"


def test_somebody_elses_mesh_is_taken_to_be_one_ring() -> None:
    topology = parse_topology("v5e:2x4")
    transfers = UnplacedTransfers(mesh_of(LAYOUT), topology, constants("tpu"))
    chip = find_chip("v5e")
    found = schedule_of(program("tpu"), chip, transfers, constants("tpu"), generated=True)
    uses = {use.kind: use for use in found.collectives}
    assert uses["all-gather"].axis == "fsdp"
    # Both ways round a ring: half of what the line takes.
    line = {use.kind: use for use in schedule("tpu").collectives}
    assert uses["all-reduce"].total_s == pytest.approx(line["all-reduce"].total_s / 2)


def test_what_public_runs_took_over_the_clock() -> None:
    # compile/data/clock.yaml: 0.997 for v5e; none for GPUs, and none for serving.
    topology = parse_topology("v5e:2x4")
    transfers = LayoutTransfers(LAYOUT, topology, constants("tpu"))
    for job, ratio in ((tiny(), 0.997), (tiny("decode"), None)):
        found = schedule_of(
            program("tpu"), find_chip("v5e"), transfers, constants("tpu"), generated=True,
            meant=(LAYOUT, job),
        )  # fmt: skip
        expected = None if ratio is None else pytest.approx(ratio * found.by_roofline_s)
        assert found.expected_s == expected
    assert schedule("gpu").expected_s is None
    assert clock_ratio("h100") is None


def test_programs_are_kept_and_a_damaged_one_is_none(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "one.hlo.pb.gz"
    store_program(path, b"program")
    assert load_program(path) == b"program"
    path.write_bytes(path.read_bytes()[:-9])
    assert load_program(path) is None
    assert load_program(tmp_path / "none") is None
