"""JobFacts: what a framework's config needs to know besides the layout."""

from __future__ import annotations

from typing import Self

from prompts_agent.agents.report import Report
from prompts_agent.errors import HardwareError, ModelError
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.hardware.topology import Topology, parse_topology
from prompts_agent.model.catalog import find_model
from prompts_agent.model.spec import ModelSpec
from prompts_agent.record import Record
from prompts_agent.workload.workload import Phase

__all__ = ["JobFacts"]


_HUB = "https://huggingface.co/"


class JobFacts(Record):
    """What is None is unknown: the config then leaves it out and a note says so."""

    phase: Phase
    sequence: int
    global_batch: int | None = None
    """Serving: sequences in flight over all replicas."""
    model_name: str = "model"
    model: ModelSpec | None = None
    topology: Topology | None = None
    torch_trace: bool = False
    """The trace was written by PyTorch or Nsight, so the job is no JAX program."""

    @property
    def platform(self) -> str | None:
        """`tpu`, `gpu` or None."""
        return find_chip(self.topology.chip).platform if self.topology is not None else None

    @property
    def hub_name(self) -> str:
        """The model's id on the hub that its dims were read from, else its name."""
        source = self.model.source if self.model is not None else ""
        return source.removeprefix(_HUB) if source.startswith(_HUB) else self.model_name

    @classmethod
    def of(cls, report: Report) -> Self | None:
        """The facts that a report holds; None for one without a workload.

        Where it holds no dims, the model's name is looked up.
        """
        summary = report.workload
        if summary is None:
            return None
        source = report.trace.format.lower() if report.trace is not None else ""
        return cls(
            phase=summary.phase,
            sequence=summary.sequence,
            global_batch=summary.global_batch,
            model_name=summary.model,
            model=summary.dims if summary.dims is not None else _model(summary.model),
            topology=_topology(summary.hardware),
            torch_trace=any(word in source for word in ("kineto", "pytorch", "nsight", "nsys")),
        )


def _model(name: str) -> ModelSpec | None:
    try:
        return find_model(name)
    except ModelError:
        # Inferred from a program's shapes, or read from a config.json: the name is no catalogue's.
        return None


def _topology(text: str) -> Topology | None:
    try:
        return parse_topology(text)
    except HardwareError:
        return None
