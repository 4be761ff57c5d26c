"""Children that misbehave: each is ended, with its group, and the reason is told."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from prompts_agent.compile.child import Ended, Run, run_child


def _run(directory: Path, code: str, **limits: object) -> Run:
    (directory / "misbehaving.py").write_text(code, encoding="utf-8")
    given = {"done": lambda: False, "timeout_s": 60.0, "memory_limit_bytes": None} | limits
    return run_child("misbehaving", directory, **given)  # type: ignore[arg-type]


def test_an_exit_is_told_with_its_code_and_last_words(tmp_path: Path) -> None:
    run = _run(tmp_path, "import sys; print('reason', file=sys.stderr); sys.exit(7)")
    assert (run.ended, run.exit_code) == (Ended.EXITED, 7)
    assert run.stderr.strip() == "reason"


def test_an_abort_is_told_as_a_signal(tmp_path: Path) -> None:
    run = _run(tmp_path, "import os; os.abort()")
    assert (run.ended, run.exit_code) == (Ended.EXITED, -signal.SIGABRT)


def test_a_child_that_hangs_is_ended_with_its_own_children(tmp_path: Path) -> None:
    code = (
        "import pathlib, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "pathlib.Path('grandchild').write_text(str(child.pid))\n"
        "time.sleep(600)\n"
    )
    run = _run(tmp_path, code, timeout_s=3.0)
    assert (run.ended, run.exit_code) == (Ended.TIMED_OUT, -signal.SIGKILL)
    grandchild = int((tmp_path / "grandchild").read_text(encoding="ascii"))
    assert _gone(grandchild)


def _gone(pid: int) -> bool:
    """No such process, or one that only waits to be reaped by whoever inherited it."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        except (ProcessLookupError, FileNotFoundError):
            return True
        if state[0] == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc to watch memory by")
def test_a_child_that_takes_too_much_memory_is_ended(tmp_path: Path) -> None:
    code = "import time; held = bytearray(400 << 20); time.sleep(600)"
    run = _run(tmp_path, code, memory_limit_bytes=200 << 20)
    assert run.ended is Ended.OUT_OF_MEMORY
    assert run.memory_bytes > 200 << 20


def test_a_child_is_stopped_once_the_parent_has_what_it_wants(tmp_path: Path) -> None:
    code = "import pathlib, time; pathlib.Path('answer').touch(); time.sleep(600)"
    run = _run(tmp_path, code, done=lambda: (tmp_path / "answer").exists())
    assert run.ended is Ended.STOPPED


def test_the_users_own_flags_stay_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_no_such_flag")
    monkeypatch.setenv("LIBTPU_INIT_ARGS", "--no_such")
    code = "import json, os; open('env', 'w').write(json.dumps(dict(os.environ)))"
    _run(tmp_path, code)
    seen = (tmp_path / "env").read_text(encoding="utf-8")
    assert "no_such" not in seen
    assert '"JAX_PLATFORMS": "cpu"' in seen
    assert '"ALLOW_MULTIPLE_LIBTPU_LOAD": "1"' in seen
