"""What principles would change between layouts that are nearly tied."""

from __future__ import annotations

from typing import Any

from agents_build import layout, workload
from recipe_build import make_recipe

from prompts_agent.agents.planner.recipe_order import NEAR, Ranked, recipe_order
from prompts_agent.knowledge.base import KnowledgeBase

LOWER = make_recipe(axes=["tensor"], min_devices=2)  # lower tensor, for reductions over tensor
FSDP_RAISED = make_recipe(
    id="raise-fsdp",
    axes=["tensor"],
    changes=[{"axis": "tensor", "move": "lower"}, {"axis": "fsdp", "move": "raise"}],
)


def ranked(cost: float, waits_s: float = 0.0, **sizes: int) -> Ranked:
    """One second a step, of which `waits_s` is exposed on tensor."""
    terms = {"time.tensor_exposed_s": waits_s}
    return Ranked(layout=layout(**sizes), cost=cost, time_s=1.0, terms=terms)


def order(*rows: Ranked, recipes: tuple[Any, ...] = (LOWER,)) -> list[int]:
    with KnowledgeBase(recipes) as base:
        return recipe_order(rows, workload(), base, 3)


WIDE = ranked(1.0, 0.3, tensor=8, fsdp=2)
NARROW = ranked(1.01, 0.05, tensor=4, fsdp=4)


def test_of_two_that_are_tied_the_one_a_principle_leads_to_goes_first() -> None:
    assert order(WIDE, NARROW) == [1, 0]
    assert order(NARROW, WIDE) == [0, 1]


def test_what_is_clearly_slower_stays_behind() -> None:
    slow = ranked(1.0 + 2 * NEAR, 0.0, tensor=2, fsdp=8)
    assert order(WIDE, slow) == [0, 1]
    assert order(WIDE, NARROW, slow) == [1, 0, 2]


def test_nothing_moves_without_a_wait_or_a_recipe() -> None:
    idle = ranked(1.0, 0.05, tensor=8, fsdp=2)  # 5% of the step is no wait
    assert order(idle, NARROW) == [0, 1]
    other = make_recipe(findings=["straggler"], min_devices=2)
    assert order(WIDE, NARROW, recipes=(other,)) == [0, 1]


def test_every_axis_that_is_lowered_and_one_that_is_raised() -> None:
    to_data = ranked(1.01, 0.0, tensor=4, data=2, fsdp=2)
    assert order(WIDE, to_data, recipes=(FSDP_RAISED,)) == [0, 1]
    assert order(WIDE, NARROW, recipes=(FSDP_RAISED,)) == [1, 0]


def test_every_row_comes_back_once() -> None:
    rows = [ranked(1.0 + 0.003 * n, 0.3 - 0.05 * n, tensor=2 ** (4 - n)) for n in range(5)]
    assert sorted(order(*rows)) == [0, 1, 2, 3, 4]
    assert order() == []
