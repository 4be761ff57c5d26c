"""Schedule reading: from what a child left behind to the record of its scheduled program."""

from __future__ import annotations

from pathlib import Path

from prompts_agent.compile import cache
from prompts_agent.compile.final_program import final_program, store_program
from prompts_agent.compile.request import Request, Until
from prompts_agent.compile.schedule.summary import schedule_of
from prompts_agent.compile.schedule.transfers import LayoutTransfers
from prompts_agent.errors import PromptsError
from prompts_agent.estimate.calibration import Constants, load_calibration
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.workload import Workload

__all__ = ["constants_for", "read_schedule"]


def constants_for(workload: Workload) -> Constants:
    """The estimator's constants for programs that XLA compiles for the workload's chip."""
    chip = find_chip(workload.topology.chip)
    return load_calibration().constants(
        chip.platform, "xla" if chip.platform == "gpu" else None, chip.name
    )


def read_schedule(request: Request, directory: Path, key: str | None) -> dict[str, object]:
    """`schedule` and `notes` of an answer; the program itself goes beside the answer in the cache.

    A dump that cannot be read gives a note and no schedule, never a wrong one.
    """
    found = final_program(directory)
    if found is None:
        return {"notes": ("The compiler left no scheduled program that can be read.",)}
    data, generated = found
    constants = constants_for(request.workload)
    topology = request.workload.topology
    transfers = LayoutTransfers(request.layout, topology, constants)
    try:
        schedule = schedule_of(
            data,
            find_chip(topology.chip),
            transfers,
            constants,
            generated=generated,
            meant=(request.layout, request.workload),
        )
    except PromptsError as error:
        return {"notes": (f"The scheduled program could not be read: {error.rule}.",)}
    if key is not None:
        store_program(cache.program_path(key), data)
    late = request.until is Until.END and not generated
    notes = []
    if late:
        notes.append(
            "Code generation did not end: times are of the schedule before it, by a roofline."
        )
    if request.layout.mesh.size(Axis.PIPELINE) > 1:
        notes.append(
            "The step is not a pipeline's: here one microbatch goes through the stages at a time."
        )
    return {"schedule": schedule, "notes": tuple(notes)}
