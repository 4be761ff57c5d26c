"""What every test may use: the real traces where they are at hand, a quiet environment always."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no failure: how fast something is lives in benchmarks/.
settings.register_profile("prompts", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("prompts")

REAL_TRACES = Path(__file__).resolve().parents[1].parent / "shared" / "traces"


@pytest.fixture(scope="session")
def real_traces() -> Path:
    """The directory of public traces; tests that use it carry the marker `real_traces`."""
    if not REAL_TRACES.is_dir():
        pytest.skip(f"no real traces: {REAL_TRACES} is not there")
    return REAL_TRACES


@pytest.fixture(autouse=True)
def _quiet_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model, no tracing service, no colour from the machine the tests run on."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    for name in [name for name in os.environ if name.startswith("PROMPTS_LLM_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
