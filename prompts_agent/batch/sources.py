"""Sources: from what a user gives (directories, patterns, manifests, addresses) to items."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from prompts_agent.batch.item import Item, absolute, item_of
from prompts_agent.batch.manifest import is_manifest, read_manifest
from prompts_agent.batch.remote import expand, is_remote
from prompts_agent.batch.tree import addresses, items_below, looks_like_trace
from prompts_agent.errors import TraceNotFoundError
from prompts_agent.record import Record

__all__ = ["Found", "find_items"]


class Found(Record):
    """The items, each once, in the order of the sources; and how many files are none."""

    items: tuple[Item, ...]
    skipped: dict[str, int]
    """Suffix → files in directories that are no traces."""


def find_items(sources: Sequence[str]) -> Found:
    """Raises `InputError` for a source that names nothing, and for a manifest with a wrong row.

    A file that is named, by itself, a pattern or a manifest, is an item whatever it holds; in a
    directory what is no trace is left out and counted.
    """
    skipped: Counter[str] = Counter()
    found: dict[str, Item] = {}
    for source in sources:
        for item in _items(source, skipped):
            found.setdefault(item.key, item)
    if not found:
        kinds = ", ".join(f"{count} × {kind}" for kind, count in sorted(skipped.items()))
        raise TraceNotFoundError(
            ", ".join(sources),
            rule=f"there is no trace (found: {kinds or 'no files'})",
            cure="Give directories with traces, traces, patterns or a manifest.",
        )
    return Found(items=tuple(found.values()), skipped=dict(sorted(skipped.items())))


def _items(source: str, skipped: Counter[str]) -> Iterator[Item]:
    if is_manifest(source):
        yield from read_manifest(source if is_remote(source) else absolute(source))
    elif is_remote(source):
        yield from _remote(source, skipped)
    else:
        path = Path(source).expanduser()
        if path.is_dir():
            yield from map(item_of, items_below(Path(absolute(path)), skipped))
        elif path.exists():
            yield item_of(absolute(path))
        else:
            yield from _matches(source, skipped)


def _remote(source: str, skipped: Counter[str]) -> Iterator[Item]:
    listed = expand(source)
    yield from map(item_of, listed.named)
    traces = [name for name in listed.below if looks_like_trace(name.partition("::")[0])]
    for name in set(listed.below) - set(traces):
        skipped[Path(name.partition("::")[0]).suffix or "no suffix"] += 1
    yield from map(item_of, addresses(traces))


def _matches(source: str, skipped: Counter[str]) -> Iterator[Item]:
    pattern = os.fspath(Path(source).expanduser())
    names = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207  (it may begin anywhere)
    if not names:
        raise TraceNotFoundError(
            source,
            rule="no file or directory has that name, and none matches it as a pattern",
            cure="Check it; quote a pattern with ** so that the shell leaves it alone.",
        )
    for name in names:
        if Path(name).is_dir() or is_manifest(name):
            yield from _items(name, skipped)
        else:
            yield item_of(absolute(name))
