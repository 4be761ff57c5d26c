"""Budget: the seconds, tokens and money that one run may spend on the model."""

from __future__ import annotations

import time
from collections.abc import Callable

from prompts_agent.agents.llm.config import LlmConfig
from prompts_agent.agents.llm.failure import LlmFailure
from prompts_agent.agents.opinion import Spent

__all__ = ["LEAST_REPLY", "Budget", "rough_tokens"]

LEAST_REPLY = 64
"""Tokens below which no reply could hold an answer."""
_LEAST_SHARE = 0.02
"""Of the time budget: with less left, no call is begun."""
_CALL_SHARE = 0.5
"""Of the time budget: one slow call must leave something for the next."""


def rough_tokens(text: str) -> int:
    """Tokens of a text where the server does not count: bytes ÷ 3, which errs on the high side
    (English has about 4 characters a token, JSON about 3).
    """
    return -(-len(text.encode("utf-8", "replace")) // 3)


class Budget:
    """What is spent and what is left. Only waiting for the model counts as time."""

    def __init__(self, config: LlmConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self._config, self._clock = config, clock
        self.calls = 0
        self.seconds = 0.0
        self.input_tokens = 0
        self.output_tokens = 0
        self.estimated = False
        self.stopped: str | None = None
        """Why the run went on without the model, once it did."""

    @property
    def remaining_s(self) -> float:
        """Seconds left."""
        return self._config.seconds - self.seconds

    @property
    def call_limit_s(self) -> float:
        """Seconds that the next call may take."""
        return min(self.remaining_s, max(_CALL_SHARE * self._config.seconds, 1.0))

    def now(self) -> float:
        """Seconds of the budget's clock."""
        return self._clock()

    def admit(self, prompt_tokens: int) -> int:
        """The longest reply that may be asked for. Raises `LlmFailure` where a budget is spent."""
        if self.remaining_s <= _LEAST_SHARE * self._config.seconds:
            raise self._spent(f"time budget of {self._config.seconds:g} s")
        left = self._config.tokens - self.input_tokens - self.output_tokens - prompt_tokens
        if left < LEAST_REPLY:
            raise self._spent(f"token budget of {self._config.tokens:,}")
        reply = min(left, self._config.reply_tokens)
        if self._config.usd is not None and self.usd is not None:
            ahead = self._price(prompt_tokens, reply) or 0.0
            if self.usd + ahead > self._config.usd:
                raise self._spent(f"money budget of {self._config.usd:g} USD")
        return reply

    def _spent(self, what: str) -> LlmFailure:
        self.stopped = self.stopped or f"the {what} is spent"
        return LlmFailure("budget", f"the {what} is spent")

    def charge(self, input_tokens: int, output_tokens: int, *, estimated: bool) -> None:
        """Count a call's tokens; `estimated`: the server did not."""
        self.calls += 1
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens
        self.estimated = self.estimated or estimated

    def waited(self, seconds: float) -> None:
        """Count time, of a call or of a pause between two."""
        self.seconds += seconds

    @property
    def usd(self) -> float | None:
        """Money spent; None where no prices are given."""
        return self._price(self.input_tokens, self.output_tokens)

    def _price(self, input_tokens: int, output_tokens: int) -> float | None:
        config = self._config
        if config.usd_per_million_input is None or config.usd_per_million_output is None:
            return None
        return (
            input_tokens * config.usd_per_million_input
            + output_tokens * config.usd_per_million_output
        ) / 1e6

    def spent(self) -> Spent:
        """The account, for the report."""
        return Spent(
            calls=self.calls,
            seconds=round(self.seconds, 3),
            seconds_limit=self._config.seconds,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            tokens_limit=self._config.tokens,
            tokens_estimated=self.estimated,
            usd=self.usd,
            usd_limit=self._config.usd if self.usd is not None else None,
            stopped=self.stopped,
        )
