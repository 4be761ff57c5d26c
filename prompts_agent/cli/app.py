"""The commands, and what becomes of an error that one of them raises."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from prompts_agent import __version__
from prompts_agent.cli import (
    batch,
    calibrate,
    ci,
    compare,
    diagnose,
    doctor,
    emit,
    evaluate,
    explain,
    knowledge,
    lint,
    plan,
    replay,
    schema,
    show,
    simulate,
    verify,
    workloads,
)
from prompts_agent.cli.default_group import RunByDefault
from prompts_agent.cli.failure import exit_code_of, show_failure

__all__ = ["app"]


class _Guarded(TyperGroup):
    """Every error leaves as one message on stderr and its exit code."""

    def invoke(self, ctx: Any) -> Any:
        if not sys.warnoptions:
            # Libraries warn their own users; ours cannot act on it. -W or PYTHONWARNINGS shows it.
            warnings.simplefilter("ignore")
        try:
            return super().invoke(ctx)
        except Exception as error:
            if _is_typers_own(error):
                raise
            show_failure(error)
            raise typer.Exit(exit_code_of(error)) from error


def _is_typers_own(error: Exception) -> bool:
    """Exit, Abort and usage errors, which typer itself turns into messages and exit codes."""
    modules = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return bool(modules & {"typer", "click"})


app = typer.Typer(
    cls=_Guarded,
    name="prompts",
    help="A sharding advisor: what an LLM job waits for, and which mesh would be faster.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"prompts {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    del version


app.command("diagnose")(diagnose.diagnose)
app.command("plan")(plan.plan)
app.command("compare")(compare.compare)
app.command("doctor")(doctor.doctor)
app.command("replay")(replay.replay)
app.command("emit")(emit.emit)
app.command("show")(show.show)
app.command("explain")(explain.explain)
app.command("lint")(lint.lint)
app.command("schema")(schema.schema)
app.command("verify")(verify.verify)
app.command("simulate")(simulate.simulate)
app.command("evaluate")(evaluate.evaluate)

kb = typer.Typer(help="The knowledge base of recipes.", no_args_is_help=True, rich_markup_mode=None)
kb.command("check")(knowledge.check)
kb.command("build")(knowledge.build)
kb.command("evaluate")(knowledge.evaluate)
kb.command("add")(knowledge.add)
kb.command("show")(knowledge.show)
app.add_typer(kb, name="kb")

files = typer.Typer(help="Workload files.", no_args_is_help=True, rich_markup_mode=None)
files.command("check")(workloads.check)
app.add_typer(files, name="workloads")

constants = typer.Typer(
    help="The constants of the estimates.", no_args_is_help=True, rich_markup_mode=None
)
constants.command("fit")(calibrate.fit)
constants.command("show")(calibrate.show)
app.add_typer(constants, name="calibrate")

runs = typer.Typer(
    help="What a pull request's workflow asks.", no_args_is_help=True, rich_markup_mode=None
)
runs.command("changed")(ci.changed)
runs.command("summary")(ci.summary)
runs.command("comment")(ci.comment)
runs.command("gate")(ci.gate)
app.add_typer(runs, name="ci")

many = typer.Typer(
    cls=RunByDefault,
    help="Many traces: `prompts batch SOURCE... -o DIR` runs them, the rest asks about them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
many.command("run")(batch.run)
many.command("report")(batch.report)
many.command("sql")(batch.sql)
many.command("merge")(batch.merge)
app.add_typer(many, name="batch")
