"""`prompts verify` from the outside; what the compiler says is played by a stored answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from compile_build import layout
from typer.testing import CliRunner

from prompts_agent.cli.app import app
from prompts_agent.compile import fit as fit_module
from prompts_agent.compile.outcome import Buffers, CompiledFit, Outcome
from prompts_agent.compile.text import as_text

WORKLOAD = """
model: llama2-7b
hardware: v5e:4x4
phase: pretrain
global_batch: 16
sequence: 4096
baseline:
  mesh: {fsdp: 16}
"""
GIB = 2**30
ANSWER = CompiledFit(
    outcome=Outcome.DOES_NOT_FIT,
    compiles=False,
    fits=False,
    hbm_need_bytes=26 * GIB,
    hbm_limit_bytes=16 * GIB,
    buffers=Buffers(activations=16 * GIB, parameters=10 * GIB),
    reason="The compiler refuses it.",
    advice=("sequence_parallel cuts them by 16.",),
    program="A training step.",
    toolchain="libtpu 1",
    wall_s=3.0,
    topology="v5e:4x4",
)


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(WORKLOAD, encoding="utf-8")
    return path


def test_without_a_compiler_it_says_what_to_install(
    workload: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit_module, "find_toolchain", lambda chip: None)
    done = CliRunner().invoke(app, ["verify", str(workload)])
    assert done.exit_code == 3
    assert "baseline: fsdp 16 on v5e:4x4: no compiler" in done.stdout
    assert "pip install 'prompts-agent[tpu]'" in done.stdout


def test_json_has_an_object_a_layout(workload: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_module, "fit", lambda *_, **__: ANSWER)
    command = ["verify", str(workload), "-l", "tensor=16", "-l", "fsdp=16", "--format", "json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert [row["name"] for row in found] == ["tensor=16", "fsdp=16"]
    assert found[0]["fit"]["outcome"] == "does not fit"


def test_a_wrong_layout_is_wrong_input(workload: Path) -> None:
    done = CliRunner().invoke(app, ["verify", str(workload), "--layout", "fsdp=3"])
    assert done.exit_code == 2


def test_the_text_says_what_goes_where_and_what_to_change() -> None:
    lines = as_text("mine", layout(tensor=16), ANSWER).splitlines()
    assert lines[0] == (
        "mine: tensor 16 on v5e:4x4: does not fit, 26.00 of 16.00 GiB a device (62% over)"
    )
    assert "  activations         16.00 GiB   62%" in lines
    assert "  - sequence_parallel cuts them by 16." in lines
    assert lines.index("  activations         16.00 GiB   62%") < lines.index(
        "  parameters          10.00 GiB   38%"
    )
