"""Shell scripts: flags and `key=value` words, with variables filled in where the file sets them.

A reader, no interpreter: branches are not taken and commands not run. What a variable holds is what
the file last gave it above; one that the environment or a branch gives stays as it is written, and
is reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from prompts_agent.emit.existing.settings import Entry, Value, normal, parsed

__all__ = ["shell_entries"]

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?::?-([^}]*))?\})")
_PRODUCT = re.compile(r"\$\(\(([\w$\{\}*+/\s-]{1,100})\)\)")
_FLAG = re.compile(r"--[A-Za-z][\w.-]*(=.*)?|-[a-z]{2,4}", re.DOTALL)
_NUMBER = re.compile(r"-\d")
_LONGEST = 10_000
_DEPTHS = {"if": 1, "case": 1, "fi": -1, "esac": -1}
_PIECE = re.compile(
    r"""(?P<joined>\\\n)|(?P<escaped>\\[\s\S])
    |(?P<quoted>'[^']*(?:'|\Z)|"(?:\\[\s\S]|[^"\\])*(?:"|\Z))
    |(?P<product>\$\(\([^()]*\)\))|(?P<break>[\n;|&()])|(?P<space>[^\S\n]+)
    |(?P<comment>(?<![^\s;|&()])\#[^\n]*)|(?P<plain>[^\s'"\\;|&()\#$]+|[\s\S])""",
    re.VERBOSE,
)
_BREAKS = "\n;|&()"


def shell_entries(text: str) -> tuple[tuple[Entry, ...], tuple[tuple[str, int], ...]]:
    """(settings, the other words), in the order of the file."""
    variables: dict[str, str] = {}
    entries: list[Entry] = []
    others: list[tuple[str, int]] = []
    flag: tuple[str, int] | None = None

    def close(value: str | None) -> None:
        nonlocal flag
        if flag is not None:
            entries.append(_entry(flag[0], True if value is None else parsed(value), flag[1]))
        flag = None

    for word, line in _expanded(text, variables):
        assignment = _ASSIGNMENT.fullmatch(word)
        if _FLAG.fullmatch(word):
            close(None)
            name, equals, value = word.partition("=")
            flag = (name, line)
            if equals:
                close(value)
        elif len(word) == 1 and word in _BREAKS:
            close(None)
        elif flag is not None:
            close(word)
        elif assignment and assignment[1].islower():
            entries.append(_entry(assignment[1], parsed(assignment[2]), line))
        elif not assignment:
            others.append((word, line))
    close(None)
    return tuple(entries), tuple(others)


def _entry(name: str, value: Value, line: int) -> Entry:
    return Entry.model_construct(key=normal(name), value=value, line=line, written=name)


def _expanded(text: str, variables: dict[str, str]) -> Iterator[tuple[str, int]]:
    """Words with variables filled in; a quoted word full of flags becomes its words."""
    depth = 0
    for word, line in _words(text):
        depth = max(0, depth + _DEPTHS.get(word, 0))
        full = _filled(word, variables)
        assignment = _ASSIGNMENT.fullmatch(full)
        if assignment:
            name, value = assignment[1], assignment[2]
            # Which branch is taken is not known: a variable that two of them set stays open.
            two = depth > 0 and variables.get(name, value) != value
            variables[name] = f"${name}" if two else value
        inner = assignment[2] if assignment else full
        if "--" in inner and re.search(r"\s", inner.strip()):
            # `ARGS="--a 1 \` over several lines, or an array's "--a 1".
            yield from ((part, line + at) for part, at in _parts(inner))
            yield "\n", line
        else:
            yield full, line


def _parts(text: str) -> Iterator[tuple[str, int]]:
    for at, row in enumerate(text.split("\n")):
        for part in row.replace("\\", " ").split():
            yield part.strip("'\""), at


def _filled(word: str, variables: dict[str, str]) -> str:
    def product(match: re.Match[str]) -> str:
        inside = re.sub(r"[A-Za-z_]\w*", r"$\g<0>", match[1].replace("$", ""))
        factors = [_filled(part.strip(), variables) for part in inside.split("*")]
        if not all(factor.isdigit() and len(factor) < 10 for factor in factors):
            return match[0]
        total = 1
        for factor in factors:
            total *= int(factor)
        return str(total)

    def variable(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        value = variables.get(name, match[3] if match[3] is not None else match[0])
        # Flags in a variable were read where it was set, and have their lines there.
        return match[0] if "--" in value else value

    full = _VARIABLE.sub(variable, _PRODUCT.sub(product, word))
    # A variable may double itself on every line.
    return full if len(full) <= max(_LONGEST, len(word)) else word


def _words(text: str) -> Iterator[tuple[str, int]]:
    """Words and the characters that end a command, each with the line where it starts."""
    word: list[str] | None = None
    start = line = 1
    for piece in _PIECE.finditer(text):
        kind, found = piece.lastgroup, piece[0]
        if kind in ("space", "break", "comment"):
            if word is not None:
                yield "".join(word), start
                word = None
            if kind == "break":
                yield found, line
        elif kind != "joined":
            if word is None:
                word, start = [], line
            word.append(_bare(found, kind))
        line += found.count("\n")
    if word is not None:
        yield "".join(word), start


def _bare(piece: str, kind: str | None) -> str:
    """A piece of a word without its quotes or its backslash."""
    if kind == "escaped":
        return piece[1:]
    if kind == "quoted":
        closed = len(piece) > 1 and piece[-1] == piece[0]
        return piece[1 : -1 if closed else None]
    return piece
