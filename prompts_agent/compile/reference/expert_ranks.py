"""Expert ranks: which devices hold which experts, and how one expert is cut among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jax.sharding import Mesh

from prompts_agent.compile.expert_axis import COPIES as _REST
from prompts_agent.compile.expert_axis import EXPERTS as _PART
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.specs import ATTENTION_DATA, Entry, Spec

__all__ = ["ExpertRanks", "expert_ranks", "parts_in"]

_TENSOR = (ATTENTION_DATA, Axis.TENSOR.value)


@dataclass(frozen=True, slots=True)
class ExpertRanks:
    """Axes of the frame's mesh, each outermost first."""

    over: tuple[str, ...]
    """Different experts."""
    embed: tuple[str, ...]
    """Parts of an expert's embed dim, gathered before use (ZeRO-3)."""
    inner: tuple[str, ...]
    """Parts of an expert's inner dim, whose outputs are summed."""
    copies: tuple[str, ...]
    """The same part of the same expert."""

    def specs(self) -> dict[str, Spec]:
        """Of the expert weights, as `partition_specs` gives them."""
        over, embed, inner = _entry(self.over), _entry(self.embed), _entry(self.inner)
        return {"experts.in": (over, embed, inner), "experts.out": (over, inner, embed)}


def expert_ranks(
    mesh: Mesh,
    layout: Layout,
    specs: Mapping[str, Spec],
    taken: Mapping[str, int],
    *,
    training: bool,
) -> ExpertRanks:
    """Of `layout`, whose expert axis is a factor or left out; then `taken` says what it takes.

    Tensor ranks that are not taken cut an expert's inner dim in serving (vLLM's and SGLang's
    tensor parallel experts); in training they hold copies (Megatron's expert tensor degree of 1).
    """
    sizes = {name: size for name, size in mesh.shape.items() if size > 1}
    shared = (Axis.FSDP.value, *([Axis.CONTEXT.value] if layout.weights_over_context else []))
    if taken:
        over = tuple(name for name in sizes if _is_taken(name, sizes[name], taken))
        embed = tuple(n for n in sizes if training and n not in over and _axis(n) in shared)
        inner = tuple(n for n in sizes if not training and n not in over and _axis(n) in _TENSOR)
    else:
        over, embed, inner = (_names(entry) for entry in specs["experts.in"])
    used = {*over, *embed, *inner, Axis.PIPELINE.value}
    whole = (Axis.DATA.value, *([] if layout.weights_over_context else [Axis.CONTEXT.value]))
    copies = tuple(n for n in sizes if n not in used and (taken or n in whole))
    return ExpertRanks(over, embed, inner, copies)


def parts_in(mesh: Mesh, axis: str) -> tuple[str, ...]:
    """The axes of `mesh` that an axis of the layout is; itself where it is not split."""
    if axis in mesh.axis_names:
        return (axis,)
    return tuple(str(name) for name in mesh.axis_names if _axis(str(name)) == axis)


def _is_taken(name: str, size: int, taken: Mapping[str, int]) -> bool:
    return name.endswith(_PART) or taken.get(name) == size


def _axis(name: str) -> str:
    """The axis of the layout that an axis of the mesh is, or is a part of."""
    return name.removesuffix(_PART).removesuffix(_REST)


def _names(entry: Entry) -> tuple[str, ...]:
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)


def _entry(axes: tuple[str, ...]) -> Entry:
    return axes if len(axes) > 1 else axes[0] if axes else None
