"""Which tests need a real compiler, and a cache that is this test run's own."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from prompts_agent.compile.toolchain import find_toolchain
from prompts_agent.hardware.catalog import find_chip


@pytest.fixture
def tpu_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Skips where libtpu is not installed; answers come from the compiler, not from a cache."""
    if find_spec("libtpu") is None:
        pytest.skip("no TPU compiler: libtpu is not installed (extra [tpu])")
    monkeypatch.setenv("PROMPTS_CACHE", str(tmp_path))


@pytest.fixture
def gpu_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Skips where no CUDA plugin is installed."""
    if find_toolchain(find_chip("h100")) is None:
        pytest.skip("no GPU compiler: jax-cuda13-pjrt is not installed (extra [gpu])")
    monkeypatch.setenv("PROMPTS_CACHE", str(tmp_path))
