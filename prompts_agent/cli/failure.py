"""One message on stderr for whatever went wrong, and the exit code that goes with it."""

from __future__ import annotations

import os
import sys
import traceback

from prompts_agent import __version__
from prompts_agent.errors import ExitCode, PromptsError

__all__ = ["exit_code_of", "show_failure"]


def exit_code_of(error: Exception) -> int:
    """An error's own code; 0 for a reader that stopped reading; 70 for a defect."""
    if isinstance(error, BrokenPipeError):
        return int(ExitCode.DONE)
    return int(error.exit_code) if isinstance(error, PromptsError) else int(ExitCode.INTERNAL)


def show_failure(error: Exception) -> None:
    """Print the message. `PROMPTS_DEBUG=1` puts the traceback before it."""
    if isinstance(error, BrokenPipeError):
        _forget_stdout()
        return
    if os.environ.get("PROMPTS_DEBUG", "") not in ("", "0"):
        traceback.print_exception(error)
    if isinstance(error, PromptsError):
        lines = [f"error: {error.value}", f"  rule: {error.rule}", f"  cure: {error.cure}"]
    else:
        lines = [
            f"error: {type(error).__name__}: {error}",
            "  rule: this is a defect of prompts, not of your input",
            f"  cure: report it with this message, the command, prompts {__version__} and Python "
            f"{sys.version.split()[0]}; PROMPTS_DEBUG=1 shows where it happened",
        ]
    _print(lines)


def _print(lines: list[str]) -> None:
    """Names in a message may come from a file: nothing in them may move the cursor."""
    from prompts_agent.report.text import plain, to_ascii

    encoding = (getattr(sys.stderr, "encoding", None) or "ascii").lower()
    for line in lines:
        indent = len(line) - len(line.lstrip(" "))
        shown = " " * indent + plain(line.strip())
        sys.stderr.write((shown if encoding.startswith("utf") else to_ascii(shown)) + "\n")


def _forget_stdout() -> None:
    """Send what is still buffered nowhere, so that the interpreter's last flush is silent."""
    try:
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, sys.stdout.fileno())
        os.close(descriptor)
    except (OSError, ValueError):  # a stdout that is no file has nothing to flush
        return
