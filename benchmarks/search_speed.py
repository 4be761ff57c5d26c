"""How fast layouts are enumerated, estimated and ranked: figures to read, nothing is asserted.

Run it from a checkout: `python benchmarks/search_speed.py`. Each space has a process of its own, so
that its peak memory is its own; seconds are of one core's CPU time. The last lines are whole
queries: the search of one workload, and `prompts plan` from a shell with everything it loads.
"""

from __future__ import annotations

import itertools
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

# Model, hardware, global batch, whether expert divides other axes.
SPACES = [
    ("llama3-8b", "v5e:16x16", 256, False),
    ("llama3-8b", "v5p:8x8x16", 4096, False),
    ("llama3-8b", "h100:64x8", 1024, False),
    # 96 layers and 96 heads on 12 nodes: no powers of two.
    ("gpt3-175b", "h100:12x8", 96, False),
    ("mixtral-8x7b", "h100:64x8", 1024, True),
    ("mixtral-8x7b", "2*v5e:16x16", 1024, False),
    ("deepseek-v3", "h100:256x8", 15360, True),
    ("llama3-405b", "h100:2048x8", 16384, False),
    ("llama3-405b", "4*v5p:16x16x16", 16384, False),
    ("mixtral-8x7b", "4*v5e:16x16", 4096, False),
]
QUERY = ("llama3-8b", "h100:1x8")


def measure(index: int) -> None:
    """One line of the table."""
    from prompts_agent.estimate.estimator import estimate, propose
    from prompts_agent.hardware.topology import parse_topology
    from prompts_agent.layout.enumerate import enumerate_layouts
    from prompts_agent.model.catalog import find_model
    from prompts_agent.workload.search_space import search_space
    from prompts_agent.workload.workload import Constraints, Phase, Workload

    name, hardware, batch, divides = SPACES[index]
    workload = Workload(
        name=name,
        model=find_model(name),
        topology=parse_topology(hardware),
        phase=Phase.PRETRAIN,
        global_batch=batch,
        sequence=8192,
        constraints=Constraints(expert_divides=divides),
    )
    times = [time.process_time()]
    found = enumerate_layouts(search_space(workload))
    times.append(time.process_time())
    estimates = estimate(found.table, workload)
    times.append(time.process_time())
    propose(estimates, found.table, workload)
    times.append(time.process_time())
    enumerated, estimated, ranked = (b - a for a, b in itertools.pairwise(times))
    rows = len(found.table)
    label = f"{name} on {hardware}, batch {batch}"
    print(
        f"{label:42} {found.considered:>11,} {rows:>10,} {enumerated:>7.2f} s "
        f"{rows / enumerated:>10,.0f} {estimated:>7.2f} s {ranked:>6.2f} s "
        f"{rows / (times[-1] - times[0]):>9,.0f} {peak_gb():>5.2f} GB"
    )


def peak_gb() -> float:
    """Of this process; ru_maxrss counts kilobytes on Linux and bytes on macOS."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def queries() -> None:
    """The search of one workload on 8 GPUs, and the command that asks for it."""
    from prompts_agent.agents.planner.search import search
    from prompts_agent.hardware.topology import parse_topology
    from prompts_agent.model.catalog import find_model
    from prompts_agent.workload.workload import Phase, Workload

    name, hardware = QUERY
    for phase in (Phase.PRETRAIN, Phase.DECODE, Phase.SERVE):
        workload = Workload(
            name=name,
            model=find_model(name),
            topology=parse_topology(hardware),
            phase=phase,
            global_batch=64,
            sequence=4096,
        )
        search(workload)
        start = time.perf_counter()
        found = search(workload)
        taken = time.perf_counter() - start
        print(f"search, {name} on {hardware}, {phase}: {found.count.legal:,} legal, {taken:.3f} s")
    flags = ("--model", name, "--target", hardware, "--phase", "serve", "--batch", "64")
    command = [sys.executable, "-m", "prompts_agent", "plan", *flags, "--sequence", "4096"]
    start = time.perf_counter()
    subprocess.run(
        [*command, "--no-llm", "--verify", "none", "-q", "-f", "json"],
        check=True,
        stdout=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[1])},
    )
    print(f"prompts plan, the same, serve, from a shell: {time.perf_counter() - start:.2f} s")


def main() -> None:
    if len(sys.argv) > 1:
        measure(int(sys.argv[1]))
        return
    print(
        f"{'space':42} {'considered':>11} {'legal':>10} {'enumerate':>9} {'1/s':>10} "
        f"{'estimate':>9} {'rank':>8} {'all, 1/s':>9} {'peak':>8}"
    )
    for index in range(len(SPACES)):
        sys.stdout.flush()
        subprocess.run([sys.executable, __file__, str(index)], check=True)
    queries()


if __name__ == "__main__":
    main()
