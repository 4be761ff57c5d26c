from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from prompts_agent.errors import WorkloadError
from prompts_agent.layout.layout import PipelineSchedule, Remat
from prompts_agent.layout.legality import check
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.search_space import search_space
from prompts_agent.workload.workload import Objective, Phase, Workload
from prompts_agent.workload.yaml import load_workload

WORKLOADS = Path(__file__).resolve().parents[2] / "workloads"

BASE: dict[str, Any] = {
    "model": "llama3-8b",
    "hardware": "v5e:16x16",
    "phase": "pretrain",
    "global_batch": 256,
    "sequence": 8192,
}


@pytest.fixture
def load(tmp_path: Path) -> Any:
    def loaded(**changes: Any) -> Workload:
        data = {k: v for k, v in (BASE | changes).items() if v is not None}
        file = tmp_path / "job.yaml"
        file.write_text(yaml.safe_dump(data, sort_keys=False))
        return load_workload(file)

    return loaded


def test_the_least_that_a_file_says(load: Any) -> None:
    workload = load()
    assert workload.name == "job"
    assert (workload.model.layers, workload.model.embed) == (32, 4096)
    assert str(workload.topology) == "v5e:16x16"
    assert (workload.phase, workload.objective) == (Phase.PRETRAIN, Objective.THROUGHPUT)
    assert workload.baseline is None
    assert workload.assumptions == ()


def test_a_baseline_with_everything(load: Any) -> None:
    baseline = {
        "mesh": {"fsdp": 64, "tensor": 4},
        "microbatch": 2,
        "gradient_accumulation": 2,
        "remat": "minimal",
        "sequence_parallel": True,
        "measured": {"step_time_s": 7, "hbm_bytes": 15e9},
    }
    workload = load(baseline=baseline, source="a report")
    layout = workload.baseline
    assert layout.mesh.used() == {Axis.FSDP: 64, Axis.TENSOR: 4}
    assert (layout.microbatch, layout.gradient_accumulation) == (2, 2)
    assert (layout.remat, layout.sequence_parallel) == (Remat.MINIMAL, True)
    assert workload.baseline_measured.step_time_s == 7
    assert workload.baseline_measured.hbm_bytes == 15_000_000_000
    assert workload.baseline_measured.source == "a report"
    assert workload.baseline_measured.layout == layout
    assert workload.assumptions == ()


def test_open_knobs_follow_from_the_batch_aloud(load: Any) -> None:
    # 256 sequences over 64 shards: four a shard, in one pass.
    workload = load(baseline={"mesh": {"fsdp": 64, "tensor": 4}})
    assert (workload.baseline.microbatch, workload.baseline.gradient_accumulation) == (4, 1)
    assert workload.assumptions == (
        "Remat is not stated; full is assumed.",
        "Microbatch and gradient accumulation are not stated; 4 and 1 are assumed.",
    )
    # A pipeline wants microbatches: one sequence each.
    workload = load(baseline={"mesh": {"pipeline": 4, "fsdp": 64}, "virtual_stages": 2})
    layout = workload.baseline
    assert (layout.microbatch, layout.gradient_accumulation) == (1, 4)
    assert layout.schedule is PipelineSchedule.INTERLEAVED
    # One of the two decides the other.
    workload = load(baseline={"mesh": {"fsdp": 64, "tensor": 4}, "microbatch": 1})
    assert workload.baseline.gradient_accumulation == 4
    assert len(workload.assumptions) == 1


def test_degrees_are_split_over_domains(load: Any) -> None:
    workload = load(
        hardware="h100:8x8", baseline={"mesh": {"tensor": 4, "fsdp": 16}}, global_batch=64
    )
    sizes = workload.baseline.mesh
    assert (sizes[Axis.TENSOR].ici, sizes[Axis.FSDP].ici, sizes[Axis.FSDP].dcn) == (4, 2, 8)
    explicit = {"data": {"dcn": 2}, "fsdp": {"ici": 256}}
    workload = load(hardware="2*v5e:16x16", baseline={"mesh": explicit}, global_batch=512)
    assert workload.baseline.mesh[Axis.DATA].dcn == 2


