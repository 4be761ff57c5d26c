"""Step: a function, the abstract arguments it is compiled for, and what each of them is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

from prompts_agent.compile.reference.untyped import abstract

__all__ = ["Step"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """`classes` is a prefix tree of `arguments`: the buffer class of everything below each leaf."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    classes: tuple[Any, ...]
    donated: tuple[int, ...]
    out_shardings: Any
    free_layout: int | None = None
    """The argument whose layout in memory the compiler may choose; the first result has it too."""
    free_inputs: tuple[int, ...] = ()
    """Others that the compiler may lay out as it likes, which the function only reads."""

    def lower(self) -> Any:
        """The step as StableHLO. Every argument is kept, so that their numbers stay as given."""
        arguments, options = self.arguments, {"out_shardings": self.out_shardings}
        if self.free_layout is not None:
            free = _free(arguments[self.free_layout])
            given = [jax.tree.map(lambda a: a.sharding, argument) for argument in arguments]
            given[self.free_layout] = free
            for index in self.free_inputs:
                given[index] = _free(arguments[index])
            options = {"in_shardings": tuple(given), "out_shardings": (free, None)}
            arguments = jax.tree.map(lambda a: abstract(a.shape, a.dtype), arguments)
        step = jax.jit(self.function, donate_argnums=self.donated, keep_unused=True, **options)
        return step.lower(*arguments)

    def argument_classes(self) -> list[str]:
        """The buffer class of every argument, in the order of the compiled program's parameters."""
        spread = jax.tree.broadcast(self.classes, self.arguments)
        return [str(name) for name in jax.tree.leaves(spread)]


def _free(tree: Any) -> Any:
    """The same shardings, in whatever order of dims the compiler likes."""
    from jax.experimental.layout import Format, Layout

    return jax.tree.map(lambda a: Format(Layout.AUTO, a.sharding), tree)
