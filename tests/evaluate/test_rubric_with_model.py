"""The rubric on forty public workloads with a language model: one that writes well, and ones that
write badly beside it. What the gates let through is covered, sourced, priced and not contrary.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents_build import exposed, profile, steps
from prose_model import HOSTILE, good, hostile
from scripted_server import Answer, Body, scripted_server
from test_rubric import FORTY

from prompts_agent.agents.graph import run_profile
from prompts_agent.agents.llm.config import LlmConfig
from prompts_agent.agents.llm.numbers import numbers_of
from prompts_agent.agents.llm.session import Session
from prompts_agent.agents.opinion import Attack, Judged, Order, Said
from prompts_agent.agents.report import Report
from prompts_agent.agents.request import DiagnoseRequest
from prompts_agent.evaluate.rubric import faults
from prompts_agent.trace.profile import Breakdown, CollectiveKind, MeshAxisUse, Profile
from prompts_agent.workload.workload import Workload
from prompts_agent.workload.yaml import load_workload

Model = Callable[[Body], Answer]


def traced(workload: Workload) -> Profile:
    """A trace of the job on all its chips as fsdp × tensor 2, which waits a third of each step for
    collectives over both.
    """
    devices = workload.topology.devices
    return profile(
        device_kind=workload.topology.chip,
        devices_in_job=devices,
        mesh=(MeshAxisUse(name="fsdp", size=devices // 2), MeshAxisUse(name="tensor", size=2)),
        step=steps(period_s=2.0),
        collectives=(
            exposed(exposed_s=0.4),
            exposed(CollectiveKind.ALL_GATHER, "fsdp", exposed_s=0.26),
        ),
        breakdown=Breakdown(compute_s=1.3, exposed_collective_s=0.66, idle_s=0.04),
    )


def diagnosed(path: Path, model: Model | None) -> Report:
    workload = load_workload(path)
    hidden = workload.model_copy(update={"adopted": None, "alternatives": (), "baseline": None})
    request = DiagnoseRequest(workload=hidden)
    if model is None:
        return run_profile(traced(workload), request)
    with scripted_server(model) as server:
        session = Session(LlmConfig(model="scripted", base_url=server.url, retries=0))
        report = run_profile(traced(workload), request, None, session)
    assert report.opinion is not None
    assert report.opinion.failures == ()
    return report


@pytest.mark.parametrize("path", FORTY, ids=lambda path: path.stem)
def test_good_prose_passes_whole_and_bad_prose_in_part(path: Path) -> None:
    plain = diagnosed(path, None)
    assert plain.findings
    assert faults(plain) == ()
    report = diagnosed(path, good)
    assert faults(report) == ()
    assert numbers_of(report) == numbers_of(plain)
    assert report.opinion is not None
    assert report.opinion.refused == ()
    assert len(report.opinion.story) == min(4, len(plain.findings))
    told = set(report.opinion.cases) if report.proposals else set()
    assert told == {proposal.rank for proposal in report.proposals}
    kind = list(HOSTILE)[FORTY.index(path) % len(HOSTILE)]
    spoiled = diagnosed(path, hostile(kind))
    assert faults(spoiled) == ()
    assert numbers_of(spoiled) == numbers_of(plain)
    assert spoiled.opinion is not None
    assert spoiled.opinion.refused or not spoiled.proposals


@pytest.fixture(scope="module")
def report() -> Report:
    """A diagnosis with proposals that move axes, and good prose about them."""
    found = diagnosed(FORTY[[path.stem for path in FORTY].index("example-llama3-8b-v5e")], good)
    assert found.proposals
    return found


def saying(report: Report, **said: Any) -> Report:
    assert report.opinion is not None
    return report.model_copy(update={"opinion": report.opinion.model_copy(update=said)})


def attacked(text: str, falsified_by: str | None = None) -> tuple[Attack, ...]:
    return (Attack(rank=1, kind="risk", text=text, falsified_by=falsified_by),)


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({"story": (Said(text="It wastes 41.7 % of it."),)}, "model: 41.7 % has no source"),
        ({"capture_next": (Said(text="Take 777 steps."),)}, "model: 777 has no source"),
        ({"cases": {1: (Said(text="It saves 123 ms."),)}}, "model on proposal 1: 123 ms"),
        ({"attacks": attacked("It needs 12.3 TB.")}, "model against proposal 1: 12.3 TB"),
        ({"attacks": attacked("A risk.", "A step of 9.99 s.")}, "model against proposal 1: 9.99 s"),
        (
            {"evidence": (Judged(recipe_id="r", kept=True, reason="It gave 3.33×."),)},
            "model on a recipe: 3.33 ×",
        ),
        ({"order": Order(before=(2, 1, 3), reason="By 55.5 %.")}, "model on the order: 55.5 %"),
    ],
)
def test_an_invention_of_the_model_is_found(
    report: Report, said: dict[str, Any], fault: str
) -> None:
    assert any(line.startswith(fault) for line in faults(saying(report, **said)))


@pytest.mark.parametrize("where", ["cases", "attacks"])
def test_a_contradiction_of_the_model_is_found(report: Report, where: str) -> None:
    moved = next(c for c in report.proposals[0].changes if c.direction in ("raise", "lower"))
    text = f"It {'lowers' if moved.direction == 'raise' else 'raises'} the {moved.what} axis."
    said = {"cases": {1: (Said(text=text),)}} if where == "cases" else {"attacks": attacked(text)}
    assert any(f"the {moved.what} axis" in line for line in faults(saying(report, **said)))
