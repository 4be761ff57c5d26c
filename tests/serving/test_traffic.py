from __future__ import annotations

import pytest

from prompts_agent.serving.traffic import held_tokens
from prompts_agent.workload.workload import Traffic


def test_the_cache_holds_the_prompt_and_half_of_the_answer() -> None:
    load = Traffic(input_tokens=1000, output_tokens=101, requests_per_s=4.0)
    assert held_tokens(load) == pytest.approx(1050.5)
