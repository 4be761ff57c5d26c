"""Inferring a workload from a program's shapes, with every assumption said aloud."""

from __future__ import annotations

import math

from prompts_agent.errors import HardwareError, ModelError
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.hardware.topology import Topology
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.model.from_shapes import ParameterShape, infer_model
from prompts_agent.model.shape_names import is_optimizer_state, tokens_of
from prompts_agent.model.spec import ModelSpec
from prompts_agent.record import Record
from prompts_agent.workload.complete import Surroundings, complete_layout
from prompts_agent.workload.infer_mesh import infer_mesh
from prompts_agent.workload.program import ProgramShapes, TensorShape
from prompts_agent.workload.workload import Objective, Phase, Precision, Workload

__all__ = ["InferredWorkload", "infer_workload"]

# XLA's dtype names, and those of PyTorch's profiler, to ours.
_DTYPES = {
    "f32": "fp32",
    "bf16": "bf16",
    "f16": "fp16",
    "s8": "int8",
    "float": "fp32",
    "bfloat16": "bf16",
    "half": "fp16",
}


class InferredWorkload(Record):
    """`workload` is None where anything it needs would be a guess; `missing` says what.

    With a workload, `missing` says what it does without: a baseline, if anything.
    """

    workload: Workload | None
    missing: tuple[str, ...]


def infer_workload(
    shapes: ProgramShapes,
    *,
    topology: Topology | None,
    model: ModelSpec | None,
    phase: Phase | None = None,
    objective: Objective = Objective.THROUGHPUT,
    global_batch: int | None = None,
    sequence: int | None = None,
) -> InferredWorkload:
    """The workload that a traced program runs.

    What the caller gives wins over what the shapes say. The result's assumptions name every
    conclusion that somebody else might draw otherwise.
    """
    assumptions: list[str] = []
    missing: list[str] = []
    model = model or _model(shapes, assumptions, missing)
    topology = topology or _topology(shapes, assumptions, missing)
    phase = phase or _phase(shapes, assumptions, missing)
    seen_batch, seen_sequence = _batch_and_sequence(shapes, model, phase, assumptions)
    global_batch, sequence = global_batch or seen_batch, sequence or seen_sequence
    if global_batch is None:
        missing.append("the global batch: the program has no integer input of batch × sequence")
    if sequence is None:
        missing.append("the sequence length: no input or cache of the program shows it")
    # The comparisons are for the type checker: each None has its sentence already.
    if model is None or topology is None or phase is None or not (global_batch and sequence):
        return InferredWorkload(workload=None, missing=tuple(missing))
    bare = Workload(
        name=shapes.name,
        model=model,
        topology=topology,
        phase=phase,
        global_batch=global_batch,
        sequence=sequence,
        objective=objective,
        precision=_precision(shapes, phase),
        source=f"inferred from the program {shapes.name}",
    )
    baseline = _baseline(shapes, bare, assumptions, missing)
    known = {"baseline": baseline, "assumptions": tuple(assumptions)}
    return InferredWorkload(workload=bare.model_copy(update=known), missing=tuple(missing))


def _model(shapes: ProgramShapes, assumptions: list[str], missing: list[str]) -> ModelSpec | None:
    weights = [
        ParameterShape(name=p.name, dtype=p.dtype, global_shape=p.shape)
        for p in shapes.parameters
        if p.shape is not None and "cache" not in p.name.lower()
    ]
    try:
        inferred = infer_model(weights)
    except ModelError as error:
        missing.append(f"the model: {error.rule}")
        return None
    assumptions.append(f"The model is inferred from the weights of {shapes.name}.")
    assumptions += [_sentence(text) for text in inferred.assumptions]
    return inferred.spec


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _topology(shapes: ProgramShapes, assumptions: list[str], missing: list[str]) -> Topology | None:
    if shapes.device_kind is None or shapes.devices is None:
        missing.append("the hardware: the trace does not name an accelerator and its count")
        return None
    try:
        topology = Topology.for_device_count(find_chip(shapes.device_kind), shapes.devices)
    except HardwareError as error:
        missing.append(f"the hardware: {error.value}, {error.rule}")
        return None
    if shapes.devices > 1:
        assumptions.append(
            f"The {shapes.devices} devices are taken as {topology}, the most compact shape."
        )
    return topology


def _phase(shapes: ProgramShapes, assumptions: list[str], missing: list[str]) -> Phase | None:
    state = any(is_optimizer_state(tokens_of(p.name)) for p in shapes.parameters)
    if shapes.has_backward or shapes.has_optimizer_state or state:
        assumptions.append(
            "The program has a backward pass or optimizer state, so it is taken as pretraining; "
            "post-training looks the same."
        )
        return Phase.PRETRAIN
    if shapes.has_backward is None:
        missing.append("the phase: the program's ops are not known")
        return None
    length = max((s[-1] for s in _token_shapes(shapes) if len(s) == 2), default=None)
    if length is not None and length > 1:
        assumptions.append(
            f"The program takes {length} tokens a sequence and has no backward pass, so it is "
            "taken as prefill."
        )
        return Phase.PREFILL
    if shapes.inputs:
        assumptions.append("The program takes one token a sequence, so it is taken as decode.")
        return Phase.DECODE
    missing.append("the phase: the program has no token input")
    return None


