"""What a proposal's config changes in the config that the user has."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from prompts_agent.emit.existing.existing import Existing
from prompts_agent.emit.existing.file import settings_of
from prompts_agent.emit.existing.guess import READERS
from prompts_agent.emit.existing.settings import parsed
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis

__all__ = ["Edit", "config_diff", "config_edits"]

# What is a proposal's to change: axes, knobs, and what goes with them. The rest is the job.
_LAYOUT = frozenset(
    (
        *(axis.value for axis in Axis),
        *(f"{part}.{axis}" for part in ("ici", "dcn") for axis in Axis),
        *Layout.model_fields,
        "batch",
        "fsdp_strategy",
        "remat_method",
        "schedule",
        "deprecated",
    )
)
_IDLE = frozenset(("1", "False", "None", "0"))
_FORMS = {"yaml": "yaml", "bash": "shell", "python": "python"}


class Edit(NamedTuple):
    """One line of the user's file, as it is and as a proposal would have it."""

    role: str
    """Axis, knob or field; `ici.fsdp` where the framework splits axes itself."""
    line: int | None
    """None: the file does not set it."""
    old: str | None
    new: str | None
    """None: the proposal does not set it."""


def config_diff(
    existing: Existing, text: str, language: str, today: Layout | None = None
) -> str | None:
    """The lines that differ, old with their place in the user's file, new as they would be written.

    None where there are none, or the emitted text is not of the config's framework.
    """
    lines: list[str] = []
    for edit in config_edits(existing, text, language, today):
        lines.append(f"@@ line {edit.line} @@" if edit.line is not None else "@@ new @@")
        lines += [f"-{edit.old}"] if edit.old is not None else []
        lines += [f"+{edit.new}"] if edit.new is not None else []
    if not lines:
        return None
    return "\n".join([f"--- {Path(existing.file).name}", "+++ proposed", *lines]) + "\n"


def config_edits(
    existing: Existing, text: str, language: str, today: Layout | None = None
) -> tuple[Edit, ...]:
    """What an emitted config changes in the user's; nothing where it is not of the same framework.

    A size of -1 is what it comes to in `today`.
    """
    form = _FORMS.get(language)
    if form is None:
        return ()
    proposed = READERS[existing.framework].read(settings_of(text, form))  # type: ignore[arg-type]
    edits = []
    for role in _roles(existing, proposed):
        old, new = existing.values.get(role), proposed.values.get(role)
        if old == new or (old == "-1" and _size(role, today) == new):
            continue
        if (old is None and new in _IDLE) or (new is None and old in _IDLE):
            continue
        edits.append(
            Edit(
                role,
                existing.lines[role] if old is not None else None,
                _spelled(existing, role, old) if old is not None else None,
                _spelled(proposed, role, new) if new is not None else None,
            )
        )
    return tuple(edits)


def _roles(existing: Existing, proposed: Existing) -> list[str]:
    """In the order of the user's lines, then what is new."""
    own = sorted(existing.values, key=lambda role: existing.lines[role])
    new = [role for role in proposed.values if role not in existing.values]
    return [role for role in (*own, *new) if role in _LAYOUT]


def _size(role: str, today: Layout | None) -> str | None:
    part, _, name = role.rpartition(".")
    if today is None or name not in set(Axis):
        return None
    size = today.mesh[Axis(name)]
    return str(getattr(size, part) if part else size.size)


def _spelled(of: Existing, role: str, value: str) -> str:
    written = of.written[role]
    if of.form == "shell":
        return f"  {written}" if value == "True" else f"  {written} {value}"
    if of.form == "yaml":
        return f"{written}: {value.lower() if value in ('True', 'False') else value}"
    plain = parsed(value) != value or value in ("True", "False", "None") or "(" in value
    return f"{written} = {value if plain else repr(value)}"
