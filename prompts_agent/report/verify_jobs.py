"""Verify jobs: the layouts that a person wants compiled, from a workload, a report or a layout."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from prompts_agent.agents.comparison.outcome import planned_job
from prompts_agent.compile.given import layout_from, layouts_of
from prompts_agent.errors import InputError
from prompts_agent.layout.layout import Layout
from prompts_agent.report.stored import is_report, stored_report
from prompts_agent.workload.workload import Workload
from prompts_agent.workload.yaml import load_workload

__all__ = ["verify_jobs"]

_CURE = "Give a workload file, a report, or a layout (fsdp=16,tensor=4) with --workload FILE."


def verify_jobs(
    what: str, *, workload: Path | None = None, layouts: Sequence[str] = ()
) -> tuple[Workload, dict[str, Layout]]:
    """The job, and the layouts to compile for it, by what they are called.

    `what` is a workload file (its layouts, or `layouts`), a stored report (its proposals), or a
    layout as text, for the job of `workload`. Raises `InputError` for anything else.
    """
    path = Path(what)
    if path.is_file():
        if is_report(path):
            return _of_report(path, workload, layouts)
        job = load_workload(path)
        return job, _texts(layouts, job) if layouts else layouts_of(job)
    if "=" not in what:
        raise InputError(what, rule="there is no such file, and it is no layout", cure=_CURE)
    if workload is None:
        raise InputError(
            f"layout {what}", rule="a layout is compiled for a job, and none is given", cure=_CURE
        )
    job = load_workload(workload)
    return job, _texts((what, *layouts), job)


def _texts(layouts: Sequence[str], job: Workload) -> dict[str, Layout]:
    return {text: layout_from(text, job)[0] for text in layouts}


def _of_report(
    path: Path, workload: Path | None, layouts: Sequence[str]
) -> tuple[Workload, dict[str, Layout]]:
    report = stored_report(path)
    job = load_workload(workload) if workload is not None else planned_job(report)
    if job is None:
        raise InputError(
            str(path),
            rule="the report does not hold the job that it planned for",
            cure="Give it: --workload FILE.",
        )
    if layouts:
        return job, _texts(layouts, job)
    found = {f"proposal {proposal.rank}": proposal.layout for proposal in report.proposals}
    if not found:
        raise InputError(
            str(path),
            rule="the report proposes no layout",
            cure="Give one: --layout fsdp=16,tensor=4.",
        )
    return job, found
