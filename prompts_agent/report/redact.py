"""Redaction: a report that may be shown outside the team that ran the job.

A trace names private things: model code (op names, argument paths), hosts, users, files, buckets.
Names that the report knows as names become aliases, the same one everywhere (`op-1`, `host-1`);
what else looks like an address, a path or a host becomes a word in brackets. Numbers, meshes,
shapes and the sources of recipes that ship with this package stay.
"""

from __future__ import annotations

import getpass
import re
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import cache
from pathlib import Path
from typing import Any

from prompts_agent.agents.placeholders import scrub
from prompts_agent.agents.report import Report
from prompts_agent.layout.mesh import Axis
from prompts_agent.trace.profile import CollectiveKind, Profile

__all__ = ["redacted", "redacted_text"]

_SUFFIX = (
    "(?:pb|gz|json|jsonl|txt|ya?ml|toml|py|sh|csv|sqlite|safetensors|ckpt|log|hlo|parquet|h5|npz)"
)
_SEGMENT = r"[\w.@+=%-]+"
_HEX = "[0-9a-f]{1,4}"


def _rule(pattern: str, word: str) -> tuple[re.Pattern[str], str]:
    return re.compile(pattern, re.IGNORECASE), word


_PATTERNS = (
    _rule(r"\b[a-z][a-z0-9+.-]*://[^\s<>\"'`)\]]+", "[address]"),
    _rule(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", "[address]"),
    # Device planes (`/device:TPU:0`) are no paths, nor is the slash of `GB/s` or of `a / b`.
    _rule(rf"(?<![\w.\]/])(?:~[\w-]*)?/(?!device:|host:)(?:{_SEGMENT}/)*{_SEGMENT}", "[path]"),
    _rule(r"\b[a-z]:\\[^\s\"'`]+|\\\\[\w.-]+\\[^\s\"'`]+", "[path]"),
    _rule(rf"(?<![\w/])(?:{_SEGMENT}/)+{_SEGMENT}\.{_SUFFIX}\b", "[path]"),
    # An address does not begin with 0; versions such as libtpu's 0.0.42.1 do.
    _rule(r"(?<![\w.])[1-9]\d{0,2}(?:\.\d{1,3}){3}(?::\d+)?(?![\w.])", "[host]"),
    _rule(rf"(?<![\w:])(?:{_HEX}:){{7}}{_HEX}(?![\w:])", "[host]"),
    _rule(rf"(?<![\w:])(?:{_HEX}:)+:(?:{_HEX}:)*{_HEX}(?![\w:])", "[host]"),
)
_HOST = re.compile(
    r"\b(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+"
    r"(?:internal|local|lan|corp|cluster|intra|svc|net|com|org|io|ai|cloud|dev|edu)\b(?!\()",
    re.IGNORECASE,
)
_VERBATIM = frozenset(
    {"sha256", "schema_version", "tool_version", "format", "language", "recipe_id"}
)
_NOBODY = frozenset({"root", "user", "runner", "admin", "nobody", "default"})


def redacted(report: Report) -> Report:
    """`report` without paths, hosts, users, op and program names, and addresses.

    Names of mesh axes and of HLO opcodes stay: they say what a thing is, not whose. Redacting twice
    changes nothing.
    """
    names = _aliases(report)
    public = _public_sources() & {item.source for item in report.evidence}
    plain = _replacer(names, public, hosts=True)
    code = _replacer(names, public, hosts=False)  # `jax.sharding` in code is no host

    def walk(value: Any, key: str, replace: Callable[[str], str]) -> Any:  # JSON
        if isinstance(value, dict):
            inner = code if key == "config" else replace
            return {name: walk(item, name, inner) for name, item in value.items()}
        if isinstance(value, list):
            return [walk(item, key, replace) for item in value]
        return replace(value) if isinstance(value, str) and key not in _VERBATIM else value

    dumped = _without_team(report, public).model_dump(mode="json")
    return Report.model_validate(walk(dumped, "", plain))


def redacted_text(text: str) -> str:
    """One line of text without addresses, paths and users; names of settings stay."""
    people = {name: f"user-{number}" for number, name in enumerate(_people(), 1)}
    return _replacer(people, frozenset(), hosts=False)(text)


def _without_team(report: Report, public: AbstractSet[str]) -> Report:
    """Recipes of a team's own folder keep their ids and lose their words."""
    evidence = tuple(
        item
        if item.source in public
        else item.model_copy(
            update={"title": "a recipe of the team", "source": "not shown", "reasons": ()}
        )
        for item in report.evidence
    )
    return report.model_copy(update={"evidence": evidence})


def _replacer(
    names: dict[str, str], public: AbstractSet[str], *, hosts: bool
) -> Callable[[str], str]:
    known = _any_of(names)

    def replace(text: str) -> str:
        if text in public:
            return text
        if known is not None:
            text = known.sub(lambda match: names[match.group()], text)
        for pattern, word in _PATTERNS:
            text = pattern.sub(word, text)
        return _HOST.sub("[host]", text) if hosts else text

    return replace


def _any_of(names: Iterable[str]) -> re.Pattern[str] | None:
    """Longest first, so that `jit_f2` is not read as `jit_f` and a digit."""
    ordered = sorted(names, key=lambda name: (-len(name), name))
    if not ordered:
        return None
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, ordered))})(?!\w)")


