"""Asking before something is written."""

from __future__ import annotations

import sys

import typer

__all__ = ["confirmed"]


def confirmed(text: str, question: str, *, yes: bool) -> bool:
    """Shows `text` on stdout and asks on stderr; whether the answer is yes.

    Raises `InputError` where nobody can be asked and `yes` was not given.
    """
    from prompts_agent.errors import InputError
    from prompts_agent.report.text import plain

    typer.echo("\n".join(map(plain, text.splitlines())))
    if yes:
        return True
    if not sys.stdin.isatty():
        raise InputError(
            "standard input is no terminal",
            rule="what is written is shown and confirmed first",
            cure="Run it in a terminal, or add --yes.",
        )
    return typer.confirm(plain(question), default=False, err=True)
