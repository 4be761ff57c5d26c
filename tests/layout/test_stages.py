from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts_agent.layout.stages import chunk_layers


@pytest.mark.parametrize(
    ("layers", "chunks", "expected"),
    [
        (64, 16, (4, 4, 4)),
        # DeepSeek-V3: 15 × 4 + 1.
        (61, 16, (4, 4, 1)),
        # Llama 3 405B (arXiv 2407.21783, section 3.3.2): 1 + 62 × 2 + 1.
        (126, 64, (1, 2, 1)),
        (126, 128, (0, 1, 0)),
    ],
)
def test_layers_of_chunks(layers: int, chunks: int, expected: tuple[int, int, int]) -> None:
    assert chunk_layers(layers, chunks) == expected


@given(st.integers(1, 200), st.integers(2, 200))
def test_every_layer_is_in_one_chunk(layers: int, chunks: int) -> None:
    first, each, last = chunk_layers(layers, chunks)
    if (layers + 2) % chunks == 0 or (chunks - 1) * each < layers:
        assert first + (chunks - 2) * each + last == layers
        assert 0 <= last <= each
