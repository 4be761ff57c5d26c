"""A job from its trace: the model from weight shapes, batch from inputs, hardware from devices."""

from __future__ import annotations

from prompts_agent.agents.model_text import dims_text
from prompts_agent.agents.program import program_shapes
from prompts_agent.agents.request import DiagnoseRequest
from prompts_agent.errors import ModelError
from prompts_agent.hardware.topology import Topology
from prompts_agent.model.spec import ModelSpec
from prompts_agent.trace.profile import Profile
from prompts_agent.workload.infer import InferredWorkload, infer_workload
from prompts_agent.workload.program import ProgramShapes
from prompts_agent.workload.workload import Objective

__all__ = ["infer"]


def infer(
    request: DiagnoseRequest,
    profile: Profile,
    model: ModelSpec | None,
    topology: Topology | None,
) -> InferredWorkload:
    """The workload of the traced program; what the user gave wins over what the program shows."""
    shapes = program_shapes(profile)
    assumed: list[str] = []
    if model is None:
        model = _model(shapes, assumed)
    if request.objective is None:
        assumed.append("The objective is not stated; throughput is assumed.")
    found = infer_workload(
        shapes,
        topology=topology,
        model=model,
        phase=request.phase,
        objective=request.objective or Objective.THROUGHPUT,
        global_batch=request.global_batch,
        sequence=request.sequence,
    )
    if found.workload is None:
        return found
    workload = found.workload.model_copy(
        update={"assumptions": (*assumed, *found.workload.assumptions)}
    )
    return found.model_copy(update={"workload": workload})


def _model(shapes: ProgramShapes, assumed: list[str]) -> ModelSpec | None:
    """The architecture that the weights are of; None where they are of none that is known."""
    from prompts_agent.model.from_shapes import ParameterShape, infer_model

    whole = [
        ParameterShape(name=tensor.name, dtype=tensor.dtype, global_shape=tensor.shape)
        for tensor in shapes.parameters
        if tensor.shape is not None
    ]
    if not whole:
        return None
    try:
        found = infer_model(whole)
    except ModelError:
        return None
    assumed.append(f"The model is told from the weights of {shapes.name}: {dims_text(found.spec)}.")
    assumed += [f"Of the model, {text}." for text in found.assumptions]
    return found.spec
