"""`prompts evaluate`: how often the advisor is right, beside its baselines."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from prompts_agent.cli.llm import LlmChoice, configured
from prompts_agent.cli.options import CalibrationFile, LlmBaseUrl, Quiet, Sweeps, WorkloadPaths

if TYPE_CHECKING:
    from prompts_agent.evaluate.evaluation import Request

__all__ = ["evaluate"]

Split = Annotated[str, typer.Option("--split", help="The name of what is scored, for the report.")]
By = Annotated[
    str,
    typer.Option(
        "--by",
        metavar="KEYS",
        help="Split figures by chip, platform, phase, family, framework, collection, experts or "
        "devices; several with commas.",
    ),
]
Directory = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        help="Write JSON, Markdown and plots there. An interrupted run goes on from there.",
        show_default=False,
    ),
]
Folds = Annotated[
    int | None,
    typer.Option(
        "--folds",
        min=2,
        help="Cross-validate: fit the constants on other models than they are scored on.",
        show_default=False,
    ),
]
FoldsByThem = Annotated[
    Literal["model", "workload"],
    typer.Option(
        "--folds-by",
        help="What --folds keeps together: a model on a chip, or a model on a number of chips.",
    ),
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes at once.")]
VerifyThem = Annotated[
    Literal["none", "fit"],
    typer.Option(
        "--verify",
        help="fit: instead, proposals that XLA's compiler has accepted beside those without, "
        "where it is installed for the chip; minutes a workload.",
    ),
]
VerifyLimit = Annotated[
    int | None,
    typer.Option(
        "--verify-limit",
        min=1,
        metavar="N",
        help="--verify fit: so many workloads, spread over all.",
        show_default=False,
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--llm",
        metavar="MODEL",
        help="Instead: the agents with this language model beside the agents without, on the "
        "workloads that name an adopted layout.",
        show_default=False,
    ),
]


def evaluate(
    paths: WorkloadPaths = None,
    sweeps: Sweeps = None,
    split: Split = "dev",
    by: By = "",
    output: Directory = None,
    folds: Folds = None,
    folds_by: FoldsByThem = "model",
    calibration: CalibrationFile = None,
    jobs: Jobs = 1,
    verify: VerifyThem = "none",
    verify_limit: VerifyLimit = None,
    llm: Model = None,
    llm_base_url: LlmBaseUrl = None,
    quiet: Quiet = False,
) -> None:
    """Score the advisor on public workloads; exit code 2 for a bad file."""
    from prompts_agent.evaluate.evaluation import Request

    request = Request(
        paths=tuple(paths or ()),
        sweeps=sweeps,
        split=split,
        by=tuple(key.strip() for key in by.split(",") if key.strip()),
        directory=output,
        folds=folds,
        folds_by=folds_by,
        calibration=calibration,
        processes=jobs,
    )
    if llm is not None or llm_base_url is not None:
        _with_model(request, LlmChoice(model=llm, base_url=llm_base_url), quiet=quiet)
    elif verify == "fit":
        _with_compiler(request, verify_limit, quiet=quiet)
    else:
        _scored(request, quiet=quiet)


def _scored(request: Request, *, quiet: bool) -> None:
    from rich.console import Console

    from prompts_agent.evaluate.evaluation import evaluate_all, write_evaluation
    from prompts_agent.evaluate.report_table import print_sections

    with _counter(quiet=quiet) as on_score:
        found = evaluate_all(request, on_score)
    print_sections(found.sections, found.about, Console())
    if request.directory is not None:
        write_evaluation(found, request.directory)


def _with_compiler(request: Request, limit: int | None, *, quiet: bool) -> None:
    from prompts_agent.evaluate.compiled import compare_compiled, compiled_lines, with_compiler
    from prompts_agent.evaluate.evaluation import constants_of, workloads_of

    workloads = with_compiler(workloads_of(request), limit)
    with constants_of(request), _counter(quiet=quiet) as on_case:
        cases = compare_compiled(workloads, request.directory, on_case)
    typer.echo("\n".join(compiled_lines(cases)))


def _with_model(request: Request, choice: LlmChoice, *, quiet: bool) -> None:
    from prompts_agent.evaluate.evaluation import workloads_of
    from prompts_agent.evaluate.with_model import compare, comparison_lines, write_comparison

    config = configured(choice)
    if config is None:
        return
    with _counter(quiet=quiet) as on_case:
        found = compare(workloads_of(request), config, on_case)
    typer.echo("\n".join(comparison_lines(found)))
    if request.directory is not None:
        write_comparison(found, request.directory)
    if found.interrupted:
        raise KeyboardInterrupt


@contextlib.contextmanager
def _counter(*, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Says on a terminal's stderr how many workloads are scored."""
    if quiet or not sys.stderr.isatty():
        yield lambda _done, _all: None
        return
    from rich.console import Console

    with Console(stderr=True).status("scoring", spinner="dots") as status:
        yield lambda done, all_of_them: status.update(f"scored {done} of {all_of_them}")
