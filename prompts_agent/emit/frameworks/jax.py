"""JAX: a mesh, a PartitionSpec for every class of weight and activation, and the remat policy.

Names as of jax 0.10 (`jax/_src/sharding_impls.py`, `jax/_src/mesh_utils.py`). Since 0.9 an unset
`axis_types` means Explicit, and `make_mesh` refuses devices of several slices, so both are spelled.
"""

from __future__ import annotations

from prompts_agent.agents.report import Config
from prompts_agent.emit.facts import JobFacts
from prompts_agent.emit.framework import Framework, global_batch
from prompts_agent.emit.server import batch_limit
from prompts_agent.errors import LayoutError
from prompts_agent.layout.layout import Layout, Remat
from prompts_agent.layout.mesh import Axis, AxisSize
from prompts_agent.layout.specs import (
    ACTIVATION_CLASSES,
    ATTENTION_DATA,
    WEIGHT_CLASSES,
    Spec,
    mesh_axes,
    partition_specs,
)
from prompts_agent.model.spec import ModelSpec, MoeDims

__all__ = ["FRAMEWORK"]

REMAT = {
    Remat.NONE: "everything_saveable",
    Remat.MINIMAL: "dots_with_no_batch_dims_saveable",
    Remat.FULL: "nothing_saveable",
    Remat.OFFLOAD: (
        "save_and_offload_only_these_names(\n"
        "    names_which_can_be_saved=[],\n"
        '    names_which_can_be_offloaded=["layer_input", "query", "key", "value"],\n'
        '    offload_src="device",\n'
        '    offload_dst="pinned_host",\n'
        ")"
    ),
}
"""Names in `jax.checkpoint_policies`; the names that are offloaded are the model's own, given by
`jax.ad_checkpoint.checkpoint_name`."""

# Dims that are split unevenly stay whole, and 1 is split evenly by 1 alone: a model of unknown dims
# keeps vocab and KV heads whole rather than cut them in a way that may not exist.
_UNKNOWN = ModelSpec(
    name="unknown",
    family="unknown",
    layers=1,
    embed=1,
    heads=1,
    kv_heads=1,
    head_dim=1,
    mlp=1,
    gated_mlp=True,
    vocab=1,
    tied_embeddings=False,
    source="stands in for dims that nobody gave",
)
_UNKNOWN_MOE = _UNKNOWN.model_copy(
    update={"moe": MoeDims(experts=1, experts_per_token=1, mlp=1)},
)


def write(layout: Layout, facts: JobFacts) -> Config:
    """Python that makes the mesh and names the specs. Raises `LayoutError` where no mesh can."""
    training = facts.phase.is_training
    specs = partition_specs(layout, _dims(layout, facts), training=training)
    if training:
        specs.pop("kv_cache", None)
    text = "\n".join(
        [
            f"# {layout}: {layout.devices} devices.",
            *_mesh(layout, facts),
            "",
            *_specs(specs),
            "",
            *_knobs(layout, facts),
        ]
    )
    return Config(
        framework=FRAMEWORK.name,
        language="python",
        text=text + "\n",
        check_command=_check(layout),
        notes=_notes(layout, facts),
    )


def _dims(layout: Layout, facts: JobFacts) -> ModelSpec:
    if facts.model is not None:
        return facts.model
    return _UNKNOWN_MOE if layout.mesh.size(Axis.EXPERT) > 1 else _UNKNOWN


