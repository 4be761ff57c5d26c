"""The reference program's weights are the model's: counted against published totals' own counts."""

from __future__ import annotations

import pytest
from compile_build import TINY, layout

from prompts_agent.compile.reference.stacks import LayerKind, Stack, stacks
from prompts_agent.compile.reference.weights import count, weights
from prompts_agent.layout.specs import partition_specs
from prompts_agent.model.catalog import find_model, model_names
from prompts_agent.model.count import parameters
from prompts_agent.model.spec import ModelSpec


def _counted(model: ModelSpec) -> int:
    return count(weights(model, partition_specs(layout(fsdp=1), model)))


@pytest.mark.parametrize(
    "name",
    [
        "llama2-7b", "llama3.2-1b", "qwen2.5-7b", "qwen3-8b", "mixtral-8x7b", "llama4-maverick",
        "deepseek2-lite-16b", "deepseek3-671b", "gpt-neox-20b", "falcon-7b", "gemma2-9b",
    ],
)  # fmt: skip
def test_no_weight_is_missing(name: str) -> None:
    model = find_model(name)
    assert _counted(model) == parameters(model).total


def test_every_model_is_there_within_a_thousandth() -> None:
    # Relative biases, sinks, embedding norms and a head's bias are left out; nothing else is.
    for name in model_names():
        model = find_model(name)
        assert _counted(model) == pytest.approx(parameters(model).total, rel=1e-3), name


def test_an_encoder_and_a_decoder_that_reads_it_are_there() -> None:
    # 11307321344 weights in google-t5/t5-11b, of which 2 x 32 x 128 are relative biases.
    assert _counted(find_model("t5-11b")) == 11307321344 - 2 * 32 * 128


def test_layers_that_are_alike_are_one_stack() -> None:
    model = ModelSpec.model_validate(TINY)
    assert stacks(model) == (Stack((LayerKind(experts=False, window=None),), 2),)


def test_a_dense_start_and_every_second_layer_with_experts() -> None:
    # Layers 0 and 1 are dense; then experts where (i + 1) is even: 2 dense, 3 experts, 4 dense.
    moe = {"experts": 4, "experts_per_token": 2, "mlp": 64, "dense_layers": 2, "every": 2}
    model = ModelSpec.model_validate(TINY | {"layers": 5, "moe": moe})
    dense, sparse = LayerKind(experts=False, window=None), LayerKind(experts=True, window=None)
    assert stacks(model) == (
        Stack((dense, dense), 1),
        Stack((dense, sparse), 1),
        Stack((dense,), 1),
    )
    assert sum(len(s.kinds) * s.periods for s in stacks(model)) == model.layers


def test_windows_alternate_with_global_layers() -> None:
    model = ModelSpec.model_validate(TINY | {"layers": 4, "sliding_window": 8, "global_every": 2})
    (stack,) = stacks(model)
    assert [kind.window for kind in stack.kinds] == [8, None]
    assert stack.periods == 2
