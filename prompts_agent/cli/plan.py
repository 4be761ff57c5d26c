"""`prompts plan`: proposes layouts for a workload file, without a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prompts_agent.cli import options
from prompts_agent.cli.llm import LlmChoice
from prompts_agent.cli.run import run

__all__ = ["plan"]


def plan(
    workload: Annotated[
        Path | None,
        typer.Argument(
            metavar="[WORKLOAD.yaml]",
            help="A workload file; or give --model, --target, --phase, --batch and --sequence.",
            show_default=False,
        ),
    ] = None,
    format_name: options.PlanFormat = None,
    output: options.Output = None,
    force: options.Force = False,
    top: options.Top = 3,
    objective: options.Objective = None,
    target: options.Target = None,
    model: options.Model = None,
    phase: options.Phase = None,
    batch: options.Batch = None,
    sequence: options.Sequence = None,
    framework: options.Framework = None,
    from_config: options.FromConfig = None,
    verify: options.Verify = "auto",
    calibration: options.CalibrationFile = None,
    commit: options.Commit = None,
    redact: options.Redact = True,
    kb_path: options.KbPath = None,
    kb: options.Kb = None,
    llm: options.Llm = None,
    llm_base_url: options.LlmBaseUrl = None,
    no_llm: options.NoLlm = False,
    llm_dry_run: options.LlmDryRun = False,
    record: options.RecordFile = None,
    resume: options.Resume = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Layouts for a workload, without a trace.

    Exit codes: 0 done, 2 wrong input, 3 the workload says too little.
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
    }
    run(
        (),
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
