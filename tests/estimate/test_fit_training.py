"""The fits find what made-up measurements were made with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from estimate_build import job, layout, table

from prompts_agent.estimate.as_run import as_run, as_run_choices
from prompts_agent.estimate.calibration import Calibration, load_calibration
from prompts_agent.estimate.estimator import estimate
from prompts_agent.estimate.fit_calibration import calibration_text, fit
from prompts_agent.estimate.fit_points import loss, points_of, residuals
from prompts_agent.estimate.fit_preference import (
    TEMPERATURE,
    Choice,
    agreement,
    agreement_left_out,
    fit_preferences,
)
from prompts_agent.estimate.fit_training import START, cross_validated, fit_constants
from prompts_agent.estimate.preference import (
    FEATURES,
    MOST,
    features,
    preference,
)
from prompts_agent.estimate.stack import stack_of
from prompts_agent.layout.layout import Remat
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.framework import Framework
from prompts_agent.workload.workload import Constraints, Measured, Phase, Workload

BATCHES = (16, 64)


def measured(batch: int, share: float, **knobs: Any) -> Workload:
    """A job whose one run took `share` of what the shipped calibration says."""
    work = job(batch=batch)
    of = layout(work, {"fsdp": 16}, microbatch=batch // 16, **knobs)
    seconds = float(
        estimate(table(work, {"fsdp": 16}, microbatch=batch // 16), work).step_time_s[0]
    )
    run = Measured(layout=of, step_time_s=share * seconds, source="made up")
    return work.model_copy(update={"alternatives": (run,)})


def test_residuals_are_the_logarithm_of_estimate_over_measurement() -> None:
    points = points_of([measured(16, 0.8)])
    assert residuals(points[0], load_calibration()) == pytest.approx([np.log(1 / 0.8)])


def test_the_loss_is_quadratic_within_the_knee_and_linear_beyond() -> None:
    # 0.1² ÷ 0.6, and 1.0 - 0.15.
    known = load_calibration()
    near, far = points_of([measured(16, np.exp(-0.1))]), points_of([measured(16, np.exp(-1.0))])
    assert loss(near, known) == pytest.approx(0.01 / 0.6)
    assert loss(far, known) == pytest.approx(0.85)


def test_a_fit_comes_nearer_to_what_was_measured_and_stays_in_range() -> None:
    known, points = load_calibration(), points_of([measured(b, 1.3) for b in BATCHES])
    start = fit_constants(points, known, None, passes=0)
    fitted = fit_constants(points, known, None, passes=1)
    assert loss(points, fitted) < 0.5 * loss(points, start)
    for one in START[None]:
        if one.chip is None:
            value = getattr(fitted.constants("tpu"), one.name)
            assert 0.0 < value < 1.0 if one.share else value > 0.0


def test_the_same_points_give_the_same_fit() -> None:
    known, points = load_calibration(), points_of([measured(16, 1.2)])
    assert fit_constants(points, known, None, passes=1) == fit_constants(
        points, known, None, passes=1
    )


def test_a_family_is_judged_by_a_fit_without_it() -> None:
    points = points_of([measured(16, 1.5)])
    found = cross_validated(points, load_calibration(), None)
    # The only family: what is left to fit on is nothing, so its miss is that of the start.
    assert found.plain.median < found.cross_validated.median


def test_open_knobs_are_taken_as_well_set() -> None:
    work = job(batch=16)
    run = Measured(
        layout=layout(work, {"fsdp": 16}, remat=Remat.FULL),
        step_time_s=1.0,
        open_knobs=("remat",),
        source="made up",
    )
    assert len(as_run_choices(run, work)) == len(Remat)
    chosen, found = as_run(run, work)
    assert chosen.mesh == run.layout.mesh
    stated = as_run(run.model_copy(update={"open_knobs": ()}), work)
    assert stated[0] == run.layout
    assert found.step_time_s[0] <= stated[1].step_time_s[0]


@pytest.mark.parametrize(
    ("topology", "constraints", "expected"),
    [
        ("v5e:4x4", {}, None),
        ("h100:1x8", {}, "xla"),
        ("h100:1x8", {"expert_divides": True}, "megatron"),
        ("h100:1x8", {"axes": (Axis.DATA, Axis.FSDP)}, "fsdp"),
        ("h100:1x8", {"axes": (Axis.PIPELINE, Axis.DATA, Axis.TENSOR)}, "classic"),
    ],
)
def test_constraints_show_the_software(
    topology: str, constraints: dict[str, Any], expected: str | None
) -> None:
    assert stack_of(job(topology=topology, constraints=Constraints(**constraints))) == expected


def test_servers_on_gpus_have_stacks_of_their_own() -> None:
    work = job(topology="h100:1x8", phase=Phase.DECODE)
    assert stack_of(work) == "vllm"
    assert stack_of(work.model_copy(update={"framework": Framework.SGLANG})) == "sglang"
    assert stack_of(job(topology="v5e:2x4", phase=Phase.DECODE)) is None


def weighed(**weights: float) -> Calibration:
    return load_calibration().model_copy(update={"preferences": {"tpu": weights}})


def test_features_count_axes_doublings_and_tokens() -> None:
    # 1024 x 2048 tokens on 16 chips: 131072 a chip, 4 doublings beyond 8192, of which 2 count.
    work = job(topology="v5e:4x4", batch=1024, sequence=2048)
    near, split = (
        dict(zip(FEATURES, features(table(work, degrees, microbatch=4), work)[0], strict=True))
        for degrees in ({"tensor": 16}, {"fsdp": 8, "context": 2})
    )
    assert (near["axes"], split["axes"]) == (1.0, 2.0)
    assert (near["tensor_near"], near["tensor_wide"], near["tensor_thick"]) == (3.0, 1.0, 6.0)
    assert near["tensor_torus"] == 0.0  # two dims
    # 1024 tokens on a context rank: two doublings less than 4096.
    assert (split["context_short"], split["fsdp_doublings"], split["fsdp_far"]) == (2.0, 3.0, 0.0)


def test_a_preference_never_holds_a_mesh_back_by_more_than_its_most() -> None:
    work = job(topology="v5e:4x4", batch=64)
    rows = table(work, {"fsdp": 4, "tensor": 4}, microbatch=4)
    assert preference(rows, work, weighed(axes=9.0))[0] == pytest.approx(MOST)
    assert preference(rows, work, weighed(axes=-0.1))[0] == pytest.approx(-0.2)


def test_on_tpus_fewer_sequences_than_devices_leave_nothing_to_prefer() -> None:
    work = job(topology="v5e:4x4", batch=8)
    rows = table(work, {"fsdp": 4, "tensor": 4}, microbatch=1)
    assert preference(rows, work, weighed(axes=0.1))[0] == 0.0


def test_choices_against_the_faster_mesh_teach_a_preference() -> None:
    # Two meshes, the adopted one slower by one temperature; only its first feature differs.
    apart = np.zeros((2, len(FEATURES)))
    apart[0, 0] = 1.0
    choice = Choice("a", "a", np.array([0.0, TEMPERATURE]), apart, 1)
    weights = fit_preferences([choice] * 3)
    assert set(weights) == {FEATURES[0]}
    assert weights[FEATURES[0]] > 0.0


def test_agreement_counts_the_place_of_the_adopted_mesh() -> None:
    # The second feature costs the faster mesh 5%, so that the one 3% slower comes first.
    apart = np.zeros((2, len(FEATURES)))
    apart[0, 1] = 1.0
    choice = Choice("a", "a", np.array([0.0, 0.03]), apart, 1)
    assert agreement([choice], {}) == (1, 0.0, 1.0)
    assert agreement([choice], {FEATURES[1]: 0.05}) == (1, 1.0, 1.0)
    # A family alone, left out, is scored by no preferences at all.
    assert agreement_left_out([choice]) == (1, 0.0, 1.0)


def test_nothing_adopted_teaches_nothing() -> None:
    assert fit_preferences([]) == {}


def test_a_calibration_s_text_reads_back() -> None:
    import yaml

    known = load_calibration()
    again = Calibration.model_validate(yaml.safe_load(calibration_text(known)))
    assert again.preferences == known.preferences
    kept, read = (
        known.constants("gpu", "megatron", "gb200"),
        again.constants("gpu", "megatron", "gb200"),
    )
    for name in type(kept).model_fields:
        assert getattr(read, name) == pytest.approx(getattr(kept, name), rel=0.006), name


def test_a_fit_of_everything_keeps_what_no_point_touches() -> None:
    known = load_calibration()
    found = fit([measured(16, 1.1)], start=known)
    assert set(found.stacks) == {"tpu"}
    assert found.calibration.stacks == known.stacks
    assert found.calibration.step_time["tpu"] == found.stacks["tpu"].cross_validated


def test_a_named_framework_decides() -> None:
    axes = Constraints(axes=(Axis.PIPELINE, Axis.DATA, Axis.TENSOR))
    for framework, stack in (
        (Framework.NANOTRON, "eager"),
        (Framework.MEGATRON_CLASSIC, "classic"),
        (Framework.NEMO, "megatron"),
        (Framework.MAXTEXT, "xla"),
    ):
        one = job(topology="h100:1x8", constraints=axes)
        assert stack_of(one.model_copy(update={"framework": framework})) == stack
    on_tpu = job(topology="v5e:4x4").model_copy(update={"framework": Framework.MAXTEXT})
    assert stack_of(on_tpu) is None
