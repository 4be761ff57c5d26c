"""Templates: what each agent is told, one file an agent, with a version in its first line.

A template holds no data: what a trace or a file said goes into the next message, as JSON.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from prompts_agent.errors import InternalError

__all__ = ["Template", "template"]

_FOLDER = Path(__file__).resolve().parent / "templates"
_HEAD = re.compile(r"# (\w+), version (\d+)\n")


class Template:
    """Text and its label, `analyst@1`."""

    def __init__(self, node: str, text: str) -> None:
        head = _HEAD.match(text)
        if head is None or head.group(1) != node:
            raise InternalError(
                f"the template of {node}",
                rule=f"its first line is `# {node}, version N`",
                cure="Mend the file, and raise its version with each change.",
            )
        self.text = text
        self.label = f"{node}@{head.group(2)}"


@cache
def template(node: str) -> Template:
    """The template of `node`, with the rules that all share behind it."""
    own = (_FOLDER / f"{node}.md").read_text(encoding="utf-8")
    rules = (_FOLDER / "rules.md").read_text(encoding="utf-8")
    return Template(node, f"{own.rstrip()}\n\n{rules}")
