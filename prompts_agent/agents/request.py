"""What a user asks for: paths and flags of a diagnosis or a plan, before anything is read."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from prompts_agent.record import Record
from prompts_agent.workload.workload import Constraints, Objective, Phase, Workload

__all__ = ["DiagnoseRequest", "Verify"]


Verify = Literal["auto", "none", "fit", "full"]


class DiagnoseRequest(Record):
    """Flags that are None leave the choice to the workload file, then to the trace.

    Precedence: `workload` > `model`, `target` and the other flags > what the trace tells; a flag
    next to a workload file replaces that one field of it.
    """

    paths: tuple[Path, ...] = ()
    """Trace files or directories; empty for a plan."""
    workload: Workload | None = None
    model: str | None = None
    """A catalogue name or the path of a config.json."""
    target: str | None = None
    """A topology, e.g. `v5e:16x16`."""
    phase: Phase | None = None
    objective: Objective | None = None
    global_batch: int | None = Field(default=None, ge=1)
    sequence: int | None = Field(default=None, ge=1)
    constraints: Constraints = Constraints()
    """What the user's framework can express; see `workload.narrow`."""
    top: int = Field(default=3, ge=1, le=10)
    xprof: bool = False
    """Ask XProf, in a process of its own, for what the trace's own events do not show."""
    verify: Verify = "none"
    """Ask the compiler for the chip about every proposal: `auto` where it is installed, `fit` or
    else say why not, `full` to the end of the compile."""
    kb_path: Path | None = None
    """A directory of a team's recipes; None: that of PROMPTS_KB, where it is set."""
    kb: str | None = None
    """A Chroma server that holds the recipes, `http://host:port`; None: those of this package."""
    calibration: Path | None = None
    """A file of constants that `prompts calibrate fit` wrote; None: those of this package."""
    timings: bool = False
    """Put wall-clock seconds into the report, which then differs from run to run."""
    tracing: bool = False
    """Leave LangSmith's environment variables as the user set them."""