def test_adopted_and_alternatives(load: Any) -> None:
    workload = load(
        adopted={"degrees": {"fsdp": 256}, "speedup": 1.4},
        alternatives=[
            {"mesh": {"fsdp": 32, "tensor": 8}, "measured": {"step_time_s": 9.5}},
            {"mesh": {"data": 256}, "out_of_memory": True},
            {"mesh": {"fsdp": 256}},
        ],
        source="a paper",
    )
    assert workload.adopted.degrees == {Axis.FSDP: 256}
    assert workload.adopted.source == "a paper"
    times = [(row.step_time_s, row.out_of_memory) for row in workload.alternatives]
    assert times == [(9.5, False), (None, True), (None, False)]


def test_adopted_with_its_knobs_and_its_run(load: Any) -> None:
    workload = load(
        hardware="2*v5e:16x16",
        global_batch=1024,
        adopted={
            "degrees": {"data": {"dcn": 2}, "fsdp": 256},
            "microbatch": 1,
            "remat": "minimal",
            "measured": {"step_time_s": 5.5},
        },
        source="a recipe",
    )
    adopted = workload.adopted
    assert adopted.degrees == {Axis.DATA: 2, Axis.FSDP: 256}
    # 1024 sequences over 512 shards are two a shard: two passes of one.
    assert (adopted.layout.microbatch, adopted.layout.gradient_accumulation) == (1, 2)
    assert (adopted.layout.mesh[Axis.DATA].dcn, adopted.layout.remat) == (2, Remat.MINIMAL)
    assert (adopted.measured.step_time_s, adopted.measured.source) == (5.5, "a recipe")
    assert adopted.measured.layout == adopted.layout
    # What the answer leaves open says nothing about the job.
    assert workload.assumptions == ()
    with pytest.raises(WorkloadError, match=r"adopted\.degrees.* across domains"):
        load(hardware="2*v5e:16x16", adopted={"degrees": {"data": {"ici": 2}, "fsdp": 256}})


def test_models(load: Any, tmp_path: Path) -> None:
    dims = {
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
    assert load(model=dims).model.name == "job"
    config = {
        "model_type": "llama",
        "hidden_size": 512,
        "intermediate_size": 1024,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "num_hidden_layers": 3,
        "vocab_size": 32000,
    }
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "config.json").write_text(json.dumps(config))
    # Relative to the file, not to where the command runs.
    assert load(model="sub/config.json").model.layers == 3
    assert load(model="sub").model.kv_heads == 4


def test_serving(load: Any) -> None:
    workload = load(
        phase="serve",
        hardware="v5e:2x4",
        global_batch=64,
        traffic={"input_tokens": 1024, "output_tokens": 256, "concurrency": 64},
        precision={"weights": "bf16", "kv_cache": "fp8"},
        baseline={"mesh": {"tensor": 8}, "attention_data": 2},
    )
    assert workload.baseline.kv_dtype == "fp8"
    assert workload.assumptions == ()
    space = search_space(workload)
    assert (space.training, space.kv_dtype) == (False, "fp8")
    assert space.axes == (Axis.PIPELINE, Axis.DATA, Axis.EXPERT, Axis.TENSOR)
    asked = load(phase="decode", constraints={"axes": ["context", "tensor"]})
    assert search_space(asked).axes == (Axis.CONTEXT, Axis.TENSOR)


def test_gpu_degrees_decide_the_split(load: Any) -> None:
    plain = {"hardware": "h100:2x8", "global_batch": 16}
    assert not search_space(load(**plain)).free_split
    assert not search_space(load(**plain, baseline={"mesh": {"fsdp": 16}})).free_split
    far = {"mesh": {"tensor": {"ici": 4, "dcn": 2}, "data": 2}}
    assert search_space(load(**plain, baseline=far)).free_split
    assert search_space(load()).free_split


