"""What the benchmarks of batches share: where things are, and a report to stand in for others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
EXAMPLE = ROOT / "examples" / "cpu8-train.xplane.pb.gz"


def environment(**more: str) -> dict[str, str]:
    paths = [os.fspath(ROOT), os.fspath(HERE), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))} | more


def example_report(directory: Path) -> Path:
    """The report of the example trace, planned for 16 chips."""
    path = directory / "report.json"
    command = ["diagnose", EXAMPLE, "--target", "v5e:4x4", "--no-llm", "-q", "-o", path]
    subprocess.run(
        [sys.executable, "-m", "prompts_agent", *map(str, command)], check=True, env=environment()
    )
    return path


def load() -> str:
    """Runnable processes besides ours make a ratio of times worth less."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
