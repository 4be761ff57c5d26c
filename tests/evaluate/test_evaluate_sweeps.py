"""Reading sweeps: one row a layout, facts only where a source states them."""

from __future__ import annotations

from pathlib import Path

import pytest
from evaluate_build import run_of, small_sweep

from prompts_agent.errors import InputError
from prompts_agent.evaluate.sweep_table import number, whole
from prompts_agent.evaluate.sweeps import read_sweeps
from prompts_agent.layout.layout import Remat
from prompts_agent.layout.mesh import Axis

VTRAIN = "params_b,gpus,layers,hidden,heads,seq_len,gbs_seqs,mbs,tp,dp,pp,iter_ms,failed\n"
GROUPS = (
    "group_id,sweep,model,framework,precision,chip,chips,seq_len,gbs_seqs,metric,"
    "lower_is_better,note\n"
    "g,nanotron_ultrascale,nanotron-1B,nanotron,bf16,H100-80GB,8,4096,256,tok_s_gpu,0,\n"
)
ROWS = (
    "group_id,config_json,metric,value,relative_speed,failed,oom,mem,mem_unit\n"
    'g,"{""data"": 8, ""grad_accum"": 16, ""microbatch"": 2, ""pipeline"": 1, ""tensor"": 1, '
    '""zero_stage"": 0}",tok_s_gpu,40150,1.0,0,0,50.2,GB\n'
    'g,"{""data"": 4, ""grad_accum"": 64, ""microbatch"": 1, ""pipeline"": 1, ""tensor"": 2, '
    '""zero_stage"": 1}",tok_s_gpu,,,1,0,,\n'
)


def written(directory: Path, **files: str) -> Path:
    folder = directory / "training" / "sweeps"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text)
    return directory


def test_repeats_of_a_layout_are_their_median() -> None:
    sweep = small_sweep([run_of(8, 1, 3.0), run_of(8, 1, 1.0), run_of(8, 1, 2.0)])
    assert [row.step_time_s for row in sweep.rows] == [2.0]
    assert not sweep.rankable


def test_only_a_stated_cause_is_an_out_of_memory_fact() -> None:
    sweep = small_sweep(
        [run_of(8, 1, None, out_of_memory=True), run_of(4, 2, None), run_of(2, 4, 1.0)]
    )
    assert [row.out_of_memory for row in sweep.rows] == [True, False]
    assert [layout.mesh.size(Axis.TENSOR) for layout in sweep.failed] == [2]


def test_a_layout_that_ran_once_does_not_run_out_of_memory() -> None:
    sweep = small_sweep([run_of(8, 1, None, out_of_memory=True), run_of(8, 1, 1.0)])
    assert [row.out_of_memory for row in sweep.rows] == [False]


def test_a_layout_of_other_devices_is_no_row() -> None:
    assert small_sweep([run_of(4, 1, 1.0)]).rows == ()


def test_a_fit_sees_rows_as_alternatives() -> None:
    sweep = small_sweep([run_of(8, 1, 1.0), run_of(4, 2, 2.0)])
    assert sweep.with_alternatives.alternatives == sweep.rows
    assert sweep.workload.alternatives == ()


def test_nanotron_ranks_by_tokens_per_second(tmp_path: Path) -> None:
    directory = written(tmp_path, nanotron_ultrascale="", ranking_groups=GROUPS, ranking_rows=ROWS)
    (sweep,) = read_sweeps(directory)
    (row,) = sweep.rows
    # 256 sequences of 4096 tokens at 40150 tokens/s on each of 8 GPUs.
    assert row.step_time_s == pytest.approx(256 * 4096 / (40150 * 8))
    assert row.hbm_bytes == 50_200_000_000
    assert (row.layout.remat, row.layout.zero_stage) == (Remat.NONE, 0)
    assert len(sweep.failed) == 1


def test_vtrain_groups_by_workload(tmp_path: Path) -> None:
    lines = ",8,24,1024,16,1024,32,4,2,2,2,219.7,0\n,8,24,1024,16,1024,32,4,1,8,1,200,0\n"
    other = ",8,24,1024,16,1024,16,2,1,8,1,150,0\n"
    found = read_sweeps(written(tmp_path, vtrain_single=VTRAIN + lines + other))
    assert [len(sweep.rows) for sweep in found] == [2, 1]
    assert found[0].rows[0].step_time_s == pytest.approx(0.2197)
    # The batch alone differs: neighbouring loads of one workload.
    assert found[0].cluster == found[1].cluster


def test_a_directory_without_sweeps_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="training/sweeps"):
        read_sweeps(tmp_path)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="iter_ms"):
        read_sweeps(written(tmp_path, vtrain_single="gpus,layers\n"))


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "1,5", "abc"])
def test_a_cell_is_blank_or_a_number(text: str) -> None:
    with pytest.raises(InputError, match="blank or a number"):
        number({"x": text}, "x")
    assert number({"x": " "}, "x") is None


def test_counts_are_whole() -> None:
    assert whole({"x": "4.0"}, "x") == 4
    assert whole({"x": ""}, "x", 1) == 1
    with pytest.raises(InputError, match="whole number"):
        whole({"x": "4.5"}, "x")
    with pytest.raises(InputError, match="counts something"):
        whole({"x": ""}, "x")
