"""`prompts evaluate`: how often the advisor is right, beside its baselines."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from prompts_agent.cli.llm import LlmChoice, configured
from prompts_agent.cli.options import LlmBaseUrl, Quiet

__all__ = ["evaluate"]


def evaluate(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PATH]...",
            help="Workload files, or directories of them. Default: those that came with prompts.",
            show_default=False,
        ),
    ] = None,
    sweeps: Annotated[
        Path | None,
        typer.Option(
            "--sweeps",
            metavar="DIR",
            help="A directory of published sweeps (training/sweeps, serving/sweeps).",
            show_default=False,
        ),
    ] = None,
    split: Annotated[
        str, typer.Option("--split", help="The name of what is scored, for the report.")
    ] = "dev",
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="KEYS",
            help="Split figures by chip, platform, phase, family, framework, collection, experts "
            "or devices; several with commas.",
        ),
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Write JSON, Markdown and plots there. An interrupted run goes on from there.",
            show_default=False,
        ),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(
            "--folds",
            min=2,
            help="Cross-validate: fit the constants on other models than they are scored on.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes at once.")] = 1,
    llm: Annotated[
        str | None,
        typer.Option(
            "--llm",
            metavar="MODEL",
            help="Instead: the agents with this language model beside the agents without, on the "
            "workloads that name an adopted layout.",
            show_default=False,
        ),
    ] = None,
    llm_base_url: LlmBaseUrl = None,
    quiet: Quiet = False,
) -> None:
    """Score the advisor on public workloads; exit code 2 for a bad file."""
    if llm is not None:
        _with_model(tuple(paths or ()), LlmChoice(model=llm, base_url=llm_base_url), quiet=quiet)
        return
    from rich.console import Console

    from prompts_agent.evaluate.evaluation import Request, evaluate_all, write_evaluation
    from prompts_agent.evaluate.report_table import print_sections

    request = Request(
        paths=tuple(paths or ()),
        sweeps=sweeps,
        split=split,
        by=tuple(key.strip() for key in by.split(",") if key.strip()),
        directory=output,
        folds=folds,
        processes=jobs,
    )
    with _counter(quiet=quiet) as on_score:
        found = evaluate_all(request, on_score)
    print_sections(found.sections, found.about, Console())
    if output is not None:
        write_evaluation(found, output)


def _with_model(paths: tuple[Path, ...], choice: LlmChoice, *, quiet: bool) -> None:
    from prompts_agent.evaluate.evaluation import Request, workloads_of
    from prompts_agent.evaluate.with_model import compare, comparison_lines

    config = configured(choice)
    if config is None:
        return
    with _counter(quiet=quiet) as on_case:
        found = compare(workloads_of(Request(paths=paths)), config, on_case)
    typer.echo("\n".join(comparison_lines(found)))


@contextlib.contextmanager
def _counter(*, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Says on a terminal's stderr how many workloads are scored."""
    if quiet or not sys.stderr.isatty():
        yield lambda _done, _all: None
        return
    from rich.console import Console

    with Console(stderr=True).status("scoring", spinner="dots") as status:
        yield lambda done, all_of_them: status.update(f"scored {done} of {all_of_them}")
