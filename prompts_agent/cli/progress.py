"""Progress on stderr: a changing line on a terminal, lines with --verbose, else nothing."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

__all__ = ["STAGES", "progress"]

STAGES = {
    "read": "reading and measuring",
    "analyst": "looking for lost time",
    "retriever": "asking the knowledge base",
    "planner": "searching layouts",
    "critic": "checking proposals",
    "weigh": "asking the language model to weigh",
    "attack": "asking the language model to object",
    "report": "writing the report",
}
"""Names of the graph's nodes, in words."""


@contextlib.contextmanager
def progress(*, quiet: bool, verbose: bool) -> Iterator[Callable[[str], None]]:
    """A callback that is told each stage as it starts."""
    if quiet:
        yield lambda _stage: None
    elif verbose:
        started = time.perf_counter()
        yield lambda stage: _line(stage, started)
    elif sys.stderr.isatty():
        from rich.console import Console

        console = Console(stderr=True)
        with console.status(STAGES["read"], spinner="dots") as status:
            yield lambda stage: status.update(STAGES.get(stage, stage))
    else:
        yield lambda _stage: None


def _line(stage: str, started: float) -> None:
    sys.stderr.write(f"{time.perf_counter() - started:7.2f} s  {STAGES.get(stage, stage)}\n")
