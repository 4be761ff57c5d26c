"""Workers that only decode, of servers with separate pools: what a token took, as facts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from prompts_agent.errors import PromptsError
from prompts_agent.estimate.pools import SERVERS
from prompts_agent.evaluate.sweep import Sweep
from prompts_agent.evaluate.sweep_build import Tried, sweep_of
from prompts_agent.evaluate.sweep_table import number, read_rows, whole
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.hardware.topology import Topology
from prompts_agent.layout.mesh import Axis
from prompts_agent.model.catalog import find_model
from prompts_agent.workload.workload import Constraints, Phase, Precision, Workload

__all__ = ["decoding_workers", "sequences_of_a_worker"]

# `1P[tp1pp1adp4etp1ep4]4D[tp8pp1adp1etp1ep8]`: one worker prefills, four decode. Counts that the
# source does not know are question marks, and say nothing of a worker's batch.
_POOLS = re.compile(
    r"\d+P\[\w+\](?P<workers>\d+)D\[tp(?P<tp>\d+)pp1adp(?P<adp>\d*)etp\d+ep(?P<ep>\d+)\]"
)


class _Worker(NamedTuple):
    tensor: int
    groups: int
    expert: int


def sequences_of_a_worker(
    concurrency: float, workers: int, output_tokens: int, *, ttft_s: float, tpot_s: float
) -> int:
    """Sequences that one decoding worker holds on average, by Little's law: the share of a
    request's time that it decodes. 192 in flight, 4 workers, 1024 tokens of 10 ms after 0.4 s: 46.
    """
    decoding = output_tokens * tpot_s
    return max(1, round(concurrency / workers * decoding / (decoding + ttft_s)))


def decoding_workers(directory: Path) -> Iterator[Sweep]:
    """Decode pools of `aic_silicon_sample.csv` whose workers are counted, one workload a worker's
    layout, batch and traffic. Unstated weights are bf16, and the cache has the compute dtype.
    """
    needed = ("mode", "layout", "model_path", "system", "precision", "backend", "isl", "osl")
    groups: dict[str, list[tuple[Workload, Tried]]] = defaultdict(list)
    for row in read_rows(
        directory / "aic_silicon_sample.csv", (*needed, "concurrency", "ttft_ms", "tpot_ms")
    ):
        found = _POOLS.fullmatch(row["layout"]) if row["mode"] == "disagg" else None
        if found is None:
            continue
        worker = _Worker(int(found["tp"]), int(found["adp"] or 1), int(found["ep"]))
        try:
            workload, tried = _decoded(row, worker, int(found["workers"]))
        except PromptsError:
            continue
        groups[workload.model_dump_json()].append((workload, tried))
    for members in groups.values():
        workload = members[0][0]
        yield sweep_of(
            workload,
            [tried for _, tried in members],
            str(workload.framework),
            "aic_silicon_sample",
            cluster=workload.name.rsplit(" ", 1)[0],
            rankable=False,
        )


def _decoded(row: dict[str, str], worker: _Worker, workers: int) -> tuple[Workload, Tried]:
    """Raises `PromptsError` for a model or chip that is not known, and where a cell is blank."""
    times = [number(row, name) for name in ("concurrency", "ttft_ms", "tpot_ms")]
    known = [value for value in times if value is not None]
    if len(known) < len(times):
        raise PromptsError("a blank cell", rule="a worker has a time", cure="Leave it out.")
    tpot_s = known[2] / 1e3
    output = whole(row, "osl")
    sequences = sequences_of_a_worker(
        known[0], workers, output, ttft_s=known[1] / 1e3, tpot_s=tpot_s
    )
    model, chip = find_model(row["model_path"]), find_chip(row["system"].removesuffix("_sxm"))
    devices = worker.tensor * worker.groups
    named = f"{row['backend']} tp{worker.tensor} adp{worker.groups} ep{worker.expert}"
    weights = row["precision"] or "bf16"
    workload = Workload(
        name=f"{model.name} {weights} {named} decode on {devices} {chip.name} b{sequences}",
        model=model,
        topology=Topology.for_device_count(chip, devices),
        phase=Phase.DECODE,
        global_batch=sequences,
        sequence=whole(row, "isl") + output // 2,
        precision=Precision(weights=weights),
        constraints=Constraints(expert_divides=model.moe is not None),
        framework=SERVERS.get(row["backend"]),
        source="ai-dynamo/aiconfigurator",
    )
    degrees = {Axis.TENSOR: devices, Axis.EXPERT: worker.expert if model.moe is not None else 1}
    knobs = {"attention_data": worker.groups} if worker.groups > 1 else {}
    rate = sequences / tpot_s
    return workload, Tried(degrees=degrees, knobs=knobs, tpot_s=tpot_s, tokens_per_s=rate)
