from __future__ import annotations

from compile_build import layout, llama, tiny

from prompts_agent.compile.dropless import is_dropless
from prompts_agent.compile.expert_axis import finer_sizes, taken_ranks, without_expert_axis
from prompts_agent.compile.program import differences, unsupported
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.specs import mesh_axes
from prompts_agent.model.catalog import find_model
from prompts_agent.workload.framework import Framework


def divided(**sizes: int) -> Layout:
    return layout(**sizes, expert_divides=True)


def test_a_dividing_expert_axis_is_left_out_of_the_mesh() -> None:
    cut = divided(data=16, expert=8, tensor=2)
    found = without_expert_axis(cut)
    assert found.mesh.used() == {Axis.DATA: 16, Axis.TENSOR: 2}
    # As many devices, and the batch is cut as far, as before.
    assert (found.devices, found.batch_shards) == (cut.devices, cut.batch_shards) == (32, 16)
    factor = layout(fsdp=2, expert=4)
    assert without_expert_axis(factor) is factor
    assert taken_ranks(factor) == {}


def test_experts_take_the_innermost_ranks_first() -> None:
    assert taken_ranks(divided(data=16, expert=8)) == {"data": 8}
    # All 2 tensor ranks, then 4 of 16 data ranks.
    assert taken_ranks(divided(data=16, expert=8, tensor=2)) == {"tensor": 2, "data": 4}
    assert taken_ranks(divided(expert=2, tensor=8)) == {"tensor": 2}
    both = layout(tensor=8, expert=8, attention_data=4, expert_divides=True)
    assert taken_ranks(both) == {"tensor": 2, "attention_data": 4}


def test_an_axis_of_which_a_part_is_taken_becomes_two() -> None:
    cut = divided(data=16, expert=8, tensor=2)
    sizes = mesh_axes(without_expert_axis(cut))
    assert finer_sizes(sizes, taken_ranks(cut)) == {
        "data_copies": 4, "data_experts": 4, "tensor": 2
    }  # fmt: skip


def test_it_is_said_of_the_program() -> None:
    job = llama("h100:2x8", model=find_model("mixtral-8x7b"))
    cut = divided(data=2, tensor=8, expert=8, remat="none")
    assert unsupported(job, cut) is None
    said = " ".join(differences(job, cut))
    assert "tensor 8." in said
    assert "batched" in said


def test_servers_and_torch_trainers_drop_nothing() -> None:
    model = find_model("mixtral-8x7b")
    tpu, gpu = llama("v5e:4x4", model=model), llama("h100:2x8", model=model)
    factor = layout(fsdp=2, expert=8)
    assert not is_dropless(tpu, factor)
    assert is_dropless(gpu, factor)
    assert is_dropless(tpu, divided(fsdp=16, expert=8))
    assert not is_dropless(gpu.model_copy(update={"framework": Framework.MAXTEXT}), factor)
    assert is_dropless(gpu.model_copy(update={"framework": Framework.MEGATRON_BRIDGE}), factor)
    assert is_dropless(tpu.model_copy(update={"dropless": True}), factor)
    assert not is_dropless(gpu.model_copy(update={"dropless": False}), factor)
    assert is_dropless(tiny("decode"), layout(tensor=8))
