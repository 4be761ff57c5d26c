"""Table: what the planner's and the critic's models have before them, in the report's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prompts_agent.agents.critic.review import Review
from prompts_agent.agents.llm.analyst import ids_of_state
from prompts_agent.agents.llm.gate import Gate
from prompts_agent.agents.llm.ids import NAMES, Ids
from prompts_agent.agents.llm.rows import figures_of
from prompts_agent.agents.planner.board import Board
from prompts_agent.agents.planner.case import Case
from prompts_agent.agents.planner.draft import Draft
from prompts_agent.agents.planner.search import Found
from prompts_agent.agents.state import State
from prompts_agent.trace.profile import Fact
from prompts_agent.workload.workload import Workload

__all__ = ["Table", "table_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The drafts that passed. `ranks[i]` is the rank, from 0, that the ranking gave the i-th."""

    board: Board
    reviews: tuple[Review, ...]
    drafts: tuple[Draft, ...]
    ranks: tuple[int, ...]
    case: Case
    found: Found
    workload: Workload
    ids: Ids
    facts: tuple[Fact, ...]

    @property
    def names(self) -> dict[str, int]:
        """`p1` → place in `drafts`."""
        return {f"p{place + 1}": place for place in range(len(self.drafts))}

    @property
    def inputs(self) -> tuple[str, ...]:
        """What a question about the table holds: layouts, causes and recipes."""
        layouts = (str(draft.layout) for draft in self.drafts)
        return (*layouts, *(name for key, name in self.ids.real.items() if key[:5] != "fact:"))

    def gate(self, place: int, shown: Mapping[int, int] | None = None) -> Gate:
        """The gate for sentences about a draft; `shown` maps places to final ranks, from 0."""
        layouts = {
            f"layout:{name}": f"proposal {1 + (shown or {}).get(at, at)}"
            for name, at in self.names.items()
        }
        draft = self.drafts[place]
        others = {
            f"{name}:{figure.removeprefix('term:')}": value
            for name, at in self.names.items()
            for figure, value in figures_of(self.drafts[at]).items()
            if figure.startswith("term:")
        }
        return Gate(
            values=self.ids.values | figures_of(draft) | others | layouts,
            real=self.ids.real,
            names=NAMES,
            changes=draft.changes,
            moves=self.case.moves,
        )


def table_of(state: State, ranks: Sequence[int] | None = None) -> Table | None:
    """The table; None where nothing is proposed."""
    board, case, found = state.get("board"), state.get("case"), state.get("found")
    workload, profile = state["job"].workload, state["profile"]
    if board is None or case is None or found is None or workload is None:
        return None
    if state.get("abstained") is not None:
        return None
    pairs = zip(board.drafts, state["reviews"], strict=True)
    drafts = tuple(draft for draft, review in pairs if review.passed)
    if not drafts:
        return None
    return Table(
        board=board,
        reviews=tuple(state["reviews"]),
        drafts=drafts,
        ranks=tuple(ranks) if ranks is not None else tuple(range(len(drafts))),
        case=case,
        found=found,
        workload=workload,
        ids=ids_of_state(state),
        facts=profile.facts if profile is not None else (),
    )
