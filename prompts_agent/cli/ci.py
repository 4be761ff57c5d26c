"""`prompts ci`: what a pull request's workflow asks besides a report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from prompts_agent.ci.comment import Forge

__all__ = ["changed", "comment", "gate", "summary"]

ForgeName = Literal["github", "gitlab"]


def changed(
    patterns: Annotated[
        list[str], typer.Argument(metavar="PATTERN...", help="Files that count: 'configs/*.yml'.")
    ],
    base: Annotated[
        str | None, typer.Option("--base", metavar="COMMIT", help="Default: the event's.")
    ] = None,
    head: Annotated[
        str | None, typer.Option("--head", metavar="COMMIT", help="Default: the event's.")
    ] = None,
) -> None:
    """The files of a change that match, one a line.

    Also sets the step's outputs `changed` (true, false), `files`, `base`, `head` and `fork`. With
    nothing to compare with, as for a new branch, every pattern counts as changed.
    """
    from prompts_agent.ci.changed import changed_files, matching
    from prompts_agent.ci.event import Event, github_event
    from prompts_agent.ci.runner import set_outputs

    given = Event(kind="other", base=base, head=head)
    event = given if base and head else github_event(os.environ)
    start, end = base or event.base, head or event.head
    known = start is not None and end is not None
    files = matching(changed_files(start, end), patterns) if start and end else ()
    for name in files:
        typer.echo(name)
    outputs = {
        "changed": "true" if files or not known else "false",
        "files": "\n".join(files),
        "base": start or "",
        "head": end or "",
        "fork": "true" if event.from_fork else "false",
    }
    set_outputs(outputs, os.environ)


def summary(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What --format github wrote.")],
) -> None:
    """Put a comment's text on the page of the run; on stdout where there is none."""
    from prompts_agent.ci.runner import add_summary

    text = _read(file)
    if not add_summary(text, os.environ):
        typer.echo(text, nl=False)


def comment(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What --format github wrote.")],
    forge: Annotated[
        ForgeName, typer.Option("--forge", help="Whose API; the environment fills the rest.")
    ] = "github",
    repository: Annotated[
        str | None,
        typer.Option("--repository", metavar="NAME", help="owner/name, or a GitLab project."),
    ] = None,
    number: Annotated[
        int | None,
        typer.Option("--pull-request", metavar="N", min=1, help="Default: the event's."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")
    ] = False,
) -> None:
    """Keep one comment of a pull request up to date.

    The token is read from GITHUB_TOKEN, or from PROMPTS_GITLAB_TOKEN, and from nowhere else.
    """
    from prompts_agent.ci.comment import post

    body = _read(file)
    place: Forge = _github(repository, number) if forge == "github" else _gitlab(repository, number)
    posted = post(body, place, dry_run=dry_run)
    would = "would be " if dry_run and posted.action != "unchanged" else ""
    where = f": {posted.url}" if posted.url else ""
    typer.echo(f"comment {would}{posted.action}{where}")


def gate(
    report: Annotated[
        Path, typer.Argument(metavar="REPORT.json", help="What --format json wrote.")
    ],
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on", metavar="GATE,...", help="Of regression, oom and unverified, any."
        ),
    ],
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="REPORT.json", help="The report before the change."),
    ] = None,
) -> None:
    """Exit with 1 where a gate that was asked for does not pass, or cannot be told."""
    from prompts_agent.ci.gate import gates, judge
    from prompts_agent.ci.runner import set_outputs
    from prompts_agent.errors import ExitCode
    from prompts_agent.report.stored import stored_report
    from prompts_agent.report.text import plain

    before = None if against is None else stored_report(against)
    outcomes = judge(stored_report(report), gates(fail_on), before)
    for outcome in outcomes:
        typer.echo(f"{outcome.gate}: {outcome.result}: {plain(outcome.why)}")
    held = any(outcome.holds_up for outcome in outcomes)
    set_outputs({"verdict": "failed" if held else "passed"}, os.environ)
    if held:
        raise typer.Exit(int(ExitCode.GATE))


def _read(path: Path) -> str:
    from prompts_agent.errors import InputError

    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            str(path), rule=f"it cannot be read: {error}", cure="Give what --format github wrote."
        ) from error


def _github(repository: str | None, number: int | None) -> Forge:
    from prompts_agent.ci.comment import GitHub
    from prompts_agent.ci.event import github_event

    return GitHub(
        repository or _needed("GITHUB_REPOSITORY", "--repository"),
        number or _number(github_event(os.environ).number, "a pull request's event"),
        _needed("GITHUB_TOKEN"),
        os.environ.get("GITHUB_API_URL", "https://api.github.com"),
    )


def _gitlab(repository: str | None, number: int | None) -> Forge:
    from prompts_agent.ci.comment import GitLab

    asked = os.environ.get("CI_MERGE_REQUEST_IID", "")
    return GitLab(
        repository or _needed("CI_PROJECT_ID", "--repository"),
        number or _number(int(asked) if asked.isdigit() else None, "CI_MERGE_REQUEST_IID"),
        _needed("PROMPTS_GITLAB_TOKEN"),
        os.environ.get("CI_API_V4_URL", "https://gitlab.com/api/v4"),
    )


def _needed(name: str, option: str | None = None) -> str:
    from prompts_agent.errors import InputError

    value = os.environ.get(name)
    if value:
        return value
    other = "" if option is None else f", or give {option}"
    raise InputError(name, rule="it is not set", cure=f"Set it in the step's env{other}.")


def _number(value: int | None, source: str) -> int:
    from prompts_agent.errors import InputError

    if value is None:
        raise InputError(
            "the pull request's number", rule=f"{source} has none", cure="Give --pull-request N."
        )
    return value
