"""--help and --version load nothing heavy; and this test would notice if they did."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = (
    "chromadb",
    "google.protobuf",
    "jax",
    "jaxlib",
    "langchain",
    "langchain_core",
    "langgraph",
    "numpy",
    "pydantic",
    "rich",
    "xprof",
    "yaml",
)

PROBE = """
import json, sys
sys.argv = ["prompts", *json.loads(sys.argv[1])]
if sys.argv[1:2] == ["--heavy"]:
    import pydantic
    sys.argv = ["prompts", "--version"]
from prompts_agent.cli.main import main
try:
    main()
except SystemExit:
    print("loaded:" + json.dumps(sorted(sys.modules)))
"""


def loaded(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    names = json.loads(done.stdout.rsplit("loaded:", 1)[1])
    return {heavy for heavy in HEAVY if heavy in names}


@pytest.mark.parametrize("arguments", [("--help",), ("--version",)])
def test_nothing_heavy_is_loaded(arguments: tuple[str, ...]) -> None:
    assert loaded(*arguments) == set()


@pytest.mark.parametrize("command", ["diagnose", "plan", "doctor", "emit", "schema", "kb"])
def test_help_of_a_command_loads_at_most_what_typer_does(command: str) -> None:
    # typer itself asks pydantic about the types of a command's parameters.
    assert loaded(command, "--help") <= {"pydantic"}


def test_this_test_can_fail() -> None:
    assert loaded("--heavy") == {"pydantic"}
