"""`prompts diagnose`: reads traces, says what the job waits for, proposes layouts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prompts_agent.cli import options
from prompts_agent.cli.llm import LlmChoice
from prompts_agent.cli.run import run

__all__ = ["diagnose"]


def diagnose(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH...", help="Trace files, run directories or log directories."),
    ],
    format_name: options.PlanFormat = None,
    output: options.Output = None,
    force: options.Force = False,
    top: options.Top = 3,
    objective: options.Objective = None,
    target: options.Target = None,
    model: options.Model = None,
    workload: Annotated[
        Path | None,
        typer.Option(
            "--workload",
            "-w",
            metavar="FILE",
            help="A workload file; flags beside it replace its fields.",
            show_default=False,
        ),
    ] = None,
    phase: options.Phase = None,
    batch: options.Batch = None,
    sequence: options.Sequence = None,
    framework: options.Framework = None,
    from_config: Annotated[
        Path | None,
        typer.Option(
            "--from-config",
            metavar="FILE",
            help="Your own config of this job: the report says what to change in it.",
            show_default=False,
        ),
    ] = None,
    kb_path: options.KbPath = None,
    kb: options.Kb = None,
    xprof: Annotated[
        bool,
        typer.Option(
            "--xprof",
            help="Ask XProf too for what a trace's own events do not show: slower, more memory.",
        ),
    ] = False,
    verify: options.Verify = "auto",
    calibration: options.CalibrationFile = None,
    commit: options.Commit = None,
    redact: options.Redact = True,
    llm: options.Llm = None,
    llm_base_url: options.LlmBaseUrl = None,
    no_llm: options.NoLlm = False,
    llm_dry_run: options.LlmDryRun = False,
    record: options.RecordFile = None,
    resume: options.Resume = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """What a job waits for, and better layouts.

    Exit codes: 0 done, 2 wrong input, 3 the trace was read and cannot tell.
    """
    flags = {
        "model": model,
        "target": target,
        "phase": phase,
        "objective": objective,
        "global_batch": batch,
        "sequence": sequence,
        "top": top,
        "verify": verify,
        "kb_path": kb_path,
        "kb": kb,
        "calibration": calibration,
        "xprof": xprof,
    }
    run(
        tuple(paths),
        workload,
        flags,
        framework=framework,
        from_config=from_config,
        format_name=format_name,
        output=output,
        force=force,
        quiet=quiet,
        verbose=verbose,
        commit=commit,
        redact=redact,
        llm=LlmChoice(
            model=llm,
            base_url=llm_base_url,
            off=no_llm,
            dry_run=llm_dry_run,
            record=record,
            resume=resume,
        ),
    )
