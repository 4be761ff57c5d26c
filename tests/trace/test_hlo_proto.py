"""HloProtos: parameters, matmuls, memory, collectives, call graph."""

from __future__ import annotations

import pytest
from trace_build import Program, mesh_proto, set_shape

from prompts_agent.errors import DamagedTraceError
from prompts_agent.trace.hlo.collectives import collective_of
from prompts_agent.trace.hlo.dots import DotDims
from prompts_agent.trace.hlo.proto import read_hlo_proto


def parameter(program: Program, number: int, name: str, dims: tuple[int, ...]) -> object:
    found = program.add(f"param.{number}", "parameter", "bf16", dims)
    found.parameter_number = number
    found.metadata.op_name = name
    return found


def test_ids_are_unsigned() -> None:
    assert read_hlo_proto(Program().bytes(), -1).program_id == 2**64 - 1
    assert read_hlo_proto(Program().bytes()).program_id == 7


def test_parameters_with_their_shardings() -> None:
    program = Program()
    tiled = parameter(program, 0, "params['w']", (4, 16))
    tiled.sharding.type = 3  # type: ignore[attr-defined]
    tiled.sharding.tile_assignment_dimensions.extend([2, 1, 4])  # type: ignore[attr-defined]
    tiled.sharding.replicate_on_last_tile_dim = True  # type: ignore[attr-defined]
    tiled.sharding.iota_reshape_dims.append(8)  # type: ignore[attr-defined]
    tiled.sharding.iota_transpose_perm.append(0)  # type: ignore[attr-defined]
    named = parameter(program, 1, "params['v']", (4, 16))
    sharding = named.sharding.named_sharding  # type: ignore[attr-defined]
    sharding.mesh.CopyFrom(mesh_proto({"data": 2, "model": 4}))
    sharding.dim_shardings.add()
    sharding.dim_shardings.add().axes.add(mesh_axis_index=1)
    whole = parameter(program, 2, "step", ())
    whole.sharding.type = 0  # type: ignore[attr-defined]
    program.module.input_output_alias.entries.add(parameter_number=0)
    found = read_hlo_proto(program.bytes())
    w, v, step = found.parameters
    assert w.sharding is not None
    assert (w.sharding.tiles, w.sharding.replication) == ((2, 1), 4)
    assert w.sharding.global_dims(w.shape.dims) == (8, 16)
    assert v.sharding is not None
    # Model axis of 4 cuts dim 1; the data axis of 2 holds copies.
    assert (v.sharding.tiles, v.sharding.replication) == ((1, 4), 2)
    assert step.sharding is not None
    assert (step.sharding.tiles, step.sharding.replication) == ((), None)
    assert [p.donated for p in found.parameters] == [True, False, False]
    assert found.mesh is not None
    assert found.mesh.axes == (("data", 2), ("model", 4))


def test_matmul_sizes() -> None:
    program = Program()
    program.add("a", "constant", "bf16", (3, 8, 128))
    program.add("b", "constant", "bf16", (3, 128, 64))
    dot = program.add("dot", "dot", "bf16", (3, 8, 64), ["a", "b"])
    dot.dot_dimension_numbers.lhs_contracting_dimensions.append(2)
    dot.dot_dimension_numbers.rhs_contracting_dimensions.append(1)
    dot.dot_dimension_numbers.lhs_batch_dimensions.append(0)
    dot.dot_dimension_numbers.rhs_batch_dimensions.append(0)
    found = read_hlo_proto(program.bytes()).instructions["dot"]
    assert found.dot == DotDims(3, 8, 64, 128, "bf16")


def test_convolution_as_matmul() -> None:
    program = Program()
    program.add("a", "constant", "f32", (32, 128))
    program.add("b", "constant", "f32", (128, 64))
    plain = program.add("plain", "convolution", "f32", (32, 64), ["a", "b"])
    plain.convolution_dimension_numbers.kernel_output_feature_dimension = 1
    padded = program.add("padded", "convolution", "f32", (32, 64), ["a", "b"])
    padded.convolution_dimension_numbers.kernel_output_feature_dimension = 1
    padded.window.dimensions.add(size=3, padding_low=1)
    found = read_hlo_proto(program.bytes()).instructions
    assert found["plain"].dot == DotDims(1, 32, 64, 128, "f32")
    assert found["padded"].dot is None


