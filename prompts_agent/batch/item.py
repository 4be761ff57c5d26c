"""Item: one row of a batch: where its trace lies, and what is known of the job beside it."""

from __future__ import annotations

import hashlib
import os
import re
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from pydantic import Field

from prompts_agent.errors import InputError
from prompts_agent.record import Record

__all__ = ["Item", "Shard", "absolute", "date_in", "item_of", "job_of"]

_DATE = re.compile(
    r"(?<!\d)(20\d\d)[-_.]?([01]\d)[-_.]?([0-3]\d)"
    r"(?:[-_.T ]?([0-2]\d)[-_.:h]?([0-5]\d)(?:[-_.:m]?([0-5]\d))?)?(?!\d)"
)
"""jax names a run after its time, 2026_01_31_12_30_00; people write 2026-01-31 or 20260131."""
_EPOCH_MS = re.compile(r"(?<!\d)(1\d{12})(?:\d{6})?(?!\d)")
"""torch.profiler's handler puts the time into the file's name, in milliseconds, lately in ns."""
_SUFFIXES = re.compile(r"(?:\.gz|\.pb|\.xplane|\.json|\.trace|\.pt|\.txt|\.sqlite|\.ya?ml)+$")


class Item(Record):
    """What is asked of a batch once. Two items are the same where `key` is."""

    address: str
    """An absolute path, or a URL that fsspec reads: a trace, a run directory, a workload file."""
    workload: str | None = None
    """A workload file, which says what the trace does not."""
    job: str
    """The name that captures of one job share over time."""
    recorded_at: datetime | None = None
    hours_per_week: float | None = Field(default=None, ge=0, le=168)
    """How long the job runs; None where nobody said."""

    @property
    def key(self) -> str:
        """Names the item in journal and tables: of address and workload, not of the content."""
        text = f"{self.address}\0{self.workload or ''}"
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:24]


class Shard(Record):
    """Part `index` of `count`, counted from 1: the items whose key falls to it."""

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """`3/64`. Raises `InputError`."""
        match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
        index, count = (int(match[1]), int(match[2])) if match else (0, 0)
        if not 1 <= index <= count:
            raise InputError(
                f"--shard {text}",
                rule="a shard is its number and how many there are, from 1/n to n/n",
                cure="Slurm counts from 0 unless told --array=1-64: then --shard "
                "$((SLURM_ARRAY_TASK_ID + 1))/64.",
            )
        return cls(index=index, count=count)

    def has(self, item: Item) -> bool:
        """By the key, so that an item keeps its shard when others are added."""
        return int(item.key, 16) % self.count == self.index - 1

    @property
    def suffix(self) -> str:
        """`-03-of-64`, for names of files."""
        width = len(str(self.count))
        return f"-{self.index:0{width}d}-of-{self.count}"


def absolute(path: Path | str) -> str:
    """From the root and without `..`; links are kept, for they may be how a user names things."""
    return os.path.abspath(os.fspath(path))  # noqa: PTH100


def item_of(address: str, **known: object) -> Item:
    """The item at `address`; job and date from its name where `known` does not tell them."""
    given = {name: value for name, value in known.items() if value is not None}
    given.setdefault("job", job_of(address))
    if "recorded_at" not in given:
        given["recorded_at"] = date_in(address) or _changed(address)
    return Item.model_validate({"address": address, **given})


def job_of(address: str) -> str:
    """The address without what differs between captures of one job: the run that jax named after
    the time, and dates in the file's name.

    >>> job_of("/logs/llama/plugins/profile/2026_01_31_12_30_00")
    '/logs/llama'
    >>> job_of("/traces/llama-2026-01-31.xplane.pb")
    '/traces/llama'
    """
    head, marker, _ = address.partition("/plugins/profile/")
    if marker:
        return head
    path = PurePosixPath(address)
    name = _EPOCH_MS.sub("", _DATE.sub("", _SUFFIXES.sub("", path.name))).strip("-_. ")
    parent = address[: len(address) - len(path.name)].rstrip("/")
    return f"{parent}/{name}" if name else parent


def date_in(address: str) -> datetime | None:
    """The date in the last parts of an address, read as UTC; None where there is none."""
    for part in reversed(PurePosixPath(address).parts[-3:]):
        for match in _DATE.finditer(part):
            numbers = [int(group) for group in match.groups() if group is not None]
            try:
                return datetime(*numbers, tzinfo=UTC)  # type: ignore[arg-type, misc]
            except ValueError:  # 2026-13-40 is no date
                continue
        epoch = _EPOCH_MS.search(part)
        if epoch is not None:
            return datetime.fromtimestamp(int(epoch[1]) // 1000, UTC)
    return None


def _changed(address: str) -> datetime | None:
    """When the file was last written, to the second; unknown for a URL."""
    if "://" in address:
        return None
    try:
        return datetime.fromtimestamp(int(Path(address).stat().st_mtime), UTC)
    except (OSError, ValueError):
        return None
