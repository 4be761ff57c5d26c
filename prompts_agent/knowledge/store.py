"""A built index on disk: made once, read by any number of processes at once.

    <root>/<digest>/            path = hash of the recipes, the embedder and this format
        manifest.json           written last; counts, embedder, SHA-256 of vectors.npz
        vectors.npz             ids and vectors: all that a run reads
        chroma/                 a persistent Chroma index, for one server: `chroma run --path ...`

Embedded Chroma is not safe for several processes, not even for reading: opening runs migrations,
which write, and SQLite waits for up to a quarter of an hour (chroma-core/chroma issue 7040). So the
Chroma directory belongs to the one server that may be started on it, and every other process reads
`vectors.npz`, which nobody writes after the directory got its name, into a collection in memory.

One process builds at a time, under a lock that is waited for at most `LOCK_WAIT_S`, in a directory
beside the final one, which then gets its name in one rename. A name that is there is whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prompts_agent.errors import InternalError, OutputError, RecipeError
from prompts_agent.knowledge.index import configuration, document, metadata
from prompts_agent.knowledge.library import library_digest
from prompts_agent.knowledge.recipe import Recipe

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["COLLECTION", "LOCK_WAIT_S", "build", "cache_directory", "store_path", "stored_vectors"]

COLLECTION = "prompts-recipes"
LOCK_WAIT_S = 60.0
"""A build of 500 recipes takes seconds; a lock held for longer belongs to a stopped process."""

_FORMAT = 2
_MANIFEST, _VECTORS, _CHROMA = "manifest.json", "vectors.npz", "chroma"


def cache_directory() -> Path:
    """`$XDG_CACHE_HOME/prompts/knowledge`, by default below ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(base) if base else Path.home() / ".cache") / "prompts" / "knowledge"


def store_path(recipes: Sequence[Recipe], root: Path | None = None) -> Path:
    """Where the index of exactly these recipes lies, whether it is built or not."""
    from prompts_agent.knowledge.embed import EMBEDDER

    content = f"{_FORMAT}:{EMBEDDER}:{library_digest(recipes)}"
    name = hashlib.sha256(content.encode()).hexdigest()[:24]
    return (cache_directory() if root is None else root) / name


def build(
    recipes: Sequence[Recipe],
    root: Path | None = None,
    *,
    wait_s: float = LOCK_WAIT_S,
    for_server: bool = True,
) -> Path:
    """Builds the index of `recipes` below `root` unless it is there; its directory.

    Without `for_server` it holds no Chroma files: what runs read, and no server can serve.

    Raises `OutputError` where the directory cannot be written or another build holds the lock for
    longer than `wait_s`, `RecipeError` where there is nothing to index.
    """
    from filelock import FileLock, Timeout

    if not recipes:
        raise RecipeError(
            "no recipes", rule="an index holds at least one", cure="Add recipes, then build."
        )
    target = store_path(recipes, root)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(target.parent / "build.lock", timeout=wait_s):
            if stored_vectors(recipes, root) is None:
                _build(tuple(recipes), target, for_server=for_server)
    except Timeout:
        raise OutputError(
            f"lock {target.parent / 'build.lock'}",
            rule=f"another process has built for more than {wait_s:g} s",
            cure="Wait for it, or stop it and try again.",
        ) from None
    except OSError as error:
        raise OutputError(
            str(target.parent),
            rule=f"cannot be written ({error.strerror or error})",
            cure="Give a directory that can be, with --cache or XDG_CACHE_HOME.",
        ) from error
    return target


def stored_vectors(
    recipes: Sequence[Recipe], root: Path | None = None
) -> NDArray[np.float32] | None:
    """One row a recipe in their order, from the built index; None: there is none, or it is damaged.

    Reads two files and takes no lock.
    """
    import numpy as np

    from prompts_agent.knowledge.embed import DIMENSIONS

    target = store_path(recipes, root)
    try:
        manifest = json.loads((target / _MANIFEST).read_text(encoding="utf-8"))
        blob = (target / _VECTORS).read_bytes()
        if hashlib.sha256(blob).hexdigest() != manifest["vectors_sha256"]:
            return None
        with np.load(target / _VECTORS, allow_pickle=False) as archive:
            ids, rows = archive["ids"].tolist(), archive["vectors"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    place = {key: index for index, key in enumerate(ids)}
    if rows.shape != (len(ids), DIMENSIONS) or any(r.id not in place for r in recipes):
        return None
    picked: NDArray[np.float32] = rows[[place[recipe.id] for recipe in recipes]]
    return picked


def _build(recipes: tuple[Recipe, ...], target: Path, *, for_server: bool) -> None:
    import numpy as np

    from prompts_agent.knowledge.embed import EMBEDDER, embed

    vectors = embed([document(recipe) for recipe in recipes])
    work = Path(tempfile.mkdtemp(prefix=".building-", dir=target.parent))
    try:
        if for_server:
            _build_chroma(recipes, vectors, work / _CHROMA)
        np.savez(work / _VECTORS, ids=np.array([r.id for r in recipes]), vectors=vectors)
        manifest = {
            "format": _FORMAT,
            "embedder": EMBEDDER,
            "recipes": len(recipes),
            "digest": library_digest(recipes),
            "collection": COLLECTION,
            "vectors_sha256": hashlib.sha256((work / _VECTORS).read_bytes()).hexdigest(),
        }
        text = json.dumps(manifest, indent=2, sort_keys=True) + "\n"
        (work / _MANIFEST).write_text(text, encoding="utf-8")
        if target.exists():  # damaged, or it would have been used
            shutil.rmtree(target)
        work.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _build_chroma(recipes: tuple[Recipe, ...], vectors: Any, path: Path) -> None:
    from prompts_agent.knowledge.embed import EMBEDDER

    try:
        import chromadb
        from chromadb.config import Settings

        client = chromadb.PersistentClient(str(path), Settings(anonymized_telemetry=False))
        try:
            collection = client.create_collection(
                COLLECTION,
                embedding_function=None,
                metadata={"embedder": EMBEDDER},
                configuration=configuration(len(recipes)),
            )
            collection.add(
                ids=[recipe.id for recipe in recipes],
                embeddings=vectors,
                metadatas=[metadata(recipe) for recipe in recipes],
                documents=[recipe.model_dump_json() for recipe in recipes],
            )
        finally:
            client.close()
    except OSError:
        raise
    # Chroma's native part raises types of its own, and any of them means the same to us.
    except Exception as error:
        raise InternalError(
            f"chromadb ({type(error).__name__}: {error})",
            rule="the persistent index was not written",
            cure="Check the disk, then `pip install --force-reinstall 'chromadb>=1.5,<2'`.",
        ) from error
