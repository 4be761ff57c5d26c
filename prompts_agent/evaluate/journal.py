"""Journal: one JSON line a finished score, so that a killed evaluation goes on where it was."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from prompts_agent.evaluate.score import Score

__all__ = ["Journal"]


class Journal:
    """`scores.jsonl` of an output directory, or nothing where there is no directory.

    A score is found by its key, which covers the workload, the calibration and the code. Whatever
    is not a whole line (a kill) or not a score (another version) is scored again.
    """

    def __init__(self, directory: Path | None) -> None:
        self.path = None if directory is None else directory / "scores.jsonl"

    def scores(self) -> dict[str, Score]:
        """Every score that can be read, by key."""
        found: dict[str, Score] = {}
        if self.path is None or not self.path.is_file():
            return found
        for line in self.path.read_bytes().split(b"\n"):
            try:
                entry = json.loads(line)
                found[str(entry["key"])] = Score.model_validate_json(json.dumps(entry["score"]))
            except (ValueError, KeyError, TypeError, ValidationError):
                continue
        return found

    def append(self, key: str, score: Score) -> None:
        """Add one line, on a line of its own even after one that was cut."""
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        entry = {"key": key, "score": json.loads(score.model_dump_json())}
        with self.path.open("a+b") as file:
            start = b""
            if file.tell() > 0:
                file.seek(-1, 2)
                start = b"" if file.read(1) == b"\n" else b"\n"
            # Not sorted: methods keep the order in which tables show them.
            file.write(start + json.dumps(entry).encode() + b"\n")
