"""Layouts as a person writes them on a command line."""

from __future__ import annotations

import pytest
from compile_build import layout, llama

from prompts_agent.compile.given import layout_from, layouts_of
from prompts_agent.errors import LayoutError, WorkloadError
from prompts_agent.layout.layout import Remat
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.workload import Adopted, Measured


def test_axes_and_knobs_by_any_name() -> None:
    found, _ = layout_from("fsdp=4, tp=4, remat=minimal, sequence-parallel=true", llama())
    assert found.mesh.used() == {Axis.FSDP: 4, Axis.TENSOR: 4}
    assert (found.remat, found.sequence_parallel) == (Remat.MINIMAL, True)
    # 16 sequences over 4 shards.
    assert found.microbatch == 4


def test_what_was_left_open_is_said() -> None:
    _, assumed = layout_from("fsdp=16", llama())
    assert "Remat is not stated; full is assumed." in assumed


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("fsdp=16,tensr=2", "tensr: no such axis or knob"),
        ("fsdp", "axes and knobs as name=value"),
        ("fsdp=many", "axes and knobs as name=value"),
        ("fsdp=8", "it takes 8 devices and v5e:4x4 has 16"),
        ("fsdp=16,remat=some", "remat"),
    ],
)
def test_a_wrong_layout_is_refused_with_the_cure(text: str, says: str) -> None:
    with pytest.raises(LayoutError, match=says):
        layout_from(text, llama())


def test_a_workloads_layouts_come_once_each() -> None:
    cut, other = layout(fsdp=16), layout(tensor=16)
    job = llama(
        baseline=cut,
        adopted=Adopted(degrees={Axis.FSDP: 16}, layout=cut, source="test"),
        alternatives=(Measured(layout=other, source="test"),),
    )
    assert layouts_of(job) == {"baseline": cut, "alternative 1": other}
    with pytest.raises(WorkloadError, match="names no layout"):
        layouts_of(llama())
