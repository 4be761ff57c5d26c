"""Every term that an estimate returns has a formula and a source, and no formula is idle."""

from __future__ import annotations

import pytest
from estimate_build import job, layout, table

from prompts_agent.estimate.calibration import Constants, load_calibration
from prompts_agent.estimate.estimator import estimate
from prompts_agent.estimate.formula import TABLES, formula_of, is_total
from prompts_agent.estimate.setting import constants_key
from prompts_agent.estimate.symbols import symbols
from prompts_agent.workload.workload import Phase, Precision


@pytest.mark.parametrize("phase", list(Phase))
def test_the_terms_of_a_phase_are_those_of_its_table(phase: Phase) -> None:
    work = job("mixtral-8x7b", "h100:1x8", batch=64, phase=phase)
    found = estimate(table(work, {"tensor": 4, "data": 2}), work)
    terms = {name for name in found.terms if not name.startswith("load.")}
    assert terms == set(TABLES[phase])


@pytest.mark.parametrize("phase", list(Phase))
def test_every_formula_has_words_a_source_and_known_constants(phase: Phase) -> None:
    for name, formula in TABLES[phase].items():
        assert formula.text, name
        assert formula.source, name
        assert set(formula.constants) <= set(Constants.model_fields), name


def test_constants_that_formulas_name_by_name_are_listed() -> None:
    for formulas in TABLES.values():
        for name, formula in formulas.items():
            words = set(formula.text.replace(",", " ").replace(";", " ").replace("(", " ").split())
            named = words & set(Constants.model_fields)
            assert named <= set(formula.constants), name


def test_a_term_of_another_version_has_none() -> None:
    assert formula_of("time.gremlins_s", Phase.PRETRAIN) is None
    assert is_total("serving.tpot_s")
    assert not is_total("serving.kv_s")


def test_symbols_are_the_sizes_that_the_formulas_see() -> None:
    # 8 sequences of 4096 tokens in 2 microbatches of 1 over 4 copies: 4096 tokens each.
    work = job("llama2-7b", "v5e:4x4", batch=8)
    one = layout(work, {"data": 4, "tensor": 4}, microbatch=1, gradient_accumulation=2)
    constants = load_calibration().constants(*constants_key(work))
    found = {symbol.name: symbol for symbol in symbols(one, work, constants)}
    assert found["T"].value == 4096
    assert (found["t"].value, found["d"].value, found["m"].value) == (4, 4, 2)
    assert found["peak"].value == 197e12  # v5e data sheet, bf16
    assert found["L"].value == 32
    assert all(symbol.source for symbol in found.values())
    assert {"link(t)", "link(d)"} <= set(found)


def test_symbols_of_serving_name_the_sequences_of_a_replica() -> None:
    work = job("llama3-8b", "h100:1x8", batch=64, phase=Phase.DECODE, precision=Precision())
    one = layout(work, {"data": 2, "tensor": 4})
    constants = load_calibration().constants(*constants_key(work))
    found = {symbol.name: symbol for symbol in symbols(one, work, constants)}
    assert found["b"].value == 32
    assert "m" not in found
