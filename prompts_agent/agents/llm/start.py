"""Start and end of a run with a model: who is asked, where it is recorded, what is said of it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from prompts_agent import __version__
from prompts_agent.agents.llm.config import LlmConfig
from prompts_agent.agents.llm.dry_run import DryRun
from prompts_agent.agents.llm.run_record import ReportLine, RunLine, RunRecord, default_path
from prompts_agent.agents.llm.session import Session, endpoint_of
from prompts_agent.agents.llm.spans import asked_for
from prompts_agent.agents.report import Report
from prompts_agent.errors import OutputError

__all__ = ["dry_session", "finish", "start"]


def start(config: LlmConfig, record: Path | None, *, resume: bool = False) -> Session:
    """The session of a run, with its record open. Raises `OutputError` for a `record` that cannot
    be written; without one, a record that cannot be written is a note.
    """
    session = Session(config)
    session.keeps_checkpoints, session.resumes = True, resume
    kept = RunRecord(record if record is not None else default_path())
    try:
        kept.open(make_directory=record is None, resume=resume)
    except OutputError as error:
        if record is not None:
            raise
        session.notes.append(f"no record is kept: {error.rule}")
    else:
        session.record = kept
        kept.write(_run_line(config))
    where = f"; record: {kept.path}" if session.record is not None else ""
    if asked_for() and not session.traces:
        session.notes.append("no spans are exported: pip install 'prompts-agent[otel]'")
    session.notes.insert(
        0,
        f"language model: {config.model} at {endpoint_of(config)}, named by {config.origin}{where}",
    )
    return session


def dry_session(config: LlmConfig) -> tuple[Session, DryRun]:
    """A session that keeps the questions and asks nobody."""
    asker = DryRun(config)
    return Session(config, asker=asker), asker


def finish(session: Session, report: Report) -> None:
    """Put the report at the end of the record."""
    if session.record is not None:
        session.record.write(ReportLine(report=report))


def _run_line(config: LlmConfig) -> RunLine:
    return RunLine(
        tool_version=__version__,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        model=config.model,
        endpoint=endpoint_of(config),
        seed=config.seed,
        temperature=config.temperature,
        limits={"seconds": config.seconds, "tokens": config.tokens, "usd": config.usd},
    )
