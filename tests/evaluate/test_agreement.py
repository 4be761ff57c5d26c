"""Agreement with what experts adopted, and the arithmetic of its baselines."""

from __future__ import annotations

from pathlib import Path

import pytest

from prompts_agent.errors import WorkloadError
from prompts_agent.evaluate.agreement import Agreement, agreement, totals
from prompts_agent.workload.yaml import load_workload

WORKLOADS = Path(__file__).parents[2] / "workloads"


def found(place: int | None, *, meshes: int, rule: bool = False) -> Agreement:
    return Agreement(workload="w", legal_meshes=meshes, place=place, smallest_tensor_agrees=rule)


def test_shares_are_per_workload() -> None:
    sums = totals([found(1, meshes=10), found(3, meshes=2, rule=True), found(None, meshes=10)])
    assert sums.top_1 == pytest.approx(1 / 3)
    assert sums.top_3 == pytest.approx(2 / 3)
    # Drawn evenly: (1/10 + 1/2 + 1/10) / 3, and (3/10 + 1 + 3/10) / 3 of three draws.
    assert sums.random_top_1 == pytest.approx(0.7 / 3)
    assert sums.random_top_3 == pytest.approx(1.6 / 3)
    assert sums.smallest_tensor_top_1 == pytest.approx(1 / 3)


def test_nothing_to_score_is_an_error() -> None:
    with pytest.raises(WorkloadError, match="needs workloads"):
        totals([])


def test_a_workload_without_an_adopted_layout_is_refused() -> None:
    workload = load_workload(WORKLOADS / "prompts-case-1.yaml").model_copy(update={"adopted": None})
    with pytest.raises(WorkloadError, match="names none"):
        agreement(workload)


def test_all_meshes_of_the_papers_third_case_are_ranked() -> None:
    workload = load_workload(WORKLOADS / "prompts-case-3.yaml")
    result = agreement(workload)
    # data × fsdp = 2^k divides the batch of 8: (k + 1) ways, and 256 / 2^k over context × tensor in
    # (9 - k) ways: 1·9 + 2·8 + 3·7 + 4·6 = 70. 64 heads rule out tensor 128 (k = 0 once, k = 1
    # twice) and tensor 256 (k = 0 once).
    assert result.legal_meshes == 70 - 4
    assert result.place is not None
