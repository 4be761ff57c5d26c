"""Reading the CSV files of published sweeps: cells as numbers, and a cure for a wrong file."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from prompts_agent.errors import InputError
from prompts_agent.model.spec import ModelSpec

__all__ = ["Row", "load_model", "number", "read_config", "read_rows", "whole"]

Row = Mapping[str, str]


def read_rows(path: Path, needed: tuple[str, ...]) -> list[dict[str, str]]:
    """The rows of one CSV file. Raises `InputError` where a needed column is missing."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
            columns = reader.fieldnames or ()
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            str(path), rule="a sweep is a readable CSV file", cure="Check the file."
        ) from error
    missing = [name for name in needed if name not in columns]
    if missing:
        raise InputError(
            f"{path}: columns {', '.join(columns) or 'none'}",
            rule=f"this sweep has the columns {', '.join(missing)}",
            cure="Give the directory of the published sweeps, unchanged.",
        )
    return rows


def number(row: Row, column: str) -> float | None:
    """A cell as a number; None where it is blank.

    Raises `InputError` for a cell that is not a finite number above or equal to zero.
    """
    text = (row[column] or "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < float("inf"):
        raise InputError(
            f"{column} {text!r}",
            rule="a cell is blank or a number of zero or more",
            cure="Mend the sweep's CSV file.",
        )
    return value


def whole(row: Row, column: str, default: int | None = None) -> int:
    """A cell that counts something. Raises `InputError` where it is blank without a default."""
    value = number(row, column)
    if value is None:
        if default is None:
            raise InputError(
                f"{column} is blank", rule="this cell counts something", cure="Mend the CSV file."
            )
        return default
    if value != int(value):
        raise InputError(
            f"{column} {value:g}", rule="this cell is a whole number", cure="Mend the CSV file."
        )
    return int(value)


def read_config(text: str) -> dict[str, Any]:
    """The JSON object of a `config_json` cell."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InputError(
            f"config_json {text[:60]!r}", rule="is a JSON object", cure="Mend the CSV file."
        ) from error
    if not isinstance(value, dict):
        raise InputError(
            f"config_json {text[:60]!r}", rule="is a JSON object", cure="Mend the CSV file."
        )
    return value


@cache
def load_model(name: str) -> ModelSpec:
    """A model of `evaluate/data/models.yaml`."""
    import yaml

    text = resources.files("prompts_agent.evaluate").joinpath("data/models.yaml").read_text("utf-8")
    return ModelSpec.model_validate({"name": name, **yaml.safe_load(text)[name]})
