"""A workload's constraints within what a framework can express."""

from __future__ import annotations

from prompts_agent.layout.layout import Remat
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.narrow import narrow
from prompts_agent.workload.workload import Constraints


def test_choices_that_both_allow() -> None:
    own = Constraints(remat=(Remat.FULL, Remat.OFFLOAD))
    framework = Constraints(remat=(Remat.NONE, Remat.FULL))
    assert narrow(own, framework, training=True).remat == (Remat.FULL,)


def test_the_frameworks_choices_where_none_is_common() -> None:
    framework = Constraints(remat=(Remat.NONE,))
    assert narrow(Constraints(remat=(Remat.FULL,)), framework, training=True).remat == (Remat.NONE,)


def test_smaller_limits_and_the_frameworks_switches() -> None:
    own = Constraints(max_degree={Axis.DATA: 8, Axis.TENSOR: 4}, expert_divides=False)
    framework = Constraints(max_degree={Axis.DATA: 1, Axis.FSDP: 64}, expert_divides=True)
    found = narrow(own, framework, training=True)
    assert found.max_degree == {Axis.DATA: 1, Axis.TENSOR: 4, Axis.FSDP: 64}
    assert found.expert_divides


def test_what_nobody_set_stays_unset() -> None:
    found = narrow(Constraints(), Constraints(expert_divides=True), training=True)
    assert found.model_fields_set == {"expert_divides"}


def test_axes_of_a_server_stay_its_own() -> None:
    framework = Constraints(axes=(Axis.DATA, Axis.TENSOR))
    assert "axes" not in narrow(Constraints(), framework, training=False).model_fields_set
    assert narrow(Constraints(), framework, training=True).axes == (Axis.DATA, Axis.TENSOR)
