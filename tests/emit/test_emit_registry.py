"""Frameworks by name, the default of a job, and configs for a report."""

from __future__ import annotations

import pytest
from emit_build import job, layout
from hypothesis import given
from hypothesis import strategies as st

from prompts_agent.agents.report import Predicted, Proposal, Report, Verdict, WorkloadSummary
from prompts_agent.emit.facts import JobFacts
from prompts_agent.emit.registry import FRAMEWORKS, default_framework, emit, with_configs
from prompts_agent.errors import LayoutError
from prompts_agent.layout.layout import Layout
from prompts_agent.workload.workload import Objective, Phase


def report(*layouts: Layout, phase: Phase = Phase.PRETRAIN) -> Report:
    predicted = Predicted(step_time_s=1.0, low_s=0.9, high_s=1.1, hbm_bytes=1, hbm_limit_bytes=2)
    return Report(
        tool_version="0.1.0",
        workload=WorkloadSummary(
            name="w",
            model="llama3.1-8b",
            hardware="h100:1x8",
            devices=8,
            phase=phase,
            objective=Objective.THROUGHPUT,
            global_batch=8,
            sequence=4096,
        ),
        proposals=tuple(
            Proposal(
                rank=rank,
                layout=of,
                changes=(),
                predicted=predicted,
                rung="estimated",
                verdict=Verdict(legal=True, fits=True),
                reasons=(),
                tradeoffs=(),
            )
            for rank, of in enumerate(layouts, 1)
        ),
    )


def test_unknown_framework_lists_the_known() -> None:
    with pytest.raises(LayoutError, match="jax, maxtext, megatron, sglang"):
        emit(layout(fsdp=8), job(), "deepspeed")


def test_every_framework_says_since_when_and_where_from() -> None:
    for name, framework in FRAMEWORKS.items():
        assert framework.name == name
        assert framework.since
        assert framework.source


def test_defaults() -> None:
    assert default_framework(job()) == "jax"
    assert default_framework(job(torch_trace=True, hardware="h100:1x8")) == "megatron"
    assert default_framework(job(phase=Phase.DECODE)) == "vllm"


def test_facts_of_a_report() -> None:
    facts = JobFacts.of(report(layout(fsdp=8)))
    assert facts is not None
    assert facts.platform == "gpu"
    assert facts.model is not None
    assert facts.model.layers == 32  # Llama 3.1 8B, config.json num_hidden_layers


def test_every_proposal_gets_a_config() -> None:
    found = with_configs(report(layout(fsdp=8), layout(fsdp=4, tensor=2)))
    assert [p.config.framework for p in found.proposals if p.config] == ["jax", "jax"]
    assert found.caveats == ()


def test_refusal_of_a_chosen_framework_is_a_caveat() -> None:
    found = with_configs(report(layout(pipeline=2, fsdp=4), layout(data=8)), "megatron")
    assert found.proposals[0].config is None
    assert found.proposals[1].config is not None
    assert found.caveats[0].startswith("Proposal 1 has no config: fsdp 4 with pipeline 2")


def test_refusal_of_the_default_falls_back_to_jax() -> None:
    found = with_configs(report(layout(fsdp=8), phase=Phase.PREFILL))
    config = found.proposals[0].config
    assert config is not None
    assert config.framework == "jax"


def test_what_a_framework_cannot_tell_apart_is_said() -> None:
    of = layout({"microbatch": 2, "gradient_accumulation": 1}, data=8)
    found = with_configs(report(of, of.model_copy(update={"weights_over_context": False})), "jax")
    assert found.caveats == ("Proposals 1 and 2 are the same to JAX.",)


def test_report_without_a_workload_stays_as_it_is() -> None:
    bare = report(layout(fsdp=8)).model_copy(update={"workload": None})
    assert with_configs(bare) == bare


sizes = st.sampled_from([1, 2, 4])


@given(
    axes=st.fixed_dictionaries(
        dict.fromkeys(("pipeline", "data", "fsdp", "expert", "context", "tensor"), sizes)
    ),
    framework=st.sampled_from(sorted(FRAMEWORKS)),
    phase=st.sampled_from(list(Phase)),
    divides=st.booleans(),
)
def test_any_layout_is_written_or_refused_with_a_cure(
    axes: dict[str, int], framework: str, phase: Phase, divides: bool
) -> None:
    of = layout({"expert_divides": divides}, **axes)
    refused: LayoutError | None = None
    try:
        config = emit(of, job(phase=phase, hardware=None), framework)
    except LayoutError as error:
        refused = error
    if refused is not None:
        assert refused.rule
        assert refused.cure
        return
    assert config.text.endswith("\n")
    assert config.framework == framework
