"""Estimates: predicted step time and memory of every row of a LayoutTable."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Estimates"]

FloatColumn = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """Columns of one length n, a row per layout.

    `terms` holds what the step time and the memory are made of: name → seconds or bytes, float64[n]
    (`time.matmul_s`, `time.tensor_exposed_s`, `memory.weights_bytes`, …); each name is documented
    in the file that computes it. `low_s` and `high_s` bound the 90% interval that the calibration's
    residuals give. `tokens_per_s` is what is reached, or, where requests come at a rate, what could
    be; `load.utilisation` says how much of it is asked for.
    """

    step_time_s: FloatColumn
    low_s: FloatColumn
    high_s: FloatColumn
    hbm_bytes: FloatColumn
    hbm_low_bytes: FloatColumn
    hbm_high_bytes: FloatColumn
    tokens_per_s: FloatColumn
    terms: dict[str, FloatColumn]
    ttft_low_s: FloatColumn | None = None
    """Serving: the 90% interval of the time to the first token, `serving.ttft_s`."""
    ttft_high_s: FloatColumn | None = None

    def __len__(self) -> int:
        return int(self.step_time_s.shape[0])

    def row(self, index: int) -> Estimates:
        """One row alone."""
        part = slice(index, index + 1)
        columns: dict[str, Any] = {
            f.name: None if (column := getattr(self, f.name)) is None else column[part]
            for f in fields(self)
            if f.name != "terms"
        }
        terms = {name: column[part] for name, column in self.terms.items()}
        return Estimates(**columns, terms=terms)
