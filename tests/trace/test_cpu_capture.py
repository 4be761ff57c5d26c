"""A capture that jax makes here, on eight virtual CPU devices: what it says about structure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from trace_build import trace_file

from prompts_agent.trace.measure.profile import measure
from prompts_agent.trace.profile import Profile
from prompts_agent.trace.xspace.reader import read_xspace

# Weights (256, 512) over (data 2, model 4) and activations (64, 256) over data: weights are
# gathered and gradients reduced over data, the second product is reduced over model. A new batch
# size in the last step compiles the step again.
JOB = """
import sys
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
put = lambda x, *spec: jax.device_put(x, NamedSharding(mesh, P(*spec)))
def loss(params, x):
    return jnp.mean(jnp.tanh(jnp.tanh(x @ params["w1"]) @ params["w2"]))
@jax.jit
def train_step(params, x):
    grads = jax.grad(loss)(params, x)
    return jax.tree.map(lambda p, g: p - g, params, grads)
params = {"w1": put(jnp.ones((256, 512)), "data", "model"),
          "w2": put(jnp.ones((512, 256)), "model", "data")}
x = put(jnp.ones((64, 256)), "data", None)
params = jax.block_until_ready(train_step(params, x))
with jax.profiler.trace(sys.argv[1]):
    for _ in range(4):
        params = jax.block_until_ready(train_step(params, x))
    x = put(jnp.ones((32, 256)), "data", None)
    jax.block_until_ready(train_step(params, x))
"""


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    directory = tmp_path_factory.mktemp("capture")
    environment = {
        **os.environ,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "JAX_PLATFORMS": "cpu",
    }
    subprocess.run(
        [sys.executable, "-c", JOB, str(directory)], env=environment, check=True,
        capture_output=True, timeout=300,
    )  # fmt: skip
    path = next(Path(directory).rglob("*.xplane.pb"))
    return measure(read_xspace([("vm", path)], trace_file()))


def test_it_is_structure_only(profile: Profile) -> None:
    assert (profile.device_kind, profile.structure_only) == ("cpu", True)
    assert (profile.devices_in_trace, profile.devices_in_job) == (8, 8)
    assert profile.fact("step_time") is None
    assert any("virtual CPU devices" in text for text in profile.missing)
    assert all(use.total_s is None for use in profile.collectives)


def test_the_mesh(profile: Profile) -> None:
    # jax 0.12 keeps the names; before, they are inferred.
    axes = [(axis.name, axis.size) for axis in profile.mesh]
    assert axes in ([("data", 2), ("model", 4)], [("axis0", 2), ("axis1", 4)])
    spanned = {use.axis for use in profile.collectives}
    assert {axes[0][0], axes[1][0]} <= spanned


def test_parameters_have_their_global_shapes(profile: Profile) -> None:
    found = {p.name: p for p in profile.parameters}
    w1 = found["params['w1']"]
    assert (w1.dtype, w1.local_shape, w1.global_shape) == ("f32", (128, 128), (256, 512))
    assert (w1.tiles, w1.replication) == ((2, 4), 1)
    x = found["x"]
    assert (x.local_shape, x.global_shape, x.replication) == ((32, 256), (64, 256), 4)


def test_the_recompile_is_found(profile: Profile) -> None:
    assert profile.recompilations is not None
    assert profile.recompilations >= 1
    assert profile.recompile_s is not None
    assert profile.recompile_s > 0


def test_matmul_flops(profile: Profile) -> None:
    """Per device at least a forward and a backward of both matmuls, spread over eight devices."""
    forward = 2 * 2 * 64 * 256 * 512 / 8
    assert profile.flops_per_step is not None
    assert profile.flops_per_step >= 2 * forward
