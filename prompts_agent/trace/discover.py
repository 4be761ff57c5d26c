"""From the paths that a user gives to the files of one job.

A path may be a trace, a run directory (`plugins/profile/<run>/`), a TensorBoard log directory, or
any tree above them. The files of one run are the hosts (or ranks) of one job. Whatever was chosen
among several is said in `caveats`; nothing is merged or dropped in silence.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from prompts_agent.errors import TraceError, TraceNotFoundError
from prompts_agent.record import Record
from prompts_agent.trace.profile import TraceFile
from prompts_agent.trace.sniff import TraceFormat, sniff
from prompts_agent.trace.tree import Tree, host_name, readable, survey

__all__ = ["InputFile", "TraceInput", "discover"]

_PREFERENCE = (
    TraceFormat.XSPACE,
    TraceFormat.CHROME,
    TraceFormat.KINETO,
    TraceFormat.NSIGHT,
    TraceFormat.HLO_PROTO,
    TraceFormat.HLO_TEXT,
)
"""Within one tree: what tells most comes first. XSpace holds HLO and peaks, jax's JSON does not."""

_REMOTE = {
    "gs": "gcloud storage cp --recursive {url} .",
    "s3": "aws s3 cp --recursive {url} ./trace",
    "az": "azcopy copy '{url}' . --recursive",
    "abfs": "azcopy copy '{url}' . --recursive",
    "abfss": "azcopy copy '{url}' . --recursive",
    "hdfs": "hdfs dfs -get {url} .",
    "hf": "hf download (see the repository's page for {url})",
    "http": "curl -LO {url}",
    "https": "curl -LO {url}",
}
_REMOTE_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.+)", re.DOTALL)
"""One slash is enough: pathlib folds `gs://bucket` to `gs:/bucket`."""


class InputFile(Record):
    """One file and the host (or rank) that wrote it."""

    path: Path
    host: str


class TraceInput(Record):
    """The files of one job, ready for the reader of `format`."""

    format: TraceFormat
    files: tuple[InputFile, ...] = Field(min_length=1)
    session: str | None = None
    """Name of the run directory, None for files given one by one."""
    sha256: str
    size_bytes: int
    caveats: tuple[str, ...] = ()

    def trace_file(self) -> TraceFile:
        """What the profile says about its input."""
        return TraceFile(
            sha256=self.sha256,
            format=self.format.value,
            files=len(self.files),
            size_bytes=self.size_bytes,
            caveats=self.caveats,
        )


def discover(paths: Sequence[Path | str]) -> TraceInput:
    """The files of one job below `paths`.

    One path: a file, or a directory of which the latest run is taken. Several: the hosts or ranks
    of one job, all of one format. Raises `TraceNotFoundError` where nothing is found (listing what
    was), `TraceError` for remote paths, differing formats and repeated hosts, and whatever `sniff`
    raises for a file that was named.
    """
    if not paths:
        raise TraceNotFoundError(
            "no path was given", rule="a trace is needed", cure="Name a file or a directory."
        )
    chosen = [_choose(_local(path)) for path in paths]
    formats = {kind for kind, _, _, _ in chosen}
    if len(formats) > 1:
        listing = ", ".join(
            f"{path} is {kind}" for path, (kind, _, _, _) in zip(paths, chosen, strict=True)
        )
        raise TraceError(
            listing,
            rule="several paths are the hosts of one job, and one job has one format",
            cure="Give the files of one profiler only.",
        )
    files = [file for _, found, _, _ in chosen for file in found]
    _refuse_repeats(files)
    digests = [_sha256(file.path) for file in files]
    sessions = {session for _, _, session, _ in chosen}
    return TraceInput(
        format=formats.pop(),
        files=tuple(files),
        session=sessions.pop() if len(sessions) == 1 else None,  # of one directory
        sha256=_combined(digests),
        size_bytes=sum(file.path.stat().st_size for file in files),
        caveats=tuple(readable(caveat) for _, _, _, caveats in chosen for caveat in caveats),
    )


_Choice = tuple[TraceFormat, list[InputFile], str | None, list[str]]


def _local(path: Path | str) -> Path:
    match = _REMOTE_URL.fullmatch(str(path))
    if match and match[1].lower() in _REMOTE:
        scheme = match[1].lower()
        url = f"{scheme}://{match[2]}"
        raise TraceError(
            f"{url} is not on this machine",
            rule="traces are read from local files; nothing is fetched",
            cure=f"Copy it first: {_REMOTE[scheme].format(url=url)}",
        )
    return Path(path).expanduser()


