"""Lint: what today's compiler makes of each flag of a list, without compiling anybody's program."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from prompts_agent.compile.child import run_child
from prompts_agent.compile.flags.given import GivenFlag
from prompts_agent.compile.flags.request import FlagsRequest
from prompts_agent.compile.target import target_of
from prompts_agent.compile.toolchain import find_toolchain, how_to_get
from prompts_agent.errors import CompileError
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.hardware.chip import Chip
from prompts_agent.hardware.topology import Topology
from prompts_agent.record import Record

__all__ = ["FlagLint", "FlagVerdict", "LintedFlag", "lint_flags"]

_WORKER = "prompts_agent.compile.flags.worker"
_OTHERS = {"tpu": ("xla_gpu_", "xla_cpu_"), "gpu": ("xla_tpu_", "xla_cpu_", "xla_jf_", "tpu_")}
"""Prefixes of the options of another platform's compiler, by ours."""
_RUNTIME = ("megascale_", "jax_")


class FlagVerdict(StrEnum):
    """What becomes of a flag."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    IGNORED = "ignored"
    """Taken, or overwritten, and without effect."""
    NOT_CHECKED = "not checked"
    """No flag of the compiler's: a runtime reads it."""


class LintedFlag(Record):
    """A flag, its verdict, and why; `reason` is empty where it is accepted."""

    name: str
    value: str
    verdict: FlagVerdict
    reason: str = ""


class FlagLint(Record):
    """The verdicts in the order of the list, and which compiler gave them."""

    flags: tuple[LintedFlag, ...]
    toolchain: str
    topology: str
    wall_s: float

    def count(self, verdict: FlagVerdict) -> int:
        """Flags with this verdict."""
        return sum(flag.verdict is verdict for flag in self.flags)


def lint_flags(
    given: Sequence[GivenFlag], topology: Topology, *, timeout_s: float = 60.0
) -> FlagLint:
    """Offer `given` to the compiler for `topology`.

    Raises `CompileError` where it is not installed or gives no answer, `HardwareError` for a chip
    that nothing compiles for.
    """
    chip, target = find_chip(topology.chip), target_of(topology)
    toolchain = find_toolchain(chip)
    if toolchain is None:
        raise CompileError(
            f"flags for {topology}", rule="the compiler is not installed", cure=how_to_get(chip)
        )
    # The last of several is the one that counts.
    offered = {flag.name: flag.value for flag in given if not flag.name.startswith(_RUNTIME)}
    request = FlagsRequest(flags=offered, target=target, compiler=toolchain.compiler)
    with tempfile.TemporaryDirectory(prefix="prompts-flags-") as name:
        folder = Path(name)
        (folder / "request.json").write_text(request.model_dump_json(), encoding="utf-8")
        result = folder / "result.json"
        run = run_child(
            _WORKER, folder, done=result.exists, timeout_s=timeout_s, memory_limit_bytes=None
        )
        facts = json.loads(result.read_bytes()) if result.exists() else {}
    if "refused" not in facts:
        said = facts.get("error") or (run.stderr.strip().splitlines() or ["no answer"])[-1]
        raise CompileError(
            f"flags for {topology}", rule=f"the compiler gave no answer: {said[:300]}", cure=_CURE
        )
    return FlagLint(
        flags=_verdicts(given, facts["refused"], chip),
        toolchain=str(toolchain),
        topology=str(topology),
        wall_s=run.wall_s,
    )


_CURE = "Ask about fewer flags at a time; one of them may end the compiler's process."


def _verdicts(
    given: Sequence[GivenFlag], refused: dict[str, str], chip: Chip
) -> tuple[LintedFlag, ...]:
    times = Counter(flag.name for flag in given)
    found = []
    for flag in given:
        times[flag.name] -= 1
        verdict, reason = _verdict(flag, refused.get(flag.name), times[flag.name], chip)
        found.append(LintedFlag(name=flag.name, value=flag.value, verdict=verdict, reason=reason))
    return tuple(found)


def _verdict(flag: GivenFlag, error: str | None, later: int, chip: Chip) -> tuple[FlagVerdict, str]:
    if flag.name.startswith(_RUNTIME):
        return FlagVerdict.NOT_CHECKED, "A runtime reads it, not the compiler."
    if error is not None:
        return FlagVerdict.REFUSED, error.removeprefix("INVALID_ARGUMENT: ")
    if later:
        return FlagVerdict.IGNORED, "It is given again below, and the last one counts."
    if flag.name.startswith(_OTHERS[chip.platform]):
        return FlagVerdict.IGNORED, f"An option of another compiler: nothing on {chip.label}."
    return FlagVerdict.ACCEPTED, ""
