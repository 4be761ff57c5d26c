from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from estimate_build import at, job, table
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts_agent.estimate import collectives
from prompts_agent.estimate.calibration import load_calibration
from prompts_agent.estimate.links import Links
from prompts_agent.estimate.setting import setting
from prompts_agent.layout.layout import Remat
from prompts_agent.layout.mesh import Axis

AXES = list(Axis)


def one_axis(axis: Axis, *, inside: float, across: float = 1.0, hops: float = 0.0) -> Links:
    """One row: 100 MB/s inside a domain, 10 MB/s across, no latency but a second a hop."""

    def row(value: float, other: float) -> np.ndarray:
        return np.array([[value if a is axis else other for a in AXES]])

    return Links(
        bandwidth_bytes_per_s=row(1e8, np.inf),
        hops=row(hops, 0.0),
        inside=row(inside, 1.0),
        across=row(across, 1.0),
        network_bandwidth_bytes_per_s=row(1e7, np.inf),
        hop_latency_s=1.0,
        network_latency_s=0.0,
        switched=True,
    )


def test_a_ring_all_gather_moves_all_but_its_own_part() -> None:
    # 1 GB over 8 ranks at 100 MB/s: 7/8 × 10 s.
    links = one_axis(Axis.FSDP, inside=8)
    seconds = collectives.all_gather_s(links, (Axis.FSDP,), np.array([1e9]))
    assert seconds[0] == pytest.approx(8.75)


def test_latency_is_a_hop_each() -> None:
    links = one_axis(Axis.FSDP, inside=8, hops=4)
    assert collectives.all_gather_s(links, (Axis.FSDP,), np.array([0.0]))[0] == pytest.approx(4.0)


def test_across_domains_each_device_sends_its_part_first() -> None:
    # 8 inside, 2 domains: 1 GB/8 × 1/2 ÷ 10 MB/s = 6.25 s, then 8.75 s inside.
    links = one_axis(Axis.DATA, inside=8, across=2)
    seconds = collectives.all_gather_s(links, (Axis.DATA,), np.array([1e9]))
    assert seconds[0] == pytest.approx(6.25 + 8.75)


def test_an_axis_of_one_takes_no_time() -> None:
    links = one_axis(Axis.DATA, inside=1)
    assert collectives.all_gather_s(links, (Axis.DATA,), np.array([1e9]))[0] == 0.0


def bytes_moved(setting_at, name: str, axis: Axis) -> float:  # type: ignore[no-untyped-def]
    """Bytes a device sends, from the seconds on links of 1 byte/s without latency."""
    n = len(setting_at.table)
    slow = replace(
        setting_at.links,
        bandwidth_bytes_per_s=np.ones((n, 6)),
        hop_latency_s=0.0,
        network_latency_s=0.0,
    )
    return float(getattr(collectives, name)(replace(setting_at, links=slow))[0])


def test_tensor_reduces_match_the_compiled_module() -> None:
    # XLA's module for llama2-7B, v5e 4x4, remat full: 22 GB of all-reduce operands a device for
    # fsdp 4 × tensor 4 and 87 GB for tensor 16. An all-reduce of n ranks sends 2(n-1)/n as much.
    four = bytes_moved(at(job(), {"fsdp": 4, "tensor": 4}, microbatch=4), "tensor_s", Axis.TENSOR)
    assert four / (2 * 3 / 4) == pytest.approx(22e9, rel=0.02)
    whole = bytes_moved(at(job(), {"tensor": 16}, microbatch=16), "tensor_s", Axis.TENSOR)
    assert whole / (2 * 15 / 16) == pytest.approx(87e9, rel=0.02)


def test_fsdp_gathers_match_the_compiled_module() -> None:
    # The same module for fsdp 16: 30 GB of all-gather and 15 GB of gradients, bf16.
    moved = bytes_moved(at(job(), {"fsdp": 16}), "fsdp_s", Axis.FSDP)
    assert moved / (15 / 16) == pytest.approx(45e9, rel=0.12)