def _choose(path: Path) -> _Choice:
    try:
        is_directory = path.is_dir()
        exists = path.exists()
    except (OSError, ValueError) as error:  # a loop of links, a NUL in the name
        raise TraceNotFoundError(
            f"{path} cannot be followed ({error})",
            rule="a path leads to a file or a directory",
            cure="Check its links.",
        ) from error
    if is_directory:
        return _choose_run(path)
    if not exists:
        raise TraceNotFoundError(
            f"{path} does not exist",
            rule="a trace is a file, a run directory or a log directory",
            cure=_nearest(path),
        )
    return _choose_file(path)


def _nearest(path: Path) -> str:
    parent = path.parent
    try:
        names = sorted(entry.name for entry in parent.iterdir())[:5] if parent.is_dir() else []
    except OSError:
        names = []
    return f"{parent} holds: {', '.join(names)}." if names else "Check the path."


def _choose_file(path: Path) -> _Choice:
    kind = sniff(path)
    if kind is TraceFormat.CHROME:
        beside = path.with_name(host_name(path, kind) + ".xplane.pb")
        if beside.is_file():
            return _prefer(beside, path)
    return kind, [InputFile(path=path, host=host_name(path, kind))], None, []


def _prefer(xplane: Path, json: Path) -> _Choice:
    """The XSpace beside jax's JSON, unless it is damaged."""
    try:
        kind = sniff(xplane)
    except TraceError as error:
        kind, chosen = TraceFormat.CHROME, json
        caveat = f"{xplane.name} beside it was not read: {error.value}"
    else:
        chosen = xplane
        caveat = (
            f"{xplane.name} was read in place of {json.name} beside it: the JSON lacks the "
            "device kind and the programs, and is cut at 1,000,000 events"
        )
    return kind, [InputFile(path=chosen, host=host_name(chosen, kind))], None, [caveat]


def _choose_run(directory: Path) -> _Choice:
    tree = survey(directory)
    kind = next((kind for kind in _PREFERENCE if tree.of(kind)), None)
    if kind is None:
        raise _nothing(directory, tree)
    runs = sorted(tree.of(kind), key=lambda run: _natural(run.name))
    run = runs[-1]
    caveats = list(tree.caveats)
    if len(runs) > 1:
        others = ", ".join(str(other.directory) for other in runs[-2::-1][:8])
        more = f" and {len(runs) - 9} more" if len(runs) > 9 else ""
        caveats.append(
            f"{len(runs)} runs found; {run.directory} was read, the last by name. "
            f"Not read: {others}{more}"
        )
    caveats += _elsewhere(tree, kind)
    files, notes = run.files_of_one_job()
    found = [InputFile(path=path, host=host_name(path, kind)) for path in files]
    return kind, found, readable(run.name), caveats + notes


def _elsewhere(tree: Tree, chosen: TraceFormat) -> list[str]:
    """Traces of other formats in directories without one of the chosen: they may be newer."""
    known = {run.directory for run in tree.of(chosen)}
    others = [run for run in tree.runs if run.directory not in known and run.format != chosen]
    return [f"not read: the {run.format} trace in {run.directory}" for run in others[:4]]


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Digits compare as numbers: run_9 comes before run_10, dates in the order of time."""
    parts = re.findall(r"\d+|\D+", name)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]


def _nothing(directory: Path, tree: Tree) -> TraceNotFoundError:
    counts = ", ".join(f"{count} × {what}" for what, count in sorted(tree.rejected.items()))
    lines = [f"{directory} holds no trace (found: {counts or 'no files'})"]
    lines += [f"  {path}: {reason}" for path, reason in tree.reasons[:4]]
    unreadable = f" Not readable: {', '.join(tree.unreadable[:3])}." if tree.unreadable else ""
    return TraceNotFoundError(
        "\n".join(lines),
        rule="jax.profiler writes plugins/profile/<run>/<host>.xplane.pb, torch.profiler "
        "*.pt.trace.json.gz, nsys (exported) *.sqlite",
        cure="Give the directory that was passed to jax.profiler.start_trace, or a trace file."
        + unreadable,
    )


def _refuse_repeats(files: list[InputFile]) -> None:
    hosts: dict[str, Path] = {}
    for file in files:
        if file.host in hosts:
            raise TraceError(
                f"host {file.host!r} occurs twice: {hosts[file.host]} and {file.path}",
                rule="each file of a job is another host; two of one host are two sessions",
                cure="Give one session, or rename a file after its host if they differ.",
            )
        hosts[file.host] = file.path


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise TraceNotFoundError(
            f"{path} cannot be read ({error.strerror or error})",
            rule="a trace must be readable by you",
            cure="Check its permissions.",
        ) from error


def _combined(digests: list[str]) -> str:
    """One file keeps its own digest; several get that of their sorted digests, a line each."""
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256("\n".join(sorted(digests)).encode()).hexdigest()
