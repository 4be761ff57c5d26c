"""Remote: addresses that fsspec reads. They are listed by the parent, fetched by the item's own
process into its temporary directory, and gone with it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from prompts_agent.batch.extra import fsspec
from prompts_agent.errors import SettingError, TraceNotFoundError

__all__ = ["Listed", "expand", "fetch", "is_remote", "read_bytes"]

_URL = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+(::|://)")
_EXTRAS = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gcs",
    "gcs": "gcs",
    "az": "azure",
    "abfs": "azure",
    "abfss": "azure",
    "hf": "hf",
    "http": "http",
    "https": "http",
}


def is_remote(address: str) -> bool:
    """`scheme://…`, also where schemes are chained (`zip::s3://…`)."""
    return _URL.match(address) is not None


class Listed(NamedTuple):
    """Files that were named, alone or by a pattern, and those below a directory that was."""

    named: list[str]
    below: list[str]


def expand(address: str) -> Listed:
    """Every file that the address names. Raises `TraceNotFoundError` where there is none."""
    files, path = _filesystem(address)
    try:
        if any(sign in path for sign in "*?["):
            matches = files.glob(path, detail=True)
        elif files.isdir(path):
            matches = {path: {"type": "directory"}}
        else:
            return Listed([address], [])
        named = [name for name, about in matches.items() if about["type"] != "directory"]
        places = [name for name, about in matches.items() if about["type"] == "directory"]
        below = {name for place in places for name in files.find(place)} - set(named)
        # `zip://*::s3://b/t.zip`: where the archive lies belongs to each name in it.
        _, chain, outer = address.partition("::")
        found = Listed(
            *(
                sorted(f"{files.unstrip_protocol(name)}{chain}{outer}" for name in names)
                for names in (named, below)
            )
        )
    except Exception as error:
        raise _unreachable(address, error) from error
    if not any(found):
        raise TraceNotFoundError(
            address, rule="nothing is there", cure="Check the address and your rights to list it."
        )
    return found


def fetch(address: str, directory: Path) -> Path:
    """The file or run directory at `address`, copied below `directory` under its own name."""
    files, path = _filesystem(address)
    target = directory / (path.rstrip("/").rpartition("/")[2] or "trace")
    try:
        if files.isdir(path):
            files.get(path.rstrip("/") + "/", str(target) + "/", recursive=True)
        else:
            files.get_file(path, str(target))
    except MemoryError:
        raise
    except Exception as error:
        raise _unreachable(address, error) from error
    return target


def read_bytes(address: str) -> bytes:
    """The whole of a small file, local or not."""
    try:
        if not is_remote(address):
            return Path(address).read_bytes()
        files, path = _filesystem(address)
        content: bytes = files.cat_file(path)
    except SettingError:
        raise
    except Exception as error:
        raise _unreachable(address, error) from error
    return content


def _filesystem(address: str) -> tuple[Any, str]:
    module = fsspec()
    from fsspec.core import url_to_fs

    scheme = address.partition("://")[0].rpartition("::")[2].lower()
    try:
        files, path = url_to_fs(address)
    except ImportError as error:
        extra = _EXTRAS.get(scheme)
        raise SettingError(
            f"{address}: {error}",
            rule=f"fsspec needs a driver for {scheme}://",
            cure=f"pip install 'prompts-agent[{extra}]'" if extra else f"Install it: {error}",
        ) from error
    except ValueError as error:
        known = ", ".join(sorted(set(_EXTRAS) & set(module.available_protocols())))
        raise SettingError(
            f"{address} ({error})", rule="fsspec knows no such scheme", cure=f"It knows {known}, …"
        ) from error
    return files, str(path)


def _unreachable(address: str, error: Exception) -> TraceNotFoundError:
    said = str(error).strip().splitlines()
    return TraceNotFoundError(
        f"{address} cannot be read ({type(error).__name__}: {said[0] if said else ''})",
        rule="an address must be there and readable by you",
        cure="Check it, your network and your credentials.",
    )
