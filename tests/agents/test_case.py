"""A comparison as a case: what it says, what stays out, and when there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agents_build import layout, workload
from compare_build import write_trace

from prompts_agent.agents.comparison.case import case_of
from prompts_agent.agents.comparison.compare import compare
from prompts_agent.agents.comparison.learn import learn
from prompts_agent.agents.comparison.private import private_part
from prompts_agent.agents.comparison.side import Given, side_of
from prompts_agent.agents.report import (
    Baseline,
    Change,
    Predicted,
    Proposal,
    Report,
    Verdict,
)
from prompts_agent.agents.request import DiagnoseRequest
from prompts_agent.errors import InputError
from prompts_agent.hardware.topology import parse_topology
from prompts_agent.knowledge.check_text import text_faults
from prompts_agent.knowledge.recipe import Recipe
from prompts_agent.knowledge.recipe_file import parse_recipe
from prompts_agent.knowledge.recipe_text import recipe_text
from prompts_agent.knowledge.vocabulary import FindingKind


def request(path: Path, **changes: Any) -> Given:
    return Given(request=DiagnoseRequest(paths=(write_trace(path, **changes),)))


def learnt(tmp_path: Path, **more: Any) -> Recipe:
    """Data 2 × tensor 4 at 1000 µs became data 4 × tensor 2 at 800."""
    before = request(tmp_path / "before.xplane.pb")
    after = request(tmp_path / "after.xplane.pb", data=4, model=2, reduce=100.0)
    return learn(before, after, **more)[1]


def moves(recipe: Recipe) -> list[tuple[str, str]]:
    return [(move.axis.value, move.move.value) for move in recipe.changes]


def test_what_a_case_says(tmp_path: Path) -> None:
    recipe = learnt(tmp_path)
    assert recipe.measured_here
    assert recipe.citation == "measured here"
    assert moves(recipe) == [("data", "raise"), ("tensor", "lower")]
    applies = recipe.applies
    assert (applies.phases, applies.chips, applies.architectures) == (
        ("pretrain",), ("v6e",), ("dense",),
    )  # fmt: skip
    # The idle time did not change; the reductions fell, and the KV heads are no longer split.
    assert applies.findings == (FindingKind.EXPOSED_COLLECTIVE, FindingKind.KV_HEADS_SPLIT)
    assert applies.axes == ("tensor",)
    assert (applies.min_devices, applies.max_devices) == (2, 32)
    assert (applies.min_sequence, applies.max_sequence) == (64, 1024)
    assert "data 2 → 4, tensor 4 → 2 gave 1.25×, measured here" in recipe.title
    assert "step 1.00 ms > 800 µs, 1.25× the throughput" in recipe.mechanism
    assert "exposed all-reduce over tensor: 300 µs → 100 µs" in recipe.mechanism
    assert list(text_faults(recipe)) == []
    assert parse_recipe(recipe_text(recipe), "x") == recipe


def test_no_name_of_the_traces_gets_in(tmp_path: Path) -> None:
    """The program, its ops, the file and its directory carry names that are nobody's business."""
    secret = tmp_path / "home" / "alice" / "acme_secret"
    secret.mkdir(parents=True)
    text = recipe_text(learnt(secret)).casefold()
    for name in ("acme", "secret", "alice", "jit_", "xplane", "fusion", str(tmp_path)):
        assert name not in text


def test_what_was_slower_is_a_case_the_other_way_round(tmp_path: Path) -> None:
    before = request(tmp_path / "a.xplane.pb", data=4, model=2, reduce=100.0)
    after = request(tmp_path / "b.xplane.pb")
    recipe = learn(before, after)[1]
    assert moves(recipe) == [("data", "raise"), ("tensor", "lower")]
    assert "gave 1.25×" in recipe.title
    assert "tried the other way round, and was slower" in recipe.change


def test_the_same_traces_give_the_same_id(tmp_path: Path) -> None:
    assert learnt(tmp_path).id == learnt(tmp_path).id


def test_noise_teaches_nothing(tmp_path: Path) -> None:
    before = request(tmp_path / "a.xplane.pb")
    with pytest.raises(InputError, match="within the noise, so there is nothing to learn"):
        learn(before, request(tmp_path / "b.xplane.pb", data=4, model=2, reduce=295.0))
    with pytest.raises(InputError, match="noise is not known"):
        learn(before, request(tmp_path / "c.xplane.pb", data=4, model=2, reduce=9.0, steps=2))


def test_two_jobs_are_no_case(tmp_path: Path) -> None:
    before = request(tmp_path / "a.xplane.pb")
    with pytest.raises(InputError, match=r"global batch differ.*two runs of one job"):
        learn(before, request(tmp_path / "b.xplane.pb", batch=32, reduce=9.0))


def test_a_job_that_is_not_known_is_no_case(tmp_path: Path) -> None:
    sides = [
        side_of(request(tmp_path / f"{name}.xplane.pb", reduce=reduce), name)
        for name, reduce in (("a", 300.0), ("b", 9.0))
    ]
    with pytest.raises(InputError, match="the job is not known"):
        case_of(compare(*sides), None)


