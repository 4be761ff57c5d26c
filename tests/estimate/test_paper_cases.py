"""The four cases of the PROMPTS paper whose meshes are public: every legal layout of the source's
axes is estimated, and the mesh that the engineers adopted has to be among the first three."""

from __future__ import annotations

import numpy as np
import pytest

from prompts_agent.estimate.estimator import estimate, propose, usable_hbm_bytes
from prompts_agent.estimate.ranking import TOO_LARGE, fit_class
from prompts_agent.layout.enumerate import Enumeration, enumerate_layouts
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.table import LayoutTable
from prompts_agent.resources import data_directory
from prompts_agent.workload.search_space import search_space
from prompts_agent.workload.workload import Workload
from prompts_agent.workload.yaml import load_workload

CASES = [1, 2, 3, 4]


def case(number: int) -> Workload:
    return load_workload(data_directory("workloads") / f"prompts-case-{number}.yaml")


def proposals(work: Workload) -> tuple[Enumeration, list[dict[Axis, int]]]:
    found = enumerate_layouts(search_space(work))
    rows = propose(estimate(found.table, work), found.table, work)
    return found, [found.table.row(int(row)).mesh.used() for row in rows]


def adopted(work: Workload) -> dict[Axis, int]:
    assert work.adopted is not None
    return {axis: size for axis, size in work.adopted.degrees.items() if size > 1}


# Ordered power-of-two factorisations: C(11,2) of 512 and C(9,2) of 128 over three axes, C(7,3) of
# 16 and C(11,3) of 256 over four; 165 is the one count that the paper prints.
@pytest.mark.parametrize(("number", "meshes"), [(1, 55), (2, 35), (3, 165), (4, 36)])
def test_the_search_space_is_the_paper_s(number: int, meshes: int) -> None:
    assert enumerate_layouts(search_space(case(number))).meshes == meshes


@pytest.mark.parametrize("number", CASES)
def test_the_adopted_mesh_is_among_the_first_three(number: int) -> None:
    work = case(number)
    _, top = proposals(work)
    assert len(top) == 3
    assert adopted(work) in top


@pytest.mark.parametrize("number", [1, 2, 3])
def test_stand_ins_a_fifth_smaller_or_larger_give_the_same(number: int) -> None:
    work = case(number)
    for share in (0.8, 0.9, 1.1, 1.2):
        layers = round(work.model.layers * share)
        other = work.model_copy(update={"model": work.model.model_copy(update={"layers": layers})})
        _, top = proposals(other)
        assert adopted(work) in top, share


def test_case_4_depends_on_how_much_of_the_memory_the_stand_in_takes() -> None:
    # A tenth smaller is the same; a tenth larger and the adopted mesh is no longer sure to fit.
    work = case(4)
    smaller = work.model_copy(update={"model": work.model.model_copy(update={"layers": 72})})
    assert adopted(work) in proposals(smaller)[1]


def test_case_4_the_meshes_that_ran_out_of_memory_are_too_large_and_not_proposed() -> None:
    work = case(4)
    _, top = proposals(work)
    failed = [row.layout for row in work.alternatives]
    assert len(failed) == 2
    table = LayoutTable.of(failed)
    found = estimate(table, work)
    assert list(fit_class(found, usable_hbm_bytes(work))) == [TOO_LARGE, TOO_LARGE]
    for layout in failed:
        assert layout.mesh.used() not in top


@pytest.mark.parametrize("number", [1, 3])
def test_the_published_step_time_is_within_35_percent_of_the_baseline(number: int) -> None:
    # Case 2 gives neither batch nor sequence, case 4 no baseline on this slice; in case 1 and 3 the
    # models are stand-ins of the published size.
    work = case(number)
    assert work.baseline is not None
    assert work.baseline_measured is not None
    assert work.baseline_measured.step_time_s is not None
    found = estimate(LayoutTable.of([work.baseline]), work)
    assert abs(np.log(found.step_time_s[0] / work.baseline_measured.step_time_s)) < 0.35


@pytest.mark.parametrize("number", CASES)
def test_the_adopted_mesh_surely_fits(number: int) -> None:
    work = case(number)
    found = enumerate_layouts(search_space(work)).table
    degrees = np.stack([found.size(axis) for axis in Axis], axis=1)
    wanted = np.array([adopted(work).get(axis, 1) for axis in Axis])
    rows = np.flatnonzero((degrees == wanted).all(axis=1))
    need = estimate(found.take(rows), work).hbm_high_bytes
    assert need.min() <= usable_hbm_bytes(work)
