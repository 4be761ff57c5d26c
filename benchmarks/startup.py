"""How long `prompts diagnose` takes, against the least it must import: a ratio, in one run.

    python benchmarks/startup.py [TRACE] [--runs N]

Prints the median wall time of `python -c "import langgraph.graph, chromadb"`, of
`prompts diagnose TRACE`, of `prompts --help` and `prompts --version`, interleaved so that a slow
minute of the machine slows all of them, and the ratio of the second to the first.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

DEFAULT = Path(__file__).parents[1].parent / "shared" / "traces" / "tpu-v6e-host-offload.xplane.pb"


# An installed package is byte-compiled, whatever this shell says of the checkout.
INSTALLED = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def wall_s(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(
        command,
        check=True,
        env=INSTALLED,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", nargs="?", type=Path, default=DEFAULT)
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    prompts = [sys.executable, "-m", "prompts_agent"]
    commands = {
        "import langgraph.graph, chromadb": [
            sys.executable,
            "-c",
            "import langgraph.graph, chromadb",
        ],
        f"prompts diagnose {options.trace.name}": [*prompts, "diagnose", str(options.trace)],
        "prompts --help": [*prompts, "--help"],
        "prompts --version": [*prompts, "--version"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for command in commands.values():
        wall_s(command)  # byte-compiles and warms the file cache
    for _ in range(options.runs):
        for name, command in commands.items():
            times[name].append(wall_s(command))
    machine = platform.processor() or platform.machine()
    print(f"{machine}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for name, values in times.items():
        print(f"{statistics.median(values):7.3f} s  (min {min(values):.3f})  {name}")
    imports, diagnose = (statistics.median(v) for v in list(times.values())[:2])
    print(f"diagnose ÷ imports = {diagnose / imports:.2f}")


if __name__ == "__main__":
    main()
