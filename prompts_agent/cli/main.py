"""The process: what Ctrl-C does at any moment, and what the shell gets back.

Nothing heavy is imported here, so that an interrupt during the other imports is caught too.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any, NoReturn

__all__ = ["main"]

_INTERRUPTED = 130
"""`ExitCode.INTERRUPTED`; 128 + SIGINT."""


class _Interrupt:
    """Remembers that Ctrl-C came: an import that it hits may turn it into another exception."""

    seen = False

    def __call__(self, _signal: int, _frame: FrameType | None) -> None:
        self.seen = True
        # A second Ctrl-C ends the process at once, whatever waits or cleans up.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        raise KeyboardInterrupt

    def unraisable(self, hook: Any) -> None:
        """Where Ctrl-C hit a destructor, Python drops the exception and goes on; this does not."""
        if self.seen or isinstance(hook.exc_value, KeyboardInterrupt):
            os._exit(_INTERRUPTED)
        sys.__unraisablehook__(hook)


def main() -> NoReturn:
    """Run `prompts` with the process's arguments and exit."""
    interrupt = _Interrupt()
    signal.signal(signal.SIGINT, interrupt)
    sys.unraisablehook = interrupt.unraisable
    try:
        from prompts_agent.cli.app import app

        app(prog_name="prompts")
    except BaseException as error:
        if interrupt.seen or isinstance(error, KeyboardInterrupt):
            _end(_INTERRUPTED)
        raise
    sys.exit(0)


def _end(code: int) -> NoReturn:
    """Leave without a traceback. Temporary files were removed by their context managers."""
    sys.stderr.write("\ninterrupted\n")
    sys.exit(code)


def __getattr__(name: str) -> object:
    """`main.app`, imported when somebody asks for it."""
    if name == "app":
        from prompts_agent.cli.app import app

        return app
    raise AttributeError(name)
