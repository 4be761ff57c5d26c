"""Against: what the compiler says of a layout beside what the estimator said of it."""

from __future__ import annotations

from prompts_agent.compile.outcome import CompiledFit
from prompts_agent.estimate.estimator import estimate
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.table import LayoutTable
from prompts_agent.record import Record
from prompts_agent.units import format_bytes, format_seconds
from prompts_agent.workload.workload import Phase, Workload

__all__ = ["LARGE_GAP", "Gap", "gaps"]

LARGE_GAP = 0.25
"""Estimated and compiled needs that differ by more are worth a sentence: over 36 published layouts
nine in ten differ by less (docs/verify.md)."""
_SMALL_SHARE = 0.02
"""Exposed time below this share of the step is not compared: both round to nothing."""


class Gap(Record):
    """One number of a layout as the estimator and as the compiler have it, in bytes or seconds."""

    what: str
    unit: str
    estimated: float
    compiled: float
    counts: bool = True
    """Whether the two can differ by a ratio that means something."""

    @property
    def ratio(self) -> float | None:
        """Estimated ÷ compiled, less one; None where the compiler's is zero."""
        return self.estimated / self.compiled - 1.0 if self.compiled else None

    @property
    def large(self) -> bool:
        """So far apart that one of them is wrong about this layout."""
        return self.counts and (self.ratio is None or abs(self.ratio) > LARGE_GAP)

    def sentence(self) -> str:
        """Both numbers, and which to trust where they are far apart."""
        show = format_bytes if self.unit == "bytes" else format_seconds
        apart = "" if self.ratio is None else f" ({self.ratio:+.0%})"
        # The compiler's need is what it assigned; its step is a prediction as the estimate's is.
        whom = "trust the compiler" if self.unit == "bytes" else "measure before you trust either"
        far = f": a large gap, {whom}" if self.large else ""
        what = self.what[0].upper() + self.what[1:]
        both = f"estimated {show(self.estimated)}, compiled {show(self.compiled)}"
        return f"{what}: {both}{apart}{far}."


def gaps(fit: CompiledFit, layout: Layout, workload: Workload) -> tuple[Gap, ...]:
    """Memory, and with a schedule the step and the exposed collectives of each axis."""
    if fit.hbm_need_bytes is None:
        return ()
    row = estimate(LayoutTable.of([layout]), workload)
    found = [
        Gap(
            what="HBM of a device",
            unit="bytes",
            estimated=float(row.hbm_bytes[0]),
            compiled=float(fit.hbm_need_bytes),
        )
    ]
    schedule = fit.schedule
    # The reference program's pipeline has one stage at work at a time: no step to compare with.
    if schedule is None or not schedule.step_time_s or layout.mesh.size(Axis.PIPELINE) > 1:
        return tuple(found)
    terms = {name: float(column[0]) for name, column in row.terms.items()}
    step_s = _step_s(workload, terms, float(row.step_time_s[0]))
    found.append(
        Gap(
            what="a step",
            unit="seconds",
            estimated=step_s,
            compiled=schedule.expected_s or schedule.step_time_s,
        )
    )
    exposed = schedule.exposed_by_axis()
    for axis in Axis:
        said = terms.get(f"time.{axis.value}_exposed_s")
        compiled_s = exposed.get(axis.value, 0.0)
        if said is None or max(said, compiled_s) < _SMALL_SHARE * schedule.step_time_s:
            continue
        # What compute can hide moves from axis to axis between the two: no ratio to judge by.
        found.append(
            Gap(
                what=f"exposed on {axis.value}",
                unit="seconds",
                estimated=said,
                compiled=compiled_s,
                counts=False,
            )
        )
    return tuple(found)


def _step_s(workload: Workload, terms: dict[str, float], step_time_s: float) -> float:
    """The estimate of what the compiled program does once: in decoding without what a server does
    between steps.
    """
    if workload.phase.is_training:
        return step_time_s
    if workload.phase is Phase.PREFILL:
        return terms.get("serving.ttft_s", step_time_s)
    tpot_s = terms.get("serving.tpot_s", step_time_s)
    return max(0.0, tpot_s - terms.get("serving.overhead_s", 0.0))
