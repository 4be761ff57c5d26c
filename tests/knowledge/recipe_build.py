"""A recipe to bend: valid as it stands, every part replaceable."""

from __future__ import annotations

from typing import Any

from prompts_agent.knowledge.recipe import Recipe

BODY = """\
## Change

Lower it.

## Why it works

`tensor < mlp / 2550`

## When it does not

Decode.

## See it in the trace

Fewer reductions.
"""


def make_recipe(**changed: Any) -> Recipe:
    """`make_recipe(id="x", findings=[...], body=...)`: keys of `applies` are given flat."""
    applies: dict[str, Any] = {
        "phases": ["pretrain"],
        "chips": ["any"],
        "architectures": ["any"],
        "findings": ["exposed_collective"],
    }
    data: dict[str, Any] = {
        "id": "lower-it",
        "title": "Lower the tensor axis",
        "kind": "principle",
        "changes": [{"axis": "tensor", "move": "lower"}],
        "sharding": True,
        "costs": "More gathers.",
        "sources": [{"title": "A book", "url": "https://example.org/book"}],
        "body": BODY,
    }
    if changed.get("kind") == "case":
        data["drawn_from"] = {"source": "owner/name", "workload": "llama3-8b pretrain"}
    for key, value in changed.items():
        (data if key in Recipe.model_fields else applies)[key] = value
    return Recipe.model_validate({**data, "applies": applies})
