"""What `diagnose` and `plan` say about a language model, and the session that comes of it."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prompts_agent.agents.llm.config import LlmConfig
    from prompts_agent.agents.llm.dry_run import DryRun
    from prompts_agent.agents.llm.session import Session
    from prompts_agent.agents.report import Report

__all__ = ["LlmChoice", "Talk", "configured", "opened"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmChoice:
    """The flags."""

    model: str | None = None
    base_url: str | None = None
    off: bool = False
    dry_run: bool = False
    record: Path | None = None
    resume: bool = False


def configured(choice: LlmChoice) -> LlmConfig | None:
    """The configuration; None: no model. Raises `InputError` for a flag that needs one."""
    if choice.off:
        return None
    from prompts_agent.agents.llm.switch import is_on

    if is_on(choice.model, os.environ, Path.cwd()):
        from prompts_agent.agents.llm.config import LlmFlags, configure

        return configure(LlmFlags(model=choice.model, base_url=choice.base_url))
    needs = {
        "--llm-dry-run": choice.dry_run,
        "--record": choice.record is not None,
        "--resume": choice.resume,
        "--llm-base-url": choice.base_url is not None,
    }
    used = [name for name, given in needs.items() if given]
    if used:
        from prompts_agent.errors import InputError

        raise InputError(
            used[0],
            rule="is about a language model, and none is configured",
            cure="Name one with --llm MODEL, PROMPTS_LLM_MODEL or in prompts.toml.",
        )
    return None


@dataclass(slots=True)
class Talk:
    """The model's side of one run of the program; without a model, nothing."""

    session: Session | None = None
    dry: DryRun | None = None

    def end(self, report: Report) -> None:
        """The run came to its end."""
        if self.session is not None and self.dry is None:
            from prompts_agent.agents.llm.start import finish

            finish(self.session, report)


@contextlib.contextmanager
def opened(choice: LlmChoice, *, quiet: bool) -> Iterator[Talk]:
    """A talk with the model that is configured; who is asked, and how it went, goes to stderr."""
    config = configured(choice)
    if config is None:
        yield Talk()
        return
    from prompts_agent.agents.llm.start import dry_session, start

    if choice.dry_run:
        session, dry = dry_session(config)
        yield Talk(session, dry)
        return
    session = start(config, choice.record, resume=choice.resume)
    _tell(session, quiet=quiet)
    try:
        yield Talk(session)
    except KeyboardInterrupt:
        session.notes.append("the same command with --resume goes on from here")
        raise
    finally:
        _tell(session, quiet=quiet)


def _tell(session: Session, *, quiet: bool) -> None:
    """The session's notes on stderr, each once."""
    from prompts_agent.report.text import plain, to_ascii

    notes, session.notes = session.notes, []
    encoding = (getattr(sys.stderr, "encoding", None) or "ascii").lower()
    for note in [] if quiet else notes:
        line = plain(note)
        sys.stderr.write((line if encoding.startswith("utf") else to_ascii(line)) + "\n")
