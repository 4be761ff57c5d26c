"""JSON: the report as data, the same bytes for the same report."""

from __future__ import annotations

from prompts_agent.agents.report import Report

__all__ = ["json_text"]


def json_text(report: Report, *, ascii_only: bool = False) -> str:
    """Indented JSON in the schema's order of fields, with a final newline.

    `ascii_only` escapes everything else, for an output that is not UTF-8.
    """
    return report.model_dump_json(indent=2, ensure_ascii=ascii_only) + "\n"
