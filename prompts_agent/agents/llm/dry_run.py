"""Dry run: shows what would be sent, byte for byte in its parts, and sends nothing.

The graph runs with a model that never answers; so the later questions are those that a model would
get that changed nothing before.
"""

from __future__ import annotations

import json
from typing import Any

from prompts_agent.agents.llm.client import Question, Reply, request_body
from prompts_agent.agents.llm.config import LlmConfig
from prompts_agent.agents.llm.failure import LlmFailure

__all__ = ["DryRun"]


class DryRun:
    """An asker that keeps the questions."""

    def __init__(self, config: LlmConfig) -> None:
        self._config = config
        self.bodies: list[dict[str, Any]] = []
        """The JSON bodies of the requests."""

    def ask(self, question: Question) -> Reply:
        """Keep the question. Raises `LlmFailure`."""
        limit = self._config.reply_tokens
        self.bodies.append(
            request_body(self._config, question, reply_tokens=limit, mode="json_schema")
        )
        raise LlmFailure("unavailable", "a dry run asks nobody")

    def text(self) -> str:
        """Every request: where to, its body without the messages, and the messages as they are."""
        if not self.bodies:
            return "Nothing would be sent: there is nothing to ask a language model about.\n"
        key = "Authorization: Bearer [key]" if self._config.api_key is not None else "no key"
        total = len(self.bodies)
        parts = []
        for number, body in enumerate(self.bodies, 1):
            head = {name: value for name, value in body.items() if name != "messages"}
            parts += [
                f"=== request {number} of {total}",
                f"POST {self._config.base_url}/chat/completions ({key})",
                json.dumps(head, ensure_ascii=False),
            ]
            for message in body["messages"]:
                parts += [f"--- {message['role']}", message["content"].rstrip("\n")]
            parts.append("")
        parts.append("Nothing was sent. An answer may change what later requests hold.")
        return "\n".join(parts) + "\n"
