"""A knowledge base on a Chroma server, shared by a team.

    prompts kb build                    prints DIR
    chroma run --path DIR/chroma        or, for a server that runs: prompts kb build --kb URL
    prompts diagnose TRACE --kb http://localhost:8000

`ServerBase(url, token)` then stands in for the base of a run.

The server's collection holds the recipes themselves (as JSON, checked again on arrival) and their
vectors. What a query sends is its vector and its filter: phase, chip, architecture, findings, axes,
devices, sequence, objective; never a trace, a name or the words. The open Chroma server checks no
token itself: it is sent as `Authorization: Bearer ...` for the proxy in front of it.
"""

from __future__ import annotations

import os
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from pydantic import ValidationError

from prompts_agent.errors import InputError, RecipeError
from prompts_agent.knowledge.base import KnowledgeBase
from prompts_agent.knowledge.index import Index, configuration, document, metadata, where
from prompts_agent.knowledge.library import load_recipes, team_directory, together
from prompts_agent.knowledge.query import Query
from prompts_agent.knowledge.recipe import Recipe
from prompts_agent.knowledge.store import COLLECTION
from prompts_agent.resources import data_directory

__all__ = ["TOKEN_VARIABLE", "ServerBase", "publish"]

TOKEN_VARIABLE = "PROMPTS_KB_TOKEN"  # noqa: S105  (the name of a variable)
TIMEOUT_S = 30.0
"""For each request; Chroma's own client waits for ever."""
_BATCH = 100


class ServerBase(KnowledgeBase):
    """The recipes of a server, and a team's of this machine beside them. Use as a context manager.

    The team's recipes (`team_directory(extra)`) are indexed in this process's memory and are not
    sent. Raises `InputError` where the server does not answer or holds no recipes, `RecipeError`
    where one of its recipes breaks the rules or shares an id with the team's.
    """

    def __init__(self, url: str, token: str | None = None, extra: Path | None = None) -> None:
        place = team_directory(extra)
        team = () if place is None else load_recipes(place)
        self._team = Index(team) if team else None
        self._shared = _Shared(url, token)
        try:
            super().__init__(together(self._shared.recipes, team, str(place)), dense=self)
        except RecipeError:
            self._shared.close()
            raise

    def __enter__(self) -> Self:
        if self._team is not None:
            self._team.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._team is not None:
            self._team.__exit__(None, None, None)
        self._shared.close()

    def similarities(self, query: Query) -> dict[str, float]:
        """Of the server's recipes as it answers, of the team's as this process does."""
        own = {} if self._team is None else self._team.similarities(query)
        return {**self._shared.similarities(query), **own}


class _Shared:
    """The server's collection and the recipes in it, read once."""

    def __init__(self, url: str, token: str | None) -> None:
        self._url = url
        self._client = _client(url, token)
        try:
            self._collection = _ask(url, lambda: self._client.get_collection(COLLECTION, None))
            self._check_embedder()
            answer = _ask(url, lambda: self._collection.get(include=["documents"]))
            found = [_parse(key, text, url) for key, text in _pairs(answer)]
        except (InputError, RecipeError):
            self.close()
            raise
        self.recipes = tuple(sorted(found, key=lambda recipe: recipe.id))

    def close(self) -> None:
        _close(self._client)

    def similarities(self, query: Query) -> dict[str, float]:
        from prompts_agent.knowledge.embed import embed

        answer = _ask(
            self._url,
            lambda: self._collection.query(
                query_embeddings=embed([query.words]),
                n_results=max(1, len(self.recipes)),
                where=where(query),
                include=["distances"],
            ),
        )
        found = zip(answer["ids"][0], answer["distances"][0], strict=True)
        return {key: 1 - float(distance) for key, distance in found}

    def _check_embedder(self) -> None:
        from prompts_agent.knowledge.embed import EMBEDDER

        made_by = (self._collection.metadata or {}).get("embedder")
        if made_by != EMBEDDER:
            raise InputError(
                f"{self._url}: vectors of {made_by!r}",
                rule=f"this version compares vectors of {EMBEDDER!r} only",
                cure="Publish the recipes again with this version, or use the server's version.",
            )


def publish(url: str, token: str | None = None) -> int:
    """Replaces the server's recipes by those that came with this package; how many there are.

    A team's recipes are never sent.
    """
    recipes = load_recipes(data_directory("knowledge_base"))
    client = _client(url, token)
    try:
        _ask(url, lambda: _replace(client, recipes))
    finally:
        _close(client)
    return len(recipes)


