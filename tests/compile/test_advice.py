"""Which buffer dominates, and which axis or policy the advice names for it."""

from __future__ import annotations

from compile_build import layout, llama

from prompts_agent.compile.advice import advice
from prompts_agent.compile.outcome import Buffers
from prompts_agent.layout.layout import Layout

GIB = 2**30


def _advice(held: Buffers, cut: Layout, **fields: object) -> str:
    return "\n".join(advice(held, held.total, 16 * GIB, cut, llama(**fields)))


def test_nothing_is_said_of_what_fits() -> None:
    assert advice(Buffers(parameters=GIB), GIB, 2 * GIB, layout(fsdp=16), llama()) == ()


def test_activations_whole_on_tensor_ranks_want_sequence_parallel() -> None:
    said = _advice(Buffers(activations=20 * GIB, temporaries=5 * GIB), layout(tensor=16))
    assert "It needs 25.00 GiB of 16.00 GiB" in said
    assert "most of it is activations (20.00 GiB)" in said
    assert "sequence_parallel cuts them by 16" in said


def test_activations_that_a_policy_keeps_want_remat_full() -> None:
    said = _advice(Buffers(activations=20 * GIB), layout(fsdp=16, remat="none"))
    assert "remat full keeps each layer's input only" in said


def test_state_that_is_whole_on_data_ranks_wants_fsdp() -> None:
    said = _advice(Buffers(optimizer=30 * GIB), layout(data=4, fsdp=4, zero_stage=0))
    assert "lie whole on 4 data ranks: move data 4 into fsdp (now 4)" in said


def test_copies_of_kv_heads_want_attention_data() -> None:
    # llama3-70b has 8 KV heads: 16 tensor ranks hold each twice.
    from prompts_agent.model.catalog import find_model

    said = _advice(
        Buffers(kv_cache=20 * GIB),
        layout(tensor=16),
        model=find_model("llama3-70b"),
        phase="decode",
    )
    assert "held by 2 of 16 tensor ranks: attention_data 2" in said


def test_logits_want_a_smaller_microbatch() -> None:
    said = _advice(Buffers(logits=30 * GIB), layout(fsdp=16, microbatch=4))
    assert "a smaller microbatch (now 4)" in said


def test_without_buffers_the_need_is_all_there_is_to_say() -> None:
    said = advice(None, 20 * GIB, 16 * GIB, layout(fsdp=16), llama())
    assert said == ("It needs 20.00 GiB of 16.00 GiB a device. Its buffers could not be read.",)
