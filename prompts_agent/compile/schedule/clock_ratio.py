"""Clock ratio: what public runs took over the clock on their compiled schedule, by chip."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pydantic import PositiveFloat, PositiveInt

from prompts_agent.record import Record

__all__ = ["ClockRatio", "clock_ratio"]

_DATA = Path(__file__).resolve().parents[1] / "data" / "clock.yaml"


class ClockRatio(Record):
    """Measured ÷ the clock's step by the roofline, geometric mean over `runs` training runs.

    Applied to models that it was not made from, half of the 43 runs lie within 5.7% and nine in
    ten within 15.5%; without it, within 8.6% and 19.5% (benchmarks/aot/step_table.py).
    """

    ratio: PositiveFloat
    runs: PositiveInt


def clock_ratio(chip: str) -> ClockRatio | None:
    """Of a chip by its short name; None where no public run is known."""
    return _known().get(chip)


@cache
def _known() -> dict[str, ClockRatio]:
    import yaml

    data = yaml.safe_load(_DATA.read_text(encoding="utf-8"))
    return {chip: ClockRatio.model_validate(entry) for chip, entry in data["chips"].items()}
