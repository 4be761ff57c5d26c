"""Shapes, shardings, instructions and dumps as text."""

from __future__ import annotations

import pytest

from prompts_agent.errors import WrongFormatError
from prompts_agent.trace.hlo.collectives import collective_of, payload_bytes, split_opcode
from prompts_agent.trace.hlo.dots import DotDims
from prompts_agent.trace.hlo.shape import Shape, parse_shape
from prompts_agent.trace.hlo.sharding import Sharding, parse_sharding
from prompts_agent.trace.hlo.text import parse_instruction, read_hlo_text
from prompts_agent.trace.measure.structure import program_flops, static_sums


@pytest.mark.parametrize(
    ("text", "bytes_", "host"),
    [
        ("f32[5,1024,1024,256]{3,2,1,0:T(8,128)}", 5 * 1024 * 1024 * 256 * 4, False),
        ("f32[2,3]{1,0:T(8,128)S(5)}", 24, True),
        ("bf16[]", 2, False),
        ("s4[3]{0}", 2, False),  # 12 bits
        ("pred[<=8]{0}", 8, False),
        ("token[]", 0, False),
        ("(f32[4]{0}, /*index=1*/(u8[2]{0}, s32[]))", 16 + 2 + 4, False),
    ],
)
def test_shapes(text: str, bytes_: int, host: bool) -> None:
    found = parse_shape(text)
    assert found is not None
    assert (found[0].bytes, found[0].in_host_memory, found[1]) == (bytes_, host, len(text))


def test_no_shape() -> None:
    assert parse_shape("add(%a)") is None
    assert parse_shape("(f32[2], oops)") is None


@pytest.mark.parametrize(
    ("text", "tiles", "replication"),
    [
        ("{devices=[1,8,4]<=[4,8]T(1,0) last_tile_dim_replicate}", (1, 8), 4),
        ("{devices=[32,1]<=[32]}", (32, 1), 1),
        ("{devices=[2,2,2]<=[8] last_tile_dims={replicated}}", (2, 2), 2),
        ("{devices=[2,1,2,2]<=[8] last_tile_dims={manual, replicated}}", (2, 1), 2),
        ("{devices=[2,2]0,1,2,3}", (2, 2), 1),
        ("{replicated}", (), None),
        ("{maximal device=0}", (), 1),
    ],
)
def test_shardings(text: str, tiles: tuple[int, ...], replication: int | None) -> None:
    found = parse_sharding(text)
    assert found is not None
    assert (found.tiles, found.replication) == (tiles, replication)


def test_sharding_of_unknown_form() -> None:
    assert parse_sharding("{manual}") is None


def test_global_dims() -> None:
    assert Sharding((1, 8)).global_dims((768, 4096)) == (768, 32768)
    assert Sharding().global_dims((3, 5)) == (3, 5)


ALL_REDUCE = (
    "%all-reduce.3 = f32[16,32]{1,0:T(8,128)} all-reduce(f32[16,32]{1,0} %fusion.1), channel_id=4, "
    "replica_groups=[4,2]<=[2,4]T(1,0), use_global_device_ids=true, to_apply=%add, "
    'metadata={op_name="jit(f)/psum, \\"x\\" {" source_line=3}'
)


def test_an_event_name() -> None:
    found = parse_instruction(ALL_REDUCE)
    assert found is not None
    assert (found.name, found.opcode, found.channel_id) == ("all-reduce.3", "all-reduce", 4)
    assert (found.operands, found.calls) == (("fusion.1",), ("add",))
    assert found.op_name == 'jit(f)/psum, "x" {'
    assert found.groups is not None
    assert found.groups.groups == ((0, 4), (1, 5), (2, 6), (3, 7))
    assert found.shape == Shape("f32", (16, 32))


def test_host_memory_in_an_operand() -> None:
    text = "%copy-done = f32[8]{0} copy-done((f32[8]{0}, f32[8]{0:S(5)}, u32[]{:S(2)}) %copy-start)"
    found = parse_instruction(text)
    assert found is not None
    assert found.is_host_transfer
    assert found.operands == ("copy-start",)


def test_a_dot_with_shapes() -> None:
    # bf16[8,128,256] · bf16[256,512] over 256: m 8*128, n 512, k 256.
    found = parse_instruction(
        "%dot.1 = bf16[8,128,512]{2,1,0} dot(bf16[8,128,256]{2,1,0} %a, bf16[256,512]{1,0} %b), "
        "lhs_contracting_dims={2}, rhs_contracting_dims={0}"
    )
    assert found is not None
    assert found.dot == DotDims(1, 1024, 512, 256, "bf16")
    assert found.dot.flops == 2 * 1024 * 512 * 256


def test_a_tpu_writes_matmuls_as_convolutions() -> None:
    found = parse_instruction(
        "%convolution.1 = bf16[1024,512]{1,0} convolution(bf16[1024,256]{1,0} %a, "
        "bf16[256,512]{1,0} %b), dim_labels=bf_io->bf"
    )
    assert found is not None
    assert found.dot == DotDims(1, 1024, 512, 256, "bf16")


def test_a_padded_convolution_is_not_sized() -> None:
    found = parse_instruction(
        "%c = f32[1,8,8,4] convolution(f32[1,8,8,2] %a, f32[3,3,2,4] %b), "
        "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"
    )
    assert found is not None
    assert found.dot is None


