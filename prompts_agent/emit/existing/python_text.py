"""Python configs: keyword arguments, attributes and keys that are set to plain values.

The text is parsed, never run. A name stands for its value where the file gives it one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from prompts_agent.emit.existing.settings import Entry, Value, normal

__all__ = ["CALL", "python_entries"]

CALL = "call"
"""Key of an entry for a function that is called without arguments, as a recipe starts from one."""


def python_entries(text: str) -> tuple[Entry, ...]:
    """Settings in the order of the file. Raises `SyntaxError`, and `RecursionError` for a trap."""
    tree = ast.parse(text)
    names: dict[str, Value] = {}
    found = [entry for node in ast.walk(tree) for entry in _entries(node, names)]
    return tuple(sorted(found, key=lambda entry: entry.line))


def _entries(node: ast.AST, names: dict[str, Value]) -> Iterator[Entry]:
    if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            if isinstance(target, ast.Name) and isinstance(node.value, ast.Constant):
                names[target.id] = _value(node.value, names)
            if isinstance(target, ast.Attribute):
                yield _entry(ast.unparse(target), node.value, target.lineno, names)
    elif isinstance(node, ast.Call):
        if not node.args and not node.keywords:
            name = ast.unparse(node.func)
            yield Entry(key=CALL, value=normal(name), line=node.lineno, written=name)
        for keyword in node.keywords:
            if keyword.arg is not None:
                yield _entry(keyword.arg, keyword.value, keyword.value.lineno, names)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield _entry(key.value, value, key.lineno, names)


def _entry(written: str, node: ast.expr, line: int, names: dict[str, Value]) -> Entry:
    return Entry(key=normal(written), value=_value(node, names), line=line, written=written)


def _value(node: ast.expr, names: dict[str, Value]) -> Value:
    """A plain value; else the expression's text."""
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError):
        return ast.unparse(node)
    return value if isinstance(value, bool | int | float | str | None) else ast.unparse(node)
