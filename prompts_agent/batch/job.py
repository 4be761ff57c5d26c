"""Job: what is done for one item, in a process of its own: fetch, diagnose, one JSON report."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prompts_agent import __version__
from prompts_agent.batch.item import Item
from prompts_agent.batch.remote import fetch, is_remote
from prompts_agent.batch.settings import Settings
from prompts_agent.record import Record

if TYPE_CHECKING:
    from prompts_agent.agents.llm.session import Session
    from prompts_agent.agents.report import Report
    from prompts_agent.agents.request import DiagnoseRequest

__all__ = [
    "TARGET",
    "Answer",
    "Task",
    "diagnose",
    "knowledge_digest",
    "read_answer",
    "report_digest",
    "warm_up",
]

TARGET = f"{__name__}:diagnose"
_WARM = (
    "chromadb",
    "chromadb.api.rust",
    "chromadb.telemetry.product.posthog",
    "google.protobuf.descriptor_pb2",
    "langchain_core.tracers.context",
    "langchain_core.tracers.run_collector",
    "langchain_core.tracers.stdout",
    "langgraph.graph",
    "prompts_agent.agents.graph",
    "prompts_agent.agents.inference",
    "prompts_agent.agents.planning",
    "prompts_agent.emit.registry",
    "prompts_agent.estimate.setting",
    "prompts_agent.knowledge.retrieve",
    "prompts_agent.report.json_text",
    "prompts_agent.trace.chrome",
    "prompts_agent.trace.hlo.text",
    "prompts_agent.trace.kineto",
    "prompts_agent.trace.measure.profile",
    "prompts_agent.trace.nsight",
    "prompts_agent.trace.read",
    "prompts_agent.trace.xspace.reader",
    "prompts_agent.workload.yaml",
)
"""What most items import; the others pay for it themselves. None of them starts a thread."""


class Task(Record):
    """An item and what is asked about it."""

    item: Item
    settings: Settings


class Answer(Record):
    """What a row says of a report."""

    silent: bool
    trace_sha256: str | None
    tool_version: str
    kb_sha256: str | None
    model_id: str | None
    seed: int | None


def warm_up() -> None:
    """Import and load what every item needs, once for all of them."""
    for name in _WARM:
        importlib.import_module(name)
    from prompts_agent.agents.graph import build_graph
    from prompts_agent.estimate.calibration import load_calibration
    from prompts_agent.hardware.catalog import chip_names
    from prompts_agent.knowledge.retrieve import open_base
    from prompts_agent.model.catalog import model_names

    load_calibration()
    chip_names()
    model_names()
    knowledge_digest(None, os.environ.get("PROMPTS_KB"))
    build_graph()
    with open_base():  # kept open; Chroma itself, which has threads, starts with the first query
        pass


def diagnose(payload: bytes) -> bytes:
    """The answer as a line of JSON, and the report behind it. Raises what a diagnosis raises."""
    task = Task.model_validate_json(payload)
    address, settings = task.item.address, task.settings
    with tempfile.TemporaryDirectory(prefix="fetched-") as directory:
        path = fetch(address, Path(directory)) if is_remote(address) else Path(address)
        report, session = _report(path, task)
        text = _text(report, directory, address)
    answer = Answer(
        silent=_is_silent(report),
        trace_sha256=report.trace.sha256 if report.trace is not None else None,
        tool_version=__version__,
        kb_sha256=None
        if settings.kb is not None
        else knowledge_digest(settings.kb_path, os.environ.get("PROMPTS_KB")),
        model_id=session.config.model if session is not None else None,
        seed=session.config.seed if session is not None else None,
    )
    return answer.model_dump_json().encode() + b"\n" + text


def read_answer(result: bytes) -> tuple[Answer, bytes]:
    """What `diagnose` returned: the answer, and the report's bytes."""
    head, _, report = result.partition(b"\n")
    return Answer.model_validate_json(head), report


def report_digest(report: bytes) -> str:
    """The name of a report: SHA-256 of its bytes."""
    return hashlib.sha256(report).hexdigest()


def _report(path: Path, task: Task) -> tuple[Report, Session | None]:
    from prompts_agent.agents.graph import run_diagnosis, run_plan
    from prompts_agent.emit.registry import with_configs

    session = _session(task.settings)
    plans = path.suffix.lower() in (".yaml", ".yml")
    request = _request(None if plans else path, str(path) if plans else task.item.workload, task)
    report = (run_plan if plans else run_diagnosis)(request, None, session)
    return with_configs(report, task.settings.framework, None), session


def _request(path: Path | None, workload_file: str | None, task: Task) -> DiagnoseRequest:
    from prompts_agent.agents.request import DiagnoseRequest
    from prompts_agent.emit.registry import constraints_of
    from prompts_agent.workload.yaml import load_workload

    workload = None
    if workload_file is not None:
        with tempfile.TemporaryDirectory(prefix="workload-") as directory:
            remote = is_remote(workload_file)
            local = fetch(workload_file, Path(directory)) if remote else Path(workload_file)
            workload = load_workload(local)
    flags: dict[str, Any] = task.settings.model_dump(exclude={"framework", "llm", "llm_base_url"})
    return DiagnoseRequest(
        paths=() if path is None else (path,),
        workload=workload,
        constraints=constraints_of(task.settings.framework),
        **flags,
    )


def _session(settings: Settings) -> Session | None:
    if settings.llm is None:
        return None
    from prompts_agent.agents.llm.config import LlmFlags, configure
    from prompts_agent.agents.llm.session import Session

    config = configure(LlmFlags(model=settings.llm, base_url=settings.llm_base_url))
    return None if config is None else Session(config)


def _text(report: Report, directory: str, address: str) -> bytes:
    """The report, with the address in place of where it was fetched to, which differs each time."""
    from prompts_agent.report.json_text import json_text

    text = json_text(report)
    inside = json.dumps(directory)[1:-1]
    if is_remote(address) and inside in text:
        parent = json.dumps(address.rstrip("/").rpartition("/")[0], ensure_ascii=False)[1:-1]
        text = text.replace(inside, parent)
    return text.encode()


def _is_silent(report: Report) -> bool:
    from prompts_agent.report.answered import is_silent

    return is_silent(report)


@cache
def knowledge_digest(kb_path: Path | None, _variable: str | None) -> str:
    """SHA-256 of every recipe that was asked; `PROMPTS_KB` counts where `kb_path` is None."""
    from prompts_agent.knowledge.library import library_digest, load_recipes

    return library_digest(load_recipes(extra=kb_path))
