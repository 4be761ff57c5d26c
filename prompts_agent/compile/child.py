"""Child: one compile in a process group of its own, with limits, ended as a group."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from prompts_agent.workers.process import resident_bytes

__all__ = ["Ended", "Run", "run_child"]

_POLL_S = 0.02
_OURS = ("JAX_", "XLA_", "LIBTPU", "TPU_", "CUDA_", "PJRT_", "TF_CPP")
"""Variables of the user's own jobs; none of them may decide what the compiler does here."""
_QUIET = {
    # With these libtpu asks no metadata server, prints nothing, and shares its lock file. The
    # accelerator type need not be that of the target.
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    # A card that is present is not touched.
    "CUDA_VISIBLE_DEVICES": "",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}


class Ended(StrEnum):
    """Why the child is gone."""

    STOPPED = "stopped"
    """The parent had what it wanted."""
    EXITED = "exited"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How a child ended. `exit_code` is negative for a signal, as in `subprocess`."""

    ended: Ended
    exit_code: int
    wall_s: float
    cpu_s: float
    memory_bytes: int
    stderr: str


def run_child(
    module: str,
    directory: Path,
    *,
    done: Callable[[], bool],
    timeout_s: float,
    memory_limit_bytes: int | None,
) -> Run:
    """Run `python -m module directory` until it exits, `done()` holds, or a limit is passed."""
    started_s = time.monotonic()
    errors = directory / "stderr"
    with errors.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", module, os.fspath(directory)],
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
            cwd=directory,
            env=_environment(directory),
            start_new_session=True,
        )
    ended: Ended | None = None
    try:
        while ended is None:
            ended = _state(process, done, started_s + timeout_s, memory_limit_bytes)
            if ended is None:
                time.sleep(_POLL_S)
    finally:
        # Also on an interrupt: nobody is left to read what it compiles.
        _end_group(process)
    usage = _reap(process)
    return Run(
        ended=ended,
        exit_code=process.returncode,
        wall_s=time.monotonic() - started_s,
        cpu_s=usage[0],
        memory_bytes=usage[1],
        stderr=_tail(errors),
    )


def _state(
    process: subprocess.Popen[bytes],
    done: Callable[[], bool],
    deadline_s: float,
    memory_limit_bytes: int | None,
) -> Ended | None:
    # WNOWAIT leaves the child to `_reap`, which wants its resource usage.
    if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
        return Ended.EXITED
    if done():
        return Ended.STOPPED
    if time.monotonic() > deadline_s:
        return Ended.TIMED_OUT
    if memory_limit_bytes is not None and resident_bytes(process.pid) > memory_limit_bytes:
        return Ended.OUT_OF_MEMORY
    return None


def _end_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _reap(process: subprocess.Popen[bytes]) -> tuple[float, int]:
    """CPU seconds and peak resident bytes of the child."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    # ru_maxrss is in KiB on Linux and in bytes on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit


def _environment(directory: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    package = Path(__file__).resolve().parents[2]
    paths = [os.fspath(package), *filter(None, [kept.get("PYTHONPATH")])]
    return kept | _QUIET | {"PYTHONPATH": os.pathsep.join(paths), "TMPDIR": os.fspath(directory)}


def _tail(path: Path, size: int = 4000) -> str:
    return path.read_bytes()[-size:].decode(errors="replace")
