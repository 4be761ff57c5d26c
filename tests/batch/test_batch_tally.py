"""How far a batch is, by a clock that the test turns."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from batch_build import items

from prompts_agent.batch.row import Row, Status
from prompts_agent.batch.tally import Tally, span_text
from prompts_agent.cli import batch_progress


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def row(status: Status, reason: str | None = None) -> Row:
    (item,) = items(["a"])
    when = datetime(2026, 1, 1, tzinfo=UTC)
    return Row(item=item, key=item.key, status=status, reason=reason, finished_at=when)


def test_rate_time_left_and_failures_by_reason() -> None:
    clock = Clock()
    tally = Tally(1000, 100, clock)
    assert tally.line() == "100/1000"
    for number in range(10):
        clock.now += 0.5
        failed = number in (2, 3, 7)
        tally.add(row("bad_input" if failed else "done", "Damaged" if number < 5 else "Empty"))
    # 10 rows in 5 s; 890 are left.
    assert tally.per_s == 2.0
    assert tally.left_s == 445.0
    assert tally.line() == "110/1000, 2 a second, 7 min left, 3 failed: 2 Damaged, 1 Empty"


def test_the_rate_is_the_last_rows() -> None:
    clock = Clock()
    tally = Tally(1000, 0, clock)
    clock.now += 1000  # a slow start
    for _ in range(300):
        clock.now += 0.1
        tally.add(row("done"))
    assert tally.per_s == pytest.approx(10)


def test_the_sum() -> None:
    tally = Tally(3, 1)
    tally.count(row("done"))
    tally.add(row("cannot_tell", "the trace tells nothing"))
    tally.add(row("timed_out", "time limit"))
    assert tally.summary() == "1 diagnosed, 1 cannot tell, 1 failed: 1 time limit"
    assert Tally(0, 0).summary() == "0 diagnosed, 0 cannot tell, none failed"


@pytest.mark.parametrize(
    ("seconds", "text"), [(40, "40 s"), (2340, "39 min"), (12_000, "3 h 20 min")]
)
def test_spans(seconds: float, text: str) -> None:
    assert span_text(seconds) == text


def test_a_pipe_gets_a_line_a_minute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    monkeypatch.setattr(batch_progress.time, "monotonic", clock)
    tally = Tally(100, 0, clock)
    with batch_progress.BatchProgress(quiet=False) as progress:
        progress.begin(tally)
        for _ in range(4 * 120):  # two minutes, four ticks a second
            clock.now += 0.25
            progress.tick()
            if clock.now == 150:
                tally.add(row("done"))
    assert capsys.readouterr().err.splitlines() == [
        "1/100, 0.02 a second, 82 min left",  # 99 rows of 50 s are 82.5 min
        "1/100, 0.02 a second, 82 min left",
    ]
