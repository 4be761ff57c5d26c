"""Writes docs/help.md from the command line itself: `python docs/make_help.py`.

A test compares the file with what this would write, so the page cannot go stale.
"""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path

PAGE = Path(__file__).resolve().parent / "help.md"
COMMANDS = (
    (),
    ("diagnose",),
    ("plan",),
    ("compare",),
    ("doctor",),
    ("replay",),
    ("emit",),
    ("lint",),
    ("schema",),
    ("verify",),
    ("evaluate",),
    ("kb",),
    ("kb", "check"),
    ("kb", "build"),
    ("kb", "evaluate"),
    ("kb", "add"),
    ("kb", "show"),
    ("batch",),
    ("batch", "run"),
    ("batch", "report"),
    ("batch", "sql"),
    ("batch", "merge"),
    ("workloads",),
    ("workloads", "check"),
)


def typer_version() -> str:
    """Major and minor: how help is laid out changes between them."""
    return ".".join(version("typer").split(".")[:2])


def help_page() -> str:
    """The page's text: every command with its --help, at 80 columns."""
    from typer.testing import CliRunner

    from prompts_agent.cli.app import app

    runner = CliRunner(env={"COLUMNS": "80", "TERMINAL_WIDTH": "80", "NO_COLOR": "1"})
    made = f"Written by `python docs/make_help.py` with typer {typer_version()}; do not edit."
    sections = ["# Commands", made]
    for command in COMMANDS:
        result = runner.invoke(app, [*command, "--help"], prog_name="prompts")
        if result.exit_code != 0:
            raise RuntimeError(f"--help of {command} failed: {result.output}")
        lines = [line.rstrip() for line in result.output.splitlines()]
        name = " ".join(("prompts", *command))
        sections += [f"## {name}", "```text\n" + "\n".join(lines).strip() + "\n```"]
    return "\n\n".join(sections) + "\n"


if __name__ == "__main__":
    os.environ["COLUMNS"] = "80"
    PAGE.write_text(help_page(), encoding="utf-8")
