"""Watch: the eyes on one forked task, until it is gone with everything that it started."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import time
from multiprocessing.connection import Connection
from typing import IO, Any

from prompts_agent.units import GIB
from prompts_agent.workers.outcome import Ended, Failure, Limits, Outcome, signal_name
from prompts_agent.workers.process import end_descendants, tree_resident_bytes

__all__ = ["Watch"]

_POLL_S = 0.05
"""How often memory is looked at. The end of a task is seen at once, on its pipe."""
_STDERR_BYTES = 1500
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


class Watch:
    """A child `pid` that writes its answer to `pipe`, and the limits it is held to."""

    def __init__(
        self,
        pid: int,
        limits: Limits,
        pipe: IO[bytes],
        parent_end: Connection,
        stderr: IO[bytes],
    ) -> None:
        self._pid = pid
        self._limits = limits
        self._pipe = pipe
        self._parent_end = parent_end
        self._stderr = stderr
        self._started_s = time.monotonic()
        self._answer = bytearray()

    def outcome(self) -> Outcome | None:
        """How it ended; None where the process that asked is gone. The child is gone then too."""
        watched: list[Any] = [self._pipe, self._parent_end]
        stopped: Ended | None = None
        while not self._is_gone():
            ready, _, _ = select.select(watched, [], [], _POLL_S)
            if self._parent_end in ready:
                self._end()
                return None
            if self._pipe in ready:
                chunk = self._pipe.read(1 << 20)
                self._answer += chunk
                if not chunk:  # all said: it is about to exit
                    watched.remove(self._pipe)
                    self._wait_a_moment()
            stopped = self._beyond()
            if stopped is not None:
                break
        self._drain()
        status, usage = self._end()
        return self._told(stopped, os.waitstatus_to_exitcode(status), usage)

    def _end(self) -> tuple[int, Any]:
        """Kill what is left of it, and what it started: its own group, and whatever made another.
        Its status and resource usage.
        """
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        _, status, usage = os.wait4(self._pid, 0)
        end_descendants()
        return status, usage

    def _wait_a_moment(self) -> None:
        """For an exit that takes microseconds the poll's period is long."""
        end_s = time.monotonic() + _POLL_S
        while not self._is_gone() and time.monotonic() < end_s:
            time.sleep(0.0005)

    def _drain(self) -> None:
        """What it wrote between the last look and its end."""
        os.set_blocking(self._pipe.fileno(), False)
        while chunk := self._pipe.read(1 << 20):
            self._answer += chunk

    def _is_gone(self) -> bool:
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._pid, flags) is not None

    def _beyond(self) -> Ended | None:
        if time.monotonic() - self._started_s > self._limits.timeout_s:
            return "timed_out"
        limit = self._limits.memory_bytes
        if limit is not None and tree_resident_bytes(self._pid) > limit:
            return "out_of_memory"
        return None

    def _told(self, stopped: Ended | None, code: int, usage: Any) -> Outcome:
        wall_s = time.monotonic() - self._started_s
        peak = usage.ru_maxrss * 1024  # KiB on Linux, which is where this is exact
        limit = self._limits.memory_bytes
        said = f"more than {limit / GIB:.3g} GiB of memory" if limit is not None else "no memory"

        def ended(how: Ended, reason: str | None = None, message: str | None = None) -> Outcome:
            return Outcome(
                ended=how, reason=reason, message=message, wall_s=wall_s, peak_bytes=peak
            )

        if stopped == "timed_out":
            text = f"no answer within {self._limits.timeout_s:g} s"
            return ended("timed_out", "time limit", text)
        if stopped == "out_of_memory":
            return ended("out_of_memory", "memory limit", f"it held {said}")
        if code < 0:
            return ended("crashed", signal_name(-code), self._died(-code))
        kind, answer = bytes(self._answer[:1]), bytes(self._answer[1:])
        if kind == b"R":
            return ended("returned").model_copy(update={"result": answer})
        if kind == b"M":
            return ended("out_of_memory", "memory limit", f"it asked for {said}")
        if kind == b"E":
            failure = Failure.model_validate_json(answer)
            raised = ended("raised", failure.name, failure.value)
            return raised.model_copy(update={"failure": failure})
        return ended("crashed", f"exit code {code}", self._tail() or f"it exited with {code}")

    def _died(self, number: int) -> str:
        name = signal_name(number)
        if number == signal.SIGKILL:
            return "killed from outside (SIGKILL): most likely the machine ran out of memory"
        tail = self._tail()
        return f"{name}: {tail}" if tail else f"it died of {name}"

    def _tail(self) -> str:
        """The end of what it said, without what differs each time."""
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - _STDERR_BYTES))
        text = self._stderr.read().decode("utf-8", "replace")
        lines = (line for line in text.splitlines() if not line.startswith("Extension modules:"))
        return _ADDRESS.sub("0x…", "\n".join(lines)).strip()
