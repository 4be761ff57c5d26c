"""Is a language model worth it: the agents on the same workloads, with one and without."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from prompts_agent.agents.graph import run_plan
from prompts_agent.agents.llm.config import LlmConfig
from prompts_agent.agents.llm.numbers import numbers_of
from prompts_agent.agents.llm.session import Session, endpoint_of
from prompts_agent.agents.report import Report
from prompts_agent.agents.request import DiagnoseRequest
from prompts_agent.errors import OutputError
from prompts_agent.evaluate.rubric import faults
from prompts_agent.evaluate.score_adopted import place_in
from prompts_agent.record import Record
from prompts_agent.workload.workload import Workload

__all__ = ["Case", "Comparison", "compare", "comparison_lines", "write_comparison"]


class Case(Record):
    """One workload both ways. A place is the adopted mesh's among the proposals, from 1."""

    workload: str
    place_without: int | None
    place_with: int | None
    seconds_without: float
    seconds_with: float
    calls: int
    tokens: int
    reordered: bool
    same_numbers: bool
    faults_without: int
    """Of the report's prose, by the rubric."""
    faults_with: int
    refused: dict[str, int]
    """Agent and reason → how often."""
    failures: tuple[str, ...]


class Comparison(Record):
    """All of them."""

    model: str
    endpoint: str
    cases: tuple[Case, ...]
    interrupted: bool = False
    """Somebody stopped it before the last workload."""


def compare(
    workloads: Sequence[Workload],
    config: LlmConfig,
    on_case: Callable[[int, int], None] = lambda _done, _all: None,
    session_of: Callable[[LlmConfig], Session] = Session,
) -> Comparison:
    """Plans every workload that names an adopted layout, which the agents do not see.

    Each has a budget of its own. An interrupt ends it with the workloads that are done.
    """
    known = [one for one in workloads if one.adopted is not None]
    if known:
        run_plan(_request(known[0]))  # what the first run loads is in no case's seconds
    cases: list[Case] = []
    try:
        for done, workload in enumerate(known):
            on_case(done, len(known))
            cases.append(_case(workload, session_of(config)))
    except KeyboardInterrupt:
        if not cases:
            raise
    return Comparison(
        model=config.model,
        endpoint=endpoint_of(config),
        cases=tuple(cases),
        interrupted=len(cases) < len(known),
    )


def _request(workload: Workload) -> DiagnoseRequest:
    hidden = workload.model_copy(update={"adopted": None, "alternatives": ()})
    return DiagnoseRequest(workload=hidden, verify="none")


def _case(workload: Workload, session: Session) -> Case:
    request = _request(workload)
    started = time.perf_counter()
    without = run_plan(request)
    middle = time.perf_counter()
    found = run_plan(request, None, session)
    ended = time.perf_counter()
    spent, opinion = session.budget.spent(), found.opinion
    return Case(
        workload=workload.name,
        place_without=_place(without, workload),
        place_with=_place(found, workload),
        seconds_without=middle - started,
        seconds_with=ended - middle,
        calls=spent.calls,
        tokens=spent.input_tokens + spent.output_tokens,
        reordered=opinion is not None and opinion.order is not None,
        same_numbers=numbers_of(found) == numbers_of(without),
        faults_without=len(faults(without)),
        faults_with=len(faults(found)),
        refused={f"{node}: {why}": count for (node, why), count in session.refused.items()},
        failures=tuple(session.failures),
    )


def _place(report: Report, workload: Workload) -> int | None:
    return place_in([proposal.layout for proposal in report.proposals], workload)


def write_comparison(found: Comparison, directory: Path) -> None:
    """`with-model.json`, replacing an older one. Raises `OutputError`."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        text = found.model_dump_json(indent=1) + "\n"
        (directory / "with-model.json").write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(
            str(directory), rule=error.strerror or "cannot be written", cure="Give another -o DIR."
        ) from error


def comparison_lines(found: Comparison) -> list[str]:
    """A small table, then what was turned away and how often."""
    cases = found.cases
    if not cases:
        return ["No workload names an adopted layout: there is nothing to compare."]
    count = len(cases)
    without = [case.place_without for case in cases]
    placed = [case.place_with for case in cases]
    lines = [
        f"{found.model} at {found.endpoint}, {count} workloads",
        f"{'':28}{'without':>10}{'with':>10}",
        f"{'adopted first':28}{_share(without, 1):>10}{_share(placed, 1):>10}",
        f"{'adopted among three':28}{_share(without, 3):>10}{_share(placed, 3):>10}",
        f"{'seconds a case':28}{_mean(c.seconds_without for c in cases):>10}"
        f"{_mean(c.seconds_with for c in cases):>10}",
        f"{'calls a case':28}{'0.0':>10}{_mean(c.calls for c in cases):>10}",
        f"{'tokens a case':28}{'0':>10}{sum(c.tokens for c in cases) / count:>10,.0f}",
        f"{'prose without a fault':28}{_clean(c.faults_without for c in cases):>10}"
        f"{_clean(c.faults_with for c in cases):>10}",
        f"the same numbers in {sum(c.same_numbers for c in cases)} of {count}, "
        f"another order in {sum(c.reordered for c in cases)}",
    ]
    refused: Counter[str] = Counter()
    for case in cases:
        refused.update(case.refused)
    lines += [f"turned away, {name}: {times}" for name, times in sorted(refused.items())]
    failures = Counter(line.split(":")[1].strip() for case in cases for line in case.failures)
    lines += [f"no answer, {name}: {times}" for name, times in sorted(failures.items())]
    return lines


def _share(places: Sequence[int | None], most: int) -> str:
    hits = sum(place is not None and place <= most for place in places)
    return f"{100 * hits / len(places):.0f} %"


def _clean(counts: Iterable[int]) -> str:
    found = [count == 0 for count in counts]
    return f"{100 * sum(found) / len(found):.0f} %"


def _mean(values: Iterable[float]) -> str:
    numbers = list(values)
    return f"{sum(numbers) / len(numbers):.1f}"