def _token_shapes(shapes: ProgramShapes) -> list[tuple[int, ...]]:
    """Global shapes of the tensors of token ids, batch × sequence or batch.

    Where all have three dims the first is taken to be microbatches of one step, and part of the
    batch: [4, 8, 4096] is 32 sequences of 4096. Beside others such a tensor is something else.
    """
    given = [t.shape for t in shapes.inputs if t.shape is not None and t.is_integer]
    flat = [shape for shape in given if len(shape) in (1, 2)]
    if flat:
        return flat
    return [(shape[0] * shape[1], shape[2]) for shape in given if len(shape) == 3]


def _batch_and_sequence(
    shapes: ProgramShapes, model: ModelSpec | None, phase: Phase | None, assumptions: list[str]
) -> tuple[int | None, int | None]:
    """Sequences and tokens from the largest token input; in decoding, tokens from the cache."""
    tokens = max(_token_shapes(shapes), key=math.prod, default=())
    if not tokens:
        return None, None
    batch = tokens[0]
    if phase is Phase.DECODE:
        return batch, _cache_length(shapes, model, batch)
    if len(tokens) < 2:
        return batch, None
    sequence = tokens[1]
    if phase is not None and phase.is_training:
        # Inputs and targets are often cut from one tensor that is a token longer: 8193 is 8192.
        if sequence % 2 and (sequence - 1) % 8 == 0:
            sequence -= 1
        assumptions.append(
            f"One run of the program is taken as one optimizer step on {batch} sequences of "
            f"{sequence} tokens."
        )
    return batch, sequence


def _cache_length(shapes: ProgramShapes, model: ModelSpec | None, batch: int) -> int | None:
    """Tokens of a KV cache of layers? × batch × tokens × kv_heads × head_dim, in any order."""
    if model is None:
        return None
    lengths = [
        length
        for p in shapes.parameters
        if "cache" in p.name.lower() and (length := _left_over(p.shape or (), batch, model))
    ]
    return max(lengths, default=None)


def _left_over(shape: tuple[int, ...], batch: int, model: ModelSpec) -> int | None:
    """The one size that batch, heads, head_dim and perhaps layers do not explain.

    A tensor axis larger than the KV heads holds each of them more than once: 16 heads in the cache
    of a model with 8.
    """
    rest = list(shape)
    copies = [h for h in rest if h % model.kv_heads == 0 and model.kv_heads < h <= model.heads]
    heads = model.kv_heads if model.kv_heads in rest else min(copies, default=0)
    for size in (batch, heads, model.head_dim):
        if size not in rest:
            return None
        rest.remove(size)
    if len(rest) == 2 and model.layers in rest:
        rest.remove(model.layers)
    return rest[0] if len(rest) == 1 else None


def _precision(shapes: ProgramShapes, phase: Phase) -> Precision:
    """Dtypes of weights and of the optimizer's state; what is not seen stays at the defaults."""
    held = [p for p in shapes.parameters if "cache" not in p.name.lower()]
    state = [p for p in held if is_optimizer_state(tokens_of(p.name))]
    weights = _commonest_dtype([p for p in held if p not in state])
    default = Precision() if phase.is_training else Precision(weights="bf16")
    seen = {"weights": weights, "optimizer_state": _commonest_dtype(state)}
    return default.model_copy(update={name: dtype for name, dtype in seen.items() if dtype})


def _commonest_dtype(tensors: list[TensorShape]) -> str | None:
    """The dtype of most elements."""
    elements: dict[str, int] = {}
    for tensor in tensors:
        dtype = "fp8" if tensor.dtype.startswith("f8") else _DTYPES.get(tensor.dtype)
        if dtype is not None:
            size = math.prod(tensor.shape or tensor.local_shape)
            elements[dtype] = elements.get(dtype, 0) + size
    return max(elements, key=lambda dtype: (elements[dtype], dtype), default=None)


def _baseline(
    shapes: ProgramShapes, bare: Workload, assumptions: list[str], missing: list[str]
) -> Layout | None:
    mesh, topology = infer_mesh(shapes), bare.topology
    if mesh.degrees is None:
        missing.append(f"the baseline: {mesh.missing}")
        return None
    product = math.prod(mesh.degrees.values())
    if product != topology.devices:
        spelled = " × ".join(f"{a} {mesh.degrees[a]}" for a in Axis if a in mesh.degrees)
        missing.append(
            f"the baseline: the traced mesh is {spelled or 'one device'} = {product} devices and "
            f"{topology} has {topology.devices}"
        )
        return None
    around = Surroundings(
        topology=topology,
        phase=bare.phase,
        global_batch=bare.global_batch,
        constraints=bare.constraints,
        precision=bare.precision,
    )
    layout, assumed = complete_layout(mesh.degrees, {}, around)
    assumptions += [*mesh.assumptions, *assumed]
    return layout
