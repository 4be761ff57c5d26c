"""Rule: one condition of legality, as arithmetic over a table and as words about one layout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prompts_agent.layout.factorisations import divisors
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.space import Space
from prompts_agent.layout.table import LayoutTable
from prompts_agent.record import Record

__all__ = ["BoolColumn", "Check", "IntColumn", "Rule", "Words", "multiple", "truth"]

BoolColumn = NDArray[np.bool_]
IntColumn = NDArray[np.int64]


class Words(NamedTuple):
    """What a rule says about one layout: the arithmetic with its values, and the cure."""

    text: str
    cure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One condition. `mask` is the only place where it is computed; `words` spells the same values.

    `forbids` False makes it a flag: the layout is legal, but a reader should know.
    """

    name: str
    mask: Callable[[LayoutTable, Space], BoolColumn]
    words: Callable[[Layout, Space], Words]
    forbids: bool = True
    early: Literal["always", "training", "never"] = "never"
    """When the rule reads only the mesh and what is equal in the whole space (`expert_divides`,
    `weights_over_context`), so that a search may prune by it before it multiplies by the knobs."""


class Check(Record):
    """What one rule says about one layout. `cure` is empty where the rule holds."""

    rule: str
    ok: bool
    forbids: bool
    """Where `ok` is False: True makes the layout illegal, False only flags it."""
    text: str
    cure: str


def truth(values: ArrayLike) -> BoolColumn:
    """`values` as a column of booleans (numpy's own comparisons are typed as anything)."""
    return np.asarray(values, dtype=np.bool_)


def multiple(what: str, number: int, by: str, divisor: int) -> Words:
    """Words of the commonest rule, `number % divisor == 0`.

    >>> multiple("heads", 32, "tensor", 3)[0]
    'heads 32 % tensor 3 = 2'
    """
    choices = [str(d) for d in divisors(number)]
    shown = ", ".join(choices[:12]) + (", …" if len(choices) > 12 else "")
    return Words(
        f"{what} {number} % {by} {divisor} = {number % divisor}",
        f"Choose {by} among the divisors of {number}: {shown}.",
    )
