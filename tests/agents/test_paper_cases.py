"""The PROMPTS paper's cases 1 to 4 and 6 through all four agents: what the engineers adopted comes
first, and what ran out of memory is not proposed. Source: PROMPTS, MLSys 2026, appendix A.1 to A.4.
"""

from __future__ import annotations

import pytest

from prompts_agent.agents.graph import run_plan
from prompts_agent.agents.report import Report
from prompts_agent.agents.request import DiagnoseRequest
from prompts_agent.layout.mesh import Axis
from prompts_agent.resources import data_directory
from prompts_agent.workload.yaml import load_workload

ADOPTED = {
    1: {Axis.DATA: 16, Axis.CONTEXT: 4, Axis.TENSOR: 8},
    2: {Axis.FSDP: 4, Axis.TENSOR: 4},
    3: {Axis.FSDP: 8, Axis.CONTEXT: 16, Axis.TENSOR: 2},
    4: {Axis.DATA: 2, Axis.CONTEXT: 32, Axis.TENSOR: 2},
    # The mesh of case 6 is not published; this is the vendor's recipe for its model and shape.
    6: {Axis.TENSOR: 2},
}


def planned(number: int) -> Report:
    workload = load_workload(data_directory("workloads") / f"prompts-case-{number}.yaml")
    return run_plan(DiagnoseRequest(workload=workload))


@pytest.mark.parametrize("number", list(ADOPTED))
def test_what_the_engineers_adopted_is_proposed_first(number: int) -> None:
    report = planned(number)
    # Two devices have three meshes, pipeline among them.
    assert len(report.proposals) == 3
    assert report.proposals[0].layout.mesh.used() == ADOPTED[number]


def test_what_ran_out_of_memory_is_not_proposed() -> None:
    meshes = [proposal.layout.mesh.used() for proposal in planned(4).proposals]
    assert {Axis.DATA: 2, Axis.CONTEXT: 16, Axis.TENSOR: 4} not in meshes
    assert {Axis.CONTEXT: 32, Axis.TENSOR: 4} not in meshes
