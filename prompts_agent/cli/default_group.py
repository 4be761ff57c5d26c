"""A group of commands of which one need not be named: `prompts batch SOURCE` is `batch run`."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

__all__ = ["RunByDefault"]


class RunByDefault(TyperGroup):
    """What is not a command's name, nor a question for help, is an argument of `run`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put `run` before arguments that name no command."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["run", *args]
        return super().parse_args(ctx, args)
