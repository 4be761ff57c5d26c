"""Runs of a program where the trace marks none: from the repetition of its ops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from prompts_agent.trace.capture import Events, ModuleRun, Op

__all__ = ["derive_runs"]


def derive_runs(table: Sequence[Op], events: Events, names: dict[int, str]) -> list[ModuleRun]:
    """One run per repetition of each program's ops, on a device that runs one program at a time.

    How often an op ran is mostly how often its program ran; ops in loops ran more often. The run
    count is that of most ops (the smaller of equals), and a run begins with the first op that ran
    that often. `names` are the programs' names by id.
    """
    runs: list[ModuleRun] = []
    for program_id, name in names.items():
        belongs = np.array([op.program_id == program_id for op in table], np.bool_)
        rows = np.flatnonzero(belongs[events.op]) if len(events) else np.zeros(0, np.int64)
        if not rows.shape[0]:
            continue
        op, start = events.op[rows], events.start_ps[rows]
        end = start + events.duration_ps[rows]
        per_op = Counter(op.tolist())
        frequency = Counter(per_op.values())
        count = max(frequency, key=lambda times: (frequency[times], -times))
        first_op = next(k for k in op.tolist() if per_op[k] == count)
        bounds = np.flatnonzero(op == first_op)
        bounds[0] = 0
        ends = np.append(bounds[1:], rows.shape[0])
        for low, high in zip(bounds.tolist(), ends.tolist(), strict=True):
            first = int(start[low])
            runs.append(ModuleRun(name, program_id, first, int(end[low:high].max()) - first))
    return sorted(runs, key=lambda run: run.start_ps)
