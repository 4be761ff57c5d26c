"""Markdown with YAML front matter → Recipe, with the file and line of every fault.

The C parser reads the front matter; lines of nodes are looked up only once something is wrong.
"""

from __future__ import annotations

import difflib
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from prompts_agent.errors import RecipeError
from prompts_agent.knowledge.recipe import Applies, AxisMove, DrawnFrom, KnobMove, Recipe, Source
from prompts_agent.record import Record

__all__ = ["parse_recipe", "read_recipe"]

_FENCE = "---"
_SAFE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is an option of PyYAML
_NESTED: dict[str, type[Record]] = {
    "applies": Applies,
    "changes": AxisMove,
    "knobs": KnobMove,
    "sources": Source,
    "drawn_from": DrawnFrom,
}


_STR = "tag:yaml.org,2002:str"
_SCALARS: dict[str, Any] = {
    "tag:yaml.org,2002:null": lambda _: None,
    "tag:yaml.org,2002:bool": lambda text: text.lower() in ("true", "yes", "on"),
    "tag:yaml.org,2002:int": lambda text: int(text.replace("_", ""), 0),
    "tag:yaml.org,2002:float": lambda text: float(text.replace("_", "")),
}
_SPECIAL = frozenset("0123456789+-.~=<nNtTfFyYoO")
"""First characters of plain scalars that may be something else than text."""


class _Loader(_SAFE):  # type: ignore[misc]
    """Composes nodes as the safe loader does, and asks its patterns only where they may match.

    Recipes are read by the hundred at the start of every run: PyYAML's own constructor takes most
    of that time, for features (tags, merges, references) that front matter does without.
    """

    def resolve(self, kind: Any, value: str | None, implicit: Any) -> str:
        if kind is yaml.ScalarNode and implicit[0] and value and value[0] not in _SPECIAL:
            return _STR
        tag: str = super().resolve(kind, value, implicit)
        return tag


def _load(front: str) -> Any:
    """The value in `front`. Keys that come twice, anchors and tags are YAML errors."""
    loader = _Loader(front)
    try:
        node = loader.get_single_node()
    finally:
        loader.dispose()
    return None if node is None else _value(node, set())


def _value(node: yaml.Node, above: set[int]) -> Any:
    if isinstance(node, yaml.ScalarNode):
        if node.tag == _STR:
            return node.value
        convert = _SCALARS.get(node.tag)
        try:
            if convert is not None:
                return convert(node.value)
        except ValueError:
            pass
        raise _fault(f"{node.value!r} is neither text nor a number", node)
    if id(node) in above:
        raise _fault("a reference (& and *) is not used in recipes", node)
    above.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, above) for item in node.value]
    if not isinstance(node, yaml.MappingNode) or node.tag != "tag:yaml.org,2002:map":
        raise _fault(f"the tag {node.tag!r} is not used in recipes", node)
    mapping: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = _value(key_node, above)
        if not isinstance(key, Hashable) or key in mapping:
            raise _fault(f"the key {key_node.value!r} comes twice", node)
        mapping[key] = _value(value_node, above)
    return mapping


