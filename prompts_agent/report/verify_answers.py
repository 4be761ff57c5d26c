"""Verify answers: what `prompts verify` prints, and the exit code that goes with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from prompts_agent.compile.against import gaps
from prompts_agent.compile.fit import fit_many
from prompts_agent.compile.flags.given import read_flags
from prompts_agent.compile.flags.lint import FlagVerdict, lint_flags
from prompts_agent.compile.flags.text import lint_text
from prompts_agent.compile.own.check import check_function
from prompts_agent.compile.request import Until
from prompts_agent.compile.text import as_json as layouts_json
from prompts_agent.compile.text import as_text, own_text
from prompts_agent.errors import ExitCode, InputError
from prompts_agent.hardware.topology import Topology, parse_topology
from prompts_agent.report.verify_jobs import verify_jobs
from prompts_agent.workload.yaml import load_workload

__all__ = ["Answer", "flags_answer", "function_answer", "layouts_answer", "one_question"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes out."""

    text: str
    exit_code: ExitCode = ExitCode.DONE


def one_question(
    what: str | None, function: str | None, flags: Path | None
) -> Literal["layouts", "fn", "flags"]:
    """Which of the three things is asked. Raises `InputError` for none and for two."""
    if function is not None and flags is not None:
        raise InputError(
            "--fn and --flags",
            rule="one thing is verified at a time",
            cure="Ask for them in two commands.",
        )
    if flags is not None:
        return "flags"
    if function is not None:
        return "fn"
    if what is None:
        raise InputError(
            "prompts verify",
            rule="it is given nothing to compile",
            cure="Give a workload file, a report or a layout; or --fn, or --flags.",
        )
    return "layouts"


def layouts_answer(
    what: str | None,
    *,
    workload: Path | None,
    layouts: Sequence[str],
    until: Until,
    workers: int,
    timeout_s: float,
    use_cache: bool,
    as_json: bool,
) -> Answer:
    """The compiler's verdict on every layout."""
    job, named = verify_jobs(what or "", workload=workload, layouts=layouts)
    found = fit_many(
        [(cut, job) for cut in named.values()],
        workers=workers,
        timeout_s=timeout_s,
        use_cache=use_cache,
        until=until,
    )
    rows = [
        (name, cut, one, gaps(one, cut, job))
        for (name, cut), one in zip(named.items(), found, strict=True)
    ]
    text = layouts_json(rows) if as_json else "\n".join(as_text(*row) for row in rows)
    silent = all(one.fits is None for one in found)
    return Answer(text, ExitCode.NOT_DIAGNOSABLE if silent else ExitCode.DONE)


def function_answer(
    function: str | None,
    arguments: str | None,
    target: str | None,
    what: str | None,
    *,
    until: Until,
    timeout_s: float,
    as_json: bool,
) -> Answer:
    """The compiler's verdict on somebody's own function."""
    if function is None or arguments is None:
        raise InputError(
            f"--fn {function}",
            rule="a function is compiled with arguments, and none are given",
            cure="Add --args MODULE:NAME: a tuple of jax.ShapeDtypeStruct, or what returns one.",
        )
    found = check_function(
        function,
        arguments,
        _topology(target, what),
        directory=Path.cwd(),
        until=until,
        timeout_s=timeout_s,
    )
    text = found.model_dump_json(indent=2) + "\n" if as_json else own_text(function, found)
    return Answer(text, ExitCode.NOT_DIAGNOSABLE if found.fits is None else ExitCode.DONE)


def flags_answer(
    flags: Path | None, target: str | None, what: str | None, *, as_json: bool
) -> Answer:
    """What the compiler makes of each flag of a file."""
    if flags is None:
        raise InputError("--flags", rule="it is given no file", cure="Give a file of flags.")
    found = lint_flags(read_flags(flags), _topology(target, what))
    text = found.model_dump_json(indent=2) + "\n" if as_json else lint_text(found)
    refused = found.count(FlagVerdict.REFUSED)
    return Answer(text, ExitCode.GATE if refused else ExitCode.DONE)


def _topology(target: str | None, what: str | None) -> Topology:
    """Of --target, else of a workload file."""
    if target is not None:
        return parse_topology(target)
    if what is not None and Path(what).is_file():
        return load_workload(Path(what)).topology
    raise InputError(
        "--target",
        rule="a compiler compiles for a topology, and none is given",
        cure="Add --target v5e:16x16, or give a workload file.",
    )
