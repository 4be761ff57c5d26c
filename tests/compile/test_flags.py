"""Flags: how files write them, and what becomes of each. The compiler is played."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from prompts_agent.cli.app import app
from prompts_agent.compile.child import Ended, Run
from prompts_agent.compile.flags import lint as lint_module
from prompts_agent.compile.flags.given import GivenFlag, flags_of, read_flags
from prompts_agent.compile.flags.lint import FlagLint, FlagVerdict, lint_flags
from prompts_agent.compile.flags.text import lint_text
from prompts_agent.compile.toolchain import Toolchain
from prompts_agent.errors import CompileError, InputError
from prompts_agent.hardware.topology import parse_topology

V6E = parse_topology("v6e:4x4")


def pairs(text: str) -> list[tuple[str, str]]:
    return [(flag.name, flag.value) for flag in flags_of(text)]


@pytest.mark.parametrize(
    "text",
    [
        "--xla_a=true --xla_b=98304",
        "xla_a: true\nxla_b: 98304\n",
        '{"xla_a": true, "xla_b": 98304}',
        'export LIBTPU_INIT_ARGS="--xla_a=true \\\n  --xla_b=98304"\npython train.py --steps=3',
        "XLA_FLAGS = (\n  '--xla_a=true '\n  '--xla_b=98304'\n)  # not --xla_c=1",
        "--xla_a\n--xla_b=98304  # a comment with --xla_c=2",
    ],
)
def test_however_they_are_written(text: str) -> None:
    assert pairs(text) == [("xla_a", "true"), ("xla_b", "98304")]


def test_order_and_repeats_are_kept() -> None:
    assert pairs("--xla_a=1 --xla_b=2 --xla_a=3") == [
        ("xla_a", "1"),
        ("xla_b", "2"),
        ("xla_a", "3"),
    ]


def test_a_file_without_flags_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "flags.txt"
    path.write_text("python train.py --steps=3\n", encoding="utf-8")
    with pytest.raises(InputError, match="no compiler flag"):
        read_flags(path)
    with pytest.raises(InputError, match="No such file"):
        read_flags(tmp_path / "none")


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the compiler refuses; a test fills it in."""
    said: dict[str, str] = {}
    chain = Toolchain(platform="tpu", compiler="libtpu", versions={"libtpu": "1"})
    monkeypatch.setattr(lint_module, "find_toolchain", lambda chip: chain)

    def child(module: str, directory: Path, **limits: Any) -> Run:
        del module, limits
        (directory / "result.json").write_text(json.dumps({"refused": said}), encoding="utf-8")
        return Run(
            ended=Ended.EXITED, exit_code=0, wall_s=1.0, cpu_s=1.0, memory_bytes=1, stderr=""
        )

    monkeypatch.setattr(lint_module, "run_child", child)
    return said


def lint(text: str) -> FlagLint:
    return lint_flags(flags_of(text), V6E)


def test_verdicts(refused: dict[str, str]) -> None:
    refused["xla_gone"] = "INVALID_ARGUMENT: No such compile option: 'xla_gone'"
    found = lint("--xla_gone=1 --xla_tpu_x=1 --xla_tpu_x=2 --xla_gpu_y=true --megascale_port=1")
    assert [flag.verdict for flag in found.flags] == [
        FlagVerdict.REFUSED,
        FlagVerdict.IGNORED,  # given again
        FlagVerdict.ACCEPTED,
        FlagVerdict.IGNORED,  # of the GPU's compiler
        FlagVerdict.NOT_CHECKED,
    ]
    assert found.flags[0].reason == "No such compile option: 'xla_gone'"
    text = lint_text(found)
    assert text.startswith("5 flags for v6e:4x4: 1 refused, 2 ignored, 1 not checked, 1 accepted.")


def test_the_command_fails_where_a_flag_is_refused(refused: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "flags.txt"
    path.write_text("--xla_a=1", encoding="utf-8")
    arguments = ["verify", "--flags", str(path), "--target", "v6e:4x4"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    refused["xla_a"] = "No such compile option: 'xla_a'"
    done = CliRunner().invoke(app, [*arguments, "--format", "json"])
    assert done.exit_code == 1
    assert json.loads(done.stdout)["flags"][0]["verdict"] == "refused"


def test_without_a_compiler_there_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lint_module, "find_toolchain", lambda chip: None)
    with pytest.raises(CompileError, match=r"prompts-agent\[tpu\]"):
        lint_flags([GivenFlag(name="xla_a", value="1")], V6E)


@pytest.mark.usefixtures("tpu_compiler")
def test_libtpu_s_own_verdicts() -> None:
    found = lint(
        "--xla_tpu_scoped_vmem_limit_kib=98304 --xla_no_such_option=1 "
        "--xla_tpu_enable_latency_hiding_scheduler=maybe --xla_dump_hlo_as_text=true"
    )
    assert [flag.verdict.value for flag in found.flags] == [
        "accepted",
        "refused",
        "refused",
        "accepted",
    ]
