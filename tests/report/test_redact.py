"""What may leave the team: no path, host, user, op name or bucket; numbers and meshes stay."""

from __future__ import annotations

import getpass

import pytest
import report_build
from hypothesis import given
from hypothesis import strategies as st

from prompts_agent.agents.report import Report
from prompts_agent.report.redact import redacted
from prompts_agent.trace.profile import HostStep, OpUse, ProgramParameter, ProgramUse

PRIVATE = (
    "/home/ann/jobs/secret/trace.xplane.pb",
    "~/jobs/run7",
    r"C:\Users\ann\trace.pb",
    "logs/secret-run/host.xplane.pb",
    "gs://acme-traces/run7/plugins/profile",
    "s3://acme-models/llm/config.json",
    "https://wandb.acme.example/runs/7",
    "10.128.0.17:8471",
    "fe80::1ff:fe23:4567:890a",
    "2001:db8:85a3:8d3:1319:8a2e:370:7348",
    "ann@acme.example",
    "gke-tpu-7f2.c.acme-research.internal",
    "trainer-0.acme.com",
)


def with_caveat(text: str) -> Report:
    return report_build.training().model_copy(update={"caveats": (text,)})


@pytest.mark.parametrize("secret", PRIVATE)
@pytest.mark.parametrize("frame", ["{}", "read from {}, twice", "({})", "'{}'"])
def test_addresses_paths_and_hosts(secret: str, frame: str) -> None:
    (shown,) = redacted(with_caveat(frame.format(secret))).caveats
    assert "[" in shown
    for word in ("ann", "acme", "secret", "10.128", "fe80", "8d3", "run7"):
        assert word not in shown


@pytest.mark.parametrize(
    "text",
    [
        "412 ms of 2.14 s, 96.0 MB/s over ICI, tensor 4 / fsdp 8",
        "-done waits on the XLA Ops line of /device:TPU:0",
        "bf16[8,1024,4096] over axes (data, fsdp)",
        "jax 0.10.2 and libtpu 0.0.42.1",
        "e.g. remat=full; see docs/help",
        "started at 12:30:45",
    ],
)
def test_what_says_nothing_private_stays(text: str) -> None:
    assert redacted(with_caveat(text)).caveats == (text,)


def test_names_of_the_trace_become_aliases() -> None:
    report = report_build.training()
    assert report.profile is not None
    profile = report.profile.model_copy(
        update={
            "stragglers": (HostStep(name="acme-host-3/TPU:1", step_time_s=2.0),),
            "programs": (ProgramUse(name="jit_acme_step", program_id="1", runs=3, total_s=1.0),),
            "top_ops": (
                OpUse(name="acme_attention.17", category="x", count=1, total_s=1.0, share=0.5),
                OpUse(name="fusion.12", category="x", count=1, total_s=1.0, share=0.5),
            ),
            "parameters": (
                ProgramParameter(name="params['acme_head']", dtype="bf16", local_shape=(8,)),
            ),
        }
    )
    said = "acme_attention.17 of jit_acme_step waits on acme-host-3; fusion.12 does not"
    shown = redacted(report.model_copy(update={"profile": profile, "caveats": (said,)}))
    assert shown.caveats == ("op-1 of program-1 waits on host-1; fusion.12 does not",)
    assert "acme" not in shown.model_dump_json()


def test_the_user_who_runs_it_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "annabel")
    assert redacted(with_caveat("job of annabel")).caveats == ("job of user-1",)


def test_a_team_s_recipe_keeps_its_id_alone() -> None:
    report = report_build.training()
    item = report.evidence[0].model_copy(
        update={"title": "Our secret cluster", "source": "https://wiki.acme.example/x"}
    )
    shown = redacted(report.model_copy(update={"evidence": (item,)})).evidence[0]
    assert (shown.recipe_id, shown.title) == (item.recipe_id, "a recipe of the team")
    assert shown.source == "not shown"


def test_numbers_and_layouts_are_untouched() -> None:
    report = report_build.training()
    shown = redacted(report)
    assert [p.layout for p in shown.proposals] == [p.layout for p in report.proposals]
    assert [p.predicted for p in shown.proposals] == [p.predicted for p in report.proposals]
    assert shown.trace == report.trace


@given(st.text(max_size=60))
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = redacted(with_caveat(text))
    assert redacted(once) == once
