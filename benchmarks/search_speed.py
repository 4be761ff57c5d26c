"""How fast layouts are enumerated and placed: figures to read, nothing is asserted.

Run it from a checkout: `python benchmarks/search_speed.py`. Seconds are of one core's CPU time;
memory is the process's peak so far, so read it downwards.
"""

from __future__ import annotations

import resource
import sys
import time

from prompts_agent.hardware.catalog import find_chip
from prompts_agent.hardware.topology import parse_topology
from prompts_agent.layout.enumerate import enumerate_layouts
from prompts_agent.layout.placement import place
from prompts_agent.layout.space import Space
from prompts_agent.model.catalog import find_model

# Model, hardware, global batch, whether expert divides other axes.
SPACES = [
    ("llama3-8b", "v5e:16x16", 256, False),
    ("llama3-8b", "v5p:8x8x16", 4096, False),
    ("llama3-8b", "h100:64x8", 1024, False),
    ("mixtral-8x7b", "h100:64x8", 1024, True),
    ("mixtral-8x7b", "2*v5e:16x16", 1024, False),
    ("mixtral-8x7b", "4*v5e:16x16", 4096, False),
]


def main() -> None:
    print(f"{'space':44} {'layouts':>10} {'1/s':>10} {'enumerate':>10} {'place':>8} {'peak':>8}")
    for name, hardware, batch, divides in SPACES:
        topology = parse_topology(hardware)
        space = Space(
            model=find_model(name),
            topology=topology,
            training=True,
            global_batch=batch,
            sequence=8192,
            expert_divides=divides,
            free_split=find_chip(topology.chip).platform == "tpu",
        )
        start = time.process_time()
        table = enumerate_layouts(space).table
        middle = time.process_time()
        place(table, topology)
        end = time.process_time()
        # ru_maxrss counts kilobytes on Linux and bytes on macOS.
        unit = 1 if sys.platform == "darwin" else 1024
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9
        label = f"{name} on {hardware}, batch {batch}"
        print(
            f"{label:44} {len(table):>10,} {len(table) / (middle - start):>10,.0f} "
            f"{middle - start:>8.2f} s {end - middle:>6.2f} s {peak:>5.2f} GB"
        )


if __name__ == "__main__":
    main()
