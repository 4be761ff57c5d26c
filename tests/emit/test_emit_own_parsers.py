"""What is emitted, loaded by the framework's own parser, where that is installed.

MaxText's wheel alone is 14 MB and wants flax and a dozen more, torchtitan wants torch, SGLang and
vLLM want CUDA builds of it: none of them is among the test dependencies. The tests run wherever one
of them is at hand, in a process of its own.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from typing import Any

import pytest
from emit_build import MOE, job, layout

from prompts_agent.emit.registry import emit
from prompts_agent.layout.layout import Layout, Remat
from prompts_agent.workload.workload import Phase


def needs(*packages: str) -> pytest.MarkDecorator:
    """Skips with the reason where one of `packages` is not installed."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def said(program: str, text: str) -> Any:
    """What a Python program prints as JSON on its last line, given `text` on stdin."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=text,
        env=os.environ
        | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=8"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


MAXTEXT = """
import json, sys
from pathlib import Path
import maxtext
from maxtext.configs import pyconfig
base = Path(list(maxtext.__path__)[0]) / "configs" / "base.yml"
lines = [l.replace(": ", "=") for l in sys.stdin.read().splitlines() if not l.startswith("#")]
fixed = ["run_name=x", "hardware=cpu", "skip_jax_distributed_system=True",
         "enable_checkpointing=False", "dataset_type=synthetic"]
config = pyconfig.initialize(["x", str(base), *fixed, *lines])
print(json.dumps({
    "ici": dict(zip(config.mesh_axes, config.ici_parallelism)),
    "dcn": dict(zip(config.mesh_axes, config.dcn_parallelism)),
    "batch": config.global_batch_size_to_train_on,
    "remat": str(getattr(config.remat_policy, "value", config.remat_policy)),
}))
"""


@needs("maxtext", "flax", "omegaconf")
@pytest.mark.parametrize(
    ("of", "axes", "batch"),
    [
        # 8 devices × 1 sequence × 2 passes.
        (
            layout(
                {"microbatch": 2, "gradient_accumulation": 2, "sequence_parallel": True},
                fsdp=4,
                tensor=2,
            ),
            {"fsdp": 4, "tensor_sequence": 2},
            16,
        ),
        (
            layout({"remat": Remat.OFFLOAD, "zero_stage": 0}, data=2, fsdp=4),
            {"data": 2, "fsdp": 4},
            8,
        ),
        (layout(data=2, tensor=4), {"data": 2, "tensor": 4}, 2),
        (layout(context=2, fsdp=4), {"context": 2, "fsdp": 4}, 4),
    ],
)
def test_maxtext(of: Layout, axes: dict[str, int], batch: int) -> None:
    found = said(MAXTEXT, emit(of, job(), "maxtext").text)
    assert {axis: size for axis, size in found["ici"].items() if size > 1} == axes
    assert set(found["dcn"].values()) == {1}
    assert found["batch"] == batch


TORCHTITAN = """
import dataclasses, json, sys
from torchtitan.distributed.parallel_dims import ParallelDims
space = {}
exec(compile(sys.stdin.read(), "layout.py", "exec"), space)
(build,) = [v for k, v in space.items() if k.startswith("tiny")]
config = build()
dims = ParallelDims.from_config(config.parallelism, 8)
print(json.dumps({n: getattr(dims, n) for n in ("dp_replicate", "dp_shard", "cp", "tp", "pp")}))
"""


@needs("torchtitan", "torch", "tyro")
def test_torchtitan() -> None:
    text = emit(layout(fsdp=2, context=2, tensor=2), job(hardware="h100:1x8"), "torchtitan").text
    assert said(TORCHTITAN, text) == {"dp_replicate": 1, "dp_shard": 2, "cp": 2, "tp": 2, "pp": 1}


SGLANG = """
import argparse, json, shlex, sys
from sglang.srt.server_args import ServerArgs
lines = [l for l in sys.stdin.read().splitlines() if not l.startswith("#")]
words = shlex.split(" ".join(line.removesuffix("\\\\") for line in lines))
parser = argparse.ArgumentParser(allow_abbrev=False)
ServerArgs.add_cli_args(parser)
found = parser.parse_args(words[2:])
print(json.dumps([found.tp_size, found.dp_size, found.attn_dp_size, found.ep_size]))
"""


@needs("sglang", "torch")
def test_sglang() -> None:
    of = layout({"expert_divides": True, "attention_data": 4}, tensor=8, expert=8)
    facts = job(phase=Phase.SERVE, hardware="h100:1x8", model=MOE)
    assert said(SGLANG, emit(of, facts, "sglang").text) == [8, 1, 4, 8]


VLLM = """
import json, shlex, sys
from vllm.engine.arg_utils import EngineArgs
from vllm.utils.argparse_utils import FlexibleArgumentParser
lines = [l for l in sys.stdin.read().splitlines() if not l.startswith("#")]
words = shlex.split(" ".join(line.removesuffix("\\\\") for line in lines))
parser = EngineArgs.add_cli_args(FlexibleArgumentParser())
found = parser.parse_args(["--model", *words[2:]])
print(json.dumps([found.tensor_parallel_size, found.data_parallel_size]))
"""


@needs("vllm", "torch")
def test_vllm() -> None:
    facts = job(phase=Phase.SERVE, hardware="h100:1x8")
    assert said(VLLM, emit(layout(data=2, tensor=4), facts, "vllm").text) == [4, 2]


def test_the_reasons_name_what_is_missing() -> None:
    mark = needs("json", "no_such_package")
    assert mark.kwargs["reason"] == "not installed: no_such_package"
