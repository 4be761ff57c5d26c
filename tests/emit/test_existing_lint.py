"""prompts lint: what it finds, at which line, and what it says was not checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from config_build import written

from prompts_agent.emit.existing.check import check_config
from prompts_agent.emit.existing.lint import Lint
from prompts_agent.errors import HardwareError, ModelError


def check(directory: Path, framework: str, change: tuple[str, str] | None, **given: Any) -> Lint:
    path = written(directory, framework)
    if change is not None:
        text = path.read_text()
        assert change[0] in text
        path.write_text(text.replace(*change))
    return check_config(path, **given)


def found(result: Lint) -> dict[str, int]:
    """Rule → line, of what is no note."""
    return {fault.rule: fault.line for fault in result.faults if not fault.note}


@pytest.mark.parametrize(
    ("framework", "target"),
    [
        ("maxtext", "2*v5p:4x4x8"),
        ("megatron", "h100:2x8"),
        ("torchtitan", "h100:8x8"),
        ("vllm", "h100:1x8"),
        ("sglang", "h200:1x8"),
    ],
)
def test_real_layouts_are_clean(tmp_path: Path, framework: str, target: str) -> None:
    result = check(tmp_path, framework, None, target=target)
    assert result.clean, result.faults
    assert not [text for text in result.unchecked if "give" in text]


@pytest.mark.parametrize(
    ("framework", "change", "target", "rules"),
    [
        # Llama 3.1 70B has 64 heads, 8 KV heads and an mlp of 28672; none has a factor 3.
        (
            "maxtext",
            ("ici_tensor_parallelism: 4", "ici_tensor_parallelism: 3"),
            None,
            {"heads": 5, "kv_heads": 5, "mlp": 5},
        ),
        (
            "maxtext",
            ("dcn_data_parallelism: 2", "dcn_data_parallelism: 3"),
            "2*v5p:4x4x8",
            {"devices": 6},
        ),
        (
            "maxtext",
            ("ici_fsdp_parallelism: -1", "ici_sequence_parallelism: 4"),
            None,
            {"no_effect": 4},
        ),
        (
            "maxtext",
            (
                "ici_fsdp_parallelism: -1",
                "ici_fsdp_parallelism: 8\nshard_optimizer_over_data: true",
            ),
            "2*v5p:2x4x4",
            {"zero_with_fsdp": 5},
        ),
        # 32 layers in 64 stages.
        (
            "megatron",
            ("--pipeline-model-parallel-size 2", "--pipeline-model-parallel-size 64"),
            "h100:16x8",
            {"layers": 22},
        ),
        ("megatron", ("=128", "=126"), "h100:2x8", {"batch": 19, "batch_shards": 19}),
        ("torchtitan", ("TP = 8", "TP = 7"), "h100:8x8", {"devices": 12}),
        (
            "torchtitan",
            (
                "tensor_parallel_degree=TP,",
                "tensor_parallel_degree=TP, expert_tensor_parallel_degree=2,",
            ),
            "h100:8x8",
            {"no_such_key": 12},
        ),
        ("vllm", ("-tp 4", "-tp 5"), None, {"heads": 3, "kv_heads": 3, "mlp": 3}),
        ("sglang", ("ep-size: 8", "ep-size: 3"), None, {"experts": 6}),
    ],
)
def test_faults_have_the_line_of_their_axis(
    tmp_path: Path,
    framework: str,
    change: tuple[str, str],
    target: str | None,
    rules: dict[str, int],
) -> None:
    result = check(tmp_path, framework, change, target=target)
    lines = found(result)
    assert rules.items() <= lines.items(), result.faults
    assert all(fault.cure for fault in result.faults)


def test_what_cannot_fit(tmp_path: Path) -> None:
    # 70B of parameters at 16 bytes (fp32 weights, two AdamW slots, gradients) are 1.1 TB; 64 v5e
    # hold 1 TB.
    result = check(tmp_path, "maxtext", None, target="2*v5e:4x8")
    assert found(result) == {"memory": 5}


def test_more_than_the_weights_of_a_server_is_not_claimed(tmp_path: Path) -> None:
    # 70B in bf16 over tensor 4 are 35 GB on each H100 of 80 GB.
    assert check(tmp_path, "vllm", None, target="h100:1x8").clean
    # Over tensor 1 they are 141 GB.
    assert found(check(tmp_path, "vllm", ("-tp 4", "-tp 1"), target="h100:1x8")) == {"memory": 3}


def test_a_server_may_leave_devices_idle(tmp_path: Path) -> None:
    assert check(tmp_path, "vllm", ("=2", "=1"), target="h100:1x8").clean


def test_what_was_not_checked_is_said(tmp_path: Path) -> None:
    result = check(tmp_path, "maxtext", ("llama3.1-70b", "our-own"))
    assert "heads, layers, experts and memory: give --model" in result.unchecked
    assert "devices, domains and memory: give --target" in result.unchecked


def test_a_script_whose_ranks_do_not_come_out(tmp_path: Path) -> None:
    change = ("--pipeline-model-parallel-size 2", "--pipeline-model-parallel-size 16")
    result = check(tmp_path, "megatron", change)
    (fault,) = [fault for fault in result.faults if fault.rule == "devices"]
    assert "starts 16 ranks" in fault.text
    assert fault.line == 6


def test_wrong_flags_are_wrong_input(tmp_path: Path) -> None:
    with pytest.raises(HardwareError):
        check(tmp_path, "maxtext", None, target="nowhere:1")
    with pytest.raises(ModelError):
        check(tmp_path, "maxtext", None, model="no-such-model")