def test_fusions_hold_the_flops_of_their_bodies() -> None:
    program = Program()
    body = program.computation("fused")
    program.add("p0", "parameter", "f32", (4, 8), computation=body)
    program.add("p1", "parameter", "f32", (8, 2), computation=body)
    dot = program.add("d", "dot", "f32", (4, 2), ["p0", "p1"], computation=body)
    dot.dot_dimension_numbers.lhs_contracting_dimensions.append(1)
    dot.dot_dimension_numbers.rhs_contracting_dimensions.append(0)
    fusion = program.add("fusion", "fusion", "f32", (4, 2))
    fusion.called_computation_ids.append(body.id)
    opaque = program.add("gemm", "custom-call", "f32", (4, 2))
    opaque.custom_call_target = "__cublas$gemm"
    found = read_hlo_proto(program.bytes())
    assert found.flops(found.instructions["fusion"]) == 2 * 4 * 2 * 8
    assert found.flops(found.instructions["gemm"]) is None


def test_memory_without_host_and_thread_local() -> None:
    program = Program()
    add = program.proto.buffer_assignment.buffer_allocations.add
    add(size=100, is_entry_computation_parameter=True)
    add(size=40, maybe_live_out=True)
    add(size=1000)
    add(size=7, is_thread_local=True)
    add(size=5000, color=5)  # host memory
    memory = read_hlo_proto(program.bytes()).memory
    assert memory is not None
    assert (memory.hbm_bytes, memory.host_bytes) == (1140, 5000)
    assert (memory.parameter_bytes, memory.output_bytes) == (100, 40)
    assert memory.temporary_bytes == 1000


def test_a_tpu_fusion_around_a_reduce_scatter() -> None:
    program = Program()
    body = program.computation("scattered")
    program.add("x", "parameter", "f32", (64,), computation=body)
    inner = program.add("ar", "all-reduce", "f32", (64,), ["x"], computation=body)
    inner.replica_groups.add(replica_ids=[0, 1, 2, 3])
    fusion = program.add("all-reduce-scatter.2", "fusion", "f32", (16,))
    fusion.called_computation_ids.append(body.id)
    hidden = program.add("fusion.9", "fusion", "f32", (16,))
    hidden.called_computation_ids.append(body.id)
    found = read_hlo_proto(program.bytes())
    scatter = collective_of(found, found.instructions["all-reduce-scatter.2"])
    assert scatter is not None
    assert (scatter.kind, scatter.bytes) == ("reduce-scatter", 256)
    assert collective_of(found, found.instructions["fusion.9"]) is None


def test_call_graphs_with_a_cycle_end() -> None:
    program = Program()
    other = program.computation("other")
    there = program.add("there", "call")
    there.called_computation_ids.append(other.id)
    back = program.add("back", "call", computation=other)
    back.called_computation_ids.append(program.entry.id)
    found = read_hlo_proto(program.bytes())
    assert set(found.runs_per_step()) == {"main", "other"}
    assert len(list(found.called(found.instructions["there"]))) == 2


def test_host_memory_space() -> None:
    program = Program()
    copy = program.add("copy", "copy")
    set_shape(copy.shape, "f32", (8,), space=5)
    assert read_hlo_proto(program.bytes()).instructions["copy"].is_host_transfer


def test_damaged_bytes() -> None:
    with pytest.raises(DamagedTraceError, match="not a readable HloProto"):
        read_hlo_proto(b"\xff\xff\xff")
    impossible = Program()
    reduce = impossible.add("r", "all-reduce")
    reduce.iota_collective_device_list.num_replica_groups = 3
    reduce.iota_collective_device_list.num_devices_per_group = 2
    reduce.iota_collective_device_list.iota_reshape_dims.append(4)
    with pytest.raises(DamagedTraceError, match="3 groups of 2 are not 4 devices"):
        read_hlo_proto(impossible.bytes())
