"""What one pipeline stage stands for: the job that the reference program is built of."""

from __future__ import annotations

import math

from prompts_agent.errors import HardwareError
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.hardware.topology import Topology
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis, Mesh
from prompts_agent.model.spec import ModelSpec
from prompts_agent.workload.workload import Workload

__all__ = ["in_stages", "no_stage", "stage_topology"]


def in_stages(workload: Workload, layout: Layout) -> tuple[Workload, Layout]:
    """The job and layout that are compiled for `layout`; themselves without a pipeline.

    Training is one program of all stages, each with as many layers as the fullest: 61 layers in 8
    stages are 8 on the fullest, which needs what a stage of 64 layers needs. A server passes
    requests from stage to stage, each of them a program of its own: of 4 stages the fullest is
    compiled, a quarter of the layers on a quarter of the devices, with the embedding and the output
    table. Dense layers at the start are compiled as layers with experts, which are larger: a stage
    of those alone is the fullest.

    Raises `HardwareError` where no topology has the devices of a server's stage.
    """
    stages = layout.mesh.size(Axis.PIPELINE)
    if stages == 1:
        return workload, layout
    alike = _alike(workload.model, stages)
    if workload.phase.is_training:
        return workload.model_copy(update={"model": alike}), layout
    one = alike.model_copy(update={"layers": alike.layers // stages})
    topology = stage_topology(workload, layout)
    mesh = {axis: size for axis, size in layout.mesh.root.items() if axis is not Axis.PIPELINE}
    return (
        workload.model_copy(update={"model": one, "topology": topology}),
        layout.model_copy(update={"mesh": Mesh.model_validate(mesh)}),
    )


def stage_topology(workload: Workload, layout: Layout) -> Topology:
    """The devices of one stage. Raises `HardwareError` where no topology has so many."""
    chip = find_chip(workload.topology.chip)
    devices = workload.topology.devices // layout.mesh.size(Axis.PIPELINE)
    return Topology.for_device_count(chip, devices)


def no_stage(workload: Workload, layout: Layout) -> str | None:
    """Why its layers cannot be cut into stages of the reference program; None where they can."""
    model = workload.model
    if model.encoder_layers:
        return (
            f"{model.name} has an encoder and a decoder, so its stages are not alike, and one "
            "program has the same layers on every stage."
        )
    if workload.phase.is_training:
        return None
    try:
        stage_topology(workload, layout)
    except HardwareError as error:
        return f"One stage of a server is compiled, and {error.value} are none: {error.rule}."
    return None


def _alike(model: ModelSpec, stages: int) -> ModelSpec:
    """The model with layers that fill every stage like the fullest one."""
    moe = model.moe
    if moe is not None and moe.dense_layers:
        moe = moe.model_copy(update={"dense_layers": 0})
    period = math.lcm(moe.every if moe else 1, model.global_every or 1)
    layers = -(-model.layers // (period * stages)) * period * stages
    return model.model_copy(update={"layers": layers, "moe": moe})
