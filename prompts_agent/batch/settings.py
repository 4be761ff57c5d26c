"""Settings: what is asked about every item of a batch, and must stay so when it is gone on with."""

from __future__ import annotations

from pathlib import Path

from prompts_agent.errors import InputError
from prompts_agent.record import Record

__all__ = ["Settings", "require_same"]


class Settings(Record):
    """The flags of a diagnosis. All of them decide the reports."""

    model: str | None = None
    target: str | None = None
    phase: str | None = None
    objective: str | None = None
    global_batch: int | None = None
    sequence: int | None = None
    framework: str | None = None
    top: int = 3
    verify: str = "none"
    xprof: bool = False
    kb_path: Path | None = None
    kb: str | None = None
    calibration: Path | None = None
    llm: str | None = None
    llm_base_url: str | None = None


_FLAGS = {"global_batch": "batch"}


def require_same(before: Settings, now: Settings, place: str) -> None:
    """Raises `InputError` where a batch in `place` was begun with other flags."""
    old, new = before.model_dump(mode="json"), now.model_dump(mode="json")
    other = [name for name in old if old[name] != new[name]]
    if not other:
        return
    flags = [f"--{_FLAGS.get(name, name).replace('_', '-')}" for name in other]
    was = [
        f"{flag} was {old[name] if old[name] is not None else 'not given'}"
        for name, flag in zip(other, flags, strict=True)
    ]
    raise InputError(
        f"{place} holds a batch with other flags ({'; '.join(was)})",
        rule="all rows of a batch answer the same question",
        cure="Give the same flags, or another output directory.",
    )
