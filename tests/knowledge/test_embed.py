from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts_agent.knowledge.embed import DIMENSIONS, embed


@given(st.lists(st.text(max_size=40), max_size=4))
def test_rows_have_length_one_or_are_zero(texts: list[str]) -> None:
    rows = embed(texts)
    assert rows.shape == (len(texts), DIMENSIONS)
    assert rows.dtype == np.float32
    lengths = np.linalg.norm(rows, axis=1)
    assert all(length == 0 or length == pytest.approx(1, abs=1e-5) for length in lengths)


def test_near_texts_are_nearer() -> None:
    gather, gathers, decode = embed(
        ["exposed all-gather over fsdp", "FSDP allgathers are exposed", "decode reads the KV cache"]
    )
    assert gather @ gathers > 0.6
    assert gather @ decode < 0.3


def test_a_text_does_not_depend_on_its_neighbours() -> None:
    alone = embed(["kv heads"])[0]
    assert np.array_equal(embed(["a b c", "kv heads", "x"])[1], alone)


def test_every_process_gives_the_same_vector() -> None:
    code = (
        "from prompts_agent.knowledge.embed import embed;"
        "print(embed(['exposed all-gather over fsdp']).tobytes().hex())"
    )
    vectors = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(vectors) == 1
