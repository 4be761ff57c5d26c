"""BM25 worked out by hand on three documents of 2, 4 and 6 words (mean 4)."""

from __future__ import annotations

import math

import pytest

from prompts_agent.knowledge.lexical import Bm25

CORPUS = (("a", "b"), ("a", "a", "c", "c"), ("c", "c", "c", "d", "d", "d"))


def test_idf() -> None:
    bm25 = Bm25(CORPUS)
    # a is in 2 of 3: ln(1 + (3 - 2 + 0.5) / 2.5) = ln 1.6; b in 1: ln(1 + 2.5 / 1.5) = ln 8/3.
    assert bm25.idf("a") == pytest.approx(math.log(1.6))
    assert bm25.idf("b") == pytest.approx(math.log(8 / 3))


def test_scores() -> None:
    # Word a. Document 1: f 1, damping 1.2 * (0.25 + 0.75 * 2/4) = 0.75, 2.2 / 1.75 = 1.257143.
    # Document 2: f 2, damping 1.2, 2 * 2.2 / 3.2 = 1.375. ln 1.6 = 0.470004.
    scores = Bm25(CORPUS).scores(("a",))
    assert scores == pytest.approx([0.590862, 0.646255, 0.0], abs=1e-6)


def test_words_add_up_and_repeats_in_the_query_do_not_count() -> None:
    bm25 = Bm25(CORPUS)
    # b: ln(8/3) = 0.980829, * 1.257143 = 1.233042; a as above.
    expected = [0.590862 + 1.233042, 0.646255, 0.0]
    assert bm25.scores(("a", "b")) == pytest.approx(expected, abs=1e-6)
    assert bm25.scores(("b", "a", "b", "unknown")) == pytest.approx(expected, abs=1e-6)


def test_shared_words_are_rarest_first() -> None:
    assert Bm25(CORPUS).shared(0, ("a", "b", "c")) == ("b", "a")


def test_no_documents_and_empty_documents() -> None:
    assert Bm25(()).scores(("a",)) == []
    assert Bm25(((), ())).scores(("a",)) == [0.0, 0.0]
