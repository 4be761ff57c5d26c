"""A plan from the user's config: its layout, its job, and a diff in its own keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from config_build import written

from prompts_agent.agents.report import Baseline, Config
from prompts_agent.emit.existing.baseline import flags_from, workload_from
from prompts_agent.emit.existing.diff import config_diff
from prompts_agent.emit.existing.existing import Existing
from prompts_agent.emit.existing.guess import read_config
from prompts_agent.emit.facts import JobFacts
from prompts_agent.emit.registry import constraints_of, emit
from prompts_agent.errors import InputError
from prompts_agent.layout.layout import Layout, Remat
from prompts_agent.layout.mesh import Axis, Mesh
from prompts_agent.workload.workload import Phase, Workload


def read(directory: Path, framework: str) -> Existing:
    return read_config(written(directory, framework))


def job(existing: Existing, target: str, **flags: Any) -> Workload:
    found = workload_from(existing, {"target": target} | flags, None)
    assert found is not None
    return found


def test_the_job_is_the_configs(tmp_path: Path) -> None:
    found = job(read(tmp_path, "maxtext"), "2*v5p:4x4x8")
    assert found.model.name == "llama3.1-70b"
    # One sequence a device on 256 devices.
    assert (found.global_batch, found.sequence, found.phase) == (256, 8192, Phase.PRETRAIN)
    assert found.baseline is not None
    assert found.baseline.mesh.used() == {Axis.DATA: 2, Axis.FSDP: 32, Axis.TENSOR: 4}


def test_flags_go_before_the_config(tmp_path: Path) -> None:
    flags = {"global_batch": 512, "sequence": 4096, "model": "llama3.1-8b", "phase": "posttrain"}
    found = job(read(tmp_path, "maxtext"), "2*v5p:4x4x8", **flags)
    assert (found.model.name, found.global_batch, found.sequence) == ("llama3.1-8b", 512, 4096)
    assert found.phase is Phase.POSTTRAIN
    assert found.baseline is not None
    assert found.baseline.microbatch == 8  # 512 ÷ (data 2 × fsdp 32)


def test_a_model_that_the_script_writes_out(tmp_path: Path) -> None:
    found = job(read(tmp_path, "megatron"), "h100:2x8")
    assert found.model.name == "the model of train.sh"
    assert (found.model.layers, found.model.kv_heads, found.model.vocab) == (32, 8, 128256)


def test_servers_fill_the_target(tmp_path: Path) -> None:
    found = job(read(tmp_path, "vllm"), "h100:2x8")
    assert found.baseline is not None
    assert found.baseline.mesh.used() == {Axis.DATA: 4, Axis.TENSOR: 4}
    assert "2 servers of the config are taken to fill h100:2x8." in found.assumptions
    # 64 sequences on each of the config's two data ranks.
    assert found.global_batch == 128
    assert found.precision.kv_cache == "fp8"


def test_what_was_not_understood_is_an_assumption(tmp_path: Path) -> None:
    path = written(tmp_path, "maxtext")
    path.write_text(path.read_text().replace("remat_policy: full", "remat_policy: save_out_proj"))
    found = job(read_config(path), "2*v5p:4x4x8")
    (sentence,) = [text for text in found.assumptions if "train.yml" in text]
    assert sentence.startswith("train.yml:9: remat_policy = save_out_proj is not taken")
    assert str(tmp_path) not in sentence


def test_an_illegal_layout_is_not_compared(tmp_path: Path) -> None:
    path = written(tmp_path, "maxtext")
    path.write_text(path.read_text().replace("_tensor_parallelism: 4", "_tensor_parallelism: 128"))
    found = job(read_config(path), "2*v5p:4x4x8")
    assert found.baseline is None
    assert any("not legal here" in text and "64 heads" in text for text in found.assumptions)


def test_a_layout_of_other_devices_is_wrong_input(tmp_path: Path) -> None:
    path = written(tmp_path, "torchtitan")
    path.write_text(path.read_text().replace("TP = 8", "TP = 16"))
    with pytest.raises(InputError, match="does not divide the 8 devices") as caught:
        job(read_config(path), "h100:1x8", global_batch=8)
    assert "mine.py:12" in str(caught.value)


def test_what_is_missing_is_asked_for_and_no_more(tmp_path: Path) -> None:
    existing = read(tmp_path, "vllm")
    assert workload_from(existing, {"target": None}, None) is None
    filled = flags_from(existing, {"target": None, "model": None, "sequence": 100})
    assert filled["model"] == "meta-llama/Llama-3.1-70B-Instruct"
    assert (filled["sequence"], filled["target"]) == (100, None)


def proposed(existing: Existing, layout: Layout) -> Config:
    facts = JobFacts(phase=Phase.PRETRAIN, sequence=8192)
    return emit(layout, facts, existing.framework)


def test_diff_of_a_maxtext_file(tmp_path: Path) -> None:
    existing = read(tmp_path, "maxtext")
    today = job(existing, "2*v5p:4x4x8").baseline
    mesh = Mesh.model_validate({"data": {"dcn": 2}, "fsdp": 32, "tensor": 4})
    layout = Layout(mesh=mesh, microbatch=4, remat=Remat.MINIMAL, zero_stage=0)
    config = proposed(existing, layout)
    # fsdp -1 came to 32 and tensor stays: neither is a change.
    assert config_diff(existing, config.text, config.language, today) == (
        "--- train.yml\n+++ proposed\n@@ line 9 @@\n-remat_policy: full\n+remat_policy: minimal\n"
    )


def test_diff_of_a_script_keeps_flags_apart_from_its_marks(tmp_path: Path) -> None:
    existing = read(tmp_path, "megatron")
    layout = Layout(
        mesh=Mesh.of(data=8, tensor=2),
        gradient_accumulation=16,
        remat=Remat.MINIMAL,
        weights_over_context=False,
        expert_divides=True,
    )
    config = proposed(existing, layout)
    assert config_diff(existing, config.text, config.language) == (
        "--- train.sh\n+++ proposed\n"
        "@@ line 22 @@\n"
        "-  --pipeline-model-parallel-size 2\n+  --pipeline-model-parallel-size 1\n"
        "@@ line 24 @@\n-  --sequence-parallel\n"
    )


def test_diff_of_python_is_python(tmp_path: Path) -> None:
    existing = read(tmp_path, "torchtitan")
    layout = Layout(
        mesh=Mesh.of(pipeline=2, fsdp=4), gradient_accumulation=4, remat=Remat.NONE, zero_stage=0
    )
    config = proposed(existing, layout)
    diff = config_diff(existing, config.text, config.language)
    assert diff is not None
    assert "-config.activation_checkpoint = FullAC.Config()" in diff
    assert "+config.activation_checkpoint = None" in diff
    assert "+config.parallelism.pipeline_parallel_schedule = '1F1B'" in diff


def test_no_diff_where_nothing_differs(tmp_path: Path) -> None:
    path = tmp_path / "x.sh"
    config = proposed(read(tmp_path, "megatron"), Layout(mesh=Mesh.of(data=8, tensor=2)))
    path.write_text(config.text)
    assert config_diff(read_config(path, "megatron"), config.text, config.language) is None


def test_the_space_of_a_framework_holds_what_the_user_runs() -> None:
    own = Layout(mesh=Mesh.of(fsdp=8))
    assert Axis.FSDP not in constraints_of("megatron").axes
    assert Axis.FSDP in constraints_of("megatron", own).axes
    assert constraints_of("torchtitan", own).zero_stage == 0


def test_the_report_names_the_file_as_the_source_of_today(tmp_path: Path) -> None:
    from test_emit_registry import report

    from prompts_agent.emit.registry import with_configs

    existing = read(tmp_path, "maxtext")
    of = Layout(mesh=Mesh.of(fsdp=8))
    planned = report(of).model_copy(update={"baseline": Baseline(layout=of, source="a workload")})
    found = with_configs(planned, "maxtext", existing)
    assert found.baseline is not None
    assert found.baseline.source == "train.yml"
    assert found.proposals[0].config is not None
    assert found.proposals[0].config.diff is not None
