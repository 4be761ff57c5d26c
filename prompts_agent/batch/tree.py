"""Tree: the items below a directory, told by the names of files; content is read by their own
process, so that ten thousand files are listed in a second.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from prompts_agent.errors import DamagedTraceError, EmptyTraceError, PromptsError

__all__ = ["addresses", "items_below", "looks_like_trace"]

_TRACE = re.compile(
    r"(\.xplane\.pb|\.xplane|\.trace\.json|\.pt\.trace|\.sqlite)(\.gz)?$|\.json\.gz$|\.pb\.gz$",
    re.IGNORECASE,
)
_CACHE = re.compile(r"\.(op_stats(_v2)?|hlo_proto|kernel_stats)\.pb$|\.sstable$|\.(yaml|yml|md)$")
"""What xprof writes beside traces, and what is never one."""
_RUN = re.compile(r"^(.*/plugins/profile/[^/]+)(/|$)")
_WORKER = re.compile(r"^(?P<worker>.+?)\.\d{10,}(\.pt)?\.trace\.json(\.gz)?$")
_SNIFFED_BYTES = 16
"""A file this small is no trace; an empty one with a trace's name is meant to be one."""


def looks_like_trace(name: str) -> bool:
    """By its name; a name that does not is no proof."""
    return _TRACE.search(name) is not None


def items_below(directory: Path, skipped: Counter[str]) -> list[str]:
    """Addresses of the items in a local directory, sorted. What is no trace is counted.

    A damaged or empty file with a trace's name is an item: its row says so.
    """
    found: list[str] = []
    dumped: list[str] = []
    for path in _files(directory):
        if looks_like_trace(path.name):
            found.append(os.fspath(path))
        elif _CACHE.search(path.name.lower()):
            skipped[path.suffix or "no suffix"] += 1
        else:
            kind = _sniffed(path)
            if kind is None:
                skipped[path.suffix or "no suffix"] += 1
            else:
                (dumped if kind.startswith("hlo") else found).append(os.fspath(path))
    return addresses([*found, *_dumps(dumped, found)])


def _dumps(dumped: list[str], traces: list[str]) -> set[str]:
    """A directory of programs alone is the dump of one job; among traces each stands for itself."""
    parents = Counter(name.rpartition("/")[0] for name in dumped)
    mixed = {name.rpartition("/")[0] for name in traces}
    return {
        name if parents[parent] == 1 or parent in mixed else parent
        for name in dumped
        for parent in [name.rpartition("/")[0]]
    }


def addresses(files: Iterable[str]) -> list[str]:
    """One address an item, sorted: a run directory for the hosts in it, a file for the rest.

    jax's JSON beside the XSpace of the same host is left to its reader, and the files of several
    workers that torch.profiler's handler wrote into one directory are one job.
    """
    names = sorted(set(files))
    known = set(names)
    workers = _workers(names)
    found: dict[str, None] = {}
    for name in names:
        run = _RUN.match(name)
        parent, _, last = name.rpartition("/")
        if run is not None:
            found[run[1]] = None
        elif len(workers.get(parent, ())) > 1 and _WORKER.match(last):
            found[parent] = None
        elif not _beside(name) & known:
            found[name] = None
    return list(found)


def _workers(names: Iterable[str]) -> dict[str, set[str]]:
    workers: dict[str, set[str]] = {}
    for name in names:
        path = PurePosixPath(name)
        match = _WORKER.match(path.name)
        if match is not None:
            workers.setdefault(os.fspath(path.parent), set()).add(match["worker"])
    return workers


def _beside(name: str) -> set[str]:
    stem = re.sub(r"\.trace\.json(\.gz)?$", "", name)
    return set() if stem == name else {f"{stem}.xplane.pb", f"{stem}.xplane.pb.gz"}


def _files(directory: Path) -> Iterator[Path]:
    """Regular files in the order of names; links are followed, circles are not."""
    seen: set[tuple[int, int]] = set()
    for root, directories, names in os.walk(directory, followlinks=True):
        status = Path(root).stat()
        if (status.st_dev, status.st_ino) in seen:
            directories.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        directories[:] = sorted(name for name in directories if not name.startswith("."))
        for name in sorted(names):
            path = Path(root, name)
            if not name.startswith(".") and path.is_file():
                yield path


def _sniffed(path: Path) -> str | None:
    from prompts_agent.trace.sniff import sniff

    try:
        if path.stat().st_size < _SNIFFED_BYTES:
            return None
        return str(sniff(path).value)
    except (DamagedTraceError, EmptyTraceError):
        return "damaged" if path.suffix in (".pb", ".gz") else None
    except (PromptsError, OSError):
        return None