def test_fsdp_repeats_for_every_microbatch() -> None:
    work = job()
    once = at(work, {"fsdp": 8, "tensor": 2}, microbatch=2)
    twice = at(work, {"fsdp": 8, "tensor": 2}, microbatch=1, gradient_accumulation=2)
    assert collectives.fsdp_s(once)[0] == pytest.approx(collectives.fsdp_s(twice)[0])
    assert twice.sizes.microbatches[0] == 2.0


def test_data_gradients_are_all_reduced_without_zero() -> None:
    # 16 copies, fp32: 2 × 15/16 × 4 bytes × P.
    setting_at = at(job(), {"data": 16}, zero_stage=0)
    held = np.array([4.0 * 6738415616])
    slow = replace(
        setting_at.links,
        bandwidth_bytes_per_s=np.ones((1, 6)),
        hop_latency_s=0.0,
        network_latency_s=0.0,
    )
    seconds = collectives.data_s(replace(setting_at, links=slow), held)
    assert seconds[0] == pytest.approx(2 * 15 / 16 * held[0])


def test_context_that_shards_weights_has_no_gradients_to_reduce() -> None:
    cut = at(job(), {"fsdp": 4, "context": 4})
    whole = at(job(), {"fsdp": 4, "context": 4}, weights_over_context=False)
    held = np.array([1e9])
    assert collectives.data_s(cut, held)[0] == 0.0
    assert collectives.data_s(whole, held)[0] > 0.0
    assert collectives.fsdp_s(cut)[0] != collectives.fsdp_s(whole)[0]


def test_context_moves_keys_and_values() -> None:
    # llama2-7B, 4 ranks, remat none: 32 layers × 2 passes × 3/4 × 4096 tokens × 2 × 4096 × 2 bytes.
    setting_at = at(job(), {"fsdp": 4, "context": 4}, remat=Remat.NONE)
    moved = bytes_moved(setting_at, "context_s", Axis.CONTEXT)
    assert moved == pytest.approx(32 * 2 * 0.75 * 4096 * 2 * 4096 * 2)


def test_experts_exchange_tokens_in_every_layer() -> None:
    # mixtral on one node, remat none: 4 exchanges × 32 layers × 7/8 of 4096 tokens' rows of 4096
    # × 2 bytes, each sent to the 8 × (1 - (7/8)²) = 1.875 ranks that hold its two experts.
    work = job("mixtral-8x7b", "h100:1x8", batch=8)
    setting_at = at(work, {"data": 8, "expert": 8}, expert_divides=True, remat=Remat.NONE)
    moved = bytes_moved(setting_at, "expert_s", Axis.EXPERT)
    assert moved == pytest.approx(4 * 32 * 7 / 8 * 4096 * 1.875 * 4096 * 2)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([2, 4, 8, 16]), st.floats(1.0, 1e12))
def test_an_all_gather_grows_with_ranks_and_bytes(ranks: int, size: float) -> None:
    def seconds(n: float, b: float) -> float:
        links = one_axis(Axis.FSDP, inside=n)
        return float(collectives.all_gather_s(links, (Axis.FSDP,), np.array([b]))[0])

    assert seconds(ranks, size) < seconds(2 * ranks, size) < size / 1e8
    assert seconds(ranks, size) <= seconds(ranks, 2 * size)


def test_links_apply_the_calibrated_share() -> None:
    # v5e 4x4 does not wrap: fsdp 16 spans two lines of 45 GB/s each.
    work = job()
    links = setting(table(work, {"fsdp": 16}), work, load_calibration()).links
    bandwidth, _, inside, _, _ = links.of(Axis.FSDP)
    assert bandwidth[0] == pytest.approx(
        load_calibration().constants("tpu").link_efficiency * 2 * 45e9
    )
    assert inside[0] == 16.0
