"""Open loop: requests that come at a rate of their own, whether or not others have finished.

Every function returns float64[n], a value per layout. λ is the arrivals per second at one replica,
b the sequences that run together there, B the most that may.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.memory_serving import cache_bytes
from prompts_agent.estimate.serving_steps import decode_step, prefill_step
from prompts_agent.estimate.setting import Setting

__all__ = ["OVERLOAD_S", "open_loop"]

FloatColumn = NDArray[np.float64]

OVERLOAD_S = 3600.0
"""A server that cannot keep up has no steady state: its first-token time is told after so long."""

# 2^-30 of B: far below what one sequence more or less changes.
_HALVINGS = 30


class _Cycle(NamedTuple):
    """b sequences together: one decode step and its parts, and a prompt's prefill, in seconds."""

    parts: dict[str, FloatColumn]
    decode: FloatColumn
    prefill: FloatColumn
    each: FloatColumn
    """What a prompt costs the others: less than `prefill` where stages work on several."""

    def served_s(self, sequences: FloatColumn, output: float) -> FloatColumn:
        """From a request's first token to its last: its tokens, and the prompts between them."""
        return output * self.decode + sequences * self.each


def open_loop(
    at: Setting, limit: FloatColumn, prompt: float, output: float, requests_per_s: float
) -> dict[str, FloatColumn]:
    """`ttft_s`, `tpot_s`, `tokens_per_s`, `running_sequences`, `utilisation`; the parts of TPOT.

    By Little's law (1961) `b = λ × (output × decode(b) + b × prefill)`, solved by halving. A
    server of at most B finishes `B ÷ (output × decode(B) + B × prefill)` requests a second; λ over
    that is its utilisation u. From 1 on it falls behind for ever: what a request waits is then told
    after an hour, `3600 s × (u - 1)`.

    `tokens_per_s` is what all replicas could serve, not what is asked of them: the layout with most
    to spare ranks first.

    Below 1 a prompt waits for prompts as in a queue of one server with equal times and Poisson
    arrivals, ρ ÷ (2 (1 - ρ)) of a prefill with ρ = λ × prefill (Pollaczek and Khinchine), and for
    one of the B places `served ÷ B × u^(√(2 (B + 1)) - 1) ÷ (2 (1 - u))` (Sakasegawa, 1977).
    """
    replicas = at.table.batch_shards.astype(np.float64)
    rate = requests_per_s / replicas
    full = _cycle(at, limit, prompt)
    capacity = limit / full.served_s(limit, output)
    used = rate / capacity
    running = np.where(used < 1.0, _running(at, rate, limit, prompt, output), limit)
    now = _cycle(at, np.maximum(running, 1.0), prompt)
    between = running * now.each / output
    served = now.served_s(running, output)
    # A step runs when one comes if any sequence does: 1 - e^-b of the time, half of one on average.
    step = 0.5 * now.decode * -np.expm1(-running)
    first = now.prefill + _prompts_ahead(rate * now.each, limit) * now.each + step
    return {
        "ttft_s": first + _place_wait_s(used, limit, served),
        "tpot_s": now.decode + between,
        "tokens_per_s": replicas * capacity * output,
        **now.parts,
        "prefill_s": between,
        "running_sequences": running,
        "utilisation": used,
    }


def _cycle(at: Setting, sequences: FloatColumn, prompt: float) -> _Cycle:
    parts = decode_step(at, sequences, cache_bytes(at, sequences))
    prefill = np.sum(list(prefill_step(at, prompt, 1.0).values()), axis=0)
    each = prefill / np.clip(sequences, 1.0, at.sizes.pipeline)
    return _Cycle(parts, np.sum(list(parts.values()), axis=0), prefill, each)


def _running(
    at: Setting, rate: FloatColumn, limit: FloatColumn, prompt: float, output: float
) -> FloatColumn:
    """B of Little's law, between 0 and B: where a server keeps up, its work on B would end sooner
    than B more arrive, and its work on none would not.
    """
    low, high = np.zeros_like(limit), limit.copy()
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        cycle = _cycle(at, np.maximum(middle, 1.0), prompt)
        more = rate * cycle.served_s(middle, output) > middle
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return 0.5 * (low + high)


def _prompts_ahead(busy: FloatColumn, limit: FloatColumn) -> FloatColumn:
    """Prompts that one finds before it, at most B - 1."""
    ahead = busy / (2.0 * np.maximum(1.0 - busy, 1e-9))
    return np.minimum(ahead, np.maximum(limit - 1.0, 0.0))


def _place_wait_s(used: FloatColumn, limit: FloatColumn, served: FloatColumn) -> FloatColumn:
    """Seconds until one of B places is free."""
    below = np.minimum(used, 1.0 - 1e-9)
    power = np.sqrt(2.0 * (limit + 1.0)) - 1.0
    queue = served / limit * below**power / (2.0 * (1.0 - below))
    return np.where(used < 1.0, np.minimum(queue, OVERLOAD_S), OVERLOAD_S * (used - 1.0))
