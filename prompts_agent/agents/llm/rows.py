"""Rows: the job, its causes, recipes and layouts as the model sees them; no name of a stranger.

All words here are this package's own, but for titles of recipes, which are scrubbed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from prompts_agent.agents.finding import Finding, axes_meant
from prompts_agent.agents.llm.ids import Ids
from prompts_agent.agents.placeholders import scrub
from prompts_agent.agents.resolve import Job
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.units import format_seconds
from prompts_agent.workload.workload import Workload

if TYPE_CHECKING:
    from prompts_agent.agents.planner.draft import Draft

__all__ = ["cause_rows", "figures_of", "job_row", "layout_rows", "recipe_rows"]

_ALWAYS = ("step_time", "step_low", "step_high", "speedup", "speedup_low", "speedup_high", "hbm")
_MOST_TERMS = 6
_OFFERED = ("term:", "today:", "change:", "layout:")
"""Kinds of placeholders that a model may use; what stands for a neighbour of the plain sentences
it names by the layout's id.
"""


def job_row(job: Job) -> dict[str, Any]:
    """What is known of the job, in integers and our own words; its name stays here."""
    workload = job.workload
    if workload is None:
        return {"known": False}
    model = workload.model
    row: dict[str, Any] = {
        "phase": workload.phase.value,
        "objective": workload.objective.value,
        "chip": workload.topology.chip,
        "devices": workload.topology.devices,
        "global_batch": workload.global_batch,
        "sequence": workload.sequence,
        "model": {
            "layers": model.layers,
            "embed": model.embed,
            "heads": model.heads,
            "kv_heads": model.kv_heads,
            "mlp": model.mlp,
            "vocab": model.vocab,
            "experts": model.moe.experts if model.moe is not None else None,
        },
    }
    today = _today(job, workload)
    return row | ({"today": today} if today else {})


def _today(job: Job, workload: Workload) -> dict[str, int]:
    used: Mapping[Axis, int] = job.traced
    if workload.baseline is not None:
        used = workload.baseline.mesh.used()
    return {axis.value: size for axis, size in used.items()}


def cause_rows(findings: Sequence[Finding], ids: Ids, job: Job) -> list[dict[str, Any]]:
    """Causes by id, costliest first; their sentences, which may hold names, stay here."""
    rows = []
    for name, finding in ids.findings.items():
        seconds = finding.seconds_per_step
        row: dict[str, Any] = {
            "id": name,
            "kind": finding.kind.value,
            "a_mesh_could_cure_it": finding.is_sharding,
            "up_to": "unknown" if seconds is None else format_seconds(seconds),
            "facts": [f for f in map(ids.fact_id, finding.fact_ids) if f is not None],
        }
        axes = axes_meant(finding, job.axes)
        rows.append(row | ({"axes": [axis.value for axis in axes]} if axes else {}))
    return rows[: len(findings)]


def recipe_rows(ids: Ids, moves: Mapping[str, Sequence[tuple[str, str]]]) -> list[dict[str, Any]]:
    """Recipes by id, with what they move and the scrubbed title; without those set aside."""
    return [
        {
            "id": name,
            "title": scrub(item.title),
            "moves": [f"{move} {what}" for what, move in moves.get(item.recipe_id, ())],
        }
        for name, item in ids.recipes.items()
        if item.recipe_id in moves
    ]


def layout_rows(drafts: Sequence[Draft], ranks: Sequence[int]) -> list[dict[str, Any]]:
    """Layouts by id, `p1` first: integers, changes, and the placeholders of each with values.

    `ranks` are those that they have in the report so far, from 0.
    """
    rows = []
    for rank, draft in zip(ranks, drafts, strict=True):
        offered = figures_of(draft)
        rows.append(
            {
                "id": f"p{rank + 1}",
                "axes": _axes(draft.layout),
                "knobs": _knobs(draft.layout),
                "changes": {c.what: c.direction for c in draft.changes},
                "surely_fits": draft.candidate.hbm_high_bytes
                <= draft.candidate.predicted.hbm_limit_bytes,
                "placeholders": {n: v for n, v in offered.items() if n in _shown(draft, offered)},
            }
        )
    return rows


def figures_of(draft: Draft) -> dict[str, str]:
    """Placeholders that a sentence about the draft may use."""
    return {name: value for name, value in draft.figures.items() if name.startswith(_OFFERED)}


def _shown(draft: Draft, offered: Mapping[str, str]) -> set[str]:
    terms = draft.candidate.terms
    times = [n for n in terms if n.startswith(("time.", "serving.")) and terms[n] > 0.0]
    largest = sorted(times, key=lambda n: (-terms[n], n))[:_MOST_TERMS]
    wanted = {f"{kind}:{n}" for kind in ("term", "today") for n in (*_ALWAYS, *largest)}
    return {n for n in offered if n in wanted or n.startswith(("change:", "layout:"))}


def _axes(layout: Layout) -> dict[str, int]:
    return {axis.value: layout.mesh.size(axis) for axis in Axis}


def _knobs(layout: Layout) -> dict[str, Any]:
    return {
        "microbatch": layout.microbatch,
        "gradient_accumulation": layout.gradient_accumulation,
        "remat": layout.remat.value,
        "sequence_parallel": layout.sequence_parallel,
        "virtual_stages": layout.virtual_stages,
    }
