"""How far ZeRO-1 cuts a tensor: bytes of one rank, worked out by hand."""

from __future__ import annotations

from prompts_agent.compile.reference.weights import Weight
from prompts_agent.compile.reference.zero import cut_further

SIZES = {"data": 8, "fsdp": 4, "tensor": 2, "pipeline": 1}


def test_embed_takes_the_copies_where_they_divide_it() -> None:
    found = cut_further(Weight((64, 128), ("fsdp", "tensor"), 0), ("data",), SIZES)
    assert found == Weight((64, 128), (("data", "fsdp"), "tensor"), 0)


def test_another_dim_takes_them_where_they_do_not() -> None:
    # 60 is no multiple of 8 × 4; 128 is one of 8 × 2.
    found = cut_further(Weight((60, 128), ("fsdp", "tensor"), 0), ("data",), SIZES)
    assert found == Weight((60, 128), ("fsdp", ("data", "tensor")), 0)


def test_a_dim_that_nothing_divides_is_padded() -> None:
    # gpt3's embed over 56 ranks: 220 rows each, 12320 in all.
    found = cut_further(Weight((12288, 33), (None, None), 0), ("data",), SIZES | {"data": 56})
    assert found == Weight((12320, 33), ("data", None), 0)


def test_what_is_small_or_cut_by_the_axis_already_stays() -> None:
    norm = Weight((64,), (None,))
    assert cut_further(norm, ("data",), SIZES) == norm
    expert = Weight((8, 64), ("data", None), 1)
    assert cut_further(expert, ("data",), SIZES) == expert
