"""Runs the steps of `action.yml` as GitHub's runner does: expressions, `if`, environment files.

Only what the action uses is understood: dotted names, string literals, ==, !=, && and ||.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ACTION = Path(__file__).resolve().parents[2] / "action.yml"
_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
_HEREDOC = re.compile(r"(?ms)^(?P<name>\w+)<<(?P<end>\S+)\n(?P<value>.*?)\n?(?P=end)\n")
_PLAIN = re.compile(r"^(\w+)=(.*)$", re.MULTILINE)
_SKIPPED = ("install",)
"""The wheel is installed once, by the command under test's own environment."""


@dataclass
class Run:
    """One job of a workflow that uses the action."""

    workspace: Path
    temp: Path
    inputs: dict[str, str]
    event: dict[str, str]
    """GITHUB_* variables."""
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    log: str = ""

    @property
    def summary(self) -> str:
        path = self.temp / "summary.md"
        return path.read_text() if path.exists() else ""

    def go(self) -> int:
        """0, or the exit code of the step that failed."""
        shim = self.temp / "prompts/venv/bin/prompts"
        shim.parent.mkdir(parents=True)
        shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m prompts_agent "$@"\n')
        shim.chmod(0o755)
        action = yaml.safe_load(ACTION.read_text())
        defaults = {n: str(i.get("default", "")) for n, i in action["inputs"].items()}
        defaults["token"] = "a-token"
        self.inputs = defaults | self.inputs
        for step in action["runs"]["steps"]:
            if "uses" in step or step.get("id") in _SKIPPED or not self._wanted(step):
                continue
            self.ran.append(step["name"])
            code = self._step(step)
            if code:
                return code
        return 0

    def _wanted(self, step: dict[str, Any]) -> bool:
        return "if" not in step or bool(self.value(step["if"]))

    def _step(self, step: dict[str, Any]) -> int:
        output = self.temp / "output"
        output.write_text("")
        environment = {
            **os.environ,
            **self.event,
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(self.temp / "summary.md"),
            **{name: self.expand(text) for name, text in step.get("env", {}).items()},
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.workspace,
            env=environment,
            check=False,
            capture_output=True,
            text=True,
        )
        self.log += done.stdout + done.stderr
        if "id" in step:
            self.outputs[step["id"]] = _outputs(output.read_text())
        return done.returncode

    def expand(self, text: str) -> str:
        return _EXPRESSION.sub(lambda match: str(self.value(match[1])), str(text))

    def value(self, expression: str) -> Any:
        for symbol in ("||", "&&"):
            parts = expression.split(f" {symbol} ")
            if len(parts) > 1:
                result: Any = ""
                for part in parts:
                    result = self.value(part)
                    if bool(result) == (symbol == "||"):
                        break
                return result
        compared = re.fullmatch(r"(\S+) (==|!=) (\S+|'[^']*')", expression)
        if compared:
            same = self.value(compared[1]) == self.value(compared[3])
            return same == (compared[2] == "==")
        literal = re.fullmatch(r"'([^']*)'", expression)
        return literal[1] if literal else self._name(expression.split("."))

    def _name(self, path: list[str]) -> str:
        match path:
            case ["inputs", name]:
                return self.inputs[name]
            case ["steps", name, "outputs", output]:
                return self.outputs.get(name, {}).get(output, "")
            case ["github", name]:
                return self.event.get(f"GITHUB_{name.upper()}", "")
        raise AssertionError(path)


def _outputs(text: str) -> dict[str, str]:
    found = {match["name"]: match["value"] for match in _HEREDOC.finditer(text)}
    return found | dict(_PLAIN.findall(_HEREDOC.sub("", text)))
