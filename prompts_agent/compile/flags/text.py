"""Text: the verdicts on flags as lines for a person, and as JSON."""

from __future__ import annotations

from prompts_agent.compile.flags.lint import FlagLint, FlagVerdict

__all__ = ["lint_text"]

_WORST_FIRST = (
    FlagVerdict.REFUSED, FlagVerdict.IGNORED, FlagVerdict.NOT_CHECKED, FlagVerdict.ACCEPTED,
)  # fmt: skip


def lint_text(found: FlagLint) -> str:
    """How many have which verdict, then each flag that is not accepted, with the reason."""
    counts = [
        f"{found.count(verdict)} {verdict.value}"
        for verdict in _WORST_FIRST
        if found.count(verdict)
    ]
    lines = [f"{len(found.flags)} flags for {found.topology}: {', '.join(counts)}."]
    for verdict in _WORST_FIRST[:-1]:
        for flag in found.flags:
            if flag.verdict is verdict:
                lines.append(f"  {verdict.value:<11} --{flag.name}={flag.value}")
                lines.append(f"              {flag.reason}")
    lines.append(f"By {found.toolchain} in {found.wall_s:.1f} s; no chip was attached.")
    return "\n".join(lines) + "\n"
