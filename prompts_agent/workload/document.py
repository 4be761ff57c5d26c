"""Document: a YAML file as plain values, with the line of every key.

YAML 1.1 has traps that a hand-written file falls into; they are closed here. Twice the same key is
an error, not a silent choice. `no` and `on` are strings, `12:30` is not 750, and `1e9` is a number.
Aliases are refused: a few lines of them can expand to gigabytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from prompts_agent.errors import WorkloadError

__all__ = ["Document", "KeyPath", "read_document"]

KeyPath = tuple[str | int, ...]

_MAX_BYTES = 1_000_000
_MAX_DEPTH = 50
_INT = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
_FLOAT = re.compile(r"[-+]?([0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?")
_MAX_DIGITS = 40
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}


@dataclass(frozen=True, slots=True)
class Document:
    """`value` is made of dicts, lists, strings, numbers, booleans and None."""

    file: Path
    value: object
    lines: dict[KeyPath, int]

    def where(self, path: KeyPath) -> str:
        """`file.yaml:12, baseline.mesh.fsdp`; else the line of the nearest key above."""
        known = path
        while known and known not in self.lines:
            known = known[:-1]
        line = f":{self.lines[known]}" if known in self.lines else ""
        key = ".".join(str(part) for part in path)
        return f"{self.file}{line}, {key}" if key else f"{self.file}{line}"


def read_document(file: Path) -> Document:
    """Read one YAML document. Raises `WorkloadError` for anything that is not one."""
    text = _text(file)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        # Without this, an alias would be the same node twice, and expand when it is walked.
        tokens = yaml.scan(text) if "*" in text else ()
        aliased = next((t for t in tokens if isinstance(t, yaml.AliasToken)), None)
    except (yaml.YAMLError, RecursionError) as error:
        raise _malformed(file, error) from error
    if aliased is not None:
        raise WorkloadError(
            f"{file}:{aliased.start_mark.line + 1}, *{aliased.value}",
            rule="aliases are not read",
            cure="Write the value out.",
        )
    if node is None:
        raise WorkloadError(str(file), rule="the file is empty", cure="See workloads/README.md.")
    lines: dict[KeyPath, int] = {}
    return Document(file, _value(node, (), lines, file), lines)


def _text(file: Path) -> str:
    try:
        size = file.stat().st_size
        if size > _MAX_BYTES:
            raise WorkloadError(
                f"{file} ({size} bytes)",
                rule=f"a file that a person writes is below {_MAX_BYTES} bytes",
                cure="Give a workload file.",
            )
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise WorkloadError(str(file), rule=reason, cure="Check the path.") from error
    except UnicodeDecodeError as error:
        raise WorkloadError(str(file), rule="is not UTF-8 text", cure="Save as UTF-8.") from error


def _malformed(file: Path, error: Exception) -> WorkloadError:
    mark = getattr(error, "problem_mark", None)
    line = f":{mark.line + 1}" if mark is not None else ""
    problem = getattr(error, "problem", None) or "too deeply nested or damaged"
    return WorkloadError(
        f"{file}{line}",
        rule=f"is not YAML ({problem})",
        cure="Check indentation, colons and quotes on and above that line.",
    )


def _value(node: yaml.Node, path: KeyPath, lines: dict[KeyPath, int], file: Path) -> object:
    lines[path] = node.start_mark.line + 1
    if len(path) > _MAX_DEPTH:
        raise _malformed(file, RecursionError())
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*path, i), lines, file) for i, item in enumerate(node.value)]
    found: dict[str, object] = {}
    for key_node, value_node in node.value:
        key = str(key_node.value)
        here = f"{file}:{key_node.start_mark.line + 1}, {'.'.join(map(str, (*path, key)))}"
        if not isinstance(key_node, yaml.ScalarNode) or key == "<<":
            raise WorkloadError(here, rule="keys are plain words", cure="Write the keys out.")
        if key in found:
            first = lines[(*path, key)]
            raise WorkloadError(
                here,
                rule=f"the key is there twice (first in line {first})",
                cure="Keep one of the two.",
            )
        found[key] = _value(value_node, (*path, key), lines, file)
        lines[(*path, key)] = key_node.start_mark.line + 1
    return found


def _scalar(node: yaml.ScalarNode) -> object:
    text = str(node.value)
    # Quoted text is text: "256" and "true" mean what they say.
    if node.style in ("'", '"', "|", ">"):
        return text
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if len(text) > _MAX_DIGITS:
        return text
    if _INT.fullmatch(text):
        return int(text.replace("_", ""))
    if _FLOAT.fullmatch(text):
        number = float(text.replace("_", ""))
        # 1e9 is a whole number to its writer, and fields that count refuse a fraction's type.
        return int(number) if number.is_integer() else number
    return text
