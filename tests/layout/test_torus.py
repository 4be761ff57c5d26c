from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts_agent.hardware.topology import parse_topology
from prompts_agent.layout.factorisations import factorisations
from prompts_agent.layout.torus import Share, Torus, torus_of


def shares(torus: Torus, *sizes: int) -> list[Share]:
    """The shares of axes of these sizes, innermost first."""
    taken, found = (1,) * len(torus.dims), []
    for size in sizes:
        share = torus.take(taken, size)
        assert share is not None
        found.append(share)
        taken = tuple(t * f for t, f in zip(taken, share.factors, strict=True))
    return found


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([(16, 16), (4, 4), (8, 16), (4, 4, 8), (8, 8, 8), (2, 2, 4), (12, 4, 4)]),
    st.integers(0, 10**6),
)
def test_takes_the_dims_that_jax_takes(dims: tuple[int, ...], pick: int) -> None:
    mesh_utils = pytest.importorskip("jax._src.mesh_utils")
    torus = Torus(dims=dims, wrap=(True,) * len(dims), link_bandwidth_bytes_per_s=1.0)
    rows = factorisations(math.prod(dims), 4)
    mesh = tuple(int(n) for n in rows[pick % len(rows)])
    _, assignment = mesh_utils._create_device_mesh_for_nd_torus(
        np.arange(math.prod(dims)).reshape(dims), mesh, allow_split_physical_axes=True
    )
    taken = shares(torus, *reversed(mesh))
    assert [s.factors for s in reversed(taken)] == [tuple(c) for c in assignment.T.tolist()]


def test_v5e_pod() -> None:
    torus = torus_of(parse_topology("v5e:16x16"))
    assert torus is not None
    # 45 GB/s a link. A whole dim wraps: two directions, half way round is 8 hops.
    tensor, fsdp = shares(torus, 16, 16)
    assert (tensor.bandwidth_bytes_per_s, tensor.hops, tensor.whole) == (90e9, 8, True)
    assert fsdp == Share((1, 16), 90e9, 8, True)
    # Four neighbours are a line; the rest of that dim is a ring of 4 at stride 4.
    tensor, fsdp = shares(torus, 4, 64)
    assert tensor == Share((4, 1), 45e9, 3, False)
    assert fsdp == Share((4, 16), 90e9 / 4 + 90e9, 4 * 2 + 8, False)
    # All 256 devices: both dims at once.
    assert shares(torus, 256)[0] == Share((16, 16), 180e9, 16, True)


def test_small_slices_do_not_wrap() -> None:
    torus = torus_of(parse_topology("v5e:4x4"))
    assert torus is not None
    assert shares(torus, 16)[0] == Share((4, 4), 90e9, 6, True)


def test_two_devices_of_a_chip() -> None:
    torus = torus_of(parse_topology("tpu7x:4x4x4"))
    assert torus is not None
    assert torus.dims == (2, 4, 4, 4)
    # The pair has its own link of 600 GB/s; the rest then shares the chip's links of 100 GB/s.
    pair, plane = shares(torus, 2, 16)
    assert pair == Share((2, 1, 1, 1), 600e9, 1, True)
    assert plane == Share((1, 4, 4, 1), 2 * 200e9 / 2, 4, True)
    # An axis over both devices of each chip fetches each byte once a chip: nothing is halved.
    assert shares(torus, 128)[0] == Share((2, 4, 4, 4), 600e9, 7, True)


def test_what_does_not_fit_is_none() -> None:
    torus = Torus(dims=(4, 4), wrap=(False, False), link_bandwidth_bytes_per_s=1.0)
    assert torus.take((1, 1), 3) is None
    assert torus.take((4, 2), 4) is None


def test_gpus_have_no_torus() -> None:
    assert torus_of(parse_topology("h100:8x8")) is None
