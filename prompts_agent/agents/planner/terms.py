"""Terms of the estimate in sentences: what they are called, and which of them move."""

from __future__ import annotations

from prompts_agent.agents.planner.draft import Candidate
from prompts_agent.workload.workload import Objective

__all__ = ["MIN_TERM_SHARE", "is_part", "moved_terms", "term_words"]

MIN_TERM_SHARE = 0.001
"""Of the whole: a term that moves by less decides nothing."""

_TOTALS = frozenset({"serving.ttft_s", "serving.tpot_s"})
"""Sums of terms, not terms."""

_WORDS = {
    "matmul": "matmuls",
    "elementwise": "element-wise ops",
    "pipeline_exposed": "sending between pipeline stages",
    "launch": "waiting for launches",
    "bubble": "the pipeline's bubble",
    "optimizer": "the optimizer",
    "exposed": "waiting for collectives",
    "kv": "reading the KV cache",
    "prefill": "prefilling other prompts",
    "ttft": "time to first token (TTFT)",
    "tpot": "time per token (TPOT)",
}


def term_words(name: str) -> str:
    """`time.tensor_exposed_s` → `waiting for tensor`, for a sentence."""
    kind, _, rest = name.rpartition(".")
    bare = rest.removesuffix("_s").removesuffix("_bytes")
    if kind == "memory":
        return f"memory for {bare.replace('_', ' ')}"
    if kind == "serving" and bare == "weights":
        return "reading weights"
    if bare in _WORDS:
        return _WORDS[bare]
    if bare.endswith("_exposed"):
        return f"waiting for {bare.removesuffix('_exposed')}"
    return bare.replace("_", " ")


def is_part(name: str, objective: Objective) -> bool:
    """A part of what the objective asks for: of the step's time, or of the memory.

    `time.*_s` of training, `serving.*_s` of a step of serving.
    """
    if objective is Objective.FIT:
        return name.startswith("memory.")
    return name.startswith(("time.", "serving.")) and name not in _TOTALS


def moved_terms(
    candidate: Candidate,
    other: Candidate,
    objective: Objective,
    *,
    falls: bool,
    least: float = MIN_TERM_SHARE,
) -> list[tuple[str, float]]:
    """Terms that are smaller (or larger) than the other's, largest difference first."""
    predicted = other.predicted
    whole = predicted.hbm_bytes if objective is Objective.FIT else predicted.step_time_s
    moved = []
    for name, value in candidate.terms.items():
        if not is_part(name, objective) or name not in other.terms:
            continue
        gain = (other.terms[name] - value) * (1.0 if falls else -1.0)
        if gain > least * (whole or 0.0):
            moved.append((name, gain))
    # Names break ties, so that equal inputs give equal reports.
    return sorted(moved, key=lambda item: (-item[1], item[0]))
