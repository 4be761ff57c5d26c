"""Small workloads and tables for the tests of this room."""

from __future__ import annotations

from typing import Any

from prompts_agent.estimate.calibration import load_calibration
from prompts_agent.estimate.setting import Setting, setting
from prompts_agent.hardware.topology import parse_topology
from prompts_agent.layout.domains import domain_size, mesh_over_domains
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.table import LayoutTable
from prompts_agent.model.catalog import find_model
from prompts_agent.workload.workload import Phase, Precision, Workload


def job(
    model: str = "llama2-7b",
    topology: str = "v5e:4x4",
    *,
    batch: int = 16,
    sequence: int = 4096,
    phase: Phase = Phase.PRETRAIN,
    **fields: Any,
) -> Workload:
    fields.setdefault("precision", Precision(gradients="fp32"))
    return Workload(
        name="test",
        model=find_model(model),
        topology=parse_topology(topology),
        phase=phase,
        global_batch=batch,
        sequence=sequence,
        **fields,
    )


def layout(workload: Workload, degrees: dict[str, int], **knobs: Any) -> Layout:
    axes = {Axis(name): size for name, size in degrees.items()}
    divides = bool(knobs.get("expert_divides", False))
    mesh = mesh_over_domains(axes, domain_size(workload.topology), expert_divides=divides)
    return Layout(mesh=mesh, **knobs)


def table(workload: Workload, degrees: dict[str, int], **knobs: Any) -> LayoutTable:
    return LayoutTable.of([layout(workload, degrees, **knobs)])


def at(workload: Workload, degrees: dict[str, int], **knobs: Any) -> Setting:
    return setting(table(workload, degrees, **knobs), workload, load_calibration())
