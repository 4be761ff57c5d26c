"""`prompts batch`: many traces, resumable; and questions about what they showed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from prompts_agent.cli import options
from prompts_agent.cli.output import check_output, stdout_is_unicode, write_result

if TYPE_CHECKING:
    from prompts_agent.batch.ask import Answered
    from prompts_agent.batch.run import BatchRequest, Ended
    from prompts_agent.batch.settings import Settings

__all__ = ["merge", "report", "run", "sql"]

TableName = Literal["text", "csv", "json", "markdown"]
TableFormat = Annotated[
    TableName,
    typer.Option("--format", "-f", help="How to print the rows."),
]
Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The output directory of a batch.")]


def run(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Directories, traces, workload files, patterns, addresses (s3://, gs://), or a "
            "manifest: .csv, .jsonl or .parquet with a column path.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Journal, reports and tables; same again resumes."
        ),
    ],
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", min=1, help="Traces at once. Default: one a core.", show_default=False
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, metavar="S", help="Seconds a trace may take.")
    ] = 600.0,
    memory: Annotated[
        str, typer.Option("--memory", metavar="SIZE", help="What a trace may hold: 500MiB, 8GiB.")
    ] = "8GiB",
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Do failed rows again.")
    ] = False,
    shard: Annotated[
        str | None,
        typer.Option(
            "--shard",
            metavar="I/N",
            help="Only part I of N, from 1/N to N/N; parts may share DIR.",
            show_default=False,
        ),
    ] = None,
    executor: Annotated[
        Literal["local", "ray"], typer.Option("--executor", help="Where traces are read.")
    ] = "local",
    ray_address: Annotated[
        str | None,
        typer.Option(
            "--ray-address",
            metavar="ADDRESS",
            help="A Ray cluster. Default: RAY_ADDRESS, else this machine.",
            show_default=False,
        ),
    ] = None,
    top: options.Top = 3,
    objective: options.Objective = None,
    target: options.Target = None,
    model: options.Model = None,
    phase: options.Phase = None,
    batch: options.Batch = None,
    sequence: options.Sequence = None,
    framework: options.Framework = None,
    kb_path: options.KbPath = None,
    kb: options.Kb = None,
    xprof: Annotated[bool, typer.Option("--xprof", help="Ask XProf too; see diagnose.")] = False,
    verify: Annotated[
        options.VerifyName, typer.Option("--verify", help="Ask XLA's compiler; minutes a trace.")
    ] = "none",
    calibration: options.CalibrationFile = None,
    llm: Annotated[
        str | None,
        typer.Option(
            "--llm",
            metavar="MODEL",
            help="A language model, asked about each trace. Default: none, whatever is configured.",
            show_default=False,
        ),
    ] = None,
    llm_base_url: options.LlmBaseUrl = None,
    quiet: options.Quiet = False,
) -> None:
    """Diagnose many traces, each in a process of its own; the default command.

    A crash, a hang or a damaged trace costs its row alone. Interrupted, even by kill -9, the same
    command goes on. Exit codes: 0 every trace has its row, 2 wrong input, 130 interrupted.
    """
    from prompts_agent.batch.settings import Settings

    settings = Settings(
        model=model,
        target=target,
        phase=phase,
        objective=objective,
        global_batch=batch,
        sequence=sequence,
        framework=framework,
        top=top,
        verify=verify,
        xprof=xprof,
        kb_path=kb_path,
        kb=kb,
        calibration=calibration,
        llm=llm,
        llm_base_url=llm_base_url,
    )
    request = _request(
        settings,
        directory=output.absolute(),
        jobs=jobs,
        retry_failed=retry_failed,
        executor=executor,
        ray_address=ray_address,
        timeout_s=timeout,
        memory=memory,
        shard=shard,
    )
    ended = _run(sources, request, quiet=quiet)
    if not ended.finished:
        raise typer.Exit(130)


def _request(
    settings: Settings,
    *,
    jobs: int | None,
    timeout_s: float,
    memory: str,
    shard: str | None,
    **rest: Any,
) -> BatchRequest:
    from prompts_agent.batch.item import Shard
    from prompts_agent.batch.run import BatchRequest
    from prompts_agent.batch.sizes import parse_size
    from prompts_agent.workers.outcome import Limits

    return BatchRequest(
        settings=settings,
        jobs=jobs,
        limits=Limits(timeout_s=timeout_s, memory_bytes=parse_size(memory)),
        shard=Shard.parse(shard) if shard is not None else None,
        **rest,
    )


def _run(sources: list[str], request: BatchRequest, *, quiet: bool) -> Ended:
    from prompts_agent.batch.run import run_batch
    from prompts_agent.batch.sources import find_items
    from prompts_agent.cli.batch_progress import BatchProgress, interruptible

    found = find_items(sources)
    with BatchProgress(quiet=quiet) as progress, interruptible(progress.say) as stop:
        progress.found(found)

        def asked() -> bool:
            progress.tick()
            return stop()

        ended = run_batch(
            found.items, request, on_start=progress.begin, on_tables=progress.tables, stop=asked
        )
        progress.end(ended, request)
    return ended


def report(
    directory: Directory,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="DATE", help="What got worse: from this date.", show_default=False
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="DATE", help="To this date.", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Rows an answer.")] = 20,
    format_name: TableFormat = "text",
    output: options.Output = None,
    force: options.Force = False,
) -> None:
    """What a lead asks: where chips wait, what one change would save, what repeats, what got worse,
    which proposals were followed.
    """
    from prompts_agent.batch.ask import Asked, answers, parse_date

    check_output(output, force=force)
    asked = Asked(
        since=parse_date(since, "--since") if since is not None else None,
        until=parse_date(until, "--until") if until is not None else None,
        limit=limit,
    )
    _show(answers(directory, asked), format_name, output, force=force)


def sql(
    directory: Directory,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="SQL over the tables.")],
    format_name: TableFormat = "text",
    output: options.Output = None,
    force: options.Force = False,
) -> None:
    """Any question, in SQL over the tables jobs, findings, proposals and facts (docs/batch.md)."""
    from prompts_agent.batch.ask import ask

    check_output(output, force=force)
    _show([ask(directory, query)], format_name, output, force=force)


def _show(
    found: Sequence[Answered], format_name: TableName, output: Path | None, *, force: bool
) -> None:
    from prompts_agent.batch.answers_text import answers_text
    from prompts_agent.report.console.terminal import result_console

    width = result_console(sys.stdout).width
    unicode = output is not None or stdout_is_unicode()
    text = answers_text(found, format_name, width=width, unicode=unicode)
    write_result(text, output, force=force)


def merge(
    directories: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="Output directories; shards may share one."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="A new directory for all of it.")
    ],
    partial: Annotated[
        bool, typer.Option("--partial", help="Also where a shard is missing or not done.")
    ] = False,
) -> None:
    """One batch of several: shards, or directories of other machines."""
    from prompts_agent.batch.merge import merge as merged

    found = merged(directories, output.absolute(), partial=partial)
    again = f", {found.repeated} of them twice" if found.repeated else ""
    typer.echo(f"{found.rows} rows of {found.journals} journals{again}: {output}")
