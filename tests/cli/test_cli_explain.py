"""`prompts explain` on a plan that was just made, and on what is no report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from prompts_agent.cli.app import app
from prompts_agent.estimate.calibration import load_calibration
from prompts_agent.evaluate.calibrate import calibration_text

TRAINING = (
    *("--model", "llama3-8b", "--target", "v5e:4x4", "--phase", "pretrain"),
    *("--batch", "32", "--sequence", "4096"),
)
SERVING = (
    *("--model", "llama3-8b", "--target", "h100:8", "--phase", "serve"),
    *("--batch", "64", "--sequence", "2048"),
)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), prog_name="prompts")


def plan(directory: Path, *flags: str) -> Path:
    path = directory / "report.json"
    done = run("plan", *flags, "--no-llm", "--verify", "none", "-q", "-o", str(path), "--force")
    assert done.exit_code == 0, done.output
    return path


def scaled(part: dict[str, Any]) -> float:
    return float(sum(term["value"] for term in part["terms"]) * (part["scale"] or 1.0))


@pytest.mark.parametrize("flags", [TRAINING, SERVING])
def test_the_sums_of_a_plan_are_whole(tmp_path: Path, flags: tuple[str, ...]) -> None:
    path = plan(tmp_path, *flags)
    stored = json.loads(path.read_text())
    for proposal in stored["proposals"]:
        done = run("explain", str(path), "--rank", str(proposal["rank"]), "-f", "json")
        assert done.exit_code == 0, done.output
        times, memory = json.loads(done.stdout)["sums"]
        predicted = proposal["predicted"]
        assert scaled(times) == pytest.approx(predicted["step_time_s"])
        assert scaled(memory) == pytest.approx(predicted["hbm_bytes"], abs=1)
        assert all(term["formula"] and term["source"] for term in times["terms"])


def test_the_difference_of_two_proposals_is_that_of_their_sums(tmp_path: Path) -> None:
    path = plan(tmp_path, *TRAINING)
    first, second = (p["predicted"] for p in json.loads(path.read_text())["proposals"][:2])
    done = run("explain", str(path), "--diff", "1", "2", "-f", "json")
    times = json.loads(done.stdout)["sums"][0]
    moved = sum(line["difference"] for line in times["lines"])
    assert moved == pytest.approx(second["step_time_s"] - first["step_time_s"])


def test_text_stays_within_a_narrow_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = plan(tmp_path, *TRAINING)
    monkeypatch.setenv("COLUMNS", "60")
    done = run("explain", str(path))
    assert done.exit_code == 0
    assert done.stdout.startswith("Proposal 1: ")
    assert max(map(len, done.stdout.splitlines())) <= 60
    monkeypatch.setenv("COLUMNS", "8")
    assert run("explain", str(path), "--diff", "1", "2").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("missing.json",), "No such file"),
        (("--rank", "9"), "no estimate of that rank"),
        (("--diff", "2", "2"), "does not differ from itself"),
    ],
)
def test_wrong_input_is_one_message(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    path = plan(tmp_path, *TRAINING)
    given = arguments if arguments[0].endswith(".json") else (str(path), *arguments)
    done = run("explain", *given)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_trace_that_is_no_report(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text("[1, 2]")
    done = run("explain", str(other))
    assert done.exit_code == 2
    assert "it is no report" in done.stderr


def test_markdown_by_the_suffix_of_the_output(tmp_path: Path) -> None:
    path, output = plan(tmp_path, *TRAINING), tmp_path / "why.md"
    assert run("explain", str(path), "-o", str(output)).exit_code == 0
    assert output.read_text().startswith("# Proposal 1")
    assert run("explain", str(path), "-o", str(output)).exit_code == 2


def test_a_plan_with_constants_of_ones_own(tmp_path: Path) -> None:
    shipped = load_calibration()
    tpu = shipped.platforms["tpu"]
    halved = tpu["matmul_efficiency"].model_copy(
        update={"value": tpu["matmul_efficiency"].value / 2, "source": "half of it"}
    )
    platforms = shipped.platforms | {"tpu": tpu | {"matmul_efficiency": halved}}
    file = tmp_path / "constants.yaml"
    file.write_text(calibration_text(shipped.model_copy(update={"platforms": platforms})))
    before = json.loads(plan(tmp_path, *TRAINING).read_text())
    after = json.loads(plan(tmp_path, *TRAINING, "--calibration", str(file)).read_text())
    assert after["constants"]["matmul_efficiency"]["source"] == "half of it"
    assert any("constants.yaml" in caveat for caveat in after["caveats"])
    slow, fast = (one["proposals"][0]["predicted"]["step_time_s"] for one in (after, before))
    assert slow > 1.5 * fast
    assert load_calibration() is shipped


@pytest.mark.parametrize("text", ["", "- 1\n", "version: 2\n", "a: [", "version: 1\nzeal: 3\n"])
def test_a_calibration_that_is_none(tmp_path: Path, text: str) -> None:
    file = tmp_path / "constants.yaml"
    file.write_text(text)
    done = run("plan", *TRAINING, "--calibration", str(file))
    assert done.exit_code == 2
    assert "constants.yaml" in done.stderr
    assert "Traceback" not in done.stderr
