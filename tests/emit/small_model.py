"""Run as a script: executes emitted JAX texts, trains a small model under their specs, prints HLO.

stdin: a JSON list of {"text", "moe"}. stdout: for each, the mesh's axes, its device ids, the
compiled step's HLO, and a loss that is equal whatever the layout is.
"""

from __future__ import annotations

import json
import sys
from typing import Any

EMBED, HEADS, KV_HEADS, HEAD_DIM, MLP, VOCAB, EXPERTS = 64, 8, 4, 8, 128, 256, 8
BATCH, SEQUENCE, LAYERS, CAPACITY = 64, 64, 1, 8

SHAPES = {
    "attention.q": (EMBED, HEADS, HEAD_DIM),
    "attention.k": (EMBED, KV_HEADS, HEAD_DIM),
    "attention.v": (EMBED, KV_HEADS, HEAD_DIM),
    "attention.o": (HEADS, HEAD_DIM, EMBED),
    "norm": (EMBED,),
}
DENSE = {"mlp.in": (EMBED, MLP), "mlp.out": (MLP, EMBED)}
MOE = {
    "router": (EMBED, EXPERTS),
    "experts.in": (EXPERTS, EMBED, MLP),
    "experts.out": (EXPERTS, MLP, EMBED),
}


def compiled(text: str, *, moe: bool) -> dict[str, Any]:
    import jax
    import jax.numpy as jnp
    import numpy as np

    space: dict[str, Any] = {}
    exec(compile(text, "layout.py", "exec"), space)
    mesh, shardings = space["mesh"], space["shardings"]

    def cut(name: str, value: Any) -> Any:
        return jax.lax.with_sharding_constraint(value, shardings[name])

    def block(layer: dict[str, Any], x: Any) -> Any:
        h = x * layer["norm"]
        q = cut("activations.heads", jnp.einsum("bse,ehd->bshd", h, layer["attention.q"]))
        k = jnp.einsum("bse,ehd->bshd", h, layer["attention.k"])
        v = jnp.einsum("bse,ehd->bshd", h, layer["attention.v"])
        k, v = (jnp.repeat(one, HEADS // KV_HEADS, axis=2) for one in (k, v))
        weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / HEAD_DIM**0.5)
        mixed = cut("activations.heads", jnp.einsum("bhqk,bkhd->bqhd", weights, v))
        x = cut("activations", x + jnp.einsum("bshd,hde->bse", mixed, layer["attention.o"]))
        return cut("activations", x + (experts if moe else dense)(layer, x))

    def dense(layer: dict[str, Any], x: Any) -> Any:
        wide = cut("activations.mlp", jax.nn.silu(x @ layer["mlp.in"]))
        return wide @ layer["mlp.out"]

    def experts(layer: dict[str, Any], x: Any) -> Any:
        """Tokens go to their expert and back, with the batch on every rank's own dim."""
        from jax.sharding import NamedSharding
        from jax.sharding import PartitionSpec as P

        batch = space["SPECS"]["tokens"][0]
        axes = (batch,) if isinstance(batch, str) else batch or ()
        by_token = NamedSharding(mesh, P(None, batch))
        others = tuple(axis for axis in axes if axis != "expert")
        by_expert = NamedSharding(mesh, P("expert" if "expert" in axes else None, others or None))
        scores = jax.nn.softmax(x @ layer["router"])
        slot = jnp.arange(SEQUENCE)[:, None] % CAPACITY == jnp.arange(CAPACITY)[None, :]
        sent = jnp.einsum("bse,bsx,sc->xbce", x, scores, slot.astype(x.dtype))
        sent = jax.lax.with_sharding_constraint(sent, by_token)
        sent = jax.lax.with_sharding_constraint(sent, by_expert)
        wide = jax.nn.silu(jnp.einsum("xbce,xem->xbcm", sent, layer["experts.in"]))
        back = jnp.einsum("xbcm,xme->xbce", wide, layer["experts.out"])
        back = jax.lax.with_sharding_constraint(back, by_expert)
        back = jax.lax.with_sharding_constraint(back, by_token)
        return jnp.einsum("xbce,bsx,sc->bse", back, scores, slot.astype(x.dtype))

    def loss(params: dict[str, Any], tokens: Any) -> Any:
        x = cut("activations", params["embedding"][tokens])
        one_layer = jax.checkpoint(block, policy=space["REMAT_POLICY"])
        for layer in params["layers"]:
            x = one_layer(layer, x)
        logits = cut("activations.logits", x @ params["logits"])
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[..., None], axis=-1)
        return -picked.mean()

    random = np.random.default_rng(0)

    def weights(*shape: int) -> Any:
        return (0.1 * random.standard_normal(shape)).astype(np.float32)

    shapes = SHAPES | (MOE if moe else DENSE)
    params = {
        "embedding": weights(VOCAB, EMBED),
        "logits": weights(EMBED, VOCAB),
        "layers": [
            {name: weights(*shape) for name, shape in shapes.items()} for _ in range(LAYERS)
        ],
    }
    cuts = {
        "embedding": shardings["embedding"],
        "logits": shardings["logits"],
        "layers": [{name: shardings[name] for name in shapes} for _ in range(LAYERS)],
    }
    tokens = random.integers(0, VOCAB, (BATCH, SEQUENCE), dtype=np.int32)
    step = jax.jit(
        jax.value_and_grad(loss),
        in_shardings=(cuts, shardings["tokens"]),
        out_shardings=(None, cuts),
    )
    placed = jax.device_put(params, cuts), jax.device_put(tokens, shardings["tokens"])
    program = step.lower(*placed).compile()
    value, gradients = program(*placed)
    return {
        "axes": [[name, size] for name, size in mesh.shape.items()],
        "devices": [int(device.id) for device in mesh.devices.flat],
        "loss": float(value),
        "norm": float(sum(np.abs(np.asarray(leaf)).sum() for leaf in jax.tree.leaves(gradients))),
        "hlo": program.as_text(),
    }


if __name__ == "__main__":
    wanted = json.load(sys.stdin)
    json.dump([compiled(item["text"], moe=item["moe"]) for item in wanted], sys.stdout)
