"""Side: one of the two runs, read, resolved and analysed as a diagnosis would."""

from __future__ import annotations

from dataclasses import dataclass

from prompts_agent.agents import nodes
from prompts_agent.agents.analyst.cite import period_s
from prompts_agent.agents.finding import Finding
from prompts_agent.agents.inference import infer
from prompts_agent.agents.placeholders import scrub
from prompts_agent.agents.program import program_shapes
from prompts_agent.agents.request import DiagnoseRequest
from prompts_agent.agents.resolve import Job
from prompts_agent.errors import NotDiagnosableError
from prompts_agent.layout.mesh import Axis
from prompts_agent.trace.profile import Profile, TraceFile
from prompts_agent.workload.infer_mesh import infer_mesh
from prompts_agent.workload.workload import Workload

__all__ = ["Given", "Side", "side_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One run as the user gives it: a trace at `request.paths`, or a profile measured before."""

    request: DiagnoseRequest
    profile: Profile | None = None
    trace: TraceFile | None = None
    """Of `profile`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """`job` is what the user says and the trace tells; `told` what the trace tells by itself."""

    trace: TraceFile | None
    profile: Profile
    job: Job
    told: Workload | None
    degrees: dict[Axis, int] | None
    findings: tuple[Finding, ...]
    step_s: float

    @property
    def mesh_text(self) -> str | None:
        """The mesh in our axes, else in the trace's."""
        if self.degrees is not None:
            used = [f"{axis} {self.degrees[axis]}" for axis in Axis if axis in self.degrees]
            return " × ".join(used) or "one device"
        named = [f"{scrub(axis.name)} {axis.size}" for axis in self.profile.mesh]
        return " × ".join(named) or None


def side_of(given: Given, name: str) -> Side:
    """Reads and analyses a run; `name` is what an error calls it.

    Raises `TraceError` and its kin, and `NotDiagnosableError` where no step time can be told.
    """
    state = nodes.read({"request": given.request, "profile": given.profile})
    profile, job = state["profile"], state["job"]
    step_s = None if profile is None else period_s(profile)
    if profile is None or step_s is None:
        what = "its devices are virtual" if profile and profile.structure_only else "no step"
        raise NotDiagnosableError(
            f"{name}: {what}",
            rule="two runs are compared by the time of their steps, which this trace does not tell",
            cure="Capture three or more steady steps of the job on its real devices; "
            "`prompts doctor TRACE` says what a trace holds.",
        )
    found = nodes.analyst({"profile": profile, "job": job})
    shapes = program_shapes(profile)
    degrees = infer_mesh(shapes).degrees
    return Side(
        trace=state["trace"] or given.trace,
        profile=found["profile"] or profile,
        job=job,
        told=_told(profile, job),
        degrees=None if degrees is None else {a: n for a, n in degrees.items() if n > 1},
        findings=found["findings"],
        step_s=step_s,
    )


def _told(profile: Profile, job: Job) -> Workload | None:
    """The workload that the trace shows, without what the user says of model and batch.

    Where it does not show the model or the hardware, those of the job help to read the rest.
    """
    found = infer(DiagnoseRequest(), profile, None, None).workload
    if found is not None or job.workload is None:
        return found
    given = job.workload
    request = DiagnoseRequest(phase=given.phase)
    return infer(request, profile, given.model, given.topology).workload
