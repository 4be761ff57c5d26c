"""Configs that people have: the layout is theirs, and so is the line of every axis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from config_build import FILES, TORCHTITAN_TOML, written

from prompts_agent.emit.existing.existing import Existing
from prompts_agent.emit.existing.guess import READERS, read_config
from prompts_agent.emit.existing.layout import place
from prompts_agent.errors import InputError
from prompts_agent.hardware.topology import parse_topology
from prompts_agent.layout.layout import Layout, Remat
from prompts_agent.layout.mesh import Axis, AxisSize


def read(directory: Path, framework: str) -> Existing:
    return read_config(written(directory, framework))


def on(existing: Existing, topology: str, **given: Any) -> Layout:
    placed = place(existing, parse_topology(topology), **given)
    assert placed.layout is not None, placed.faults
    return placed.layout


@pytest.mark.parametrize("framework", sorted(FILES))
def test_the_framework_is_evident(tmp_path: Path, framework: str) -> None:
    assert read(tmp_path, framework).framework == framework


def test_maxtext(tmp_path: Path) -> None:
    found = read(tmp_path, "maxtext")
    layout = on(found, "2*v5p:2x4x4")
    # 32 chips a slice ÷ tensor 4 = fsdp 8.
    assert layout.mesh[Axis.FSDP] == AxisSize(ici=8)
    assert layout.mesh[Axis.TENSOR] == AxisSize(ici=4)
    assert layout.mesh[Axis.DATA] == AxisSize(dcn=2)
    # One sequence a device on 64 devices, over data 2 × fsdp 8.
    assert layout.microbatch == 4
    assert layout.remat is Remat.FULL
    assert (found.model, found.sequence) == ("llama3.1-70b", 8192)
    assert found.lines["fsdp"] == 4
    assert found.lines["tensor"] == 5
    assert found.lines["data"] == 6


def test_maxtexts_sizes_in_two_parts(tmp_path: Path) -> None:
    path = tmp_path / "128b.sh"
    path.write_text(
        "python3 -m maxtext.trainers.pre_train.train base.yml \\\n"
        "  ici_fsdp_parallelism=4 ici_fsdp_transpose_parallelism=2 ici_tensor_parallelism=8"
    )
    found = read_config(path)
    assert (found.ici[Axis.FSDP], found.ici[Axis.TENSOR]) == (8, 8)
    assert found.lines["tensor"] == 2


def test_rules_of_ones_own_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "train.yml"
    path.write_text("ici_fsdp_parallelism: 8\nlogical_axis_rules: [['embed', ['fsdp']]]\n")
    (unknown,) = read_config(path).unknown
    assert (unknown.line, unknown.key, unknown.value) == (2, "logical_axis_rules", "a list")


def test_megatron(tmp_path: Path) -> None:
    found = read(tmp_path, "megatron")
    layout = on(found, "h100:2x8")
    # 16 ÷ (tensor 2 × pipeline 2); 128 ÷ 4 sequences a replica, one at a time.
    assert layout.mesh.used() == {Axis.PIPELINE: 2, Axis.DATA: 4, Axis.TENSOR: 2}
    assert (layout.microbatch, layout.gradient_accumulation) == (1, 32)
    assert layout.remat is Remat.MINIMAL
    assert (layout.sequence_parallel, layout.zero_stage) == (True, 1)
    assert found.devices == 16
    assert found.dims is not None
    assert found.dims["kv_heads"] == 8
    assert found.lines["tensor"] == 21
    assert found.lines["context"] == 23
    assert found.lines["hosts"] == 6


def test_torchtitan(tmp_path: Path) -> None:
    found = read(tmp_path, "torchtitan")
    layout = on(found, "h100:8x8")
    assert layout.mesh.used() == {Axis.FSDP: 8, Axis.TENSOR: 8}
    assert layout.microbatch == 2
    assert layout.remat is Remat.FULL
    assert layout.sequence_parallel  # its default with tensor
    assert found.model == "llama3.1-70b"
    assert found.lines["tensor"] == 12


def test_torchtitans_older_toml(tmp_path: Path) -> None:
    path = tmp_path / "old.toml"
    path.write_text(TORCHTITAN_TOML)
    found = read_config(path)
    assert on(found, "h100:2x8").mesh.used() == {Axis.FSDP: 8, Axis.TENSOR: 2}
    assert found.knobs["remat"] == "full"
    assert found.lines["fsdp"] == 7


def test_vllm(tmp_path: Path) -> None:
    found = read(tmp_path, "vllm")
    layout = on(found, "h100:1x8")
    assert layout.mesh.used() == {Axis.DATA: 2, Axis.TENSOR: 4}
    assert (layout.batch_limit, layout.kv_dtype) == (64, "fp8")
    assert found.model == "meta-llama/Llama-3.1-70B-Instruct"
    assert found.lines["tensor"] == 3
    assert found.lines["data"] == 3
    assert found.lines["sequence"] == 4


def test_vllm_on_tpu(tmp_path: Path) -> None:
    path = tmp_path / "serve.sh"
    strategy = '{"enable_dp_attention": true, "attn_dp_size": 4}'
    path.write_text(
        "vllm serve m --tensor-parallel-size 8 --enable-expert-parallel "
        f"""--additional-config '{{"sharding": {{"sharding_strategy": {strategy}}}}}'"""
    )
    found = read_config(path)
    assert found.knobs["attention_data"] == 4
    assert found.ici[Axis.EXPERT] == 8


def test_sglangs_older_spelling_of_attention_groups(tmp_path: Path) -> None:
    found = read(tmp_path, "sglang")
    layout = on(found, "h100:1x8")
    assert layout.mesh.used() == {Axis.EXPERT: 8, Axis.TENSOR: 8}
    assert layout.attention_data == 8
    (fault,) = found.faults
    assert (fault.rule, fault.note, fault.line) == ("deprecated", True, 5)


def test_what_is_not_understood_is_listed(tmp_path: Path) -> None:
    path = tmp_path / "train.yml"
    path.write_text(
        "ici_fsdp_parallelism: 8\nremat_policy: save_qkv_proj\ncustom_mesh: hybrid_ring_64x4\n"
        "ici_tensor_parallelism: lots\nici_autoregressive_parallelism: 1\n"
    )
    found = read_config(path)
    listed = [(item.line, item.key, item.value) for item in found.unknown]
    assert listed == [
        (2, "remat_policy", "save_qkv_proj"),
        (3, "custom_mesh", "hybrid_ring_64x4"),
        (4, "ici_tensor_parallelism", "lots"),
    ]


def test_a_variable_of_the_environment_is_listed(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text("python pretrain_gpt.py \\\n  --tensor-model-parallel-size $TP \\\n")
    (unknown,) = read_config(path).unknown
    assert (unknown.line, unknown.value) == (2, "$TP")


def test_a_variable_of_two_branches_is_listed(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text(
        "PP=4\nif [ $BIG = 1 ]; then\n  TP=8\nelse\n  TP=2\nfi\npython pretrain_gpt.py \\\n"
        "  --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP\n"
    )
    found = read_config(path)
    assert [(item.line, item.value) for item in found.unknown] == [(8, "$TP")]
    assert found.ici[Axis.PIPELINE] == 4


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("a.yml", "", "empty"),
        ("a.yml", "hello: world\n", "no framework is evident"),
        ("a.yml", "a: [1\n", "is not YAML"),
        ("a.py", "def (:\n", "is not Python"),
        ("a.toml", "a = \n", "is not TOML"),
        ("a.sh", "vllm and sglang", "more than one framework"),
    ],
)
def test_files_that_are_no_config(tmp_path: Path, name: str, text: str, rule: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=rule) as caught:
        read_config(path)
    assert caught.value.cure


def test_bytes_and_missing_files(tmp_path: Path) -> None:
    path = tmp_path / "a.sh"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        read_config(path)
    with pytest.raises(InputError, match="No such file"):
        read_config(tmp_path / "none.yml")
    with pytest.raises(InputError):
        read_config(tmp_path)


def test_a_jax_program_is_no_config(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a mesh that a program makes is no file"):
        read_config(written(tmp_path, "maxtext"), "jax")


def test_every_reader_has_an_emitter() -> None:
    from prompts_agent.emit.registry import FRAMEWORKS

    assert set(READERS) <= set(FRAMEWORKS)
