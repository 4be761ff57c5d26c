"""What `diagnose` and `plan` have in common: a request, the agents, a report in some format."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from prompts_agent.cli.llm import LlmChoice, opened
from prompts_agent.cli.options import FormatName, PlanFormatName
from prompts_agent.cli.output import check_output, stdout_is_unicode, write_result
from prompts_agent.cli.progress import progress

if TYPE_CHECKING:
    from prompts_agent.agents.report import Report
    from prompts_agent.emit.existing.existing import Existing
    from prompts_agent.workload.workload import Workload

__all__ = ["exit_code_of_report", "format_of", "run", "write_report"]

_SUFFIXES: dict[str, FormatName] = {".json": "json", ".md": "markdown", ".markdown": "markdown"}


def format_of(chosen: FormatName | None, output: Path | None) -> FormatName:
    """What was chosen; else what the output's suffix says; else text."""
    if chosen is not None:
        return chosen
    return _SUFFIXES.get(output.suffix.lower(), "text") if output is not None else "text"


def run(
    paths: tuple[Path, ...],
    workload_file: Path | None,
    flags: dict[str, Any],
    *,
    framework: str | None,
    format_name: PlanFormatName | None,
    output: Path | None,
    force: bool,
    quiet: bool,
    verbose: bool,
    llm: LlmChoice,
    from_config: Path | None = None,
    commit: str | None = None,
    redact: bool = True,
) -> None:
    """Diagnose `paths`, or plan where there are none; write the report; exit with its code."""
    check_output(output, force=force)
    _check_lines(format_name, from_config)
    with opened(llm, quiet=quiet) as talk, progress(quiet=quiet, verbose=verbose) as tell:
        from prompts_agent.agents.graph import run_diagnosis, run_plan
        from prompts_agent.agents.request import DiagnoseRequest
        from prompts_agent.emit.registry import constraints_of, with_configs

        workload, existing = _workload(workload_file), None
        if from_config is not None:
            existing, workload, flags = _of_config(
                from_config, framework, workload, flags, traced=bool(paths)
            )
            framework = framework or existing.framework
        baseline = workload.baseline if existing is not None and workload is not None else None
        request = DiagnoseRequest(
            paths=paths,
            workload=workload,
            timings=verbose,
            constraints=constraints_of(framework, baseline),
            **flags,
        )
        ask = run_diagnosis if paths else run_plan
        report = ask(request, tell, talk.session)
        report = with_configs(report, framework, existing)
        talk.end(report)
    if talk.dry is not None:
        write_result(talk.dry.text(), output, force=force)
        return
    if format_name == "sarif":
        write_result(_sarif(report, existing), output, force=force)
    else:
        name = format_of(format_name, output)
        write_report(report, name, output, force=force, commit=commit, redact=redact)
    code = exit_code_of_report(report)
    if code:
        raise typer.Exit(code)


def _check_lines(format_name: PlanFormatName | None, from_config: Path | None) -> None:
    """SARIF needs a config to point at. Raises `InputError`."""
    if format_name != "sarif" or from_config is not None:
        return
    from prompts_agent.errors import InputError

    raise InputError(
        "--format sarif",
        rule="points at the lines of a config, and none is given",
        cure="Add --from-config FILE, or ask for another format.",
    )


def _sarif(report: Report, existing: Existing | None) -> str:
    from prompts_agent.report.sarif import proposal_sarif

    return proposal_sarif(report, existing) if existing is not None else ""


def _of_config(
    path: Path,
    framework: str | None,
    workload: Workload | None,
    flags: dict[str, Any],
    *,
    traced: bool,
) -> tuple[Existing, Workload | None, dict[str, Any]]:
    """The user's config, the job with its layout as the baseline, and the flags that are left.

    Of a traced job the trace knows the layout.
    """
    from prompts_agent.emit.existing.baseline import flags_from, workload_from
    from prompts_agent.emit.existing.guess import read_config

    existing = read_config(path, framework)
    if traced:
        return existing, workload, flags_from(existing, flags)
    found = workload_from(existing, flags, workload)
    return existing, found, flags if found is not None else flags_from(existing, flags)


def _workload(path: Path | None) -> Workload | None:
    if path is None:
        return None
    from prompts_agent.workload.yaml import load_workload

    return load_workload(path)


def write_report(
    report: Report,
    format_name: FormatName,
    output: Path | None,
    *,
    force: bool,
    commit: str | None = None,
    redact: bool = True,
    tag: str = "sharding",
) -> None:
    """The report in that format, on stdout or in the file."""
    if format_name == "json":
        from prompts_agent.report.json_text import json_text

        plain = output is None and not stdout_is_unicode()
        write_result(json_text(report, ascii_only=plain), output, force=force)
    elif format_name == "markdown":
        from prompts_agent.report.markdown import markdown_text

        write_result(markdown_text(report), output, force=force)
    elif format_name == "github":
        from prompts_agent.report.github import github_text

        text = github_text(report, commit=commit, tag=tag, redact=redact)
        write_result(text, output, force=force)
    elif output is not None:
        from prompts_agent.report.console.page import page_text

        write_result(page_text(report), output, force=force)
    else:
        from prompts_agent.report.console.page import print_report
        from prompts_agent.report.console.terminal import result_console

        print_report(report, result_console(sys.stdout))
        sys.stdout.flush()


def exit_code_of_report(report: Report) -> int:
    """3 where the input was read and told nothing; every other answer is one."""
    from prompts_agent.errors import ExitCode
    from prompts_agent.report.answered import is_silent

    return int(ExitCode.NOT_DIAGNOSABLE if is_silent(report) else ExitCode.DONE)
