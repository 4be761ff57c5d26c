"""Runs the reference program for real on virtual CPU devices; a child process of the tests.

Reads a list of cases from stdin: {"workload", "layout"}; prints a list with, for each, the loss of
a training step or the tokens of a serving step, and the collectives of the compiled program.
"""

from __future__ import annotations

import json
import math
import re
import sys
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh

from prompts_agent.compile.reference.build import build
from prompts_agent.compile.reference.frame import Frame, axis_sizes
from prompts_agent.compile.reference.weights import Weight, weights
from prompts_agent.layout.layout import Layout
from prompts_agent.workload.workload import Phase, Traffic, Workload

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")


def main() -> None:
    print(json.dumps([run(case) for case in json.load(sys.stdin)]))  # noqa: T201


def run(case: dict[str, Any]) -> dict[str, Any]:
    workload = Workload.model_validate(case["workload"])
    layout = Layout.model_validate(case["layout"])
    if "kernel" in case:
        return mixed(workload, layout, case["kernel"])
    if "prompt" in case and workload.model.encoder_layers:
        return after_encoder(workload, layout, case["prompt"])
    if "prompt" in case:
        return continued(workload, layout, case["prompt"])
    frame = frame_of(workload, layout, one_hot=case.get("one_hot", False))
    step = build(frame)
    compiled = step.lower().compile()
    sizes = _sizes(frame)
    arguments = jax.tree.map_with_path(
        lambda path, array: _value(path, array, sizes), step.arguments
    )
    if not workload.phase.is_training:
        arguments = (*arguments[:3], jax.device_put(np.int32(0), step.arguments[3].sharding))
    arguments = laid_out(compiled, arguments)
    out = compiled(*arguments)
    text = compiled.as_text()
    return {
        "result": np.asarray(out[1]).astype(float).tolist(),
        "second": _second(compiled, out, arguments, training=workload.phase.is_training),
        "collectives": [kind for kind in KINDS if re.search(rf"= .*{kind}(-start)?\(", text)],
        "classes": sorted(set(step.argument_classes())),
    }


def mixed(workload: Workload, layout: Layout, kernel: str) -> dict[str, Any]:
    """What a mixture gives by this kernel's grouped matmul, and by numpy, an expert at a time."""
    from prompts_agent.compile.reference.experts import mixture

    moe, embed = workload.model.moe, workload.model.embed
    assert moe is not None
    random = np.random.default_rng(7)
    x = random.standard_normal((8, 16, embed)).astype(np.float32)
    shapes = {"up": (embed, moe.mlp), "gate": (embed, moe.mlp), "down": (moe.mlp, embed)}
    weight: dict[str, Any] = {
        name: random.standard_normal((moe.experts, *shape)).astype(np.float32) * 0.1
        for name, shape in shapes.items()
    }
    weight["router"] = random.standard_normal((embed, moe.experts)).astype(np.float32)
    frame = replace(frame_of(workload, layout), kernel=kernel)
    found = jax.jit(lambda weight, x: mixture(frame, weight, x, factor=None))(weight, x)
    scores = np.exp(x @ weight["router"])
    chosen = np.argsort(-scores, axis=-1)[..., : moe.experts_per_token]
    shares = np.take_along_axis(scores, chosen, axis=-1)
    shares /= shares.sum(-1, keepdims=True)
    whole = np.zeros_like(x)
    for expert in range(moe.experts):
        gate, up = x @ weight["gate"][expert], x @ weight["up"][expert]
        out = (gate / (1 + np.exp(-gate)) * up) @ weight["down"][expert]
        whole += out * np.where(chosen == expert, shares, 0).sum(-1, keepdims=True)
    return {"error": float(np.abs(np.asarray(found) - whole).max()), "size": float(whole.std())}


