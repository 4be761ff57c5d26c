"""Checkpoints: the graph's state as JSON of known types, in a SQLite file of LangGraph's saver.

LangGraph's own serializer would import whatever class a file names; this one knows the types of the
state and builds no others.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from prompts_agent import __version__
from prompts_agent.agents.llm.config import LlmConfig
from prompts_agent.agents.llm.places import state_directory
from prompts_agent.agents.request import DiagnoseRequest

__all__ = ["StateSerializer", "checkpoint_path", "saver"]

_TAG = "prompts"


@cache
def _types() -> dict[str, TypeAdapter[Any]]:
    """Name → type of everything that a state holds and JSON does not."""
    from prompts_agent.agents.critic.review import Review
    from prompts_agent.agents.finding import Finding
    from prompts_agent.agents.opinion import Opinion
    from prompts_agent.agents.planner.board import Board
    from prompts_agent.agents.planner.case import Case
    from prompts_agent.agents.planner.search import Found
    from prompts_agent.agents.report import Abstention, Report
    from prompts_agent.agents.resolve import Job
    from prompts_agent.agents.retriever import Retrieved
    from prompts_agent.trace.profile import Profile, TraceFile

    kinds: tuple[type, ...] = (
        Abstention,
        Board,
        Case,
        DiagnoseRequest,
        Finding,
        Found,
        Job,
        Opinion,
        Profile,
        Report,
        Retrieved,
        Review,
        TraceFile,
    )
    return {kind.__name__: TypeAdapter(kind) for kind in kinds}


@cache
def _pairs() -> TypeAdapter[Any]:
    from prompts_agent.agents.planner.draft import Candidate
    from prompts_agent.layout.layout import Layout

    return TypeAdapter(list[tuple[Layout, list[Candidate]]])


class StateSerializer:
    """LangGraph's `SerializerProtocol`: plain values by its own strict serializer, ours as JSON."""

    def __init__(self) -> None:
        from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

        self._plain = JsonPlusSerializer(allowed_msgpack_modules=None)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Type and bytes."""
        kind, data = self._plain.dumps_typed(_packed(obj))
        return str(kind), bytes(data)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """The object again. Raises `ValueError` where the file holds something else."""
        return _unpacked(self._plain.loads_typed(data))


def _packed(value: Any) -> Any:
    name = type(value).__name__
    if name == "Found":
        # JSON has no objects as keys, and the layouts that stand for others are keys here.
        others = [(key, list(line)) for key, line in value.roomier.items()]
        bare = _types()[name].dump_json(replace(value, roomier={})).decode()
        return {_TAG: name, "json": bare, "roomier": _pairs().dump_json(others).decode()}
    if name in _types() and type(value).__module__.startswith("prompts_agent."):
        return {_TAG: name, "json": _types()[name].dump_json(value).decode()}
    if isinstance(value, tuple):
        return {_TAG: "tuple", "items": [_packed(item) for item in value]}
    if isinstance(value, list):
        return [_packed(item) for item in value]
    if isinstance(value, dict):
        return {key: _packed(item) for key, item in value.items()}
    return value


def _unpacked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unpacked(item) for item in value]
    if not isinstance(value, dict):
        return value
    if _TAG not in value:
        return {key: _unpacked(item) for key, item in value.items()}
    if value[_TAG] == "tuple":
        return tuple(_unpacked(item) for item in value["items"])
    found = _types()[value[_TAG]].validate_json(value["json"])
    if "roomier" not in value:
        return found
    pairs = _pairs().validate_json(value["roomier"])
    return replace(found, roomier={key: tuple(line) for key, line in pairs})


def checkpoint_path(request: DiagnoseRequest, config: LlmConfig) -> Path:
    """The file of runs of that request with that model: same flags, same bytes, same version."""
    files = sorted(_stamps(request.paths))
    text = json.dumps(
        [__version__, config.model, config.base_url, request.model_dump_json(), files]
    )
    name = hashlib.sha256(text.encode()).hexdigest()[:24]
    return state_directory() / "checkpoints" / f"{name}.sqlite"


def _stamps(paths: tuple[Path, ...]) -> Iterator[tuple[str, int, int]]:
    for path in paths:
        for one in (path, *(path.rglob("*") if path.is_dir() else ())):
            with contextlib.suppress(OSError):
                at = one.stat()
                yield str(one.resolve()), at.st_size, at.st_mtime_ns


@contextlib.contextmanager
def saver(path: Path) -> Iterator[Any]:
    """LangGraph's saver on that file. Raises `OSError` and `sqlite3.Error` where it cannot be
    opened; a disk that fills up later costs the checkpoint, not the run.
    """
    from langgraph.checkpoint.sqlite import SqliteSaver

    class Forgiving(SqliteSaver):
        def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
            try:
                return super().put(config, checkpoint, metadata, new_versions)
            except (OSError, sqlite3.Error):
                kept = {**config["configurable"], "checkpoint_id": checkpoint["id"]}
                return {"configurable": kept}

        def put_writes(self, *arguments: Any, **named: Any) -> None:
            with contextlib.suppress(OSError, sqlite3.Error):
                super().put_writes(*arguments, **named)

    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=0o600)
    connection = sqlite3.connect(path, check_same_thread=False)
    try:
        keeper = Forgiving(connection, serde=StateSerializer())
        keeper.setup()
        yield keeper
    finally:
        connection.close()
