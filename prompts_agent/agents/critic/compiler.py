"""The critic's second rung: XLA's own compiler on every draft that passed the first."""

from __future__ import annotations

from collections.abc import Sequence

from prompts_agent.agents.critic.review import Objection, Review
from prompts_agent.agents.report import CompiledNeed
from prompts_agent.compile.against import LARGE_GAP, gaps
from prompts_agent.compile.fit import fit_many
from prompts_agent.compile.outcome import CompiledFit, Outcome
from prompts_agent.compile.request import Until
from prompts_agent.compile.toolchain import find_toolchain, how_to_get
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.trace.profile import Profile
from prompts_agent.units import format_bytes, format_seconds
from prompts_agent.workload.workload import Workload

__all__ = ["LARGE_GAP", "compiled", "missing_compiler", "today_schedule_text", "today_text"]

_SMALL_SHARE = 0.02
"""Of a step: less exposed time is not compared with the trace's."""


def missing_compiler(workload: Workload) -> str | None:
    """How to get the compiler for the workload's chip; None where it is installed."""
    chip = find_chip(workload.topology.chip)
    return how_to_get(chip) if find_toolchain(chip) is None else None


def compiled(
    reviews: Sequence[Review],
    workload: Workload,
    estimated_bytes: Sequence[int],
    *,
    whole: bool = False,
) -> tuple[Review, ...]:
    """Reviews that passed, with the compiler's answer: a rung higher, or sent back.

    No answer (a layout that the reference program cannot express, no compiler, a crash, a time
    limit) leaves the review as it is, and says so among its checks. `whole` compiles to the end,
    which takes minutes a layout and gives the schedule beside the memory.
    """
    asked = [index for index, review in enumerate(reviews) if review.passed]
    until = Until.END if whole else Until.MEMORY
    answers = fit_many([(reviews[index].layout, workload) for index in asked], until=until)
    found = dict(zip(asked, answers, strict=True))
    return tuple(
        _judged(review, found[index], estimated_bytes[index], workload)
        if index in found
        else review
        for index, review in enumerate(reviews)
    )


def _judged(review: Review, fit: CompiledFit, estimated_bytes: int, workload: Workload) -> Review:
    verdict = review.verdict
    if fit.outcome in (Outcome.DOES_NOT_FIT, Outcome.REFUSED):
        reason = " ".join((fit.reason, *fit.advice[:1]))
        fits = verdict.fits and fit.outcome is Outcome.REFUSED
        return review.model_copy(
            update={
                "verdict": verdict.model_copy(update={"fits": fits}),
                "objections": (_objection(fit, reason),),
            }
        )
    if fit.outcome is not Outcome.FITS or fit.hbm_need_bytes is None:
        said = f"not compiled ({fit.outcome.value}): {fit.reason}"
        return review.model_copy(
            update={"verdict": verdict.model_copy(update={"checks": (*verdict.checks, said)})}
        )
    need = CompiledNeed(
        hbm_need_bytes=fit.hbm_need_bytes,
        hbm_limit_bytes=fit.hbm_limit_bytes,
        estimated_bytes=estimated_bytes,
        compiler=fit.toolchain or "unknown",
        program=fit.program,
        differences=fit.differences,
        step_time_s=fit.schedule.step_time_s if fit.schedule else None,
        exposed_by_axis_s=fit.schedule.exposed_by_axis() if fit.schedule else {},
    )
    # The first gap is of memory, which `_text` has.
    apart = [gap.sentence() for gap in gaps(fit, review.layout, workload)[1:]]
    told = [surprise.text for surprise in fit.schedule.surprises] if fit.schedule else []
    checks = (*verdict.checks, _text(need, marginal=fit.marginal), *apart, *told)
    return review.model_copy(
        update={
            "verdict": verdict.model_copy(
                update={"checks": checks, "rung": "compiled", "compiled": need}
            )
        }
    )


def _objection(fit: CompiledFit, reason: str) -> Objection:
    if fit.outcome is Outcome.REFUSED or fit.margin is None:
        return Objection(about="layout", reason=f"The compiler refuses it: {reason}")
    return Objection(about="memory", reason=reason, overshoot=max(0.0, -fit.margin))


def _text(need: CompiledNeed, *, marginal: bool) -> str:
    limit = "" if need.hbm_limit_bytes is None else f" of {format_bytes(need.hbm_limit_bytes)}"
    near = ", so near the limit that another version may refuse it" if marginal else ""
    gap = need.estimated_bytes / need.hbm_need_bytes - 1.0
    far = ": a large gap, trust the compiler" if abs(gap) > LARGE_GAP else ""
    return (
        f"compiled by {need.compiler}: needs {format_bytes(need.hbm_need_bytes)}{limit}{near}; "
        f"the estimate was {format_bytes(need.estimated_bytes)} ({gap:+.0%}){far}"
    )


def today_text(workload: Workload, hbm_peak_bytes: int | None) -> str | None:
    """How far the compiler's need of today's layout is from what its run took, a sentence.

    None where the trace holds no peak, today's layout is not known, or it cannot be compiled.
    """
    if hbm_peak_bytes is None or workload.baseline is None:
        return None
    (fit,) = fit_many([(workload.baseline, workload)])
    if fit.hbm_need_bytes is None:
        return None
    return (
        f"for today's layout the same compile needs {format_bytes(fit.hbm_need_bytes)}, and its "
        f"run took {format_bytes(hbm_peak_bytes)} "
        f"({fit.hbm_need_bytes / hbm_peak_bytes - 1.0:+.0%})"
    )


def today_schedule_text(workload: Workload, profile: Profile | None) -> str | None:
    """How far the compiled schedule of today's layout is from the trace: the step, and exposed
    collectives by axis; a sentence.

    None without a trace of real times, where today's layout is not known, or where it cannot be
    compiled to its end.
    """
    if profile is None or profile.structure_only or workload.baseline is None:
        return None
    if profile.step_time_s is None:
        return None
    (fit,) = fit_many([(workload.baseline, workload)], until=Until.END)
    if fit.schedule is None:
        return None
    measured: dict[str, float] = {}
    for use in profile.collectives:
        axis = use.axis or "unknown"
        measured[axis] = measured.get(axis, 0.0) + (use.exposed_s or 0.0)
    compiled_s = fit.schedule.exposed_by_axis()
    least = _SMALL_SHARE * profile.step_time_s
    axes = sorted({*measured, *compiled_s})
    apart = [
        f"{axis} {format_seconds(compiled_s.get(axis, 0.0))} to "
        f"{format_seconds(measured.get(axis, 0.0))}"
        for axis in axes
        if max(compiled_s.get(axis, 0.0), measured.get(axis, 0.0)) >= least
    ]
    exposed = f"; exposed collectives, compiled to measured: {', '.join(apart)}" if apart else ""
    step_s, took_s = fit.schedule.step_time_s, profile.step_time_s
    return (
        f"for today's layout the compiled step takes {format_seconds(step_s)}, and its run took "
        f"{format_seconds(took_s)} ({step_s / took_s - 1.0:+.0%}){exposed}"
    )
