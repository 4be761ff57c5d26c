"""Processes: what ties a child to its parent's life, and how much memory a family holds.

Only Linux has all of it. Elsewhere a child still ends with the pipe to its parent, and memory has
the kernel's own limit alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

__all__ = [
    "adopt_orphans",
    "die_with_parent",
    "end_descendants",
    "fence_memory",
    "offer_to_oom_killer",
    "resident_bytes",
    "tree_resident_bytes",
]

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
"""<linux/prctl.h>."""


@cache
def _libc() -> Any:
    """The C library, loaded once: a forked child must not load one while others run."""
    return ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        _libc().prctl(option, value, 0, 0, 0)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the process `parent`, which started it, is gone.

    Asked for in the child, so that a parent that died meanwhile has to be looked for.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Descendants whose own parent is gone become children of this process, and can be found."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def offer_to_oom_killer() -> None:
    """Where the machine runs out of memory, this process goes before its parent."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def fence_memory(limit_bytes: int) -> None:
    """Anonymous memory beyond what is held now and `limit_bytes` raises `MemoryError`.

    Not RLIMIT_AS: threads and runtimes reserve addresses that they never touch.
    """
    held = 0
    with contextlib.suppress(OSError, ValueError, StopIteration):
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        line = next(line for line in status.splitlines() if line.startswith("VmData:"))
        held = int(line.split()[1]) * 1024
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = held + limit_bytes
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, wanted))


def resident_bytes(pid: int) -> int:
    """Resident memory; 0 where the system does not say (outside Linux) or the process is gone."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def tree_resident_bytes(pid: int) -> int:
    """Resident memory of a process and all its descendants; pages that they share count twice."""
    return resident_bytes(pid) + sum(map(resident_bytes, descendants(pid)))


def descendants(pid: int) -> Iterator[int]:
    """Children, their children and so on, whatever session or group they are in."""
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return
    for child in map(int, listed):
        yield child
        yield from descendants(child)


def end_descendants() -> None:
    """Kill every descendant of this process and collect them; orphans too (`adopt_orphans`)."""
    while True:
        for pid in list(descendants(os.getpid())):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return
