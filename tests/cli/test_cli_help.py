"""The help page is what the command line says, and spells what the package knows."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

from prompts_agent.agents.llm.nodes import ATTACK, WEIGH
from prompts_agent.cli import options
from prompts_agent.cli.progress import STAGES
from prompts_agent.emit.registry import FRAMEWORKS
from prompts_agent.workload.workload import Objective, Phase

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def make_help() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_help", DOCS / "make_help.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_help_page_is_fresh(make_help: ModuleType) -> None:
    page = (DOCS / "help.md").read_text(encoding="utf-8")
    if f"typer {make_help.typer_version()};" not in page:
        pytest.skip("written with another version of typer, which lays help out in its own way")
    assert page == make_help.help_page(), "run `python docs/make_help.py`"


def test_choices_are_those_of_the_package() -> None:
    assert get_args(options.PhaseName) == tuple(Phase)
    assert get_args(options.ObjectiveName) == tuple(Objective)
    assert get_args(options.FrameworkName) == tuple(FRAMEWORKS)


def test_stages_are_the_nodes_of_the_graph() -> None:
    from prompts_agent.agents.graph import NODES

    assert [stage for stage in STAGES if stage not in (WEIGH, ATTACK)] == list(NODES)