def _fault(problem: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def read_recipe(path: Path) -> Recipe:
    """The recipe in `path`, whose name is `<id>.md`. Raises `RecipeError`."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise RecipeError(
            str(path), rule=f"cannot be read ({error.strerror})", cure="Check the path."
        ) from None
    except UnicodeDecodeError as error:
        raise RecipeError(
            f"{path}, byte {error.start}", rule="is not UTF-8", cure="Save the file as UTF-8."
        ) from None
    recipe = parse_recipe(text, str(path))
    if recipe.id != path.stem:
        raise RecipeError(
            f"{path}:{_line_of(text, ('id',))}: id {recipe.id!r}",
            rule="the id is the file's name without .md",
            cure=f"Write `id: {path.stem}` or rename the file to {recipe.id}.md.",
        )
    return recipe


def parse_recipe(text: str, file: str) -> Recipe:
    """The recipe in `text`; `file` is what errors call it. Raises `RecipeError`."""
    front, body = _split(text, file)
    try:
        data = _load(front)
    except yaml.YAMLError as error:
        raise _yaml_error(error, file) from None
    if not isinstance(data, dict):
        raise RecipeError(
            f"{file}:2: front matter is {type(data).__name__}",
            rule="it is a mapping of keys to values",
            cure="Write `id: ...`, `title: ...` and so on between the two lines of dashes.",
        )
    if "body" in data:
        raise _unknown_key(f"{file}:{_line_of(text, ('body',))}", ("body",))
    try:
        return Recipe.model_validate({**data, "body": body})
    except ValidationError as error:
        raise _schema_error(error.errors(include_url=False), text, file) from None


def _split(text: str, file: str) -> tuple[str, str]:
    """(front matter, body), both without the fences."""
    lines = text.splitlines(keepends=True)
    if not lines or lines[0].strip() != _FENCE:
        raise RecipeError(
            f"{file}:1: {lines[0].strip()[:40]!r}" if lines else f"{file}: empty file",
            rule="a recipe begins with YAML front matter",
            cure="Begin with a line of three dashes, the keys, and three dashes again.",
        )
    for number, line in enumerate(lines[1:], start=1):
        if line.strip() == _FENCE:
            return "".join(lines[1:number]), "".join(lines[number + 1 :]).strip()
    raise RecipeError(
        f"{file}:1: front matter without end",
        rule="front matter ends with a line of three dashes",
        cure="Add a line `---` below the last key.",
    )


def _yaml_error(error: yaml.YAMLError, file: str) -> RecipeError:
    mark = getattr(error, "problem_mark", None)
    line = f":{mark.line + 2}" if mark is not None else ""  # 0-based, below one line of dashes
    problem = getattr(error, "problem", None) or "cannot be parsed"
    return RecipeError(
        f"{file}{line}: {problem}",
        rule="front matter is YAML with every key once",
        cure="Quote text that holds ': ' or '#', indent lists by spaces, and drop repeated keys.",
    )


def _schema_error(details: list[ErrorDetails], text: str, file: str) -> RecipeError:
    """The fault that helps most: a misspelt key is also a missing one, so it goes first."""
    detail = min(details, key=lambda item: item["type"] != "extra_forbidden")
    path = _path(detail)
    if detail["type"] == "recipe_rule":
        context = detail["ctx"]
        at = context["at"]
        line = _body_line(text) if at == "body" else _line_of(text, (*path, at) if at else path)
        return RecipeError(
            f"{file}:{line}: {context['value']}", rule=context["rule"], cure=context["cure"]
        )
    where = f"{file}:{_line_of(text, path)}"
    if detail["type"] == "missing":
        return RecipeError(
            f"{where}: no {_dotted(path)!r}",
            rule="every recipe states it",
            cure=f"Add `{path[-1]}:`, as in the other recipes.",
        )
    if detail["type"] == "extra_forbidden":
        return _unknown_key(where, path)
    choices = [word for item in details if _path(item) == path for word in _words_allowed(item)]
    return _value_error(detail, where, choices)


def _value_error(detail: ErrorDetails, where: str, choices: list[str]) -> RecipeError:
    name = _dotted(_path(detail))
    rule, cure = _plain(detail["msg"]), "Correct the value."
    if choices:
        rule, cure = "is not one of the known words", _suggest(str(detail["input"]), choices)
    elif name == "id":
        rule, cure = "an id is kebab-case", "Use a-z, 0-9 and single hyphens."
    elif name == "drawn_from.source":
        rule = "a source of cases is owner/name, arXiv:number, or here for one's own"
        cure = "Write one of the three."
    elif name.endswith("url"):
        rule, cure = "a source is a public https address", "Write the whole https:// URL."
    return RecipeError(f"{where}: {name} {detail['input']!r}", rule=rule, cure=cure)


def _unknown_key(where: str, path: tuple[int | str, ...]) -> RecipeError:
    model = _NESTED.get(str(path[0]), Recipe) if len(path) > 1 else Recipe
    return RecipeError(
        f"{where}: key {_dotted(path)!r}",
        rule="a recipe has no such key",
        cure=_suggest(str(path[-1]), [key for key in model.model_fields if key != "body"]),
    )


def _path(detail: ErrorDetails) -> tuple[int | str, ...]:
    """Where in the front matter, without the member of a union that pydantic adds at the end."""
    path = detail["loc"]
    unions = ("str", "bool", "int", "str-enum[", "literal[")
    is_key = detail["type"] in ("missing", "extra_forbidden")
    if not is_key and len(path) > 1 and str(path[-1]).startswith(unions):
        return path[:-1]
    return path


def _words_allowed(detail: ErrorDetails) -> list[str]:
    if detail["type"] not in ("enum", "literal_error"):
        return []
    expected: str = detail["ctx"]["expected"]  # "'raise', 'lower' or 'set_one'"
    return [word.strip(" '") for word in expected.replace(" or ", ", ").split(",")]


def _suggest(word: str, choices: list[str]) -> str:
    near = difflib.get_close_matches(word, choices, n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    return f"{hint}Known: {', '.join(choices)}."


def _plain(message: str) -> str:
    """Pydantic's "Input should be a valid string" as the rest of our sentence."""
    return message[:1].lower() + message[1:].rstrip(".")


def _dotted(path: tuple[int | str, ...]) -> str:
    """("changes", 0, "axis") → "changes[0].axis"."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def _line_of(text: str, path: tuple[int | str, ...]) -> int:
    """Line of the node at `path` or of its deepest ancestor that is there, from 1."""
    front, _ = _split(text, "")
    node: Any = yaml.compose(front, Loader=_SAFE)
    line = node.start_mark.line
    for part in path:
        if isinstance(node, yaml.MappingNode):
            found = next((pair for pair in node.value if pair[0].value == part), None)
            if found is None:
                break
            line, node = found[0].start_mark.line, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            node = node.value[part]
            line = node.start_mark.line
        else:
            break
    return int(line) + 2


def _body_line(text: str) -> int:
    front, _ = _split(text, "")
    return front.count("\n") + 3
