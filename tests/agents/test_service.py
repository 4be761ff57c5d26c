"""What a plan says of a server's load: requests in flight, and requests that come at a rate."""

from __future__ import annotations

import re

from prompts_agent.agents.graph import run_plan
from prompts_agent.agents.report import Report
from prompts_agent.agents.request import DiagnoseRequest
from prompts_agent.hardware.topology import parse_topology
from prompts_agent.model.catalog import find_model
from prompts_agent.workload.workload import Phase, Traffic, Workload


def planned(**traffic: float) -> Report:
    workload = Workload(
        name="server",
        model=find_model("llama3-8b"),
        topology=parse_topology("h100:1x8"),
        phase=Phase.SERVE,
        global_batch=64,
        sequence=1280,
        traffic=Traffic.model_validate({"input_tokens": 1024, "output_tokens": 256} | traffic),
    )
    return run_plan(DiagnoseRequest(workload=workload, verify="none"))


def said(report: Report) -> str:
    return report.model_dump_json()


def test_limits_and_separate_pools_of_a_closed_load() -> None:
    text = said(planned(concurrency=64, ttft_limit_s=5.0, tpot_limit_s=1e-6))
    assert re.search(r"TTFT \S+ m?s ≤ the limit of 5.00 s", text)
    assert re.search(r"TPOT \S+ ms > \(beyond\) the limit of 1.00 µs", text)
    assert "With separate pools" in text
    assert "requests per second are" not in text


def test_a_rate_that_is_kept_up_with() -> None:
    report = planned(requests_per_s=2.0)
    text = said(report)
    assert re.search(r"2 requests per second are \d%? ?of what it can serve", text)
    # Pools are sized for requests in flight.
    assert "With separate pools" not in text
    assert report.proposals[0].predicted.tokens_per_s is not None
    assert report.proposals[0].predicted.tokens_per_s > 2.0 * 256


def test_a_rate_beyond_any_layout_is_said_to_be() -> None:
    text = said(planned(requests_per_s=5000.0))
    assert "it falls behind for as long as they come" in text
    assert "after an hour" in text
