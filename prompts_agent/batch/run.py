"""Running a batch: every item that has no row yet, by some executor, each row on disk at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from prompts_agent import __version__
from prompts_agent.batch.item import Item, Shard
from prompts_agent.batch.job import TARGET, Task
from prompts_agent.batch.journal import Begun, Journal, journals_in, rows_in
from prompts_agent.batch.row import DONE, Row, row_of
from prompts_agent.batch.settings import Settings, require_same
from prompts_agent.batch.store import Store, unwritable
from prompts_agent.batch.tables import TABLES_TARGET, are_current, digest_of
from prompts_agent.batch.tally import Tally
from prompts_agent.errors import OutputError
from prompts_agent.record import Record
from prompts_agent.workers.outcome import Limits
from prompts_agent.workers.pool import Pool

if TYPE_CHECKING:
    from prompts_agent.batch.ray_executor import RayExecutor

__all__ = ["BatchRequest", "Ended", "cores", "run_batch"]

_TABLES_S = 24 * 3600.0


class BatchRequest(Record):
    """How a batch is run; what is asked about each item is in `settings`."""

    directory: Path
    settings: Settings = Settings()
    jobs: int | None = None
    """At once; None: one a core, of this machine or of the cluster."""
    limits: Limits = Limits()
    shard: Shard | None = None
    retry_failed: bool = False
    executor: Literal["local", "ray"] = "local"
    ray_address: str | None = None
    target: str = TARGET
    """What is done for an item, `module:function`; see `prompts_agent.workers.pool`."""


class Ended(Record):
    """How a run of a batch ended."""

    total: int
    rows: int
    """Of the sources' items, those that have a row."""
    notes: tuple[str, ...] = ()

    @property
    def finished(self) -> bool:
        """Every item has a row."""
        return self.rows == self.total


def run_batch(
    items: Sequence[Item],
    request: BatchRequest,
    *,
    on_start: Callable[[Tally], None] = lambda _tally: None,
    on_row: Callable[[Row], None] = lambda _row: None,
    on_tables: Callable[[], None] = lambda: None,
    stop: Callable[[], bool] = lambda: False,
) -> Ended:
    """Do what is not done yet. Rows of earlier runs are kept, those that failed too, unless
    `retry_failed`.

    Raises `InputError` for a directory with a batch of other flags, `OutputError` for one that
    cannot be written, is full, or is written by another process. Whatever happens, every row that
    `on_row` was told of is on disk. `stop` is asked a few times a second while tasks run.
    """
    own = [item for item in items if request.shard is None or request.shard.has(item)]
    with Store(request.directory, request.shard) as store:
        notes = _checked(request)
        waiting, tally, tabled = _waiting(own, request)
        on_start(tally)
        if waiting or not Journal(request.directory, request.shard).path.exists():
            _run(waiting, store, request, len(own), tally, on_row, stop)
        if request.shard is None and not (tabled and not tally.ended):
            # Shards leave them to whoever asks: each would write those of all.
            on_tables()
            notes += _tabled(request.directory)
    return Ended(total=len(own), rows=tally.before + tally.ended, notes=notes)


def _tabled(directory: Path) -> tuple[str, ...]:
    """Write the tables; where that cannot be, the rows are safe all the same, and a note says so.

    In a process of its own, whose memory goes with it.
    """
    with Pool[str](TABLES_TARGET, 1, Limits(timeout_s=_TABLES_S)) as pool:
        ((_, outcome),) = pool.run([("tables", os.fsencode(directory))])
    failure = outcome.failure
    if failure is not None and failure.name == OutputError.__name__:
        raise OutputError(failure.value, rule=failure.rule, cure=failure.cure)
    if outcome.ended == "returned":
        return ()
    why = f"{failure.value}. {failure.cure}" if failure is not None else str(outcome.message)
    return (f"No tables were written: {why}",)


def _waiting(own: Sequence[Item], request: BatchRequest) -> tuple[dict[str, Item], Tally, bool]:
    """The items to do, by key; the sums of those that are done; whether their tables are current.

    Rows are not kept: of ten thousand they are a hundred megabytes.
    """
    known = rows_in(request.directory)
    waiting = {item.key: item for item in own if not _is_done(known.get(item.key), request)}
    tally = Tally(len(own), len(own) - len(waiting))
    for item in own:
        if item.key not in waiting:
            tally.count(known[item.key])
    return waiting, tally, are_current(request.directory, digest_of(known))


def _is_done(row: Row | None, request: BatchRequest) -> bool:
    return row is not None and (row.status in DONE or not request.retry_failed)


def _checked(request: BatchRequest) -> tuple[str, ...]:
    """Notes about earlier runs in that directory; raises where their flags were others."""
    versions: set[str] = set()
    for journal in journals_in(request.directory):
        for entry in journal.entries():
            if isinstance(entry, Begun):
                require_same(entry.settings, request.settings, str(request.directory))
                versions.add(entry.tool_version)
    others = sorted(versions - {__version__})
    if not others:
        return ()
    return (f"Some rows are of prompts {', '.join(others)}; they are kept as they are.",)


def _run(
    waiting: Mapping[str, Item],
    store: Store,
    request: BatchRequest,
    items: int,
    tally: Tally,
    on_row: Callable[[Row], None],
    stop: Callable[[], bool],
) -> None:
    journal = Journal(request.directory, request.shard)
    settings = request.settings
    tasks = (
        (key, Task(item=item, settings=settings).model_dump_json().encode())
        for key, item in waiting.items()
    )
    head = Begun(
        tool_version=__version__,
        settings=settings,
        shard=request.shard,
        items=items,
        started_at=datetime.now(UTC),
    )
    try:
        _begin(journal, head)
        with _executor(request, store) as executor:
            for key, outcome in executor.run(tasks, stop):
                row, report = row_of(waiting[key], outcome)
                _keep(row, report, store, journal)
                tally.add(row)
                on_row(row)
    finally:
        journal.close()


def _begin(journal: Journal, head: Begun) -> None:
    try:
        journal.begin(head)
    except OSError as error:
        raise unwritable(journal.path, error) from error


def _keep(row: Row, report: bytes | None, store: Store, journal: Journal) -> None:
    """The report first: a row on disk means that its report is."""
    try:
        if row.report is not None and report is not None:
            store.write_report(row.report, report)
        journal.append(row)
    except OSError as error:
        raise unwritable(store.directory, error) from error


def _executor(request: BatchRequest, store: Store) -> Pool[str] | RayExecutor:
    if request.executor == "ray":
        from prompts_agent.batch.ray_executor import RayExecutor

        return RayExecutor(request.target, request.jobs, request.limits, request.ray_address)
    return Pool[str](request.target, request.jobs or cores(), request.limits, store.scratch)


def cores() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1
