"""`prompts schema`: the JSON Schema of a report."""

from __future__ import annotations

from prompts_agent.cli import options
from prompts_agent.cli.output import check_output, write_result

__all__ = ["schema"]


def schema(output: options.Output = None, force: options.Force = False) -> None:
    """The JSON Schema of a report."""
    check_output(output, force=force)
    from prompts_agent.report.schema import schema_text

    write_result(schema_text(), output, force=force)
