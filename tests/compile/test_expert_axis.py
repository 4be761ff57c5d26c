from __future__ import annotations

from compile_build import layout, llama, tiny

from prompts_agent.compile.expert_axis import with_expert_axis
from prompts_agent.compile.program import differences, unsupported
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis, Mesh
from prompts_agent.model.catalog import find_model


def divided(**sizes: int) -> Layout:
    return layout(**sizes, expert_divides=True)


def test_experts_over_data_ranks_are_an_axis_of_their_own() -> None:
    cut = divided(data=16, expert=8, tensor=2)
    found = with_expert_axis(cut)
    assert found is not None
    assert not found.expert_divides
    assert found.mesh.used() == {Axis.DATA: 2, Axis.EXPERT: 8, Axis.TENSOR: 2}
    # As many devices, and the batch is cut as far, as before.
    assert (found.devices, found.batch_shards) == (cut.devices, cut.batch_shards) == (32, 16)


def test_parts_across_domains_stay_across() -> None:
    # data 4 inside × 8 across, of which experts take 4 inside × 2 across.
    mesh = Mesh.model_validate({"data": {"ici": 4, "dcn": 8}, "expert": {"ici": 4, "dcn": 2}})
    found = with_expert_axis(Layout(mesh=mesh, expert_divides=True))
    assert found is not None
    assert (found.mesh[Axis.DATA].ici, found.mesh[Axis.DATA].dcn) == (1, 4)


def test_what_is_a_factor_already_stays_and_what_divides_more_than_data_is_none() -> None:
    factor = layout(fsdp=2, expert=4)
    assert with_expert_axis(factor) is factor
    assert with_expert_axis(divided(data=4, expert=8, tensor=8)) is None


def test_it_is_said_of_the_program() -> None:
    job = llama("h100:2x8", model=find_model("mixtral-8x7b"))
    assert unsupported(job, divided(data=16, expert=8)) is None
    assert any("axis of its own" in text for text in differences(job, divided(data=16, expert=8)))
    kept = divided(data=16, expert=8, remat="none")
    assert "one-hot" in (unsupported(job, kept) or "")
    more = unsupported(job, divided(data=2, tensor=8, expert=8))
    assert more is not None
    assert "more than the data ranks" in more
    serving = unsupported(tiny("decode"), divided(data=8, expert=4))
    assert serving is not None
