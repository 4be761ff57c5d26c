"""Makes `cpu8-train.xplane.pb.gz`: three training steps of a small GQA transformer on 8 virtual
CPU devices, mesh data 2 × model 4.

    python examples/capture_cpu_trace.py examples/cpu8-train.xplane.pb.gz

No accelerator is needed. The mesh has a flaw on purpose: two KV heads are cut over four tensor
ranks, so each is held twice. Times on virtual devices mean nothing (eight devices share a few
cores); mesh, shapes and collectives are those of the real program.
"""

from __future__ import annotations

import functools
import gzip
import os
import sys
import tempfile
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

LAYERS, EMBED, HEADS, KV_HEADS, HEAD_DIM, MLP, VOCAB = 4, 512, 8, 2, 64, 1408, 8192
BATCH, SEQUENCE, STEPS, LEARNING_RATE = 16, 256, 3, 0.01

# The program records where its code lies; only the file's name is anybody else's business.
jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")

Weights = dict[str, jax.Array]

MESH = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

# Layers are stacked along the first dim and run by lax.scan.
WEIGHTS: dict[str, tuple[tuple[int, ...], P]] = {
    "embedding": ((VOCAB, EMBED), P("model", None)),
    "query": ((LAYERS, EMBED, HEADS * HEAD_DIM), P(None, None, "model")),
    "key": ((LAYERS, EMBED, KV_HEADS * HEAD_DIM), P(None, None, "model")),
    "value": ((LAYERS, EMBED, KV_HEADS * HEAD_DIM), P(None, None, "model")),
    "out": ((LAYERS, HEADS * HEAD_DIM, EMBED), P(None, "model", None)),
    "gate": ((LAYERS, EMBED, MLP), P(None, None, "model")),
    "up": ((LAYERS, EMBED, MLP), P(None, None, "model")),
    "down": ((LAYERS, MLP, EMBED), P(None, "model", None)),
    "lm_head": ((EMBED, VOCAB), P(None, "model")),
}


def sharding(spec: P) -> NamedSharding:
    return NamedSharding(MESH, spec)


def init(seed: int) -> Weights:
    shapes = {name: shape for name, (shape, _) in WEIGHTS.items()}
    keys = dict(zip(shapes, jax.random.split(jax.random.key(seed), len(shapes)), strict=True))
    return {
        name: (jax.random.normal(keys[name], shape) * 0.02).astype(jnp.bfloat16)
        for name, shape in shapes.items()
    }


def rms_norm(x: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def attention(x: jax.Array, w: Weights) -> jax.Array:
    batch, sequence, _ = x.shape
    q = (x @ w["query"]).reshape(batch, sequence, KV_HEADS, HEADS // KV_HEADS, HEAD_DIM)
    k = (x @ w["key"]).reshape(batch, sequence, KV_HEADS, HEAD_DIM)
    v = (x @ w["value"]).reshape(batch, sequence, KV_HEADS, HEAD_DIM)
    # b: batch, q/s: query and key positions, k: KV head, g: query heads of one KV head, h: head_dim
    scores = jnp.einsum("bqkgh,bskh->bkgqs", q, k).astype(jnp.float32) / np.sqrt(HEAD_DIM)
    causal = jnp.tril(jnp.ones((sequence, sequence), dtype=bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e9), axis=-1).astype(v.dtype)
    return jnp.einsum("bkgqs,bskh->bqkgh", weights, v).reshape(batch, sequence, -1) @ w["out"]


def layer(x: jax.Array, w: Weights) -> tuple[jax.Array, None]:
    with jax.named_scope("attention"):
        x = x + attention(rms_norm(x), w)
    with jax.named_scope("mlp"):
        h = rms_norm(x)
        x = x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"]
    return x, None


def loss(params: Weights, tokens: jax.Array) -> jax.Array:
    x = params["embedding"][tokens]
    stacked = {k: v for k, v in params.items() if k not in ("embedding", "lm_head")}
    x, _ = jax.lax.scan(layer, x, stacked)
    logits = (rms_norm(x) @ params["lm_head"]).astype(jnp.float32)[:, :-1]
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], axis=-1)
    return -jnp.mean(picked)


@functools.partial(jax.jit, donate_argnums=0)
def train_step(params: Weights, tokens: jax.Array) -> tuple[Weights, jax.Array]:
    value, gradients = jax.value_and_grad(loss)(params, tokens)
    updated = jax.tree.map(lambda w, g: w - LEARNING_RATE * g.astype(w.dtype), params, gradients)
    return updated, value


def main(destination: Path) -> None:
    if destination.exists():
        sys.exit(f"{destination} exists; remove it first, nothing is overwritten")
    specs = {name: sharding(spec) for name, (_, spec) in WEIGHTS.items()}
    params = jax.jit(init, out_shardings=specs)(0)
    tokens = np.random.default_rng(0).integers(0, VOCAB, (BATCH, SEQUENCE), dtype=np.int32)
    batch = jax.device_put(tokens, sharding(P("data", None)))
    params, value = train_step(params, batch)  # compile outside the traced region
    jax.block_until_ready(value)

    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    options.host_tracer_level = 1
    with tempfile.TemporaryDirectory() as directory:
        with jax.profiler.trace(directory, profiler_options=options):
            for _ in range(STEPS):
                params, value = train_step(params, batch)
                jax.block_until_ready(value)
        (trace,) = Path(directory).rglob("*.xplane.pb")
        # mtime 0: the same bytes give the same file.
        destination.write_bytes(gzip.compress(trace.read_bytes(), 9, mtime=0))
    print(f"{destination}: {destination.stat().st_size:,} bytes, loss {float(value):.3f}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
