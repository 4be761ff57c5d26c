"""Changed: which files a change touches, asked of git."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from prompts_agent.errors import InputError

__all__ = ["changed_files", "matching"]

_COMMIT = re.compile(r"[0-9A-Za-z][\w./~^@{}-]*")
_LIMIT_S = 60


def changed_files(base: str, head: str, directory: Path = Path()) -> tuple[str, ...]:
    """Paths, from the repository's root, that differ between `head` and where it left `base`.

    Raises `InputError` where git does not know a commit: a shallow clone holds only the newest.
    """
    out = _git(["diff", "--name-only", "-z", f"{_commit(base)}...{_commit(head)}"], directory)
    return tuple(sorted(name for name in out.split("\0") if name))


def matching(files: Iterable[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """The files that any pattern names; `*` crosses directories, as in a workflow's `**`."""
    return tuple(name for name in files if any(fnmatchcase(name, p) for p in patterns))


def _commit(name: str) -> str:
    """A name that git cannot take for an option."""
    if _COMMIT.fullmatch(name):
        return name
    raise InputError(
        f"commit {name!r}", rule="is no name of a commit", cure="Give a hash, a branch or a tag."
    )


def _git(arguments: list[str], directory: Path) -> str:
    command = ["git", "-c", "core.quotePath=false", *arguments]
    try:
        done = subprocess.run(
            command, cwd=directory, capture_output=True, timeout=_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(
            "git", rule=f"it could not be run: {error}", cure="Install git, or give the files."
        ) from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise InputError(
            f"git {arguments[0]}",
            rule=said.splitlines()[-1] if said else f"it ended with {done.returncode}",
            cure="Check out the history too: `fetch-depth: 0` of actions/checkout.",
        )
    return done.stdout.decode(errors="surrogateescape")