def _replace(client: Any, recipes: tuple[Recipe, ...]) -> None:
    """Fills a collection beside the old one, then swaps names: readers see one or the other."""
    from prompts_agent.knowledge.embed import EMBEDDER, embed

    fresh, old = f"{COLLECTION}-new", f"{COLLECTION}-old"
    names = {collection.name for collection in client.list_collections()}
    for name in names & {fresh, old}:
        client.delete_collection(name)
    collection = client.create_collection(
        fresh,
        embedding_function=None,
        metadata={"embedder": EMBEDDER},
        configuration=configuration(len(recipes)),
    )
    for start in range(0, len(recipes), _BATCH):
        part = recipes[start : start + _BATCH]
        collection.add(
            ids=[recipe.id for recipe in part],
            embeddings=embed([document(recipe) for recipe in part]),
            metadatas=[metadata(recipe) for recipe in part],
            documents=[recipe.model_dump_json() for recipe in part],
        )
    with _without_warnings():
        if COLLECTION in names:
            client.get_collection(COLLECTION, None).modify(name=old)
        collection.modify(name=COLLECTION)
    if COLLECTION in names:
        client.delete_collection(old)


def _pairs(answer: Any) -> list[tuple[str, str]]:
    return list(zip(answer["ids"], answer["documents"] or (), strict=True))


def _parse(key: str, text: str, url: str) -> Recipe:
    try:
        recipe = Recipe.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise RecipeError(
            f"recipe {key!r} of {url}",
            rule=f"breaks the rules of recipes ({first['msg']})",
            cure="Publish the recipes again.",
        ) from None
    if recipe.id != key:
        raise RecipeError(
            f"recipe {key!r} of {url}",
            rule=f"says that it is {recipe.id!r}",
            cure="Publish the recipes again.",
        )
    return recipe


def _client(url: str, token: str | None) -> Any:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise InputError(
            f"knowledge base {url!r}",
            rule="a server is http://host:port or https://host:port",
            cure=f"Give the token in {TOKEN_VARIABLE}, not in the address.",
        )
    secret = token if token is not None else os.environ.get(TOKEN_VARIABLE)
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}

    def connect() -> Any:
        # First with a time limit: Chroma's constructor asks the server and has none.
        request = urllib.request.Request(  # noqa: S310  (the scheme was checked above)
            f"{parts.scheme}://{parts.netloc}/api/v2/heartbeat", headers=headers
        )
        urllib.request.urlopen(request, timeout=TIMEOUT_S).close()  # noqa: S310
        import chromadb
        from chromadb.config import Settings

        client = chromadb.HttpClient(
            host=parts.hostname or "",
            port=parts.port or (443 if parts.scheme == "https" else 80),
            ssl=parts.scheme == "https",
            headers=headers,
            settings=Settings(anonymized_telemetry=False),
        )
        for session in _sessions(client):
            session.timeout = TIMEOUT_S
        return client

    return _ask(url, connect)


def _sessions(client: Any) -> list[Any]:
    """The HTTP sessions, which Chroma neither limits in time nor closes; none in other versions."""
    admin = getattr(client, "_admin_client", None)
    servers = [getattr(part, "_server", None) for part in (client, admin)]
    found = [getattr(server, "_session", None) for server in servers]
    return [session for session in found if session is not None]


def _close(client: Any) -> None:
    sessions = _sessions(client)
    client.close()
    for session in sessions:
        session.close()


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Renaming a collection makes Chroma warn about the configuration that it stored itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def _ask(url: str, what: Callable[[], Any]) -> Any:
    """The answer, or an `InputError`: Chroma and its transport raise types of many kinds."""
    try:
        return what()
    except (InputError, RecipeError):
        raise
    except Exception as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        rule, cure = _explained(error)
        raise InputError(f"knowledge base {url}", rule=rule, cure=cure) from error


def _explained(error: Exception) -> tuple[str, str]:
    """(what went wrong, what to do), for a person who did not set the server up."""
    first = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    code, name = getattr(error, "code", None), type(error).__name__
    if callable(code):  # Chroma's own errors
        code = code()
    if code in (401, 403):
        return (
            f"the server refuses the token (HTTP {code})",
            f"Put the right one into {TOKEN_VARIABLE}; it is sent as a bearer token.",
        )
    if name == "NotFoundError":
        return (
            f"the server holds no collection {COLLECTION!r}",
            "Fill it with `prompts kb build --kb URL`.",
        )
    if code is not None:
        return (
            f"what answers there is no Chroma server ({first})",
            "Give the address of `chroma run`.",
        )
    if isinstance(error, OSError) or "onnect" in name or "imeout" in name:
        reason = getattr(error, "reason", None) or first
        return (
            f"no server answers there ({reason})",
            "Start it (`chroma run --path DIR/chroma`, DIR from `prompts kb build`), or correct "
            "the address.",
        )
    return (
        f"the server gave no answer that can be used ({name}: {first})",
        f"Check that `chroma run` serves there, and {TOKEN_VARIABLE}.",
    )
