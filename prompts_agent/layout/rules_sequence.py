"""Rules about the sequence: what context and sequence parallelism cut must come out even."""

from __future__ import annotations

import numpy as np

from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.rule import BoolColumn, Rule, Words, multiple, truth
from prompts_agent.layout.space import Space
from prompts_agent.layout.table import LayoutTable

__all__ = ["SEQUENCE_RULES"]


def _context(table: LayoutTable, space: Space) -> BoolColumn:
    return truth(space.sequence % table.size(Axis.CONTEXT) == 0)


def _context_words(layout: Layout, space: Space) -> Words:
    tokens, context = space.sequence, layout.mesh.size(Axis.CONTEXT)
    words = multiple(f"{tokens} tokens", tokens, {"context": context})
    # A sequence that is balanced is cut evenly all the more.
    return words._replace(quiet=tokens % (2 * context) == 0)


def _balance(table: LayoutTable, space: Space) -> BoolColumn:
    context = table.size(Axis.CONTEXT)
    return truth((context == 1) | (space.sequence % (2 * context) == 0))


def _balance_words(layout: Layout, space: Space) -> Words:
    # A causal mask gives late shards more work; pairing chunk i with chunk 2c − 1 − i evens it.
    tokens, context = space.sequence, layout.mesh.size(Axis.CONTEXT)
    if context == 1:
        return Words("no context axis to balance", "", quiet=True)
    chunk, rest = divmod(tokens, 2 * context)
    return Words(
        f"{tokens} tokens ÷ (context {context} × 2 chunks, which balance a causal mask) "
        f"{f'leaves {rest}' if rest else f'= {chunk}'}",
        f"Use a sequence that is a multiple of {2 * context}.",
    )


def _sequence_parallel(table: LayoutTable, space: Space) -> BoolColumn:
    tensor = table.size(Axis.TENSOR)
    shard = space.sequence // np.maximum(table.size(Axis.CONTEXT), 1)
    usable = (tensor > 1) & (shard % tensor == 0)
    return truth(~table.sequence_parallel | (usable & space.training))


def _sequence_parallel_words(layout: Layout, space: Space) -> Words:
    if not layout.sequence_parallel:
        return Words("sequence_parallel is off", "", quiet=True)
    tensor, context = layout.mesh.size(Axis.TENSOR), layout.mesh.size(Axis.CONTEXT)
    tokens = space.sequence // context
    if not space.training:
        return Words(
            "sequence_parallel in serving, where it has no activations to save",
            "Switch it off.",
        )
    words = multiple(f"{tokens} tokens of a device", tokens, {"tensor": tensor})
    return words._replace(
        text=f"{words.text}: sequence_parallel",
        cure="Switch sequence_parallel off, or use a tensor above 1 that divides the tokens.",
    )


SEQUENCE_RULES: tuple[Rule, ...] = (
    Rule(name="context", mask=_context, words=_context_words, early="always"),
    Rule(name="context_balance", mask=_balance, words=_balance_words, forbids=False),
    Rule(name="sequence_parallel", mask=_sequence_parallel, words=_sequence_parallel_words),
)