def _aliases(report: Report) -> dict[str, str]:
    """Each private name, and its form in text, to its alias; numbered in order of appearance."""
    found: dict[str, str] = {}
    profile = report.profile
    sources = [] if profile is None else list(_named(profile))
    sources.append(("user", _people()))
    for kind, names in sources:
        number = 0
        for name in names:
            if name in found or _is_public(name):
                continue
            number += 1
            for form in {name, scrub(name)} - {""}:
                found[form] = f"{kind}-{number}"
    return found


def _named(profile: Profile) -> Iterator[tuple[str, list[str]]]:
    devices = [step.name for step in profile.stragglers]
    devices += [str(f.value) for f in profile.facts if f.id == "derived.straggler.name"]
    yield "host", [name.rpartition("/")[0] for name in devices if "/" in name]
    programs = [use.name for use in profile.programs]
    programs += [op.program for op in profile.top_ops if op.program]
    if profile.step is not None:
        programs.append(profile.step.program)
    yield "program", programs
    ops = [op.name for op in profile.top_ops]
    ops += [name for use in profile.collectives for name in use.ops]
    yield "op", ops
    yield "source", [op.tf_op for op in profile.top_ops if op.tf_op]
    yield "parameter", [parameter.name for parameter in profile.parameters]
    axes = [use.name for use in profile.mesh]
    yield "axis", [name for name in axes if not re.fullmatch(r"axis\d+", name)]


def _people() -> list[str]:
    try:
        names = [getpass.getuser(), Path.home().name]
    except (KeyError, OSError, RuntimeError):  # a container without a user of that number
        return []
    return [name for name in dict.fromkeys(names) if len(name) > 2 and name not in _NOBODY]


_OPCODES = frozenset(
    {kind.value for kind in CollectiveKind}
    | {axis.value for axis in Axis}
    | {"fusion", "copy", "dot", "convolution", "custom-call", "while", "conditional", "call"}
    | {"transpose", "reduce", "scatter", "gather", "sort", "slice", "pad", "concatenate", "bitcast"}
    | {"broadcast", "convert", "reshape", "dynamic-slice", "dynamic-update-slice", "infeed", "iota"}
    | {"outfeed", "send", "recv", "rng", "parameter", "constant", "tuple", "async", "jit", "model"}
    | {"data", "batch", "step", "layers"}
)  # fmt: skip


def _is_public(name: str) -> bool:
    """An HLO instruction that bears the name of its opcode says nothing private: `fusion.12`,
    `all-reduce-start.3`, `%copy-done`.
    """
    bare = re.sub(r"(?:[.\d]|-start|-done|_fusion)+$", "", name.lstrip("%"))
    return not bare or bare in _OPCODES


@cache
def _public_sources() -> frozenset[str]:
    from prompts_agent.knowledge.library import load_recipes
    from prompts_agent.resources import data_directory

    shipped = load_recipes(data_directory("knowledge_base"))
    return frozenset(source.url for recipe in shipped for source in recipe.sources)
