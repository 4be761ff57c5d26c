from __future__ import annotations

import pytest

from prompts_agent.knowledge.fuse import fuse, ranks


def test_equal_scores_share_the_better_rank() -> None:
    scores = {"a": 2.0, "b": 3.0, "c": 2.0, "d": 1.0, "e": 0.0, "f": -1.0}
    assert ranks(scores) == {"b": 1, "a": 2, "c": 2, "d": 4}


def test_the_last_bits_of_a_float_do_not_rank() -> None:
    assert ranks({"a": 0.1 + 0.2, "b": 0.3}) == {"a": 1, "b": 1}


def test_reciprocal_ranks_add_up() -> None:
    # a: (1/61 + 1/63) / (2/61) = (1 + 61/63) / 2; b: (61/62 + 1) / 2; c: 61/62 / 2.
    fused = fuse([{"a": 1, "b": 2}, {"b": 1, "c": 2, "a": 3}])
    assert list(fused) == ["b", "a", "c"]
    assert fused["b"] == pytest.approx(0.991935, abs=1e-6)
    assert fused["a"] == pytest.approx(0.984127, abs=1e-6)
    assert fused["c"] == pytest.approx(0.491935, abs=1e-6)


def test_first_everywhere_is_one_and_ties_go_by_key() -> None:
    assert fuse([{"b": 1, "a": 1}] * 3) == {"a": 1.0, "b": 1.0}
