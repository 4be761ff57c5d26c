"""Text: an answer of the compiler as lines for a person."""

from __future__ import annotations

import json
from collections.abc import Sequence

from prompts_agent.compile.against import Gap
from prompts_agent.compile.outcome import MARGINAL, Buffers, CompiledFit, Outcome
from prompts_agent.compile.schedule.text import schedule_lines
from prompts_agent.layout.layout import Layout
from prompts_agent.units import GIB

__all__ = ["as_json", "as_text", "own_text"]

_SIGN = {Outcome.FITS: "fits", Outcome.DOES_NOT_FIT: "does not fit"}
_LABEL_WIDTH = 16


def as_text(name: str, layout: Layout, fit: CompiledFit, gaps: Sequence[Gap] = ()) -> str:
    """The verdict, what memory goes to, what to change, and what exactly was compiled."""
    lines = [f"{name}: {layout} on {fit.topology}: {_verdict(fit)}"]
    if fit.reason:
        lines.append(f"  {fit.reason}")
    if fit.buffers is not None and fit.hbm_need_bytes:
        lines += ["", *_buffers(fit.buffers, fit.hbm_need_bytes)]
    lines += _paragraph("What would make it fit", fit.advice)
    if fit.schedule is not None:
        lines += ["", *schedule_lines(fit.schedule)]
        told = tuple(surprise.text for surprise in fit.schedule.surprises)
        lines += _paragraph("Not as the layout meant it", told)
    lines += _paragraph("Beside the estimate", tuple(gap.sentence() for gap in gaps))
    if fit.program and fit.toolchain:
        lines += ["", f"  Compiled: {fit.program}", f"  By {_by(fit)}"]
        lines += _paragraph("Your program may differ", fit.differences)
    lines += [f"  Note: {note}" for note in fit.notes]
    return "\n".join(lines) + "\n"


def own_text(name: str, fit: CompiledFit) -> str:
    """The verdict on a program that is not the reference one."""
    lines = [f"{name} on {fit.topology}: {_verdict(fit)}"]
    if fit.reason:
        lines.append(f"  {fit.reason}")
    if fit.schedule is not None:
        lines += ["", *schedule_lines(fit.schedule)]
    if fit.toolchain:
        lines += ["", f"  By {_by(fit)}"]
    lines += [f"  Note: {note}" for note in fit.notes]
    return "\n".join(lines) + "\n"


def _verdict(fit: CompiledFit) -> str:
    if fit.hbm_need_bytes is None:
        return fit.outcome.value
    need = f"{fit.hbm_need_bytes / GIB:.2f}"
    if fit.hbm_limit_bytes is None or fit.margin is None:
        return f"needs {need} GiB of HBM a device"
    over = "over" if fit.margin < 0 else "left"
    near = f", within {MARGINAL:.0%} of the limit: marginal" if fit.marginal else ""
    return (
        f"{_SIGN.get(fit.outcome, fit.outcome.value)}, {need} of {fit.hbm_limit_bytes / GIB:.2f} "
        f"GiB a device ({abs(fit.margin):.0%} {over}{near})"
    )


def _buffers(buffers: Buffers, need_bytes: int) -> list[str]:
    rows = sorted(buffers.model_dump().items(), key=lambda item: -item[1])
    return [
        f"  {name.replace('_', ' '):{_LABEL_WIDTH}}{size / GIB:9.2f} GiB {size / need_bytes:5.0%}"
        for name, size in rows
        if size >= need_bytes / 1000
    ]


def _by(fit: CompiledFit) -> str:
    took = "from the cache" if fit.cached else f"in {fit.wall_s or 0.0:.1f} s"
    how = ", stopped once memory was assigned" if fit.stopped_early else ""
    return f"{fit.toolchain} ({took}{how}); no chip was attached."


def _paragraph(head: str, sentences: tuple[str, ...]) -> list[str]:
    return ["", f"  {head}:", *(f"  - {sentence}" for sentence in sentences)] if sentences else []


def as_json(rows: Sequence[tuple[str, Layout, CompiledFit, Sequence[Gap]]]) -> str:
    """The same as a JSON list, one object a layout."""
    found = [
        {
            "name": name,
            "layout": cut.model_dump(mode="json"),
            "fit": fit.model_dump(mode="json"),
            "gaps": [gap.model_dump(mode="json") | {"large": gap.large} for gap in gaps],
        }
        for name, cut, fit, gaps in rows
    ]
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"
