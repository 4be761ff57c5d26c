"""Proposals with the compiler beside those without: a compiler that is stood in for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from prompts_agent.agents.critic import compiler as critic_compiler
from prompts_agent.compile.outcome import CompiledFit, Outcome
from prompts_agent.compile.request import Until
from prompts_agent.compile.toolchain import Toolchain
from prompts_agent.evaluate import compiled
from prompts_agent.evaluate.compiled import CompiledCase, compare_compiled, compiled_lines
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.workload import Workload
from prompts_agent.workload.yaml import load_workload

CASES = Path(__file__).parents[2] / "workloads"
FAKE = Toolchain(platform="tpu", compiler="libtpu", versions={"jax": "0", "libtpu": "0"})


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Layout]:
    """What a compiler was asked that has no room for context axes."""
    seen: list[Layout] = []

    def answers(jobs: Sequence[tuple[Layout, Workload]], *, until: Until) -> list[CompiledFit]:
        assert until is Until.MEMORY
        return [answer(layout) for layout, _ in jobs]

    def answer(layout: Layout) -> CompiledFit:
        seen.append(layout)
        fits = layout.mesh.size(Axis.CONTEXT) == 1
        need = 10 * 2**30 if fits else 400 * 2**30
        return CompiledFit(
            outcome=Outcome.FITS if fits else Outcome.DOES_NOT_FIT,
            compiles=fits,
            fits=fits,
            hbm_need_bytes=need,
            hbm_limit_bytes=90 * 2**30,
            # As `compile.fit` words it.
            reason=""
            if fits
            else "The compiler refuses it: 400.00 GiB of HBM a device, and v5p has 90.00 GiB.",
            toolchain="a compiler",
        )

    for module in (critic_compiler, compiled):
        monkeypatch.setattr(module, "find_toolchain", lambda _chip: FAKE)
    monkeypatch.setattr(critic_compiler, "fit_many", answers)
    return seen


def test_what_does_not_fit_is_counted_and_replaced(asked: list[Layout]) -> None:
    # Case 1 of the paper: 512 v5p, where the batch forces tensor or context on every mesh.
    workload = load_workload(CASES / "prompts-case-1.yaml")
    (case,) = compare_compiled([workload])
    assert case.place_without == 1
    assert case.first == 3
    assert case.first_misfits >= 1
    assert case.misfits >= case.first_misfits
    assert (case.refused, case.first_refused) == (0, 0)
    assert case.proposed == case.compiled
    assert any(layout.mesh.size(Axis.CONTEXT) > 1 for layout in asked)


def test_a_stopped_run_goes_on(asked: list[Layout], tmp_path: Path) -> None:
    workload = load_workload(CASES / "prompts-case-1.yaml")
    first = compare_compiled([workload], tmp_path)
    count = len(asked)
    assert compare_compiled([workload], tmp_path) == first
    assert len(asked) == count


def test_only_workloads_with_a_compiler_are_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    known = [load_workload(CASES / f"prompts-case-{k}.yaml") for k in (1, 2, 3, 4)]
    monkeypatch.setattr(compiled, "find_toolchain", lambda _chip: FAKE)
    assert len(compiled.with_compiler(known)) == 4
    assert [one.name for one in compiled.with_compiler(known, 2)] == [known[0].name, known[2].name]
    monkeypatch.setattr(compiled, "find_toolchain", lambda _chip: None)
    assert compiled.with_compiler(known) == []


def test_what_the_critic_s_own_rules_turn_away_is_no_refusal() -> None:
    assert not compiled._by_compiler(("memory at most 17.3 GB > 16.9 GB usable",))
    assert compiled._by_compiler(("The compiler refuses it: No rule for that.",))


def case(**values: object) -> CompiledCase:
    return CompiledCase.model_validate(
        {
            "workload": "w",
            "place_without": 1,
            "place_with": 2,
            "first": 3,
            "first_misfits": 1,
            "first_refused": 0,
            "misfits": 2,
            "refused": 0,
            "proposed": 3,
            "compiled": 3,
        }
        | values
    )


def test_the_table() -> None:
    other = case(workload="v", place_with=1, first_misfits=0, first_refused=1, compiled=2)
    lines = list(compiled_lines([case(), other]))
    assert lines[0].startswith("2 workloads")
    assert lines[2].split() == ["adopted", "first", "100.0%", "50.0%"]
    # 5 of the 6 in the end compiled; of those without it, what had no answer is not known.
    assert lines[4].split() == ["proposals", "that", "compile", "and", "fit", "83.3%"]
    assert "found 1 too large and refused 1" in lines[5]
    assert "1 got no answer" in lines[6]
    assert lines[7].startswith("Change of first: -50.0 points")


def test_no_compiler_says_how_to_get_one() -> None:
    assert "prompts verify" in next(iter(compiled_lines([])))
