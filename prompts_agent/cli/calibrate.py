"""`prompts calibrate`: the constants of the estimates, fitted and shown."""

from __future__ import annotations

import sys

import typer

from prompts_agent.cli import options
from prompts_agent.cli.output import check_output, write_result

__all__ = ["fit", "show"]


def fit(
    paths: options.WorkloadPaths = None,
    sweeps: options.Sweeps = None,
    output: options.Output = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Fit the constants of training to what was measured and adopted; a few minutes.

    Prints what changed and how far the fit misses, plainly and with each model family left out of
    it; the calibration itself goes to --output, and can be given to `prompts evaluate`.
    """
    check_output(output, force=force)
    from prompts_agent.evaluate.calibrate import calibration_text, changes, fit_collection

    def tell(text: str) -> None:
        if not quiet:
            sys.stderr.write(f"{text}\n")

    fitted = fit_collection(tuple(paths or ()), sweeps, tell)
    for line in fitted.lines():
        typer.echo(line)
    for one in changes(fitted.calibration):
        before = "new" if one.before is None else f"{one.before:.4g}"
        typer.echo(f"{one.name}: {before} -> {one.after:.4g}")
    if output is not None:
        write_result(calibration_text(fitted.calibration), output, force=force)


def show() -> None:
    """Every constant that ships, with its source, and how far the estimates miss."""
    from prompts_agent.estimate.calibration import load_calibration

    known = load_calibration()
    kinds = (*known.platforms.items(), *known.stacks.items(), *known.chips.items())
    for kind, entries in kinds:
        typer.echo(f"{kind}:")
        for name, constant in entries.items():
            typer.echo(f"  {name:28} {constant.value:<10.4g} {constant.source}")
    typer.echo("residuals of ln(estimate / measured):")
    named = {"serving": known.serving, "ratio_per_doubling": known.ratio_per_doubling}
    for group, table in (("step_time", known.step_time), ("hbm", known.hbm)):
        named |= {f"{group}.{kind}": value for kind, value in table.items()}
    for name, kept in named.items():
        typer.echo(f"  {name:28} median {kept.median:.3f}, p90 {kept.p90:.3f}, {kept.source}")
