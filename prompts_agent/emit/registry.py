"""The frameworks by name, the default one of a job, and configs for a whole report."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import TYPE_CHECKING

from prompts_agent.agents.report import Config, Proposal, Report
from prompts_agent.emit import frameworks
from prompts_agent.emit.facts import JobFacts
from prompts_agent.emit.framework import Framework
from prompts_agent.errors import LayoutError
from prompts_agent.layout.layout import Layout
from prompts_agent.workload.workload import Constraints

if TYPE_CHECKING:
    from prompts_agent.emit.existing.existing import Existing

__all__ = ["FRAMEWORKS", "constraints_of", "default_framework", "emit", "with_configs"]


def _found() -> dict[str, Framework]:
    """The `FRAMEWORK` of every file in `emit/frameworks`, in the order of their names."""
    names = sorted(module.name for module in pkgutil.iter_modules(frameworks.__path__))
    modules = (importlib.import_module(f"{frameworks.__name__}.{name}") for name in names)
    found: list[Framework] = [module.FRAMEWORK for module in modules]
    return {framework.name: framework for framework in found}


FRAMEWORKS: dict[str, Framework] = _found()


def emit(layout: Layout, facts: JobFacts, framework: str) -> Config:
    """The layout as that framework's config text.

    Raises `LayoutError` for an unknown framework, and where it cannot express the layout.
    """
    if framework not in FRAMEWORKS:
        raise LayoutError(
            f"framework {framework!r}",
            rule="no emitter has that name",
            cure=f"Choose one of {', '.join(FRAMEWORKS)}.",
        )
    return FRAMEWORKS[framework].write(layout, facts)


def constraints_of(framework: str | None, baseline: Layout | None = None) -> Constraints:
    """The space of a plan for that framework; everything where none was named.

    What the user's own `baseline` does, the framework can: Megatron with fsdp plans with fsdp.
    """
    if framework not in FRAMEWORKS:
        return Constraints()
    space = FRAMEWORKS[framework].constraints
    if baseline is None:
        return space
    used, names = baseline.mesh.used(), set(space.model_fields_set)
    if not set(used) <= set(space.axes):
        names -= {"axes", "weights_over_context"}
    return Constraints(**{name: getattr(space, name) for name in names})


def default_framework(facts: JobFacts) -> str:
    """Vllm serves; megatron trains where PyTorch wrote the trace; jax otherwise."""
    if not facts.phase.is_training:
        return "vllm"
    return "megatron" if facts.torch_trace else "jax"


def with_configs(
    report: Report, framework: str | None = None, existing: Existing | None = None
) -> Report:
    """The report with a config in every proposal, and what it changes in `existing`.

    Where the framework was asked for and cannot express a proposal, that proposal stays without a
    config and a caveat says why; where it was the default, JAX takes its place.
    """
    if existing is not None and report.baseline is not None and report.trace is None:
        source = Path(existing.file).name
        baseline = report.baseline.model_copy(update={"source": source})
        report = report.model_copy(update={"baseline": baseline})
    facts = JobFacts.of(report)
    if facts is None or not report.proposals:
        return report
    proposals: list[Proposal] = []
    caveats = list(report.caveats)
    if existing is not None and report.trace is not None and report.baseline is not None:
        from prompts_agent.emit.existing.baseline import disagreement

        apart = disagreement(existing, report.baseline.layout)
        caveats += [apart] if apart is not None else []
    for proposal in report.proposals:
        try:
            config = _config(proposal.layout, facts, framework)
        except LayoutError as error:
            caveats.append(
                f"Proposal {proposal.rank} has no config: {error.value}: {error.rule}. {error.cure}"
            )
            proposals.append(proposal)
        else:
            if existing is not None:
                # Readers of every framework come with it: only a config of the user's needs them.
                from prompts_agent.emit.existing.diff import config_diff

                today = report.baseline.layout if report.baseline is not None else None
                diff = config_diff(existing, config.text, config.language, today)
                config = config.model_copy(update={"diff": diff})
            proposals.append(proposal.model_copy(update={"config": config}))
    caveats += _repeated(proposals)
    return report.model_copy(update={"proposals": tuple(proposals), "caveats": tuple(caveats)})


def _repeated(proposals: list[Proposal]) -> list[str]:
    """Proposals that a framework makes no difference between, each pair as a sentence."""
    first: dict[str, int] = {}
    found = []
    for proposal in proposals:
        if proposal.config is None:
            continue
        # The comment above the settings names the mesh.
        settings = "\n".join(
            line for line in proposal.config.text.splitlines() if not line.startswith("#")
        )
        earlier = first.setdefault(settings, proposal.rank)
        if earlier != proposal.rank:
            title = FRAMEWORKS[proposal.config.framework].title
            found.append(f"Proposals {earlier} and {proposal.rank} are the same to {title}.")
    return found


def _config(layout: Layout, facts: JobFacts, framework: str | None) -> Config:
    if framework is not None:
        return emit(layout, facts, framework)
    try:
        return emit(layout, facts, default_framework(facts))
    except LayoutError:
        if default_framework(facts) == "jax":
            raise
        return emit(layout, facts, "jax")
