"""Ids: what a model is given in place of names that somebody else chose.

Trace and recipe files are written by others. Facts keep an id that is made of this package's own
words alone and get a number otherwise; findings, recipes and layouts always get one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from prompts_agent.agents.finding import Finding
from prompts_agent.agents.placeholders import format_fact, scrub
from prompts_agent.hardware.catalog import chip_names
from prompts_agent.knowledge.evidence import Evidence
from prompts_agent.layout.mesh import Axis
from prompts_agent.trace.profile import Fact

__all__ = ["NAMES", "Ids", "ids_of"]

MOST_FACTS = 40
"""Facts of one question: those that findings rest on come first."""

NAMES = frozenset(
    {"bf16", "fp16", "fp32", "fp8", "fp4", "int8", "int4", "1f1b", "2d", "3d", "l2"}
) | frozenset(name.lower() for name in chip_names())

_OWN_WORD = re.compile(
    r"accelerator|achieved|all|axis|bandwidth|between|bound|breakdown|bubble|busy|bytes|capacity"
    r"|ceiling|collective|compile|compute|count|derived|devices?|efficiency|excess|exposed|flops"
    r"|gathers?|hbm|heads|hosts?|idle|infeed|input|job|kind|kv|largest|launch|limit|logits|main"
    r"|matmul|max|median|memory|mesh|mfu|min|model|ms|op|ops|outfeed|peak|per|period|permute"
    r"|planned|programs?|ratio|recompilations|recompile|reduce|replicated|reserved|roofline"
    r"|scatter|self|share|slowest|small|split|spread|stages?|steps?|straggler|sum|times?|to|total"
    r"|trace|transfer|used|vocab|waits?|weights"
    rf"|{'|'.join(axis.value for axis in Axis)}"
)
_PART = re.compile(r"[._\-]")
_NUMBERED = re.compile(r"(?:device|op|axis|stage)?\d{1,4}")
_FIRST = ("step_time", "step_period", "mfu", "breakdown.", "hbm.", "collective.", "derived.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ids:
    """Public id → real thing, for one run; the same for the same state."""

    facts: dict[str, Fact] = field(default_factory=dict)
    findings: dict[str, Finding] = field(default_factory=dict)
    recipes: dict[str, Evidence] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, str]:
        """Every placeholder and the text that code puts in its place."""
        found = {f"fact:{name}": format_fact(fact) for name, fact in self.facts.items()}
        found |= {f"cause:{name}": f"“{_short(item)}”" for name, item in self.findings.items()}
        found |= {f"recipe:{name}": f"“{scrub(item.title)}”" for name, item in self.recipes.items()}
        return found

    @property
    def real(self) -> dict[str, str]:
        """`recipe:r1` → the recipe's own id, and so on."""
        found = {f"fact:{name}": fact.id for name, fact in self.facts.items()}
        found |= {f"cause:{name}": item.id for name, item in self.findings.items()}
        found |= {f"recipe:{name}": item.recipe_id for name, item in self.recipes.items()}
        return found

    def fact_rows(self) -> list[dict[str, str]]:
        """Facts as the model sees them: id, value, and what an id that is a number is about."""
        rows = []
        for name, fact in self.facts.items():
            row = {"id": name, "value": format_fact(fact)}
            if name != fact.id:
                row["about"] = _about(fact.id)
            rows.append(row)
        return rows

    def fact_id(self, real: str) -> str | None:
        """The public id of a fact; None where it is not among those given."""
        return next((name for name, fact in self.facts.items() if fact.id == real), None)


def ids_of(facts: Sequence[Fact], findings: Sequence[Finding], evidence: Iterable[Evidence]) -> Ids:
    """The ids of a run. `findings` have their placeholders filled in."""
    chosen = _chosen(facts, findings)
    numbered = 0
    named: dict[str, Fact] = {}
    for fact in chosen:
        if _is_own(fact.id):
            named[fact.id] = fact
        else:
            numbered += 1
            named[f"f{numbered}"] = fact
    return Ids(
        facts=named,
        findings={f"cause{number}": item for number, item in enumerate(findings, 1)},
        recipes={f"r{number}": item for number, item in enumerate(evidence, 1)},
    )


def _chosen(facts: Sequence[Fact], findings: Sequence[Finding]) -> list[Fact]:
    cited = {fact_id for finding in findings for fact_id in finding.fact_ids}
    # Text of a trace stays here, but for the name of a chip that the catalogue knows.
    usable = [
        fact
        for fact in facts
        if not isinstance(fact.value, str) or (fact.id == "device.kind" and fact.value in NAMES)
    ]

    def place(fact: Fact) -> tuple[int, int]:
        starts = [n for n, start in enumerate(_FIRST) if fact.id.startswith(start)]
        return (0 if fact.id in cited else 1, starts[0] if starts else len(_FIRST))

    return sorted(usable, key=place)[:MOST_FACTS]


def _is_own(fact_id: str) -> bool:
    return all(
        _OWN_WORD.fullmatch(part) or _NUMBERED.fullmatch(part) for part in _PART.split(fact_id)
    )


def _about(fact_id: str) -> str:
    """The id with every word that is not our own left out."""
    parts = re.split(r"([._\-])", fact_id)
    kept = [p if p in "._-" or _is_own(p) else "…" for p in parts]
    return re.sub(r"…(?:[._\-]?…)*", "…", "".join(kept))


def _short(finding: Finding) -> str:
    title = scrub(finding.title)
    return title[:1].lower() + title[1:] if title[:2].istitle() else title
