"""Servers under a rate of arrivals, side by side: as measured in public, and as estimated.

    python benchmarks/open_loop.py DIR

DIR holds `serving/sweeps/trtllm_online_serving_v014.csv`: TensorRT-LLM 0.14 under request rates
(NVIDIA's performance page, Apache-2.0). No constant was fitted to these runs. Rows count in the
errors where the server kept up with 90% of the rate and the estimate says that it does; the rest
are listed. Each run is finite: where it served less, it may have been the run's end. Nothing is
asserted.
"""

from __future__ import annotations

import csv
import math
import statistics
import sys
from pathlib import Path
from typing import NamedTuple

from prompts_agent.estimate.estimator import estimate
from prompts_agent.hardware.topology import parse_topology
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Mesh
from prompts_agent.layout.table import LayoutTable
from prompts_agent.model.catalog import find_model
from prompts_agent.workload.framework import Framework
from prompts_agent.workload.workload import Phase, Precision, Traffic, Workload

MODELS = {"LLaMA 3.1 70B": "llama3.1-70b", "LLaMA 3.1 8B": "llama3.1-8b"}
PLACES = 2048
"""TensorRT-LLM's default of sequences at once; the cache has room for fewer."""


class Run(NamedTuple):
    """Seconds, and requests per second. `offered` is infinite where all came at once."""

    name: str
    offered: float
    served: float
    ttft_s: float
    tpot_s: float
    found_ttft_s: float
    found_tpot_s: float
    capacity: float

    @property
    def kept_up(self) -> bool:
        """It served nine requests in ten of those that were offered."""
        return self.served >= 0.9 * self.offered

    @property
    def said_to(self) -> bool:
        """By the estimate it has a steady state."""
        return self.offered < self.capacity


def main() -> None:
    path = Path(sys.argv[1]) / "serving" / "sweeps" / "trtllm_online_serving_v014.csv"
    with path.open(newline="") as file:
        runs = [read(row) for row in csv.DictReader(file)]
    print(f"{'run':38}{'offered':>8}{'served':>8}{'at most':>8}{'TTFT ms':>16}{'TPOT ms':>14}")
    for run in runs:
        ttft = f"{1e3 * run.ttft_s:.0f} / "
        tpot = f"{1e3 * run.tpot_s:.0f} / "
        ttft += f"{1e3 * run.found_ttft_s:.0f}" if run.said_to else "-"
        tpot += f"{1e3 * run.found_tpot_s:.0f}" if run.said_to else "-"
        rates = f"{run.offered:8.0f}{run.served:8.0f}{run.capacity:8.1f}"
        print(f"{run.name:38}{rates}{ttft:>16}{tpot:>14}")
    paced = [run for run in runs if math.isfinite(run.offered)]
    steady = [run for run in paced if run.kept_up and run.said_to]
    summary("TTFT", [run.found_ttft_s / run.ttft_s for run in steady])
    summary("TPOT", [run.found_tpot_s / run.tpot_s for run in steady])
    at_once = [run for run in runs if math.isinf(run.offered)]
    summary("at most ÷ served, all at once", [run.capacity / run.served for run in at_once])
    kept = [run for run in paced if run.kept_up]
    fell = [run for run in paced if run.served < 0.8 * run.offered]
    right = sum(run.said_to for run in kept), sum(not run.said_to for run in fell)
    print(f"kept up {len(kept)}, said to keep up of these {right[0]}")
    print(f"served less than 80% {len(fell)}, said to fall behind of these {right[1]}")


def read(row: dict[str, str]) -> Run:
    """One row, and its estimate; the rate of an infinite one changes only what it is told."""
    offered = math.inf if row["qps"] == "INF" else float(row["qps"])
    tensor, output = int(row["tp"]), int(row["osl"])
    chip = row["gpu"].lower()
    workload = Workload(
        name="open loop",
        model=find_model(MODELS[row["model"]]),
        topology=parse_topology(f"{chip}:1x{tensor}"),
        phase=Phase.SERVE,
        global_batch=PLACES,
        sequence=int(row["isl"]) + output,
        precision=Precision(weights=row["weights"].lower()),
        framework=Framework.TENSORRT_LLM,
        traffic=Traffic(
            input_tokens=int(row["isl"]), output_tokens=output, requests_per_s=min(offered, 1e4)
        ),
    )
    found = estimate(LayoutTable.of([Layout(mesh=Mesh.of(tensor=tensor))]), workload)
    return Run(
        name=f"{workload.model.name} {chip} tp{tensor} {row['isl']} in {output} out",
        offered=offered,
        served=float(row["req_s"]),
        ttft_s=float(row["ttft_ms_mean"]) / 1e3,
        tpot_s=float(row["itl_ms_mean"]) / 1e3,
        found_ttft_s=float(found.terms["serving.ttft_s"][0]),
        found_tpot_s=float(found.terms["serving.tpot_s"][0]),
        capacity=float(found.tokens_per_s[0]) / output,
    )


def summary(label: str, ratios: list[float]) -> None:
    sizes = sorted(abs(ratio - 1.0) for ratio in ratios)
    p90 = sizes[math.ceil(0.9 * len(sizes)) - 1]
    bias = math.exp(statistics.fmean(map(math.log, ratios)))
    print(
        f"{label}: n {len(ratios)}, median error {statistics.median(sizes):.1%}, p90 {p90:.1%}, "
        f"bias {bias:.2f}"
    )


if __name__ == "__main__":
    main()
