"""The base of every record that travels between rooms."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["Record"]


class Record(BaseModel):
    """A frozen pydantic model that refuses unknown fields.

    Frozen, because a fact that somebody downstream can edit is no longer a fact; unknown fields
    are errors, because a misspelt key in a file that a person edits must not be ignored. Validators
    are built when a class is first used: a diagnosis uses half of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)
