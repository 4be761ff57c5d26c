"""What the workers of the tests are asked to do; found by its own name on the path."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from prompts_agent.errors import InputError

MIB = 2**20


def warm_up() -> None:
    os.environ["WARM"] = str(os.getpid())


def echo(payload: bytes) -> bytes:
    return payload


def parent(_payload: bytes) -> bytes:
    return f"{os.environ['WARM']} {os.getppid()}".encode()


def own(payload: bytes) -> bytes:
    if payload == b"wrong":
        raise InputError("42", rule="not that", cure="Another.")
    return str(os.getpid()).encode()


def do(payload: bytes) -> bytes:  # noqa: C901
    """One of many ways to end."""
    what = payload.decode()
    if what == "segfault":
        ctypes.string_at(0)
    elif what == "abort":
        os.abort()
    elif what == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "exit":
        os._exit(7)
    elif what == "hang":
        time.sleep(600)
    elif what == "eat":
        held = [bytearray(8 * MIB) for _ in range(100)]
        return str(len(held)).encode()
    elif what == "ask":
        return str(len(bytearray(64 * 1024 * MIB))).encode()
    elif what == "wrong":
        raise InputError("42", rule="not that", cure="Another.")
    elif what == "defect":
        raise ZeroDivisionError("a defect")
    elif what == "kill worker":
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(600)
    elif what.startswith("sleeper "):
        # A grandchild in a session of its own, as a compile is.
        process = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True
        )
        Path(what.removeprefix("sleeper ")).write_text(str(process.pid))
    elif what == "scratch":
        Path(tempfile.mkdtemp(), "left").write_text("behind")
        return tempfile.gettempdir().encode()
    return b"done: " + payload
