"""Symbols: the letters of the formulas, with the values that a layout of a workload gives them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from prompts_agent.estimate.calibration import Constants
from prompts_agent.estimate.memory_serving import running_sequences
from prompts_agent.estimate.setting import Setting, setting_with
from prompts_agent.hardware.chip import Domain
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.table import LayoutTable
from prompts_agent.workload.workload import Workload

__all__ = ["Symbol", "symbols"]

_LETTERS = {
    Axis.PIPELINE: "p",
    Axis.DATA: "d",
    Axis.FSDP: "f",
    Axis.EXPERT: "e",
    Axis.CONTEXT: "c",
    Axis.TENSOR: "t",
}

_DIMS = {
    "embed": "width of the residual stream",
    "vocab": "rows of the token table",
    "heads": "query heads",
    "head_dim": "width of a head",
}


class Symbol(NamedTuple):
    """A letter of a formula, its value in `unit` ("" for a count), what it is, and who says so."""

    name: str
    value: float
    unit: str
    meaning: str
    source: str


def symbols(layout: Layout, workload: Workload, constants: Constants) -> tuple[Symbol, ...]:
    """Everything that the formulas name, for one layout: sizes first, then rates."""
    at = setting_with(LayoutTable.of([layout]), workload, constants)
    return (*_sizes(at), *_model(at), *_rates(at), *_links(at))


def _sizes(at: Setting) -> Iterator[Symbol]:
    z, layout = at.sizes, "the layout"
    for axis, letter in _LETTERS.items():
        degree = float(at.table.size(axis)[0])
        yield Symbol(letter, degree, "", f"{axis} degree", layout)
    yield Symbol("S", float(at.workload.sequence), "tokens", "sequence", "the workload")
    if at.workload.phase.is_training:
        tokens = "tokens of one microbatch on one device"
        yield Symbol("T", float(z.tokens[0]), "tokens", tokens, layout)
        yield Symbol("m", float(z.microbatches[0]), "", "microbatches of a step", layout)
        chunks = float(max(1, int(at.table.virtual_stages[0])))
        yield Symbol("v", chunks, "", "chunks of a stage", layout)
    else:
        prompt = at.workload.traffic.input_tokens if at.workload.traffic else at.workload.sequence
        meaning = "tokens of a prompt on one device"
        yield Symbol("T", prompt / float(z.context[0]), "tokens", meaning, "the workload")
        running = float(running_sequences(at)[0])
        yield Symbol("b", running, "", "sequences of a replica that decode together", layout)
        yield Symbol("g", float(at.groups[0]), "", "groups of attention_data", layout)
    yield Symbol("L", float(z.layers[0]), "", "layers of the fullest stage", layout)


def _model(at: Setting) -> Iterator[Symbol]:
    arch, model = at.arch, "the model"
    yield Symbol("P", float(arch.total_parameters), "parameters", "all of the model's", model)
    active = "that a token meets in matmuls"
    yield Symbol("P_active", float(arch.active_parameters), "parameters", active, model)
    layer = arch.dense_layer_parameters + arch.active_expert_layer_parameters
    yield Symbol("P_layer", layer, "parameters", "that a token meets in one layer", model)
    for name, meaning in _DIMS.items():
        yield Symbol(name, float(getattr(arch, name)), "", meaning, model)
    if arch.experts:
        yield Symbol("E", float(arch.experts), "", "experts of a layer", model)
        yield Symbol("k", float(arch.experts_per_token), "", "experts of a token", model)
        width = arch.expert_width / float(at.sizes.expert_tensor[0])
        yield Symbol("w", width, "", "inner dim of an expert on one rank", "the layout")
    yield Symbol("bytes", at.element_bytes, "B", "one element between matmuls", "the workload")


def _rates(at: Setting) -> Iterator[Symbol]:
    chip = at.chip
    compute = at.workload.precision.compute
    rate = at.peak_flops_per_s
    if not at.workload.phase.is_training:
        compute, rate = at.serving_dtype, at.serving_peak_flops_per_s
    yield Symbol("peak", rate, "FLOP/s", f"matrix unit, {compute}", chip.sources["peak_flops"])
    if at.wide_flops_per_s != rate:
        peak = chip.sources["peak_flops"]
        yield Symbol("peak at 16 bits", at.wide_flops_per_s, "FLOP/s", "matrix unit", peak)
    hbm = chip.sources["hbm_bandwidth_bytes_per_s"]
    yield Symbol("HBM", chip.hbm_bandwidth_bytes_per_s, "B/s", "HBM bandwidth", hbm)
    host = chip.host_link_bandwidth_bytes_per_s
    if host is not None and at.workload.phase.is_training:
        source = chip.sources["host_link_bandwidth_bytes_per_s"]
        yield Symbol("host link", host, "B/s", "one way to the host's memory", source)


def _links(at: Setting) -> Iterator[Symbol]:
    """Of each axis that is used: the rate that its placement gives, × the calibrated share."""
    kind = "NVLink domain" if isinstance(at.chip.link, Domain) else "torus dims"
    for axis, letter in _LETTERS.items():
        rate, _, inside, across, network = (float(column[0]) for column in at.links.of(axis))
        if inside > 1.0:
            meaning = f"{axis}: {inside:.0f} ranks inside ({kind}), one way, calibrated"
            yield Symbol(f"link({letter})", rate, "B/s", meaning, at.chip.sources["link"])
        if across > 1.0:
            meaning = f"{axis}: {across:.0f} parts across the network, a device, calibrated"
            source = at.chip.sources["network_bandwidth_bytes_per_s"]
            yield Symbol(f"network({letter})", network, "B/s", meaning, source)
