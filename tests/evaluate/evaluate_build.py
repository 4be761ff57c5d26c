"""Small workloads and sweeps for the tests of this room."""

from __future__ import annotations

from collections.abc import Sequence

from prompts_agent.evaluate.sweep import Sweep
from prompts_agent.evaluate.sweep_build import Tried, sweep_of
from prompts_agent.hardware.topology import parse_topology
from prompts_agent.layout.layout import Remat
from prompts_agent.layout.mesh import Axis
from prompts_agent.model.catalog import find_model
from prompts_agent.workload.workload import Adopted, Constraints, Phase, Workload


def small_workload(name: str = "small", *, adopted: dict[Axis, int] | None = None) -> Workload:
    """Llama 3 8B on eight H100 in Megatron's axes: 16 legal meshes at most."""
    return Workload(
        name=name,
        model=find_model("llama3-8b"),
        topology=parse_topology("h100:8"),
        phase=Phase.PRETRAIN,
        global_batch=64,
        sequence=4096,
        constraints=Constraints(
            axes=(Axis.PIPELINE, Axis.DATA, Axis.TENSOR),
            remat=(Remat.FULL,),
            virtual_stages=(1,),
        ),
        adopted=None if adopted is None else Adopted(degrees=adopted, source="a test"),
        source="owner/repository of a test",
    )


def run_of(
    data: int,
    tensor: int,
    seconds: float | None,
    *,
    microbatch: int = 1,
    out_of_memory: bool = False,
) -> Tried:
    """One run of data × tensor."""
    return Tried(
        degrees={Axis.DATA: data, Axis.TENSOR: tensor},
        knobs={"microbatch": microbatch, "remat": Remat.FULL, "zero_stage": 1},
        step_time_s=seconds,
        out_of_memory=out_of_memory,
    )


def small_sweep(tried: Sequence[Tried], name: str = "small sweep") -> Sweep:
    """A sweep of `small_workload`."""
    return sweep_of(small_workload(name), tried, "a framework", "a collection")
