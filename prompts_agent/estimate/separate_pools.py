"""Separate pools: some devices prefill prompts, the others decode (DistServe, arXiv 2401.09670).

Neither waits for the other's steps, and each has the tensor degree that suits it; but devices can
no longer help where work is short. Requests per second are the smaller of what both pools do.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from prompts_agent.errors import HardwareError
from prompts_agent.estimate.calibration import Calibration, load_calibration
from prompts_agent.estimate.estimator import estimate
from prompts_agent.estimate.memory_serving import cache_room
from prompts_agent.estimate.setting import setting
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.hardware.topology import Topology
from prompts_agent.layout.enumerate import enumerate_layouts
from prompts_agent.layout.factorisations import divisors
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.serving.traffic import held_tokens
from prompts_agent.workload.search_space import search_space
from prompts_agent.workload.workload import Phase, Traffic, Workload

__all__ = ["Pool", "SeparatePools", "separate_pools"]

# Larger deployments have too many splits to try one by one; the best of 64 devices repeats.
_MOST_DEVICES = 64
_ROUNDS = 4


class Pool(NamedTuple):
    """Workers of one kind: a layout of one worker, and how many there are."""

    layout: Layout
    workers: int


class SeparatePools(NamedTuple):
    """A split of the devices, and what it serves. `sequences` decode together on one worker."""

    prefill: Pool
    decode: Pool
    sequences: float
    ttft_s: float
    tpot_s: float
    tokens_per_s: float


class _Worker(NamedTuple):
    layout: Layout
    seconds: float
    """Of one prompt, or of one decode step."""
    room: float
    """Sequences that its cache has room for."""


def separate_pools(
    workload: Workload, *, calibration: Calibration | None = None
) -> SeparatePools | None:
    """The split of all devices that serves the most tokens per second, of those that keep the
    traffic's limits where any does.

    None where the workload is not mixed serving under a closed load, where there is one device or
    more than 64, and where no split fits.
    """
    traffic = workload.traffic
    devices = workload.topology.devices
    if workload.phase is not Phase.SERVE or traffic is None or traffic.concurrency is None:
        return None
    if not 2 <= devices <= _MOST_DEVICES:
        return None
    known = calibration or load_calibration()
    found = list(_splits(workload, traffic, traffic.concurrency, known))
    if not found:
        return None
    keeping = [split for split in found if _keeps(split, traffic)]
    return max(keeping or found, key=lambda split: split.tokens_per_s)


def _splits(
    workload: Workload, traffic: Traffic, in_flight: int, calibration: Calibration
) -> Iterator[SeparatePools]:
    @cache
    def prefills(size: int) -> _Worker | None:
        return _best(workload, size, Phase.PREFILL, size, calibration)

    @cache
    def decodes(size: int, sequences: int) -> _Worker | None:
        return _best(workload, size, Phase.DECODE, sequences, calibration)

    devices = workload.topology.devices
    sizes = [size for size in divisors(devices) if size < devices]
    for before, after in itertools.product(sizes, sizes):
        first = prefills(before)
        if first is None:
            continue
        for count in range(1, (devices - after) // before + 1):
            workers, rest = divmod(devices - count * before, after)
            if rest:
                continue
            split = _served(first, count, workers, partial(decodes, after), traffic, in_flight)
            if split is not None:
                yield split


def _served(
    first: _Worker,
    count: int,
    workers: int,
    decodes: Callable[[int], _Worker | None],
    traffic: Traffic,
    in_flight: int,
) -> SeparatePools | None:
    """`count` workers prefill, `workers` decode: the rate at which both keep up, and by Little's
    law what of a request's time is left for its first token. A few rounds settle how many decode.
    """
    held = in_flight / workers
    worker = decodes(_rounded(held))
    rate = decoded_s = 0.0
    for _ in range(_ROUNDS):
        if worker is None:
            return None
        held = min(held, worker.room)
        decoded_s = traffic.output_tokens * worker.seconds
        rate = min(count / first.seconds, workers * held / decoded_s)
        held = max(1.0, rate * decoded_s / workers)
        worker = decodes(_rounded(held))
    if worker is None:
        return None
    return SeparatePools(
        prefill=Pool(first.layout, count),
        decode=Pool(worker.layout, workers),
        sequences=held,
        ttft_s=max(first.seconds, in_flight / rate - decoded_s),
        tpot_s=worker.seconds,
        tokens_per_s=rate * traffic.output_tokens,
    )


def _best(
    workload: Workload, size: int, phase: Phase, sequences: int, calibration: Calibration
) -> _Worker | None:
    """The layout of one worker of `size` devices that does most; None where none fits."""
    traffic = workload.traffic
    chip = find_chip(workload.topology.chip)
    try:
        topology = Topology.for_device_count(chip, size)
    except HardwareError:
        return None
    if traffic is None:
        return None
    prefills = phase is Phase.PREFILL
    tokens = traffic.input_tokens if prefills else round(held_tokens(traffic))
    job = workload.model_copy(
        update={
            "topology": topology,
            "phase": phase,
            "global_batch": sequences,
            "sequence": tokens,
            "baseline": None,
            "baseline_measured": None,
        }
    )
    table = enumerate_layouts(search_space(job)).table
    whole = (table.size(Axis.DATA) == 1) & (table.size(Axis.PIPELINE) == 1)
    table = table.take(whole)
    if not len(table):
        return None
    found = estimate(table, job, calibration=calibration)
    room = cache_room(setting(table, job, calibration))
    done = found.tokens_per_s * np.minimum(1.0, room / sequences) * (room >= 1.0)
    row = int(np.argmax(done))
    if not done[row] > 0.0:
        return None
    # A worker that prefills has as many prompts at once as groups; each takes its share of time.
    seconds = tokens / float(found.tokens_per_s[row]) if prefills else float(found.step_time_s[row])
    return _Worker(table.row(row), seconds, float(room[row]))


def _rounded(sequences: float) -> int:
    """Two digits: 1, 17, 230. Neighbouring batches take neighbouring times."""
    whole = max(1, round(sequences))
    unit: int = 10 ** max(0, len(str(whole)) - 2)
    return whole // unit * unit


def _keeps(split: SeparatePools, traffic: Traffic) -> bool:
    limits = ((split.ttft_s, traffic.ttft_limit_s), (split.tpot_s, traffic.tpot_limit_s))
    return all(limit is None or value <= limit for value, limit in limits)
