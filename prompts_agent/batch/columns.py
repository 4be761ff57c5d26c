"""Columns: what the tables hold, and how a row and its report become their rows.

The schema is versioned: a column is added under a new minor version, and removed or changed in
meaning only under a new major one. docs/batch.md lists them, and a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prompts_agent.batch.row import Row

__all__ = ["TABLES", "TABLES_VERSION", "rows_of"]

TABLES_VERSION = "1.0"

_PROVENANCE = {
    "key": "string",
    "job": "string",
    "recorded_at": "timestamp",
    "trace_sha256": "string",
    "tool_version": "string",
    "kb_sha256": "string",
    "model_id": "string",
    "seed": "int",
}
"""In every table: which item, which trace, and what the answer was made with."""

TABLES: Mapping[str, Mapping[str, str]] = {
    "jobs": _PROVENANCE
    | {
        "address": "string",
        "workload_file": "string",
        "hours_per_week": "float",
        "status": "string",
        "reason": "string",
        "message": "string",
        "report": "string",
        "report_schema": "string",
        "trace_format": "string",
        "trace_bytes": "int",
        "device_kind": "string",
        "devices": "int",
        "hosts": "int",
        "model": "string",
        "hardware": "string",
        "phase": "string",
        "objective": "string",
        "global_batch": "int",
        "sequence": "int",
        "mesh": "string",
        "step_time_s": "float",
        "period_s": "float",
        "compute_s": "float",
        "exposed_collective_s": "float",
        "host_transfer_s": "float",
        "input_s": "float",
        "idle_s": "float",
        "hbm_peak_bytes": "int",
        "first_finding": "string",
        "abstained": "string",
        "wall_s": "float",
        "peak_bytes": "int",
        "finished_at": "timestamp",
    },
    "findings": _PROVENANCE
    | {
        "finding_id": "string",
        "kind": "string",
        "axis": "string",
        "title": "string",
        "seconds_per_step": "float",
        "share": "float",
        "is_sharding": "bool",
        "fact_ids": "strings",
    },
    "proposals": _PROVENANCE
    | {
        "rank": "int",
        "mesh": "string",
        "changes": "string",
        "changed": "int",
        "rung": "string",
        "step_time_s": "float",
        "low_s": "float",
        "high_s": "float",
        "tokens_per_s": "float",
        "speedup": "float",
        "speedup_low": "float",
        "speedup_high": "float",
        "hbm_bytes": "int",
        "hbm_limit_bytes": "int",
        "recipe_ids": "strings",
    },
    "facts": _PROVENANCE
    | {
        "fact_id": "string",
        "name": "string",
        "value": "float",
        "text": "string",
        "unit": "string",
        "source": "string",
    },
}
"""Table → column → type: string, strings (a list), int, float, bool, timestamp (UTC)."""


def rows_of(row: Row, report: Mapping[str, Any] | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """(table, values) for one item; `report` is its JSON, None where there is none."""
    known = _provenance(row)
    found = report or {}
    yield "jobs", known | _job(row, found)
    for finding in found.get("findings") or ():
        yield "findings", known | _finding(finding)
    for proposal in found.get("proposals") or ():
        yield "proposals", known | _proposal(proposal)
    for fact in (found.get("profile") or {}).get("facts") or ():
        yield "facts", known | _fact(fact)


def _provenance(row: Row) -> dict[str, Any]:
    answer = row.answer
    return {
        "key": row.key,
        "job": row.item.job,
        "recorded_at": row.item.recorded_at,
        "trace_sha256": answer.trace_sha256 if answer is not None else None,
        "tool_version": answer.tool_version if answer is not None else None,
        "kb_sha256": answer.kb_sha256 if answer is not None else None,
        "model_id": answer.model_id if answer is not None else None,
        "seed": answer.seed if answer is not None else None,
    }


def _job(row: Row, report: Mapping[str, Any]) -> dict[str, Any]:
    trace, profile = report.get("trace") or {}, report.get("profile") or {}
    planned, step = report.get("workload") or {}, profile.get("step") or {}
    findings = report.get("findings") or ()
    devices = profile.get("devices_in_job") or profile.get("devices_in_trace")
    return {
        "address": row.item.address,
        "workload_file": row.item.workload,
        "hours_per_week": row.item.hours_per_week,
        "status": row.status,
        "reason": row.reason,
        "message": row.message,
        "report": row.report,
        "report_schema": report.get("schema_version"),
        "trace_format": trace.get("format"),
        "trace_bytes": trace.get("size_bytes"),
        "device_kind": profile.get("device_kind"),
        "devices": devices or planned.get("devices"),
        "hosts": profile.get("hosts"),
        **{name: planned.get(name) for name in _PLANNED},
        "mesh": _mesh_today(report),
        "step_time_s": step.get("median_s"),
        "period_s": step.get("period_s") or step.get("median_s"),
        **_breakdown(profile),
        "hbm_peak_bytes": profile.get("hbm_peak_bytes"),
        "first_finding": findings[0]["kind"] if findings else None,
        "abstained": (report.get("abstained") or {}).get("kind"),
        "wall_s": row.wall_s,
        "peak_bytes": row.peak_bytes,
        "finished_at": row.finished_at,
    }


_PLANNED = ("model", "hardware", "phase", "objective", "global_batch", "sequence")
_PARTS = ("compute_s", "exposed_collective_s", "host_transfer_s", "input_s", "idle_s")


def _breakdown(profile: Mapping[str, Any]) -> dict[str, float | None]:
    """Seconds of a step; unknown for virtual devices, whose times say nothing of a chip."""
    if profile.get("structure_only"):
        return dict.fromkeys(_PARTS)
    parts = profile.get("breakdown") or {}
    return {name: parts.get(name) for name in _PARTS}


def _mesh_today(report: Mapping[str, Any]) -> str | None:
    baseline = report.get("baseline")
    if baseline is not None:
        return mesh_text(baseline["layout"]["mesh"])
    axes = (report.get("profile") or {}).get("mesh") or ()
    return " ".join(f"{axis['name']}={axis['size']}" for axis in axes) or None


def mesh_text(mesh: Mapping[str, Any]) -> str:
    """`data=2 fsdp=8`, axes of size 1 left out; `1 device` where all are.

    >>> mesh_text({"data": {"ici": 2, "dcn": 2}, "tensor": {"ici": 1, "dcn": 1}})
    'data=4'
    """
    sizes = {axis: _size(size) for axis, size in mesh.items()}
    return " ".join(f"{axis}={size}" for axis, size in sizes.items() if size > 1) or "1 device"


def _size(size: Any) -> int:
    if isinstance(size, Mapping):
        return int(size.get("ici", 1)) * int(size.get("dcn", 1))
    return int(size)


def _finding(finding: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "finding_id": finding["id"],
        **{
            name: finding.get(name)
            for name in ("kind", "axis", "title", "seconds_per_step", "share", "is_sharding")
        },
        "fact_ids": list(finding.get("fact_ids") or ()),
    }


def _proposal(proposal: Mapping[str, Any]) -> dict[str, Any]:
    predicted, changes = proposal["predicted"], proposal.get("changes") or ()
    recipes = [r for reason in proposal["reasons"] for r in reason.get("recipe_ids") or ()]
    numbers = ("step_time_s", "low_s", "high_s", "tokens_per_s", "hbm_bytes", "hbm_limit_bytes")
    gains = ("speedup", "speedup_low", "speedup_high")
    return {
        "rank": proposal["rank"],
        "mesh": mesh_text(proposal["layout"]["mesh"]),
        "changes": "; ".join(map(_change, changes)),
        "changed": len(changes),
        "rung": proposal["rung"],
        **{name: predicted.get(name) for name in (*numbers, *gains)},
        "recipe_ids": list(dict.fromkeys(recipes)),
    }


def _change(change: Mapping[str, Any]) -> str:
    before = change.get("before")
    return f"{change['what']} {before + ' → ' if before is not None else ''}{change['after']}"


def _fact(fact: Mapping[str, Any]) -> dict[str, Any]:
    value = fact["value"]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return {
        "fact_id": fact["id"],
        "name": fact["name"],
        "value": float(value) if number else None,
        "text": None if number else str(value).lower() if isinstance(value, bool) else str(value),
        "unit": fact["unit"],
        "source": fact["source"],
    }
