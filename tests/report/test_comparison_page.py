"""A comparison on a page: what a reader must see, in 80 columns, in ASCII, as Markdown."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from prompts_agent.agents.comparison.comparison import (
    Comparison,
    FindingShift,
    Likeness,
    Noise,
    Outcome,
    Run,
    Shift,
)
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Mesh
from prompts_agent.report.comparison.console import comparison_text, print_comparison
from prompts_agent.report.comparison.markdown import comparison_markdown

FOUND = Comparison(
    tool_version="1",
    before=Run(mesh="data 2 × tensor 4", step_time_s=1.0, steps=20, spread_s=0.01),
    after=Run(mesh="data 4 × tensor 2", step_time_s=0.8, steps=1),
    likeness=(
        Likeness(what="chip", before="v6e", after="v6e", same=True),
        Likeness(what="model", before=None, after=None, same=None),
    ),
    alike=True,
    noise=Noise(floor_s=0.014, source="spread of the steps"),
    step=Shift(what="step", before_s=1.0, after_s=0.8, change_s=-0.2, within_noise=False),
    gain=1.25,
    direction="faster",
    parts=(
        Shift(what="compute", before_s=0.6, after_s=0.61, change_s=0.01, within_noise=True),
        Shift(what="input", before_s=None, after_s=None, change_s=None, within_noise=None),
    ),
    findings=(
        FindingShift(
            what="exposed all-reduce over mdl|`x`",
            before_s=0.3,
            after_s=0.1,
            change_s=-0.2,
            within_noise=False,
            kind="exposed_collective",
            is_sharding=True,
            found="before",
        ),
        FindingShift(
            what="kv heads split",
            before_s=None,
            after_s=None,
            change_s=None,
            within_noise=None,
            kind="kv_heads_split",
            is_sharding=True,
            found="before",
        ),
    ),
    outcome=Outcome(
        rank=1,
        layout=Layout(mesh=Mesh.of(data=4, tensor=2)),
        predicted_gain=1.2,
        gain_low=1.1,
        gain_high=1.3,
        measured_gain=1.25,
        gain_error=0.0417,
        measured_step_time_s=0.8,
        inside=True,
    ),
)


def row(text: str, start: str) -> list[str]:
    return next(line for line in text.splitlines() if line.strip().startswith(start)).split()


def test_the_page() -> None:
    text = comparison_text(FOUND)
    assert "Faster: 1.00 s → 800 ms a step, 1.25× the throughput" in text
    assert "data 2 × tensor 4 → data 4 × tensor 2" in text
    assert row(text, "compute") == ["compute", "600", "ms", "610", "ms", "+10.0", "ms", "within",
                                    "the", "noise"]  # fmt: skip
    assert row(text, "input") == ["input", "unknown", "unknown", "unknown"]
    assert row(text, "kv heads") == ["kv", "heads", "split", "found", "no", "gone"]
    assert "no finding after" in text
    assert "not told by both traces: model" in text
    assert "gain predicted 1.20× (90%: 1.10× to 1.30×), measured 1.25×, 4.2% above it" in text
    assert "inside the predicted 90% interval" in text


@pytest.mark.parametrize(
    ("update", "headline"),
    [
        ({"direction": "within_noise"}, "No change beyond the noise: 1.00 s → 800 ms a step"),
        ({"direction": "unknown"}, "too few steps to say whether that is more than noise"),
        ({"alike": False}, "Not the same job: 1.00 s → 800 ms a step"),
        ({"direction": "slower", "gain": None}, "Slower: 1.00 s → 800 ms a step, slower"),
    ],
)
def test_the_headline_claims_no_more_than_is_known(
    update: dict[str, object], headline: str
) -> None:
    assert headline in comparison_text(FOUND.model_copy(update=update))


def test_eighty_columns_of_ascii() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    print_comparison(FOUND, Console(file=stream, width=80, color_system=None))
    stream.flush()
    lines = stream.buffer.getvalue().decode("ascii").splitlines()  # type: ignore[attr-defined]
    assert max(map(len, lines)) <= 80
    assert not any(line.endswith(" ") for line in lines)


def test_markdown_is_safe_and_whole() -> None:
    text = comparison_markdown(FOUND)
    assert text.startswith("### Faster: 1.00 s → 800 ms a step")
    (line,) = [line for line in text.splitlines() if "mdl" in line]
    assert line.count("|") - line.count("\\|") == 6
    assert "| step | 1.00 s | 800 ms | −200 ms |  |" in text
