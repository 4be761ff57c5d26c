"""Every error shows value, rule and cure, and stands in the tree that the module draws."""

from __future__ import annotations

import inspect

import pytest

from prompts_agent import errors
from prompts_agent.errors import ExitCode, InputError, PromptsError, TraceError


def classes() -> list[type[PromptsError]]:
    members = inspect.getmembers(errors, inspect.isclass)
    return [c for _, c in members if issubclass(c, PromptsError) and c is not PromptsError]


def test_a_message_holds_value_rule_and_cure() -> None:
    error = TraceError("x.pb", rule="the file has no bytes", cure="Copy it again.")
    assert str(error) == "x.pb: the file has no bytes. Copy it again."
    assert (error.value, error.rule, error.cure) == (
        "x.pb",
        "the file has no bytes",
        "Copy it again.",
    )


def test_the_drawn_tree_is_the_real_one() -> None:
    drawn = errors.__doc__ or ""
    for error in classes():
        assert f"── {error.__name__} " in drawn
    assert drawn.count("── ") == len(classes())


@pytest.mark.parametrize("error", classes())
def test_wrong_input_exits_with_2_and_what_cannot_be_told_with_3(
    error: type[PromptsError],
) -> None:
    others = {"NotDiagnosableError": 3, "CompileError": 3, "InternalError": 70}
    expected = others.get(error.__name__, 2)
    assert error.exit_code == expected
    assert issubclass(error, InputError) == (expected == ExitCode.BAD_INPUT)
