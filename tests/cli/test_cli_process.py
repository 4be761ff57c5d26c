"""Real processes: pipes, encodings, interrupts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROMPTS = (sys.executable, "-m", "prompts_agent")
PLAN = (
    *("plan", "--model", "llama3.1-8b", "--target", "v5e:2x4", "--phase", "pretrain"),
    *("--batch", "8", "--sequence", "1024"),
)


def environment(**extra: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "FORCE_COLOR")}
    return kept | extra


def run(*arguments: str, **extra: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*PROMPTS, *arguments], capture_output=True, check=False, env=environment(**extra)
    )


def test_module_and_script_are_the_same() -> None:
    script = Path(sys.executable).with_name("prompts")
    if not script.exists():
        pytest.skip("the package is not installed, so it has no script")
    one = run("--version")
    other = subprocess.run([script, "--version"], capture_output=True, check=False)
    assert one.stdout == other.stdout == b"prompts 0.1.0\n"


def test_plan_through_a_pipe_is_plain() -> None:
    done = run(*PLAN)
    assert done.returncode == 0, done.stderr
    assert b"\x1b" not in done.stdout
    assert done.stderr == b""


def test_json_is_the_same_bytes_each_time() -> None:
    assert run(*PLAN, "-f", "json").stdout == run(*PLAN, "-f", "json").stdout


def test_stdout_without_unicode() -> None:
    done = run(*PLAN, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()


def test_missing_trace() -> None:
    done = run("diagnose", "/nonexistent/trace.pb")
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.startswith(b"error: ")
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["text", "json"])
def test_a_reader_that_stops_is_no_error(name: str) -> None:
    with subprocess.Popen(
        [*PROMPTS, *PLAN, "-f", name],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()
        process.wait()
    assert errors == b""
    assert process.returncode == 0


def test_failure_leaves_no_file(tmp_path: Path) -> None:
    done = run("diagnose", "/nonexistent", "-o", str(tmp_path / "r.json"))
    assert done.returncode == 2
    assert list(tmp_path.iterdir()) == []


# Interrupts itself when a module of that name is imported: during start-up, in the middle of the
# work, inside numpy's own start (which wraps what it catches), and in the last line of the output.
INTERRUPT = """
import builtins, signal, sys
where, real = sys.argv.pop(1), builtins.__import__
def interrupting(name, *rest, **more):
    if name == where:
        builtins.__import__ = real
        signal.raise_signal(signal.SIGINT)
    return real(name, *rest, **more)
from prompts_agent.cli.main import main
builtins.__import__ = interrupting
main()
"""


@pytest.mark.parametrize(
    "where",
    [
        "prompts_agent.cli.app",
        "typer",
        "prompts_agent.agents.graph",
        "pydantic",
        "numpy",
        "langgraph.graph",
        "prompts_agent.emit.registry",
        "prompts_agent.report.json_text",
    ],
)
def test_interrupt_at_any_moment(where: str, tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPT, where, *PLAN, "-o", str(target)],
        capture_output=True,
        check=False,
        env=environment(),
    )
    assert done.returncode == 130, done.stderr
    assert b"Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_interrupt_from_outside() -> None:
    with subprocess.Popen(
        [*PROMPTS, *PLAN, "-v"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()  # the work has begun
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        process.wait()
    assert b"reading" in first
    assert process.returncode == 130
    assert b"Traceback" not in rest
