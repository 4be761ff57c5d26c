"""What a proposal's config changes in the config that the user has."""

from __future__ import annotations

from pathlib import Path

from prompts_agent.emit.existing.existing import Existing
from prompts_agent.emit.existing.file import settings_of
from prompts_agent.emit.existing.guess import READERS
from prompts_agent.emit.existing.settings import parsed
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis

__all__ = ["config_diff"]

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


def config_diff(
    existing: Existing, text: str, language: str, today: Layout | None = None
) -> str | None:
    """The lines that differ, old with their place in the user's file, new as they would be written.

    None where the emitted text is not of the config's framework. A size of -1 is what it comes to
    in `today`.
    """
    form = _FORMS.get(language)
    if form is None:
        return None
    proposed = READERS[existing.framework].read(settings_of(text, form))  # type: ignore[arg-type]
    lines: list[str] = []
    for role in _roles(existing, proposed):
        old, new = existing.values.get(role), proposed.values.get(role)
        if old == new or (old == "-1" and _size(role, today) == new):
            continue
        if (old is None and new in _IDLE) or (new is None and old in _IDLE):
            continue
        lines.append(f"@@ line {existing.lines[role]} @@" if old is not None else "@@ new @@")
        if old is not None:
            lines.append(f"-{_spelled(existing, role, old)}")
        if new is not None:
            lines.append(f"+{_spelled(proposed, role, new)}")
    if not lines:
        return None
    return "\n".join([f"--- {Path(existing.file).name}", "+++ proposed", *lines]) + "\n"


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
