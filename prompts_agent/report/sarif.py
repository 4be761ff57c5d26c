"""SARIF 2.1.0: a config's faults, and what a proposal would change in it, each at its line.

The form is OASIS' "Static Analysis Results Interchange Format", as far as code-scanning services
read it. Files are named from the repository's root; no other path and no address is in it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from prompts_agent import __version__
from prompts_agent.agents.report import Proposal, Report
from prompts_agent.emit.existing.diff import Edit, config_edits
from prompts_agent.emit.existing.existing import Existing
from prompts_agent.emit.existing.lint import Lint
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.report.figures import speedup, title
from prompts_agent.report.plain import plain
from prompts_agent.report.redact import redacted_text

__all__ = ["Result", "lint_sarif", "proposal_sarif", "repository_path", "sarif_text"]

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "%SRCROOT%"


class Result(NamedTuple):
    """One finding at one line of one file."""

    rule: str
    about: str
    """The rule in a few words, the same for all its results."""
    level: Literal["error", "warning", "note"]
    text: str
    help: str
    """What to do about results of this rule."""
    file: str
    """From the repository's root."""
    line: int
    """From 1; 0: the whole file."""


def sarif_text(results: Sequence[Result], unchecked: Sequence[tuple[str, str]] = ()) -> str:
    """The log with one run. `unchecked` are files and what could not be told of them."""
    rules = {result.rule: result for result in results}
    places = {rule: place for place, rule in enumerate(rules)}
    driver = {"name": "prompts", "version": __version__, "rules": list(map(_rule, rules.values()))}
    seen: Counter[tuple[str, str]] = Counter()
    found = []
    for result in results:
        found.append(_result(result, places[result.rule], seen[result.rule, result.file]))
        seen[result.rule, result.file] += 1
    run = {
        "tool": {"driver": driver},
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The repository's root."}}},
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [_note(file, what) for file, what in unchecked],
            }
        ],
        "results": found,
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rule(result: Result) -> dict[str, Any]:
    return {
        "id": result.rule,
        "shortDescription": {"text": result.about},
        "help": {"text": _message(result.help)},
        "defaultConfiguration": {"level": result.level},
    }


def _result(result: Result, place: int, before: int) -> dict[str, Any]:
    # Neither line nor values: the same fault a few lines further down is the same fault.
    identity = "\0".join((result.rule, result.file, str(before)))
    return {
        "ruleId": result.rule,
        "ruleIndex": place,
        "level": result.level,
        "message": {"text": _message(result.text)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": _artifact(result.file),
                    "region": {"startLine": max(result.line, 1)},
                }
            }
        ],
        "partialFingerprints": {
            "prompts/v1": hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()[:32]
        },
    }


def _note(file: str, what: str) -> dict[str, Any]:
    return {
        "level": "note",
        "message": {"text": _message(f"not checked: {what}")},
        "locations": [{"physicalLocation": {"artifactLocation": _artifact(file)}}],
    }


def _artifact(file: str) -> dict[str, str]:
    return {"uri": quote(file), "uriBaseId": _ROOT}


def _message(text: str) -> str:
    """Text of a message: one line in which nothing is a link (section 3.11.6 of the standard)."""
    shown = redacted_text(plain(text))
    for char in "\\[]":
        shown = shown.replace(char, f"\\{char}")
    return shown


def repository_path(file: Path) -> str:
    """`file` from the root of its repository, else from here; else its name alone.

    A link keeps the name that the repository knows it by.
    """
    whole = Path(os.path.abspath(file))  # noqa: PTH100 - resolve() would follow links
    above = [folder for folder in whole.parents if (folder / ".git").exists()]
    for root in (*above, Path.cwd()):
        if whole.is_relative_to(root):
            return whole.relative_to(root).as_posix()
    return whole.name


def lint_sarif(checked: Sequence[tuple[Path, Lint]]) -> str:
    """The log of configs that were checked; what could not be told of them is a notification."""
    named = [(repository_path(file), found) for file, found in checked]
    results = [one for file, found in named for one in _lint_results(file, found)]
    return sarif_text(results, [(file, what) for file, found in named for what in found.unchecked])


def proposal_sarif(report: Report, existing: Existing) -> str:
    """The log of what a report's first proposal changes in the user's config."""
    file = repository_path(Path(existing.file))
    return sarif_text(list(_proposal_results(report, existing, file)))


def _lint_results(file: str, found: Lint) -> Iterator[Result]:
    """Every fault of a config."""
    for fault in found.faults:
        words = fault.rule.replace("_", " ")
        yield Result(
            rule=f"lint-{fault.rule.replace('_', '-')}",
            about=f"The config's layout breaks the rule on {words}.",
            level="note" if fault.note else "error",
            text=f"{fault.text}. {fault.cure}",
            help=fault.cure,
            file=file,
            line=fault.line,
        )


def _proposal_results(report: Report, existing: Existing, file: str) -> Iterator[Result]:
    """What the first proposal that differs changes: a result for each axis and knob, at the line
    that holds it. Nothing where nothing is proposed.
    """
    proposal = next((one for one in report.proposals if one.changes), None)
    if proposal is None:
        return
    today = report.baseline.layout if report.baseline is not None else None
    for what, line, text in _changed(proposal, existing, today):
        yield Result(
            rule=f"plan-{what.replace('_', '-')}",
            about=f"Another setting of {what.replace('_', ' ')} is predicted to do better.",
            level="note",
            text=f"{text}. {_gain(proposal)}",
            help="The report of `prompts plan` gives the reasons, the price and the numbers.",
            file=file,
            line=line,
        )


def _changed(
    proposal: Proposal, existing: Existing, today: Layout | None
) -> Iterator[tuple[str, int, str]]:
    """Axis or knob, line, and what becomes of it there."""
    config = proposal.config
    edits: tuple[Edit, ...] = ()
    if config is not None and config.framework.removesuffix("-tpu") == existing.framework:
        edits = config_edits(existing, config.text, config.language, today)
    words = {
        change.what: f"{change.what.replace('_', ' ')} {_step(change.before, change.after)}"
        for change in proposal.changes
    }
    beside = existing.line(*(name for axis in reversed(Axis) for name in _names(axis.value))) or 1
    for edit in edits:
        what = edit.role.rpartition(".")[2]
        head = f"{words[what]}: " if what in words else ""
        yield what, edit.line or beside, head + _written(edit)
    if not edits:
        for what, text in words.items():
            yield what, existing.line(*_names(what)) or beside, text


def _names(what: str) -> tuple[str, ...]:
    return (what, f"ici.{what}", f"dcn.{what}")


def _step(before: str | None, after: str) -> str:
    return after if before is None else f"{before} → {after}"


def _written(edit: Edit) -> str:
    old, new = (text.strip() if text is not None else None for text in (edit.old, edit.new))
    if old is None:
        return f"add {new}"
    return f"leave out {old}" if new is None else f"{new} in place of {old}"


def _gain(proposal: Proposal) -> str:
    whole = title(proposal.layout)
    if proposal.predicted.speedup is None:
        return f"Part of {whole}, {proposal.rung}."
    gain, bounds = speedup(proposal.predicted)
    within = f" (90 %: {bounds})" if bounds else ""
    return f"Part of {whole}: {gain} today's throughput{within}, {proposal.rung}."