@pytest.mark.parametrize("text", ["", "ENTRY %main (p: f32[]) -> f32[] {", "}", "%x = f32[2]"])
def test_lines_that_are_no_instruction(text: str) -> None:
    assert parse_instruction(text) is None


def test_opcodes_and_roles() -> None:
    assert split_opcode("all-gather-done") == ("all-gather", "done")
    assert split_opcode("all-reduce") == ("all-reduce", None)
    assert split_opcode("recv") == ("recv", "start")
    assert split_opcode("recv-done") == ("recv", "done")


def test_payload_is_the_larger_side() -> None:
    gather = parse_instruction(
        "%ag = ((f32[8]{0}, f32[2]{0}), (f32[64]{0}, f32[16]{0})) all-gather-start(%a, %b), "
        "replica_groups=[1,8]<=[8]"
    )
    assert gather is not None
    assert payload_bytes(gather, [Shape("f32", (8,)), Shape("f32", (2,))]) == (64 + 16) * 4
    scatter = parse_instruction("%rs = f32[8]{0} reduce-scatter(%a), replica_groups=[1,8]<=[8]")
    assert scatter is not None
    assert payload_bytes(scatter, [Shape("f32", (64,))]) == 64 * 4


DUMP = """HloModule jit_step, input_output_alias={ {0}: (0, {}, may-alias) }, num_partitions=8

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y)
}

%wrapped (p: bf16[4,16]) -> bf16[4,16] {
  %p = bf16[4,16]{1,0} parameter(0)
  ROOT %all-to-all.1 = bf16[4,16] all-to-all(%p), replica_groups={{0,1,2,3},{4,5,6,7}}
}

%body (s: (bf16[4,16])) -> (bf16[4,16]) {
  %s = (bf16[4,16]{1,0}) parameter(0)
  %h = bf16[4,16]{1,0} get-tuple-element(%s), index=0
  %all-to-all-start = ((bf16[4,16]{1,0}), bf16[4,16]{1,0}) async-start(%h), calls=%wrapped
  %all-to-all-done = bf16[4,16]{1,0} async-done(%all-to-all-start)
  %w.2 = bf16[16,16]{1,0} constant({...})
  %dot.1 = bf16[4,16] dot(%all-to-all-done, %w.2), lhs_contracting_dims={1}, \
rhs_contracting_dims={0}
  ROOT %t = (bf16[4,16]{1,0}) tuple(%dot.1)
}

%condition (s: (bf16[4,16])) -> pred[] {
  %s.1 = (bf16[4,16]{1,0}) parameter(0)
  ROOT %c = pred[] constant(true)
}

ENTRY %main (w: bf16[4,16]) -> f32[16] {
  %w = bf16[4,16] parameter(0), sharding={devices=[2,1,4]<=[8] last_tile_dim_replicate}, \
metadata={op_name="params[\\'w\\']"}
  %init = (bf16[4,16]{1,0}) tuple(%w)
  %loop = (bf16[4,16]) while(%init), condition=%condition, body=%body, \
backend_config={"known_trip_count":{"n":"5"}}
  %g = f32[16]{0} constant({...})
  ROOT %all-reduce.1 = f32[16]{0} all-reduce(%g), replica_groups=[4,2]<=[2,4]T(1,0), to_apply=%add
}
"""


def test_a_dump() -> None:
    program = read_hlo_text(DUMP)
    assert (program.name, program.entry, program.device_count) == ("jit_step", "main", 8)
    weight = program.parameters[0]
    assert (weight.name, weight.donated) == ("params['w']", True)
    assert weight.sharding is not None
    assert weight.sharding.global_dims(weight.shape.dims) == (8, 16)
    assert program.mesh is not None
    assert program.mesh.axes == (("axis0", 2), ("axis1", 4))


def test_loops_count_with_their_trip_count() -> None:
    program = read_hlo_text(DUMP)
    found = {
        (s.op.opcode, s.op.group_size): (s.count, s.op.collective_bytes)
        for s in static_sums(program)
    }
    # The wrapped all-to-all runs five times and counts once per run, not for its wrapper too.
    assert found == {("all-to-all", 4): (5, 4 * 16 * 2), ("all-reduce", 2): (1, 64)}
    # 5 × 2·4·16·16
    assert program_flops(program) == 5 * 2 * 4 * 16 * 16


def test_a_done_is_its_start() -> None:
    program = read_hlo_text(DUMP)
    done = collective_of(program, program.instructions["all-to-all-done"])
    assert done is not None
    assert (done.kind, done.role, done.bytes) == ("all-to-all", "done", 128)
    assert collective_of(program, program.instructions["dot.1"]) is None


@pytest.mark.parametrize("text", ["", "HloModule x\n", "hello"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(WrongFormatError, match="HloModule"):
        read_hlo_text(text)


def test_a_mesh_with_a_device_order_of_its_own() -> None:
    # As XLA 0.10 prints an all-gather over fsdp 4 of a (data 2, fsdp 4) mesh whose data axis is
    # outermost: mesh position (fsdp, data) holds device 4 × data + fsdp.
    text = (
        "%all-gather = f32[64,128]{1,0} all-gather(%param), channel_id=1, "
        "replica_groups=mesh['axis_0'=4,'axis_1'=1,'axis_2'=2], device_ids=([2,4]T(1,0)) "
        "{'axis_0'}, dimensions={0}, use_global_device_ids=true"
    )
    found = parse_instruction(text, {})
    assert found is not None
    assert found.groups is not None
    assert found.groups.groups == ((0, 1, 2, 3), (4, 5, 6, 7))