def test_the_same_mesh_needs_a_word_of_what_was_changed(tmp_path: Path) -> None:
    before = request(tmp_path / "a.xplane.pb")
    after = request(tmp_path / "b.xplane.pb", idle=10.0)
    with pytest.raises(InputError, match="says what was changed"):
        learn(before, after)
    recipe = learn(before, after, change="Prefetched two batches to the device")[1]
    assert not recipe.sharding
    assert recipe.applies.findings == (FindingKind.IDLE_BETWEEN_STEPS,)
    assert "What was changed: Prefetched two batches to the device." in recipe.change
    assert parse_recipe(recipe_text(recipe), "x") == recipe


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("data from gs://acme-bucket/tokens", "an address"),
        ("see https://wiki.acme.internal/x", "an address"),
        ("as alice@tpu-vm-3 said", "a mail address or a user at a host"),
        ("moved /home/alice/data to RAM", "a path"),
        ("moved ~/data to RAM", "a path"),
        ("ran ./train.sh", "a path"),
        (r"on C:\Users\alice", "a path"),
        ("on 10.1.2.3", "an IP address"),
        ("on node7.acme.internal", "a host"),
    ],
)
def test_private_words_of_a_person_are_refused(tmp_path: Path, text: str, what: str) -> None:
    before = request(tmp_path / "a.xplane.pb")
    after = request(tmp_path / "b.xplane.pb", idle=10.0)
    with pytest.raises(InputError, match="names no paths, hosts, users or buckets") as caught:
        learn(before, after, change=text)
    assert caught.value.value.startswith(what)


@pytest.mark.parametrize(
    "text", ["450 GB/s", "a ÷ b", "1 / 2", "v6e:4x4", "step 2.5 s > 1 s", "e.g."]
)
def test_plain_words_are_not_private(text: str) -> None:
    assert private_part(text) is None


def followed(**changed: Any) -> Report:
    """Proposes data 4 × tensor 2 with other knobs, at 1.2 times today's throughput."""
    proposal = Proposal.model_validate(
        {
            "rank": 1,
            "layout": layout(data=4, tensor=2),
            "changes": (
                Change(what="data", before="2", after="4", direction="raise"),
                Change(what="microbatch", before="1", after="2", direction="raise"),
                Change(what="remat", before="full", after="none"),
                Change(what="sequence_parallel", before="off", after="on"),
            ),
            "predicted": Predicted(
                step_time_s=8e-4, low_s=7e-4, high_s=9e-4, hbm_bytes=1, hbm_limit_bytes=2,
                speedup=1.2, speedup_low=1.0, speedup_high=1.4,
            ),
            "rung": "estimated",
            "verdict": Verdict(legal=True, fits=True),
            "reasons": (),
            "tradeoffs": (),
        }
        | changed
    )  # fmt: skip
    today = Baseline(layout=layout(data=2, tensor=4), source="by hand")
    return Report(tool_version="1", baseline=today, proposals=(proposal,))


def test_knobs_come_from_the_proposal_that_was_followed(tmp_path: Path) -> None:
    recipe = learnt(tmp_path, report=followed())
    assert [(k.knob, k.move, k.value) for k in recipe.knobs] == [
        ("microbatch", "raise", None),
        ("remat", None, "none"),
        ("sequence_parallel", None, True),
    ]
    # 1.25 measured ÷ 1.2 predicted: 4% more.
    assert "The estimate had said 1.20×; measured was 4% more, inside its 90% interval." in (
        recipe.mechanism
    )
    assert parse_recipe(recipe_text(recipe), "x") == recipe


def test_a_proposal_that_made_it_slower_lends_no_knobs(tmp_path: Path) -> None:
    before = request(tmp_path / "before.xplane.pb")
    after = request(tmp_path / "after.xplane.pb", data=4, model=2, reduce=500.0)
    recipe = learn(before, after, followed())[1]
    assert moves(recipe) == [("data", "lower"), ("tensor", "raise")]
    assert recipe.knobs == ()
    # 1000 ÷ 1200 µs are 0.83 of today's throughput, 31% less than 1.2.
    assert (
        "The estimate had said 1.20×, for the way it was tried; measured was 31% less, outside its "
        "90% interval." in recipe.mechanism
    )


def test_a_case_is_of_the_job_that_ran(tmp_path: Path) -> None:
    before, after = (
        write_trace(tmp_path / f"{name}.xplane.pb", reduce=reduce)
        for name, reduce in (("a", 300.0), ("b", 9.0))
    )
    job = workload(topology=parse_topology("v6e:2x4"), global_batch=16, sequence=256)
    one, two = (Given(request=DiagnoseRequest(paths=(p,), workload=job)) for p in (before, after))
    with pytest.raises(InputError, match=r"the model is .* and .* by the trace: a case is of"):
        learn(one, two, change="Other flags")
