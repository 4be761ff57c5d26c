"""Expert axis: an expert axis that divides the data ranks, as an axis of a jax mesh.

Megatron's expert ranks are some of its data ranks: 16 data ranks with experts over 8 of them are a
mesh of data 2 × expert 8. Tokens are cut over both as before and experts over the second; dense
weights stay whole on both, which a layout whose expert axis is a factor would cut.
"""

from __future__ import annotations

from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis, AxisSize, Mesh

__all__ = ["with_expert_axis"]


def with_expert_axis(layout: Layout) -> Layout | None:
    """The layout with its expert axis a factor of the mesh; None where it divides more than data.

    A layout that has it so already is returned as it is.
    """
    expert, data = layout.mesh[Axis.EXPERT], layout.mesh[Axis.DATA]
    if not layout.expert_divides or expert.size == 1:
        return layout
    if data.size % expert.size:
        return None
    left = data.size // expert.size
    # Which part of the rest crosses domains: what of data does, less what the experts take of it.
    dcn = max(1, data.dcn // expert.dcn)
    if left % dcn:
        dcn = 1
    sizes = dict(layout.mesh.root) | {Axis.DATA: AxisSize(ici=left // dcn, dcn=dcn)}
    return layout.model_copy(update={"mesh": Mesh(sizes), "expert_divides": False})
