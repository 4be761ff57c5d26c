"""How a batch goes, on stderr: a changing line on a terminal, else a line a minute."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from prompts_agent.batch.run import BatchRequest, Ended
    from prompts_agent.batch.sources import Found
    from prompts_agent.batch.tally import Tally

__all__ = ["BatchProgress", "interruptible"]

_LINE_S = 60.0
_REDRAW_S = 0.2


class BatchProgress:
    """Told by the batch what happens. A context manager."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty() and not quiet
        self._tally: Tally | None = None
        self._status: Any = None
        self._said_s = 0.0

    def __enter__(self) -> Self:
        if self._terminal:
            from rich.console import Console

            self._status = Console(stderr=True).status("listing traces", spinner="dots")
            self._status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def say(self, text: str) -> None:
        """One line, whatever is shown besides."""
        if self._quiet:
            return
        from prompts_agent.report.text import plain, to_ascii

        encoding = (getattr(sys.stderr, "encoding", None) or "ascii").lower()
        line = plain(text)
        line = line if encoding.startswith("utf") else to_ascii(line)
        if self._status is not None:
            self._status.console.print(line, markup=False, highlight=False)
        else:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()

    def found(self, found: Found) -> None:
        """What the sources hold."""
        if found.skipped:
            kinds = ", ".join(f"{count} {kind}" for kind, count in found.skipped.items())
            count = sum(found.skipped.values())
            what = "file is no trace" if count == 1 else "files are no traces"
            self.say(f"{count} {what}: {kinds}")

    def begin(self, tally: Tally) -> None:
        """The batch begins; `tally` is kept up to date by it."""
        self._tally = tally
        self._said_s = time.monotonic()
        if tally.before:
            self.say(f"{tally.before} of {tally.total} are done already")
        if self._status is not None:
            self._show()

    def tick(self) -> None:
        """Asked a few times a second: whether it is time to say how far the batch is."""
        now_s = time.monotonic()
        if now_s - self._said_s >= (_REDRAW_S if self._status is not None else _LINE_S):
            self._said_s = now_s
            self._show()

    def tables(self) -> None:
        """The rows are done, and the tables are being written."""
        if self._status is not None:
            self._status.update("writing the tables")

    def end(self, ended: Ended, request: BatchRequest) -> None:
        """The batch is over, done or interrupted."""
        self._stop()
        for note in ended.notes:
            self.say(note)
        if self._tally is not None:
            self.say(f"{ended.rows} of {ended.total} rows: {self._tally.summary()}")
        if not ended.finished:
            self.say("interrupted; the same command goes on from here")
        else:
            self.say(f"prompts batch report {request.directory}")

    def _show(self) -> None:
        if self._tally is None:
            return
        if self._status is not None:
            from rich.text import Text

            self._status.update(Text(self._tally.line()))
        else:
            self.say(self._tally.line())

    def _stop(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None


@contextlib.contextmanager
def interruptible(say: Callable[[str], None]) -> Iterator[Callable[[], bool]]:
    """A question whether to stop: yes after Ctrl-C, SIGTERM or a terminal that was closed.

    A second Ctrl-C interrupts what runs, too.
    """
    seen: list[int] = []

    def first(number: int, _frame: FrameType | None) -> None:
        if seen:
            raise KeyboardInterrupt
        seen.append(number)
        say("finishing what runs; once more to stop at once")

    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    # Who ignores SIGHUP (nohup) goes on.
    before = {n: signal.getsignal(n) for n in numbers if signal.getsignal(n) != signal.SIG_IGN}
    for number in before:
        signal.signal(number, first)
    try:
        yield lambda: bool(seen)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
