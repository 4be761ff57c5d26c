"""prompts lint as a user and a pre-commit hook run it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import yaml
from typer.testing import CliRunner

from prompts_agent.cli.app import app

CONFIG = "model_name: llama3.1-70b\nici_fsdp_parallelism: 16\nici_tensor_parallelism: {}\n"
ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["lint", *arguments])
    return result.exit_code, result.stdout, result.stderr


def config(directory: Path, tensor: int, name: str = "train.yml") -> str:
    path = directory / name
    path.write_text(CONFIG.format(tensor))
    return str(path)


def test_clean(tmp_path: Path) -> None:
    code, out, err = run(config(tmp_path, 8), "--target", "v5p:4x4x8")
    assert (code, out) == (0, "")
    assert "no fault" in err


def test_a_fault_names_file_line_rule_and_cure(tmp_path: Path) -> None:
    path = config(tmp_path, 6)
    code, out, _ = run(path, config(tmp_path, 8, "fine.yml"))
    assert code == 1
    assert f"{path}:3: 64 heads ÷ tensor 6 leaves 4 [heads]\n  cure: Choose tensor among" in out
    assert "fine.yml" not in out


def test_wrong_input(tmp_path: Path) -> None:
    assert run(str(tmp_path / "none.yml"))[0] == 2
    assert run(config(tmp_path, 8), "--target", "nowhere:1")[0] == 2
    assert run()[0] == 2


def test_quiet_says_faults_alone(tmp_path: Path) -> None:
    code, out, err = run(config(tmp_path, 8), "--quiet")
    assert (code, out, err) == (0, "", "")


def test_names_cannot_move_the_cursor(tmp_path: Path) -> None:
    path = tmp_path / "\x1b[31m.yml"
    path.write_text(CONFIG.format(6))
    assert "\x1b" not in run(str(path))[1]


def test_nothing_heavy_is_loaded(tmp_path: Path) -> None:
    path = config(tmp_path, 6)
    code = (
        "import sys; from prompts_agent.cli.app import app\n"
        f"try: app(['lint', {path!r}, '--target', 'v5p:4x4x8'])\n"
        "except SystemExit as end: assert end.code == 1, end.code\n"
        "heavy = ('jax', 'chromadb', 'langgraph', 'langchain_core', 'xprof', 'google.protobuf')\n"
        "assert not [name for name in heavy if name in sys.modules]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_a_plan_from_the_users_config(tmp_path: Path) -> None:
    path = tmp_path / "train.yml"
    path.write_text(CONFIG.format(4) + "per_device_batch_size: 1\nmax_target_length: 2048\n")
    arguments = ["plan", "-q", "--from-config", str(path), "--target", "v5p:4x4x4", "-f", "json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["baseline"]["source"] == "train.yml"
    assert report["baseline"]["layout"]["mesh"]["tensor"] == {"dcn": 1, "ici": 4}
    configs = [proposal["config"] for proposal in report["proposals"]]
    assert {config["framework"] for config in configs} == {"maxtext"}
    assert all(config["diff"].startswith("--- train.yml\n") for config in configs)
    assert str(tmp_path) not in result.stdout


def test_the_pre_commit_hook_is_this_command() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    (hook,) = [hook for hook in hooks if hook["id"] == "prompts-lint"]
    assert hook["entry"] == "prompts lint"
    assert hook["types_or"] == ["yaml", "python", "shell", "toml"]
