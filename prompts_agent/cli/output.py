"""Where a result goes: stdout, or a file that appears whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from prompts_agent.errors import OutputError

__all__ = ["check_output", "stdout_is_unicode", "write_result"]


def check_output(path: Path | None, *, force: bool) -> None:
    """Refuse, before any work is done, a file that could not be written after it.

    Raises `OutputError` for a directory, a missing or read-only parent, and an existing file
    without `force`.
    """
    if path is None or _is_device(path):
        return
    if path.is_dir():
        raise OutputError(
            str(path), rule="the output is a file, and this is a directory", cure="Add a file name."
        )
    if not path.parent.is_dir():
        raise OutputError(
            str(path),
            rule=f"there is no directory {path.parent}",
            cure="Create it, or write somewhere else.",
        )
    if not os.access(path.parent, os.W_OK):
        raise OutputError(
            str(path),
            rule=f"{path.parent} cannot be written to",
            cure="Write somewhere else.",
        )
    if not force and os.path.lexists(path):
        raise OutputError(
            str(path),
            rule="a file of that name exists",
            cure="Choose another name, or add --force to replace it.",
        )


def write_result(text: str | bytes, path: Path | None, *, force: bool) -> None:
    """Write text (as UTF-8) or bytes. Raises `OutputError`; an unfinished file is removed."""
    if path is None:
        _write_stdout(text)
        return
    check_output(path, force=force)
    try:
        if _is_device(path):
            path.write_bytes(_bytes(text))
        else:
            _write_whole(text, path.resolve() if force else path, force=force)
    except OSError as error:
        raise OutputError(
            str(path),
            rule=error.strerror or type(error).__name__,
            cure="Free some space, or write somewhere else.",
        ) from error


def stdout_is_unicode() -> bool:
    """Whether stdout can show every character."""
    return (sys.stdout.encoding or "ascii").lower().startswith("utf")


def _bytes(text: str | bytes) -> bytes:
    return text.encode("utf-8") if isinstance(text, str) else text


def _is_device(path: Path) -> bool:
    """`/dev/stdout`, a pipe: there is nothing to replace, and nothing to keep whole."""
    try:
        return not (stat.S_ISREG(path.stat().st_mode) or path.is_dir())
    except OSError:
        return False


def _write_stdout(text: str | bytes) -> None:
    buffer = getattr(sys.stdout, "buffer", None)
    sys.stdout.flush()
    if buffer is None:
        sys.stdout.write(text if isinstance(text, str) else text.decode(errors="replace"))
    else:
        buffer.write(_bytes(text))
    sys.stdout.flush()


def _write_whole(text: str | bytes, path: Path, *, force: bool) -> None:
    with _temporary(path) as temporary:
        temporary.write_bytes(_bytes(text))
        if force:
            temporary.replace(path)
            return
        try:
            # A link fails where the name was taken meanwhile; a rename would replace that file.
            os.link(temporary, path)
        except FileExistsError as error:
            raise OutputError(
                str(path),
                rule="a file of that name appeared meanwhile",
                cure="Choose another name, or add --force to replace it.",
            ) from error
        except OSError:  # a file system without hard links
            temporary.replace(path)


@contextlib.contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """A file beside `path`, gone afterwards unless it was renamed."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(descriptor)
    temporary = Path(name)
    try:
        # mkstemp keeps others out; a result is as readable as any new file.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
