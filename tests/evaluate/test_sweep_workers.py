from __future__ import annotations

import csv
from pathlib import Path

import pytest

from prompts_agent.evaluate.sweep_workers import decoding_workers, sequences_of_a_worker
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.framework import Framework
from prompts_agent.workload.workload import Phase

COLUMNS = (
    "mode", "layout", "model_path", "system", "precision", "backend", "isl", "osl",
    "concurrency", "ttft_ms", "tpot_ms",
)  # fmt: skip
WIDE = "1P[tp1pp1adp4etp1ep4]4D[tp1pp1adp8etp1ep8]"
ROW = ("disagg", WIDE, "deepseek-ai/DeepSeek-R1", "gb200", "fp4", "trtllm", "1024", "1024")


def written(directory: Path, *rows: tuple[str, ...]) -> Path:
    with (directory / "aic_silicon_sample.csv").open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    return directory


def test_a_worker_holds_what_is_not_in_prefill() -> None:
    # 10.24 s of 10.64 s of a request are decoded: 192 ÷ 4 × 10.24 ÷ 10.64 = 46.2.
    assert sequences_of_a_worker(192, 4, 1024, ttft_s=0.4, tpot_s=0.010) == 46


def test_a_decode_pool_is_a_fact_about_one_of_its_workers(tmp_path: Path) -> None:
    (sweep,) = decoding_workers(written(tmp_path, (*ROW, "192", "400", "10")))
    workload, (row,) = sweep.workload, sweep.rows
    assert not sweep.rankable
    assert workload.phase is Phase.DECODE
    assert workload.framework is Framework.TENSORRT_LLM
    # Eight ranks on two trays of four; half of the answer is written on average.
    assert str(workload.topology) == "gb200:2x4"
    assert (workload.global_batch, workload.sequence) == (46, 1536)
    assert row.layout.mesh.size(Axis.TENSOR) == row.layout.mesh.size(Axis.EXPERT) == 8
    assert row.layout.attention_data == 8
    assert row.tpot_s == pytest.approx(0.010)
    assert row.tokens_per_s == pytest.approx(4600)


def test_rows_that_say_nothing_of_a_worker_are_left_out(tmp_path: Path) -> None:
    uncounted = (ROW[0], "?P[tp4pp1adp1etp4ep1]?D[tp4pp1adp1etp4ep1]", *ROW[2:], "5", "466", "10")
    unknown = (*ROW[:2], "nobody/Knows-1B", *ROW[3:], "192", "400", "10")
    blank = (*ROW, "192", "", "10")
    together = ("agg", *ROW[1:], "192", "400", "10")
    assert not list(decoding_workers(written(tmp_path, uncounted, unknown, blank, together)))
