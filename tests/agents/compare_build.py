"""Traces of one small training job on eight chips, before and after its mesh changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trace_build import Program, Trace, iota_list, mesh_proto

LAYERS, EMBED, HEADS, KV_HEADS, HEAD, MLP, VOCAB = 4, 512, 8, 2, 64, 1408, 8192
BATCH, SEQUENCE = 16, 256

_MODEL_DIM = {"embedding": 0, "out": 1, "down": 1}
_WEIGHTS = {
    "embedding": (VOCAB, EMBED),
    "query": (LAYERS, EMBED, HEADS * HEAD),
    "key": (LAYERS, EMBED, KV_HEADS * HEAD),
    "value": (LAYERS, EMBED, KV_HEADS * HEAD),
    "out": (LAYERS, HEADS * HEAD, EMBED),
    "gate": (LAYERS, EMBED, MLP),
    "up": (LAYERS, EMBED, MLP),
    "down": (LAYERS, MLP, EMBED),
    "lm_head": (EMBED, VOCAB),
}
FUSION = "%fusion.1 = f32[1024,1024]{1,0} fusion(%p)"
COSTS = {"flops": 10**9, "tf_op": "jit(step)/transpose(jvp(acme_secret_layer))/dot_general"}
REDUCE = "%all-reduce.2 = f32[16]{0} all-reduce(f32[16]{0} %g)"


def program(data: int, model: int, *, batch: int = BATCH, layers: int = LAYERS) -> Program:
    """Weights cut over `model`, tokens over `data`; an all-reduce over `model`."""
    made = Program("jit_acme_secret_step", devices=data * model)
    mesh = mesh_proto({"data": data, "model": model})

    def parameter(name: str, dtype: str, dims: Sequence[int], dim: int, axis: int) -> None:
        ways = (data, model)[axis]
        local = [size // ways if i == dim else size for i, size in enumerate(dims)]
        added = made.add(name, "parameter", dtype, local)
        added.parameter_number = sum(1 for i in made.entry.instructions) - 1
        added.metadata.op_name = name
        sharding = added.sharding.named_sharding
        sharding.mesh.CopyFrom(mesh)
        for i in range(len(dims)):
            entry = sharding.dim_shardings.add()
            if i == dim:
                entry.axes.add(mesh_axis_index=axis)

    for name, dims in _WEIGHTS.items():
        whole = (layers, *dims[1:]) if dims[0] == LAYERS else dims
        parameter(f"params['{name}']", "bf16", whole, _MODEL_DIM.get(name, len(dims) - 1), 1)
    parameter("batch['tokens']", "s32", (batch, SEQUENCE), 0, 0)
    reduce = made.add("all-reduce.2", "all-reduce", "f32", (16,))
    groups = iota_list(data, model, [data * model])
    reduce.iota_collective_device_list.CopyFrom(groups)
    made.add("fusion.1", "fusion", "f32", (1024, 1024))
    return made


def write_trace(
    path: Path,
    *,
    data: int = 2,
    model: int = 4,
    compute: float = 600.0,
    reduce: float = 300.0,
    idle: float = 100.0,
    jitter: Sequence[float] = (),
    steps: int = 8,
    label: str = "TPU v6 Lite",
    batch: int = BATCH,
    layers: int = LAYERS,
) -> Path:
    """Steps of compute, an exposed all-reduce and a gap, in µs; `jitter` lengthens gaps in turn."""
    trace = Trace()
    ops, runs, start = [], [], 0.0
    for number in range(steps):
        ops.append((FUSION, start, compute))
        ops.append((REDUCE, start + compute, reduce))
        runs.append(("jit_acme_secret_step(7)", start, compute + reduce))
        more = jitter[number % len(jitter)] if jitter else 0.0
        start += compute + reduce + idle + more
    made = program(data, model, batch=batch, layers=layers)
    trace.tpu(0, ops, runs, label=label, costs={"fusion.1": COSTS})
    trace.programs({"jit_acme_secret_step(7)": made.bytes()})
    path.write_bytes(trace.bytes())
    return path
