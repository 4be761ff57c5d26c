"""Legality: every rule that a layout must keep, over a table and in words."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from prompts_agent.layout.layout import Layout
from prompts_agent.layout.rule import BoolColumn, Check, Rule
from prompts_agent.layout.rules_batch import BATCH_RULES
from prompts_agent.layout.rules_dims import DIM_RULES
from prompts_agent.layout.rules_mesh import MESH_RULES
from prompts_agent.layout.rules_sequence import SEQUENCE_RULES
from prompts_agent.layout.space import Space
from prompts_agent.layout.table import LayoutTable

__all__ = ["RULES", "check", "keep", "knob_rules", "legal", "mesh_rules"]

RULES: tuple[Rule, ...] = (*MESH_RULES, *DIM_RULES, *BATCH_RULES, *SEQUENCE_RULES)


def mesh_rules(space: Space) -> tuple[Rule, ...]:
    """Rules that no knob can mend: a mesh that breaks one needs none of its layouts built."""
    early = ("always", "training") if space.training else ("always",)
    return tuple(rule for rule in RULES if rule.forbids and rule.early in early)


def knob_rules(space: Space) -> tuple[Rule, ...]:
    """The forbidding rules that are not among `mesh_rules`."""
    early = mesh_rules(space)
    return tuple(rule for rule in RULES if rule.forbids and rule not in early)


def legal(table: LayoutTable, space: Space) -> BoolColumn:
    """Which rows break no rule, bool[n]. Flags (rules that do not forbid) do not count."""
    return keep(table, space, (rule for rule in RULES if rule.forbids))


def keep(table: LayoutTable, space: Space, rules: Iterable[Rule]) -> BoolColumn:
    """Which rows keep all of `rules`, bool[n]."""
    ok = np.ones(len(table), dtype=np.bool_)
    for rule in rules:
        ok &= rule.mask(table, space)
    return ok


def check(layout: Layout, space: Space) -> tuple[Check, ...]:
    """What every rule says about one layout, in the order of RULES.

    The layout is legal where no check has `forbids and not ok`.
    """
    table = LayoutTable.of([layout])
    checks = []
    for rule in RULES:
        ok = bool(rule.mask(table, space)[0])
        words = rule.words(layout, space)
        checks.append(
            Check(
                rule=rule.name,
                ok=ok,
                forbids=rule.forbids,
                text=words.text,
                cure="" if ok else words.cure,
                quiet=ok and words.quiet,
            )
        )
    return tuple(checks)
