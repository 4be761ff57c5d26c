"""What lies below a directory: runs with the traces of one format each, and all that is none."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from prompts_agent.errors import DamagedTraceError, EmptyTraceError, TraceError
from prompts_agent.trace.sniff import TraceFormat, sniff

__all__ = ["Run", "Tree", "host_name", "survey"]

_CACHES = (".op_stats.pb", ".op_stats_v2.pb", ".hlo_proto.pb", ".sstable", ".kernel_stats.pb")
"""What xprof writes beside the traces it has shown. It goes stale when they change (measured: two
hosts, then one, still shows two), so it is never read."""

MAX_FILES = 20_000
"""Beyond this many files the tree is no log directory (somebody gave `/`)."""

_SUFFIXES = re.compile(
    r"(?:\.gz|\.pb|\.xplane|\.json|\.trace|\.pt|\.txt|\.sqlite|\.hlo_proto|\.hlo)+$"
)
_KINETO_WORKER = re.compile(r"^(?P<worker>.+?)\.(?P<time>\d{10,})(?:\.pt)?\.trace\.json(?:\.gz)?$")
"""What tensorboard_trace_handler writes: <host>_<pid>.<time>.pt.trace.json, one file a cycle."""


@dataclass(frozen=True, slots=True)
class Run:
    """The files of one format in one directory."""

    directory: Path
    format: TraceFormat
    files: list[Path]

    @property
    def name(self) -> str:
        """The run's name: jax names the directory after the time of the capture."""
        return self.directory.resolve().name

    def files_of_one_job(self) -> tuple[list[Path], list[str]]:
        """The files that belong together, and a sentence about those left out."""
        if self.format is TraceFormat.KINETO:
            return self._last_cycle()
        if self.format in {TraceFormat.HLO_TEXT, TraceFormat.HLO_PROTO}:
            return self._largest_program()
        if self.format is TraceFormat.NSIGHT and len(self.files) > 1:
            last = self.files[-1]
            return [last], [f"{len(self.files)} SQLite exports found; {last.name} was read"]
        return self.files, []

    def _last_cycle(self) -> tuple[list[Path], list[str]]:
        workers: dict[str, tuple[int, Path]] = {}
        for path in self.files:
            match = _KINETO_WORKER.match(path.name)
            worker, time = (match["worker"], int(match["time"])) if match else (path.name, 0)
            if worker not in workers or time > workers[worker][0]:
                workers[worker] = (time, path)
        kept = [path for _, path in workers.values()]
        left = len(self.files) - len(kept)
        return kept, [f"{left} earlier traces of the same workers were not read"] if left else []

    def _largest_program(self) -> tuple[list[Path], list[str]]:
        """A dump holds every program, before and after optimisation: the step is the largest."""
        after = [path for path in self.files if "after_optimizations" in path.name]
        candidates = [path for path in after or self.files if "buffer" not in path.name]
        candidates = candidates or self.files
        largest = max(candidates, key=lambda path: (path.stat().st_size, path.name))
        if len(self.files) == 1:
            return [largest], []
        return [largest], [
            f"{len(self.files)} programs found; {largest.name}, the largest, was read"
        ]


@dataclass(slots=True)
class Tree:
    """The survey of a directory."""

    runs: list[Run] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    """How many files of which kind are no traces."""
    reasons: list[tuple[Path, str]] = field(default_factory=list)
    """Damaged and empty traces: these were meant to be read."""
    unreadable: list[str] = field(default_factory=list)
    caveats: list[str] = field(default_factory=list)

    def of(self, kind: TraceFormat) -> list[Run]:
        """The runs of one format."""
        return [run for run in self.runs if run.format is kind]


def host_name(path: Path, kind: TraceFormat) -> str:
    """The host that a file is named after: `t1v-n-0.xplane.pb` → `t1v-n-0`.

    Kineto's file names carry a time stamp after the worker, which is no part of the host.
    """
    match = _KINETO_WORKER.match(path.name) if kind is TraceFormat.KINETO else None
    return readable(match["worker"] if match else _SUFFIXES.sub("", path.name) or path.name)


def readable(text: str) -> str:
    """File names may hold bytes that are no UTF-8; records and reports hold text."""
    return text.encode("utf-8", "replace").decode("utf-8")


def survey(directory: Path) -> Tree:
    """Sniffs every file below `directory`, following links but never in a circle."""
    tree = Tree()
    groups: dict[tuple[Path, TraceFormat], list[Path]] = {}
    for count, path in enumerate(_walk(directory, tree)):
        if count >= MAX_FILES:
            raise TraceError(
                f"{directory} holds more than {MAX_FILES:,} files",
                rule="a log directory of a profiler holds a few",
                cure="Give the run directory or the trace itself.",
            )
        if path.name.lower().endswith(_CACHES):
            tree.rejected["xprof cache"] += 1
            continue
        try:
            groups.setdefault((path.parent, sniff(path)), []).append(path)
        except TraceError as error:
            _note(tree, path, error)
    tree.runs = [Run(parent, kind, sorted(paths)) for (parent, kind), paths in groups.items()]
    if tree.runs and tree.reasons:
        path, reason = tree.reasons[0]
        more = f", and {len(tree.reasons) - 1} more" if len(tree.reasons) > 1 else ""
        tree.caveats.append(f"not read: {path} ({reason}){more}")
    if tree.runs and tree.unreadable:
        tree.caveats.append(f"not readable by you: {', '.join(tree.unreadable[:3])}")
    return tree


def _note(tree: Tree, path: Path, error: TraceError) -> None:
    kind = "".join(path.suffixes[-2:]) or "file without suffix"
    tree.rejected[kind] += 1
    if not os.access(path, os.R_OK):
        tree.unreadable.append(str(path))
    elif isinstance(error, DamagedTraceError | EmptyTraceError) or kind.endswith((".pb", ".gz")):
        tree.reasons.append((path, error.value.removeprefix(f"{path} ")))


def _walk(directory: Path, tree: Tree) -> Iterator[Path]:
    """Regular files, in the order of their names, each real directory once."""
    seen: set[tuple[int, int]] = set()

    def failed(error: OSError) -> None:
        tree.unreadable.append(str(error.filename))

    for root, directories, names in os.walk(directory, followlinks=True, onerror=failed):
        status = Path(root).stat()
        identity = (status.st_dev, status.st_ino)
        if identity in seen:  # a link back up
            directories.clear()
            continue
        seen.add(identity)
        directories[:] = sorted(name for name in directories if not name.startswith("."))
        for name in sorted(names):
            path = Path(root, name)
            if not name.startswith(".") and path.is_file():
                yield path