def _axis_sizes(layout: Layout) -> dict[str, AxisSize]:
    """The emitted axes, outermost first, each with its part inside and across domains."""
    found: dict[str, AxisSize] = {}
    for name in mesh_axes(layout):
        found[name] = layout.mesh[Axis.TENSOR if name == ATTENTION_DATA else Axis(name)]
    if ATTENTION_DATA in found:
        groups, tensor = layout.attention_data, layout.mesh[Axis.TENSOR]
        if groups % tensor.dcn:
            raise LayoutError(
                f"attention_data {groups} on a tensor axis over {tensor.dcn} domains",
                rule="groups are the outer part of tensor, so domains divide their number",
                cure=f"Choose attention_data among the multiples of {tensor.dcn}.",
            )
        found[ATTENTION_DATA] = AxisSize(ici=groups // tensor.dcn, dcn=tensor.dcn)
        if "tensor" in found:
            found["tensor"] = AxisSize(ici=tensor.size // groups)
    return found or {"data": AxisSize()}


def _tuple(values: list[object]) -> str:
    inner = ", ".join(str(value) for value in values)
    return f"({inner},)" if len(values) == 1 else f"({inner})"


def _mesh(layout: Layout, facts: JobFacts) -> list[str]:
    axes = _axis_sizes(layout)
    names = _tuple([f'"{name}"' for name in axes])
    types = f"(AxisType.Auto,) * {len(axes)}"
    imports = "from jax.sharding import AxisType, NamedSharding, PartitionSpec as P"
    if layout.mesh.dcn_devices == 1:
        return [
            "import jax",
            imports,
            "",
            f"mesh = jax.make_mesh({_tuple([s.size for s in axes.values()])}, {names},",
            f"                     axis_types={types})",
        ]
    granule = ", process_is_granule=True" if facts.platform == "gpu" else ""
    return [
        "import jax",
        "from jax.experimental import mesh_utils",
        imports.replace("import AxisType,", "import AxisType, Mesh,"),
        "",
        "devices = mesh_utils.create_hybrid_device_mesh(",
        f"    mesh_shape={_tuple([s.ici for s in axes.values()])},",
        f"    dcn_mesh_shape={_tuple([s.dcn for s in axes.values()])}{granule},",
        ")",
        f"mesh = Mesh(devices, {names}, axis_types={types})",
    ]


def _entry(entry: str | tuple[str, ...] | None) -> str:
    if entry is None:
        return "None"
    if isinstance(entry, str):
        return f'"{entry}"'
    return _tuple([f'"{name}"' for name in entry])


def _specs(specs: dict[str, Spec]) -> list[str]:
    """One line a class, its dims as a comment. Stacked layers put one more dim in front."""
    dims = WEIGHT_CLASSES | ACTIVATION_CLASSES
    lines = [
        f'    "{name}": P({", ".join(map(_entry, spec))}),  # {", ".join(dims[name])}'
        for name, spec in specs.items()
    ]
    return [
        "SPECS = {",
        *lines,
        "}",
        "shardings = {name: NamedSharding(mesh, spec) for name, spec in SPECS.items()}",
    ]


def _knobs(layout: Layout, facts: JobFacts) -> list[str]:
    if not facts.phase.is_training:
        limit = batch_limit(layout, facts)
        return [f"BATCH_LIMIT = {limit}  # sequences that decode on one replica"]
    return [
        f"GLOBAL_BATCH = {global_batch(layout)}  # sequences per optimizer step",
        f"GRADIENT_ACCUMULATION = {layout.gradient_accumulation}"
        f"  # passes of {layout.microbatch * layout.batch_shards} sequences",
        f"REMAT_POLICY = jax.checkpoint_policies.{REMAT[layout.remat]}  # for jax.checkpoint",
    ]


def _check(layout: Layout) -> str | None:
    if layout.mesh.dcn_devices > 1:
        # CPU devices carry no slice index, so a hybrid mesh can only be built on the real job.
        return None
    flags = f"--xla_force_host_platform_device_count={layout.mesh.devices}"
    return f"JAX_PLATFORMS=cpu XLA_FLAGS={flags} python layout.py"


def _notes(layout: Layout, facts: JobFacts) -> tuple[str, ...]:
    notes = [f"Written for jax {FRAMEWORK.since} or later."]
    if facts.model is None:
        notes.append("The model's dims are not known here, so vocab and KV heads stay whole.")
    if layout.mesh.size(Axis.PIPELINE) > 1:
        notes.append("JAX has no pipeline schedule of its own: the axis carries your own stages.")
    if facts.platform == "gpu" and layout.mesh.dcn_devices > 1:
        notes.append("process_is_granule counts a process as one fast domain: start one a host.")
    return tuple(notes)


FRAMEWORK = Framework(
    name="jax",
    title="JAX",
    since="0.9",
    source="jax/_src/sharding_impls.py and jax/_src/mesh_utils.py",
    write=write,
)
