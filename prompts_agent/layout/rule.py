"""Rule: one condition of legality, as arithmetic over a table and as words about one layout."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prompts_agent.layout.factorisations import divisors
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.space import Space
from prompts_agent.layout.table import LayoutTable
from prompts_agent.record import Record

__all__ = [
    "BoolColumn",
    "Check",
    "IntColumn",
    "Rule",
    "Words",
    "factors",
    "multiple",
    "truth",
]

BoolColumn = NDArray[np.bool_]
IntColumn = NDArray[np.int64]


class Words(NamedTuple):
    """What a rule says about one layout: the arithmetic with its values, and the cure."""

    text: str
    cure: str
    quiet: bool = False
    """Where the rule holds, a person learns nothing from it: it would hold for any layout of this
    kind, or another rule says the same."""


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
    quiet: bool = False
    """The rule holds, and to say so tells a person nothing (`Words.quiet`)."""


def truth(values: ArrayLike) -> BoolColumn:
    """`values` as a column of booleans (numpy's own comparisons are typed as anything)."""
    return np.asarray(values, dtype=np.bool_)


def multiple(what: str, number: int, by: Mapping[str, int]) -> Words:
    """Words of the commonest rule: `number` is a multiple of the product of `by`.

    `what` is the number with its noun. Factors of one are left out, and without any other the words
    are quiet.

    >>> multiple("32 heads", 32, {"tensor": 4}).text
    '32 heads ÷ tensor 4 = 8'
    >>> multiple("24 sequences", 24, {"data": 2, "fsdp": 8}).text
    '24 sequences ÷ (data 2 × fsdp 8) leaves 8'
    """
    divisor = math.prod(by.values())
    result, rest = divmod(number, divisor)
    named = " × ".join(by)
    choices = [str(d) for d in divisors(number)]
    shown = ", ".join(choices[:12]) + (", …" if len(choices) > 12 else "")
    return Words(
        f"{what} ÷ {factors(by)} {f'leaves {rest}' if rest else f'= {result}'}",
        f"Choose {named} among the divisors of {number}: {shown}.",
        quiet=divisor == 1,
    )


def factors(sizes: Mapping[str, int]) -> str:
    """`(data 2 × fsdp 8)`, without the sizes of one; `1` where nothing else is left."""
    used = [f"{name} {size}" for name, size in sizes.items() if size > 1]
    return f"({' × '.join(used)})" if len(used) > 1 else used[0] if used else "1"