MESH = {"fsdp": 64, "tensor": 4}
MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"model": "lama3-8b"}, r":1, model: model 'lama3-8b'.*Did you mean llama3-8b"),
    ({"model": {"layers": 4}}, r":1, model.embed: the key is missing.*7 more problems"),
    ({"model": "none/config.json"}, r"model: .*cannot be read as JSON"),
    ({"hardware": "v5p-512"}, r":2, hardware: topology 'v5p-512'.*v5p:8x8x8 if 512 counts chips"),
    ({"phase": "train"}, r":3, phase = 'train': should be 'pretrain', .* Write one of them"),
    ({"global_batch": True}, r":4, global_batch = True: .* Write a whole number"),
    ({"global_batch": "256"}, r":4, global_batch = '256': .* without quotes"),
    ({"global_batch": 0}, r":4, global_batch = 0: should be greater than or equal to 1"),
    ({"global_batch": 2.5}, r"global_batch = 2.5"),
    ({"sequence": None}, r"sequence: the key is missing. Add `sequence: …`"),
    ({"sequence": None, "seqence": 8192}, r":5, seqence: no such key. Did you mean sequence\?"),
    ({"baseline": {"mesh": {"model": 4}}}, r"baseline.mesh.model = 'model'.* Write tensor: it"),
    ({"baseline": {"mesh": {"seq": 4}}}, r"Write context: it cuts the sequence"),
    ({"baseline": {"mesh": {"replica": 4}}}, r"Write data: it cuts the batch and repeats"),
    ({"baseline": {"mesh": {"tp": 4}}}, r"tp is not an axis here. Write tensor"),
    ({"baseline": {"mesh": {"width": 4}}}, r"width is not an axis here. Axes: pipeline, data"),
    ({"baseline": {"mesh": {"fsdp": 0}}}, r"baseline.mesh.fsdp = 0: should be greater than 0"),
    ({"baseline": {"mesh": {"fsdp": {"ici": 2, "dnc": 2}}}}, r"fsdp.dnc: .*Did you mean dcn"),
    ({"baseline": {"mesh": {"fsdp": 128}}}, r"fsdp 128 = 128 devices; v5e:16x16 has 256"),
    ({"baseline": {"mesh": MESH, "step_time": 3}}, r"baseline.step_time: no such key"),
    (
        {"baseline": {"mesh": MESH, "measured": {"step_time": 3}}},
        r"measured.step_time: no such key. Did you mean step_time_s\?",
    ),
    ({"baseline": {"mesh": MESH, "measured": {"step_time_s": -1}}}, r"should be greater than 0"),
    ({"baseline": {"mesh": MESH, "remat": "ful"}}, r"remat = 'ful': should be 'none', 'minimal'"),
    ({"adopted": {"degrees": {"fsdp": 2}}}, r"fsdp 2 = 2 devices: v5e:16x16 has 256"),
    ({"alternatives": [{"mesh": {"fsdp": 2}}]}, r"alternatives.0.mesh: .* has 256"),
    ({"constraints": {"axes": ["tp"]}}, r"constraints.axes.0 = 'tp'.*Write tensor"),
    ({"constraints": {"max_degree": {"tp": 4}}}, r"max_degree.tp.*Write tensor"),
    ({"precision": {"weight": "bf16"}}, r"precision.weight: no such key. Did you mean weights"),
]


@pytest.mark.parametrize(("changes", "message"), MISTAKES, ids=[str(c) for c, _ in MISTAKES])
def test_mistakes(load: Any, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkloadError, match=message) as caught:
        load(**changes)
    assert "job.yaml" in caught.value.value
    assert caught.value.cure.rstrip(")").endswith(".")
    assert "pydantic" not in str(caught.value)


def test_not_a_mapping(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text("- a\n")
    with pytest.raises(WorkloadError, match="a mapping of keys"):
        load_workload(tmp_path / "w.yaml")


def test_the_readme_is_true(tmp_path: Path) -> None:
    text = (WORKLOADS / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert block is not None
    (tmp_path / "w.yaml").write_text(block[1], encoding="utf-8")
    workload = load_workload(tmp_path / "w.yaml")
    assert workload.alternatives[1].out_of_memory
    keys = set(yaml.safe_load(block[1])) - {"model", "hardware"}
    assert keys == set(Workload.model_fields) - {"model", "topology", "baseline_measured"}


def test_the_example_is_legal() -> None:
    workload = load_workload(WORKLOADS / "example-llama3-8b-v5e.yaml")
    assert workload.baseline is not None
    checks = check(workload.baseline, search_space(workload))
    assert all(c.ok for c in checks)
