"""Summary: scores as tables in which every figure of ours stands beside that of a baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from prompts_agent.evaluate.bootstrap import Figure
from prompts_agent.evaluate.score import ADVISOR, Score
from prompts_agent.evaluate.summary_rows import (
    adopted_rows,
    error_rows,
    fit_rows,
    free_rows,
    sweep_rows,
)
from prompts_agent.record import Record

__all__ = ["BY", "Line", "Section", "Table", "summary"]

BY: dict[str, Callable[[Score], str]] = {
    "chip": lambda score: score.tags.chip,
    "platform": lambda score: score.tags.platform,
    "phase": lambda score: score.tags.phase,
    "family": lambda score: score.tags.family,
    "framework": lambda score: score.tags.framework,
    "collection": lambda score: score.tags.collection,
    "experts": lambda score: score.tags.kind_of_model,
    "devices": lambda score: str(score.tags.devices),
}
"""What figures can be split by."""


class Line(Record):
    """One way of choosing or predicting, with a figure a column; None has no meaning there."""

    name: str
    figures: tuple[Figure | None, ...]


class Table(Record):
    """`kind` decides how figures are shown; the first line is ours, the others are baselines."""

    title: str
    columns: tuple[str, ...]
    kinds: tuple[Literal["percent", "number"], ...]
    lines: tuple[Line, ...]

    def beside_baselines(self) -> Table | None:
        """Without the columns in which only we have a figure; None where none is left."""
        kept = [
            k
            for k in range(len(self.columns))
            if any(line.figures[k] is not None for line in self.lines if line.name != ADVISOR)
            and any(line.figures[k] is not None for line in self.lines if line.name == ADVISOR)
        ]
        if not kept:
            return None
        lines = [
            Line(name=line.name, figures=tuple(line.figures[k] for k in kept))
            for line in self.lines
        ]
        return Table(
            title=self.title,
            columns=tuple(self.columns[k] for k in kept),
            kinds=tuple(self.kinds[k] for k in kept),
            lines=tuple(line for line in lines if any(f is not None for f in line.figures)),
        )


class Section(Record):
    """One part of the workloads."""

    name: str
    workloads: int
    tables: tuple[Table, ...]


def _trains(score: Score) -> bool:
    return score.tags.phase in ("pretrain", "posttrain")


def _serves(score: Score, kind: str) -> bool:
    return not _trains(score) and score.tags.kind_of_model == kind


def _on_eight(score: Score, kind: str) -> bool:
    return _serves(score, kind) and score.tags.devices == 8


def _of_two(score: Score) -> bool:
    """A choice between two layouts, which three proposals would always contain."""
    return score.kind == "sweep" and score.layouts == 2


_PARTS: tuple[tuple[str, Callable[[Score], bool]], ...] = (
    ("training", _trains),
    ("serving, dense, 8 devices", lambda s: _on_eight(s, "dense") and not _of_two(s)),
    ("serving, experts, 8 devices", lambda s: _on_eight(s, "experts") and not _of_two(s)),
    ("serving, dense, 8 devices, two layouts", lambda s: _on_eight(s, "dense") and _of_two(s)),
    ("serving, experts, 8 devices, two layouts", lambda s: _on_eight(s, "experts") and _of_two(s)),
    ("serving, other numbers of devices", lambda s: not _trains(s) and s.tags.devices != 8),
)


def summary(scores: Sequence[Score], by: Sequence[str] = ()) -> list[Section]:
    """A section for each part that has workloads, then one for each value of each key of `by`,
    training and serving apart.
    """
    sections = [_section(name, [s for s in scores if belongs(s)]) for name, belongs in _PARTS]
    for key in by:
        for phase, part in (
            ("training", [s for s in scores if _trains(s)]),
            ("serving", [s for s in scores if not _trains(s)]),
        ):
            for value in sorted({BY[key](score) for score in part}):
                members = [score for score in part if BY[key](score) == value]
                sections.append(_section(f"{phase}, {key} {value}", members))
    return [section for section in sections if section.tables]


def _section(name: str, scores: Sequence[Score]) -> Section:
    tables = (
        _table(
            "Layouts that experts adopted",
            (("first", "percent"), ("among three", "percent"), ("first with ties", "percent")),
            adopted_rows(scores),
        ),
        _table(
            "Measured sweeps",
            (
                ("regret of first", "percent"),
                ("regret of best of three", "percent"),
                ("first is best", "percent"),
                ("Kendall's tau", "number"),
            ),
            sweep_rows(scores),
        ),
        _table(
            "First choice of everything legal, on sweeps",
            (
                ("was measured", "percent"),
                ("failed", "percent"),
                ("regret where measured", "percent"),
            ),
            free_rows(scores),
        ),
        *(
            _table(
                f"Error of {quantity}",
                (
                    ("median", "percent"),
                    ("90% of rows", "percent"),
                    ("median, layouts in use", "percent"),
                    ("90%, layouts in use", "percent"),
                    ("within the 90% interval", "percent"),
                ),
                error_rows(scores, quantity),
            )
            for quantity in ("step time", "throughput", "ttft", "tpot")
        ),
        _table(
            "Memory",
            (
                ("misfits that are called so", "percent"),
                ("fits that are called so", "percent"),
                ("called misfits that are", "percent"),
            ),
            fit_rows(scores),
        ),
    )
    kept = tuple(shown for table in tables if (shown := table.beside_baselines()) is not None)
    return Section(name=name, workloads=len({s.cluster for s in scores}), tables=kept)


def _table(
    title: str,
    columns: Sequence[tuple[str, Literal["percent", "number"]]],
    rows: Iterable[tuple[str, Sequence[Figure | None]]],
) -> Table:
    return Table(
        title=title,
        columns=tuple(name for name, _ in columns),
        kinds=tuple(kind for _, kind in columns),
        lines=tuple(Line(name=name, figures=tuple(figures)) for name, figures in rows),
    )
