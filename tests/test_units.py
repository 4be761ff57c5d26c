"""Units at the border."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts_agent.units import (
    format_bytes,
    format_flops,
    format_seconds,
    seconds_from_ms,
    seconds_from_ns,
    seconds_from_ps,
    seconds_from_us,
)


@pytest.mark.parametrize(
    ("value_s", "text"),
    [
        (0, "0 s"),
        (0.7841, "784 ms"),
        (2.5, "2.50 s"),
        (35.65645, "35.7 s"),
        (9.2e-4, "920 µs"),
        (1.46e-6, "1.46 µs"),
        (0.9999, "1.00 s"),  # not "1000 ms"
        (-0.25, "-250 ms"),
        (3e-10, "0.30 ns"),
    ],
)
def test_seconds(value_s: float, text: str) -> None:
    assert format_seconds(value_s) == text


def test_bytes_are_decimal_as_data_sheets_print_them() -> None:
    assert format_bytes(16e9) == "16.0 GB"
    assert format_bytes(2**30) == "1.07 GB"
    assert format_bytes(0) == "0 B"
    assert format_bytes(12) == "12.0 B"


def test_flops_have_no_tail() -> None:
    assert format_flops(1.97e14) == "197 T"
    assert format_flops(0) == "0"


@given(st.floats(min_value=1e-9, max_value=1e4))
def test_three_digits_say_the_value_within_half_a_percent(value_s: float) -> None:
    number, unit = format_seconds(value_s).split()
    scale = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]
    assert float(number) * scale == pytest.approx(value_s, rel=5.1e-3)


def test_each_conversion_is_its_power_of_ten() -> None:
    assert seconds_from_ps(784_100_000_000) == pytest.approx(0.7841)
    assert seconds_from_ns(5) == pytest.approx(5e-9)
    assert seconds_from_us(66.9e3) == pytest.approx(0.0669)
    assert seconds_from_ms(66.9) == pytest.approx(0.0669)