def frame_of(workload: Workload, layout: Layout, *, one_hot: bool = False) -> Frame:
    sizes = axis_sizes(layout)
    devices = np.array(jax.devices()[: math.prod(sizes.values())]).reshape(tuple(sizes.values()))
    mesh = Mesh(devices, tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
    return Frame.of(mesh, layout, workload, kernel="blocked", one_hot=one_hot, even=False)


def continued(workload: Workload, layout: Layout, prompt: int) -> dict[str, Any]:
    """The token after `prompt` + 1 tokens: by prefill and decode, and by one prefill."""

    def prefilled(tokens: Any) -> Any:
        traffic = Traffic(input_tokens=tokens.shape[1], output_tokens=1, concurrency=1)
        step = build(frame_of(workload.model_copy(update={"traffic": traffic}), layout))
        held = jax.tree.map_with_path(_value, step.arguments[:2])
        compiled = step.lower().compile()
        return held[0], compiled(*laid_out(compiled, (*held, tokens, np.int32(0))))

    tokens = np.random.default_rng(3).integers(0, 64, (1, prompt + 1)).astype(np.int32)
    params, (cache, _) = prefilled(tokens[:, :prompt])
    decode = build(frame_of(workload.model_copy(update={"phase": Phase.DECODE}), layout))
    compiled = decode.lower().compile()
    given = laid_out(compiled, (params, cache, tokens[:, prompt], np.int32(prompt)))
    _, token = compiled(*given)
    _, (_, whole) = prefilled(tokens)
    return {"result": np.asarray(token).tolist(), "whole": np.asarray(whole).tolist()}


def after_encoder(workload: Workload, layout: Layout, prompt: int) -> dict[str, Any]:
    """The tokens after one and two of a decoder's own: by prefill and decode, and all at once."""
    from prompts_agent.compile.reference.forward import forward, logits

    random = np.random.default_rng(3)
    inputs, own = (random.integers(0, 64, (1, n)).astype(np.int32) for n in (prompt, 2))
    # A server's decoder begins with the first token of the prompt, for want of a start token.
    own[:, 0] = inputs[:, 0]
    traffic = Traffic(input_tokens=prompt, output_tokens=1, concurrency=1)
    job = workload.model_copy(update={"traffic": traffic})
    step = build(frame_of(job, layout))
    held = jax.tree.map_with_path(_value, step.arguments[:2])
    compiled = step.lower().compile()
    cache, first = compiled(*laid_out(compiled, (*held, inputs, np.int32(0))))
    decode = build(frame_of(job.model_copy(update={"phase": Phase.DECODE}), layout))
    compiled = decode.lower().compile()
    given = laid_out(compiled, (held[0], cache, own[:, 1], np.int32(1)))
    _, second = compiled(*given)
    frame = frame_of(job, layout)
    whole = jax.jit(
        lambda params: logits(
            frame, params, forward(frame, params, own, layout.remat, inputs)
        ).argmax(-1)
    )(held[0])
    tokens = [np.asarray(first).tolist(), np.asarray(second).tolist()]
    return {"result": tokens, "whole": np.asarray(whole).T.tolist()}


def laid_out(compiled: Any, arguments: Any) -> Any:
    """The arguments in the order of dims that the compiler has chosen."""
    return jax.tree.map(jax.device_put, arguments, compiled.input_formats[0])


def _second(compiled: Any, out: Any, arguments: Any, *, training: bool) -> Any:
    """The next step's result, which hangs on what the first one wrote."""
    after = compiled(out[0], arguments[1]) if training else None
    return None if after is None else np.asarray(after[1]).astype(float).tolist()


def _sizes(frame: Frame) -> dict[str, tuple[int, ...]]:
    """The shape of every weight that is trained, by its path; a master copy may be padded."""
    tree = weights(frame.workload.model, frame.specs)
    leaves = jax.tree_util.tree_leaves_with_path(tree, is_leaf=lambda x: isinstance(x, Weight))
    return {f"[0]['params']{jax.tree_util.keystr(path)}": weight.shape for path, weight in leaves}


def _value(path: Any, array: jax.ShapeDtypeStruct, sizes: Any = None) -> Any:
    """The same numbers for the same tensor, however it is cut."""
    name = jax.tree_util.keystr(path)
    shape = (sizes or {}).get(name, array.shape)
    random = np.random.default_rng(sum(name.encode()) + math.prod(shape))
    if np.issubdtype(array.dtype, np.integer):
        value = random.integers(0, 64, shape).astype(array.dtype)
    elif "optimizer" in name or path[0].idx == 1:
        value = np.zeros(shape, array.dtype)
    elif "scale" in name or "norm" in name:
        value = np.ones(shape, array.dtype)
    else:
        value = (random.standard_normal(shape) * 0.05).astype(array.dtype)
    if shape != array.shape:
        value = np.pad(value, [(0, to - size) for to, size in zip(array.shape, shape, strict=True)])
    return jax.device_put(value, array.sharding)


if __name__ == "__main__":
    main()
