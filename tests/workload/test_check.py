from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.check import Problem, check
from prompts_agent.workload.yaml import load_workload

WORKLOADS = Path(__file__).resolve().parents[2] / "workloads"
FILES = sorted(WORKLOADS.rglob("*.yaml"))

JOB: dict[str, Any] = {
    "model": "llama3-8b",
    "hardware": "v5e:16x16",
    "phase": "pretrain",
    "global_batch": 256,
    "sequence": 8192,
}
DIMS = {
    "layers": 4,
    "embed": 512,
    "heads": 8,
    "kv_heads": 8,
    "head_dim": 64,
    "mlp": 2048,
    "gated_mlp": False,
    "vocab": 32000,
    "tied_embeddings": True,
}


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def written(stem: str, **changes: Any) -> Path:
        file = tmp_path / f"{stem}.yaml"
        file.write_text(yaml.safe_dump(JOB | changes))
        return file

    return written


def test_files_without_a_fault(write: Any) -> None:
    plain = write("plain")
    told = write("told", adopted={"degrees": {"fsdp": 256}}, source="a paper")
    beside = write("beside", adopted={"degrees": {"fsdp": 256}, "source": "a page"})
    assert check([plain, told, beside]) == ()


def test_a_file_that_does_not_load_does_not_hide_the_next(write: Any) -> None:
    wrong = write("wrong", adopted={"degrees": {"fsdp": 128}}, source="a paper")
    other = write("other", phase="train")
    first, second = check([wrong, other])
    assert first.file == str(wrong)
    assert "fsdp 128 = 128 devices" in first.value
    assert first.rule == "v5e:16x16 has 256"
    assert "phase = 'train'" in second.value


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"adopted": {"degrees": {"fsdp": 256}}}, "adopted"),
        (
            {"baseline": {"mesh": {"fsdp": 256}, "measured": {"step_time_s": 3}}},
            "baseline.measured",
        ),
        ({"alternatives": [{"mesh": {"fsdp": 256}, "out_of_memory": True}]}, "alternatives.0"),
        ({"model": DIMS}, "model"),
    ],
)
def test_figures_without_a_source(write: Any, changes: dict[str, Any], where: str) -> None:
    (problem,) = check([write("job", **changes)])
    assert f"job.yaml, {where}" in problem.value
    assert "source" in problem.rule


def test_repeated_names_and_jobs(write: Any) -> None:
    first, again = write("first"), write("again")
    named = write("named", sequence=4096, name="first")
    repeated, same_name = check([first, again, named])
    assert (repeated.file, same_name.file) == (str(again), str(named))
    assert "first.yaml" in repeated.value
    assert "first.yaml" in same_name.rule
    assert isinstance(repeated, Problem)
    assert str(repeated).endswith("Keep one of them.")


def test_the_files_that_come_along_have_no_fault() -> None:
    assert [str(problem) for problem in check(FILES)] == []


def test_the_collection_is_broad() -> None:
    texts = [path.read_text(encoding="utf-8") for path in FILES]
    assert sum("\nadopted:" in text for text in texts) >= 150
    chips = {
        chip
        for text in texts
        for chip in re.findall(r"^hardware: \"?(?:\d+\*)?([^:]+):", text, re.MULTILINE)
    }
    assert {"v4", "v5e", "v5p", "v6e", "tpu7x", "h100", "b200", "gb200", "a100-80"} <= chips
    phases = {phase for text in texts for phase in re.findall(r"^phase: (\w+)", text, re.MULTILINE)}
    assert phases >= {"pretrain", "posttrain", "serve"}


# Two files against what their sources print.
def test_a_recipe_for_trillium() -> None:
    # tpu-recipes, Gemma3-12B on two v6e-256: ici_fsdp_transpose 256, dcn_data 2, batch 1 a chip.
    workload = load_workload(WORKLOADS / "training/gemma3-12b-v6e-512-seq32768.yaml")
    adopted = workload.adopted
    assert adopted is not None
    assert adopted.layout is not None
    assert adopted.measured is not None
    assert adopted.degrees == {Axis.DATA: 2, Axis.FSDP: 256}
    mesh = adopted.layout.mesh
    assert (mesh[Axis.DATA].dcn, mesh[Axis.FSDP].ici) == (2, 256)
    assert (workload.topology.slices, workload.global_batch) == (2, 512)
    assert adopted.measured.step_time_s == 7.793


def test_an_mlperf_submission() -> None:
    # config_DGXH100_64x8x128x4x8_mbs2.sh: 64 nodes, TP 4, PP 8, microbatch 2, batch 2048.
    adopted = load_workload(WORKLOADS / "training/gpt3-175b-h100-512-seq2048-fp8.yaml").adopted
    assert adopted is not None
    assert adopted.layout is not None
    assert adopted.measured is not None
    assert adopted.degrees == {Axis.PIPELINE: 8, Axis.DATA: 16, Axis.TENSOR: 4}
    layout = adopted.layout
    assert (layout.microbatch, layout.gradient_accumulation, layout.virtual_stages) == (2, 64, 6)
    assert adopted.measured.step_time_s == 9.4964
