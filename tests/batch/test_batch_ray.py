"""The same rows on a cluster, also when half of it dies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from batch_build import PATHS, comparable, items, request

from prompts_agent.batch.journal import Journal
from prompts_agent.batch.row import Row
from prompts_agent.batch.run import run_batch
from prompts_agent.errors import InputError
from prompts_agent.workers.outcome import Limits

pytest.importorskip("ray", reason="Ray is not installed")

# Ray's own code warns of its own future.
pytestmark = pytest.mark.filterwarnings("ignore")
LIMITS = Limits(timeout_s=60, memory_bytes=300 * 2**20)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes on this machine, one core each."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield from _cluster(monkeypatch)


def _cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("PYTHONPATH", PATHS)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "memory": 600 * 2**20, "object_store_memory": 80 * 2**20}
    found = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    found.second = found.add_node(**node)
    try:
        yield found
    finally:
        import ray

        ray.shutdown()
        found.shutdown()


def test_memory_that_no_node_has_is_refused(cluster: Any, tmp_path: Path) -> None:
    limits = Limits(memory_bytes=2**40)
    on_ray = request(tmp_path, executor="ray", ray_address=cluster.address, limits=limits)
    with pytest.raises(InputError, match=r"--memory 1\.02e"):
        run_batch(items(["a"]), on_ray)


def test_a_node_dies_and_no_row_is_lost(cluster: Any, tmp_path: Path) -> None:
    names = ["a", "crash", "damaged", "poor", *(f"slow{k}" for k in range(20))]
    seen: list[Row] = []

    def kill_one(row: Row) -> None:
        seen.append(row)
        if len(seen) == 6:
            cluster.remove_node(cluster.second, allow_graceful=False)

    on_ray = request(tmp_path / "ray", executor="ray", ray_address=cluster.address, limits=LIMITS)
    assert run_batch(items(names), on_ray, on_row=kill_one).finished
    rows = [entry for entry in Journal(tmp_path / "ray").entries() if isinstance(entry, Row)]
    assert len(rows) == len(names)
    assert run_batch(items(names), request(tmp_path / "local", limits=LIMITS)).finished
    assert comparable(tmp_path / "ray") == comparable(tmp_path / "local")
    assert len({os.fspath(p.name) for p in tmp_path.glob("ray/reports/*/*/*")}) == 21
