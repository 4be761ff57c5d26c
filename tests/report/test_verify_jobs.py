from __future__ import annotations

from pathlib import Path

import pytest

from prompts_agent.errors import InputError
from prompts_agent.report.verify_jobs import verify_jobs

GOLDEN = Path(__file__).parent / "golden" / "training.json"
WORKLOAD = """
model: llama2-7b
hardware: v5e:4x4
phase: pretrain
global_batch: 16
sequence: 4096
baseline:
  mesh: {fsdp: 16}
"""


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(WORKLOAD, encoding="utf-8")
    return path


def test_a_workload_s_own_layouts_or_those_that_are_named(workload: Path) -> None:
    job, named = verify_jobs(str(workload))
    assert job.global_batch == 16
    assert [(name, str(cut)) for name, cut in named.items()] == [("baseline", "fsdp 16")]
    _, named = verify_jobs(str(workload), layouts=["fsdp=4,tensor=4"])
    assert list(named) == ["fsdp=4,tensor=4"]


def test_a_layout_for_a_workload(workload: Path) -> None:
    job, named = verify_jobs("fsdp=8,tensor=2", workload=workload)
    assert job.sequence == 4096
    assert [str(cut) for cut in named.values()] == ["fsdp 8 × tensor 2"]


def test_each_proposal_of_a_report(workload: Path) -> None:
    _, named = verify_jobs(str(GOLDEN), workload=workload)
    assert list(named)[:2] == ["proposal 1", "proposal 2"]


def test_what_is_none_of_them(tmp_path: Path, workload: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        verify_jobs(str(tmp_path / "none.yaml"))
    with pytest.raises(InputError, match="for a job"):
        verify_jobs("fsdp=16")
