from __future__ import annotations

import pytest
from estimate_build import at, job

from prompts_agent.estimate.pipeline import bubble, stage_transfer_bytes, tail_microbatches


def test_the_bubble_of_4_stages_and_8_microbatches_is_3_eighths() -> None:
    setting_at = at(job(batch=32), {"pipeline": 4, "fsdp": 4}, gradient_accumulation=8)
    assert bubble(setting_at)[0] == pytest.approx(3 / 8)


def test_two_chunks_a_stage_halve_the_bubble() -> None:
    setting_at = at(
        job(batch=32), {"pipeline": 4, "fsdp": 4}, gradient_accumulation=8,
        schedule="interleaved", virtual_stages=2,
    )  # fmt: skip
    assert bubble(setting_at)[0] == pytest.approx(3 / 16)
    # Two chunks have twice as many borders: 2 × 2 × 4096 tokens × 4096 × 2 bytes.
    assert stage_transfer_bytes(setting_at)[0] == pytest.approx(4 * 4096 * 4096 * 2)


def test_one_stage_has_no_bubble_and_sends_nothing() -> None:
    setting_at = at(job(), {"fsdp": 16})
    assert bubble(setting_at)[0] == 0.0
    assert stage_transfer_bytes(setting_at)[0] == 0.0


def test_the_fullest_stage_counts() -> None:
    # 32 layers on 5 stages: one has 7.
    assert at(job(), {"pipeline": 5}).sizes.layers[0] == 7.0


def test_without_chunks_only_the_last_backward_pass_hides_the_reduction() -> None:
    assert tail_microbatches(at(job(), {"fsdp": 16}))[0] == 1.0
    stages = at(job(batch=32), {"pipeline": 4, "fsdp": 4}, gradient_accumulation=8)
    assert tail_microbatches(stages)[0] == 1.0


def test_chunks_leave_passes_to_hide_the_reduction_under() -> None:
    # 4 microbatches go through each of 8 chunks; after the last chunk's, 7/8 of 4 passes remain.
    chunked = at(
        job(batch=32), {"pipeline": 4, "fsdp": 4}, gradient_accumulation=8,
        schedule="interleaved", virtual_stages=8,
    )  # fmt: skip
    assert tail_microbatches(chunked)[0] == pytest.approx(3.5)
