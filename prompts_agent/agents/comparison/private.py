"""What must not leave a team's machines in a recipe: paths, addresses, people, buckets."""

from __future__ import annotations

import re

from prompts_agent.errors import InputError
from prompts_agent.knowledge.recipe import Recipe

__all__ = ["private_part", "refuse_private"]

_PRIVATE = (
    ("an address", re.compile(r"\b[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)),
    ("a mail address or a user at a host", re.compile(r"[\w.+-]+@[\w-][\w.-]*")),
    ("a path", re.compile(r"(?<![\w÷])(?:~|\.{1,2})?/[A-Za-z_.][\w.-]*(?:/[\w.-]*)*")),
    ("a path", re.compile(r"\b[A-Za-z]:\\[\w\\.-]+|\\\\[\w.-]+\\")),
    ("an IP address", re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b")),
    (
        "a host",
        re.compile(
            r"\b(?:[\w-]+\.)+(?:com|net|org|io|ai|dev|local|internal|corp|lan|cloud|svc)\b",
            re.IGNORECASE,
        ),
    ),
)


def private_part(text: str) -> tuple[str, str] | None:
    """(what it is, the words) of the first private part; None: there is none."""
    for what, pattern in _PRIVATE:
        found = pattern.search(text)
        if found is not None:
            return what, found[0]
    return None


def refuse_private(recipe: Recipe) -> None:
    """Raises `InputError` where any text of the recipe holds a private part."""
    for text in (recipe.id, recipe.title, recipe.costs, recipe.body):
        found = private_part(text)
        if found is not None:
            raise InputError(
                f"{found[0]} in the case: {found[1]!r}",
                rule="a case names no paths, hosts, users or buckets",
                cure="Say it without, with --change.",
            )
