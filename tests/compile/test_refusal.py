"""The compiler's messages, as they were met: libtpu 0.0.42 to 0.0.52, and older ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts_agent.compile.refusal import read_refusal

GIB = 2**30


@pytest.mark.parametrize(
    ("text", "need_gib", "limit_gib"),
    [
        (
            "RESOURCE_EXHAUSTED: E1000: CompileTimeHbmOom: Ran out of memory on HBM, the total "
            "memory required for HLO temporaries (50.47G) exceeds available HBM (31.24G).",
            50.47,
            31.24,
        ),
        (
            "XLA:TPU compile permanent error. Ran out of memory in memory space hbm. "
            "Used 33.27G of 30.75G hbm. Exceeded hbm capacity by 2.52G.",
            33.27,
            30.75,
        ),
        ("Used 980.5M of 1.50G hbm.", 980.5 / 1024, 1.5),
    ],
)
def test_need_and_limit(text: str, need_gib: float, limit_gib: float) -> None:
    found = read_refusal(text)
    assert found is not None
    assert found.need_bytes == pytest.approx(need_gib * GIB, abs=1)
    assert found.limit_bytes == pytest.approx(limit_gib * GIB, abs=1)


def test_another_refusal_is_none_of_memory() -> None:
    assert read_refusal("INVALID_ARGUMENT: No such compile option: 'xla_tpu_no_such'") is None


@given(st.text())
def test_no_text_breaks_it(text: str) -> None:
    read_refusal(text)
