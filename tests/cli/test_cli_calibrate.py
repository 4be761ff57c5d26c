"""`prompts calibrate`: constants fitted to a few files, and those that ship."""

from __future__ import annotations

from pathlib import Path

import yaml
from typer.testing import CliRunner

from prompts_agent.cli.app import app
from prompts_agent.estimate.calibration import Calibration

ROOT = Path(__file__).resolve().parents[2]
FEW = [
    ROOT / "workloads" / "training" / f"{name}.yaml"
    for name in ("llama3.1-8b-v6e-32-seq8192", "llama3.1-8b-v6e-128-seq8192")
]


def run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["calibrate", *arguments])
    return done.exit_code, done.stdout, done.stderr


def test_show_gives_every_constant_a_source() -> None:
    code, out, _ = run("show")
    assert code == 0
    rows = [line for line in out.split("residuals")[0].splitlines() if line.startswith("  ")]
    assert len(rows) > 100
    assert all(len(row.split(maxsplit=2)) == 3 for row in rows)


def test_a_fit_writes_a_calibration_and_says_what_it_moved(tmp_path: Path) -> None:
    output = tmp_path / "fitted.yaml"
    code, out, err = run("fit", *map(str, FEW), "-o", str(output))
    assert code == 0
    assert "fitting to 2 workloads of training, 0 of serving" in err
    assert "tpu, step time, plain: " in out
    assert "tpu, step time, left out: " in out
    assert "tpu.matmul_efficiency: " in out
    assert Calibration.model_validate(yaml.safe_load(output.read_text()))
    again, _, said = run("fit", *map(str, FEW), "-o", str(output))
    assert again == 2
    assert "--force" in said


def test_nothing_to_fit_to(tmp_path: Path) -> None:
    bare = tmp_path / "job.yaml"
    bare.write_text(
        "model: llama3-8b\nhardware: v5e:4x4\nphase: pretrain\nglobal_batch: 64\nsequence: 4096\n"
    )
    code, _, err = run("fit", str(bare))
    assert code == 2
    assert "a fit needs runs that were measured" in err
