"""Pools: serving estimates against pools of GPUs in which several layouts were measured."""

from __future__ import annotations

from importlib import resources
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.calibration import Calibration
from prompts_agent.estimate.estimator import estimate
from prompts_agent.hardware.topology import parse_topology
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis, Mesh
from prompts_agent.layout.table import LayoutTable
from prompts_agent.model.catalog import find_model
from prompts_agent.record import Record
from prompts_agent.workload.framework import Framework
from prompts_agent.workload.workload import Phase, Precision, Traffic, Workload

__all__ = ["SERVERS", "Pool", "PoolScore", "load_pools", "score_pools"]

FloatColumn = NDArray[np.float64]

SERVERS = {"trtllm": Framework.TENSORRT_LLM, "vllm": Framework.VLLM, "sglang": Framework.SGLANG}
"""What the silicon sample calls servers."""


class PoolRun(Record):
    """One layout of a pool and the output tokens per second of all its replicas."""

    degrees: dict[Axis, int]
    attention_data: int = 1
    tokens_per_s: float


class Pool(Record):
    """One traffic on one pool of devices, served by several layouts."""

    model: str
    topology: str
    weights: str
    input_tokens: int
    output_tokens: int
    concurrency: int
    source: str
    runs: tuple[PoolRun, ...]

    @property
    def workload(self) -> Workload:
        """The pool as a workload; a sequence holds its prompt and half of its answer on average."""
        return Workload(
            name=self.model,
            model=find_model(self.model),
            topology=parse_topology(self.topology),
            phase=Phase.SERVE,
            global_batch=self.concurrency,
            sequence=self.input_tokens + self.output_tokens // 2,
            precision=Precision(weights=self.weights),
            framework=SERVERS.get(self.source.split()[0]),
            traffic=Traffic(
                input_tokens=self.input_tokens,
                output_tokens=self.output_tokens,
                concurrency=self.concurrency,
            ),
        )

    @property
    def table(self) -> LayoutTable:
        """The runs' layouts; experts divide the tensor ranks."""
        return LayoutTable.of(
            Layout(
                mesh=Mesh.model_validate(run.degrees),
                expert_divides=True,
                attention_data=run.attention_data,
            )
            for run in self.runs
        )


class PoolScore(NamedTuple):
    """How often the first choice was the best run, and what it loses on average (best ÷ chosen - 1)
    beside a choice at random.
    """

    pools: int
    first_right: float
    mean_regret: float
    random_regret: float


def load_pools() -> list[Pool]:
    """The pools of `estimate/data/pools.yaml`."""
    import yaml

    text = resources.files("prompts_agent.estimate").joinpath("data/pools.yaml").read_text("utf-8")
    return [Pool.model_validate(entry) for entry in yaml.safe_load(text)["pools"]]


def score_pools(calibration: Calibration | None = None, *, mixture: bool = False) -> PoolScore:
    """The score over all pools of dense models, or of mixtures of experts."""
    right, regret, chance = [], [], []
    for pool in load_pools():
        if (pool.workload.model.moe is not None) is not mixture:
            continue
        measured = _measured(pool)
        guess = estimate(pool.table, pool.workload, calibration=calibration).tokens_per_s
        chosen = int(np.argmax(guess))
        right.append(chosen == int(np.argmax(measured)))
        regret.append(measured.max() / measured[chosen] - 1.0)
        chance.append(float(np.mean(measured.max() / measured)) - 1.0)
    return PoolScore(
        len(right), float(np.mean(right)), float(np.mean(regret)), float(np.mean(chance))
    )


def _measured(pool: Pool) -> FloatColumn:
    return np.array([run.tokens_per_s for run in pool.runs])
