"""Rubric: whether a report's prose covers what was found, names its price, and invents nothing.

It reads the report alone, as a suspicious engineer would: every quantity in a sentence must be one
that the report holds as data, or the sum, difference or ratio of such. No model judges it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations, permutations

from prompts_agent.agents.critic.claims import contradicted
from prompts_agent.agents.opinion import Opinion
from prompts_agent.agents.placeholders import format_fact
from prompts_agent.agents.report import Proposal, Report
from prompts_agent.layout.layout import PipelineSchedule
from prompts_agent.layout.mesh import Axis
from prompts_agent.units import format_bytes, format_flops, format_seconds

__all__ = ["QUANTITY", "faults", "quantities", "sourced"]

WORTH_A_WORD = 0.05
"""Share of a step from which a finding must be answered by a proposal or by the report itself."""

QUANTITY = re.compile(
    r"(?<![\w.,])(\d[\d,]*(?:\.\d+)?)"
    r"(?:\s?(×|%|ns|µs|ms|s|PB|TB|GB|MB|kB|B|tokens/s|[TPGE]FLOP(?:/s)?)(?![\w]))?"
    r"(?![\w])"
)
_PLACES = re.compile(rf"\b(?:{'|'.join(Axis)}|proposal) \d+\b(?![.,]\d)")
"""`fsdp 16`, `proposal 2`: a degree or a place, which the critic checks with the layout itself."""
_TITLES = re.compile(r"“.*?”")
_NAMES = re.compile(
    # Quotations and code; words with digits in them (bf16, 1f1b); paths, but not GB/s or tokens/s.
    r"[“\"].*?[”\"]|`.*?`"
    r"|\b\w*[a-z_-]\d[\w.-]*|\b\d+[a-z]\w*"
    r"|(?<!tokens)[\w.-]+/(?!s\b)[\w./-]*"
)


def faults(report: Report) -> tuple[str, ...]:
    """Everything that is wrong with the prose, a line each; empty for a report that passes."""
    return (
        *_uncovered(report),
        *_unsourced(report),
        *_without_price(report),
        *_contradictions(report),
    )


def _uncovered(report: Report) -> Iterator[str]:
    """A finding rests on facts that are there, says how much and what to do about it; one of weight
    that a mesh could cure is answered, or the report says why nothing is proposed.
    """
    facts = {fact.id for fact in report.profile.facts} if report.profile is not None else set()
    cited = {name for p in report.proposals for reason in p.reasons for name in reason.fact_ids}
    prices = " ".join(text for p in report.proposals for text in p.tradeoffs)
    for finding in report.findings:
        if not finding.fact_ids or not set(finding.fact_ids) <= facts:
            yield f"finding {finding.id}: its facts are not in the report"
        if not finding.detail.strip():
            yield f"finding {finding.id}: nothing is said about it"
        heavy = finding.is_sharding and (finding.share or 0.0) >= WORTH_A_WORD
        answered = set(finding.fact_ids) & cited or finding.title in prices
        if heavy and report.proposals and not answered and finding.axis is not None:
            moved = {c.what for p in report.proposals for c in p.changes}
            if finding.axis in moved:
                yield f"finding {finding.id}: {finding.axis} changes and no sentence says why"


def _without_price(report: Report) -> Iterator[str]:
    for proposal in report.proposals:
        if not proposal.tradeoffs:
            yield f"proposal {proposal.rank}: names no trade-off"
        if not proposal.reasons:
            yield f"proposal {proposal.rank}: gives no reason"


def _contradictions(report: Report) -> Iterator[str]:
    said = report.opinion
    for proposal in report.proposals:
        of_model = [text for _, text in _said_of(said, proposal.rank)] if said else []
        for text in (*_sentences_of(proposal), *of_model):
            # The title of a recipe is about other jobs.
            for claim in contradicted(_TITLES.sub(" ", text), proposal.changes):
                yield f"proposal {proposal.rank}: {claim}"


def _unsourced(report: Report) -> Iterator[str]:
    known = quantities(report)
    for where, text in _prose(report):
        for number, unit in sourced(text, known):
            yield f"{where}: {number}{unit and ' ' + unit} has no source in: {text[:160]}"


def sourced(text: str, known: Mapping[str, frozenset[str]]) -> Iterator[tuple[str, str]]:
    """The quantities of `text` that are not known, as (number, unit)."""
    bare = _NAMES.sub(" ", _PLACES.sub(" ", text))
    for match in QUANTITY.finditer(bare):
        number, unit = match[1].replace(",", ""), match[2] or ""
        if number not in known.get(unit, frozenset()):
            yield match[1], unit


def _prose(report: Report) -> Iterator[tuple[str, str]]:
    for finding in report.findings:
        yield f"finding {finding.id}", finding.title
        yield f"finding {finding.id}", finding.detail
    for proposal in report.proposals:
        for text in _sentences_of(proposal):
            yield f"proposal {proposal.rank}", text
    if report.abstained is not None:
        yield "abstention", report.abstained.text
    if report.opinion is not None:
        yield from _said(report.opinion)
        for proposal in report.proposals:
            yield from _said_of(report.opinion, proposal.rank)


def _said(opinion: Opinion) -> Iterator[tuple[str, str]]:
    """The model's sentences about the job."""
    for said in (*opinion.story, *opinion.capture_next):
        yield "model", said.text
    for judged in opinion.evidence:
        yield "model on a recipe", judged.reason
    for other in opinion.considered:
        if other.reason is not None:
            yield "model on another layout", other.reason
    if opinion.order is not None:
        yield "model on the order", opinion.order.reason


def _said_of(opinion: Opinion, rank: int) -> Iterator[tuple[str, str]]:
    """The model's sentences about one proposal."""
    for said in opinion.cases.get(rank, ()):
        yield f"model on proposal {rank}", said.text
    for attack in opinion.attacks:
        if attack.rank == rank:
            yield f"model against proposal {rank}", attack.text
            if attack.falsified_by is not None:
                yield f"model against proposal {rank}", attack.falsified_by


def _sentences_of(proposal: Proposal) -> tuple[str, ...]:
    return (*(reason.text for reason in proposal.reasons), *proposal.tradeoffs)


def quantities(report: Report) -> dict[str, frozenset[str]]:
    """Unit → the numbers, as printed, that the report holds or that follow from what it holds."""
    texts = [*_facts(report), *_predictions(report), *_gaps(report), *_layouts(report)]
    found: dict[str, set[str]] = {}
    for text in texts:
        for match in QUANTITY.finditer(text):
            found.setdefault(match[2] or "", set()).add(match[1].replace(",", ""))
    return {unit: frozenset(numbers) for unit, numbers in found.items()}


def _facts(report: Report) -> Iterator[str]:
    for fact in report.profile.facts if report.profile is not None else ():
        yield format_fact(fact)
    for finding in report.findings:
        if finding.seconds_per_step is not None:
            yield format_seconds(finding.seconds_per_step)
        if finding.share is not None:
            yield f"{100 * finding.share:.1f} %"


def _predictions(report: Report) -> Iterator[str]:
    for terms in _all_terms(report):
        for name, value in terms.items():
            yield _printed(name, value)
    baseline = report.baseline
    if baseline is not None:
        yield from map(
            format_seconds,
            filter(None, (baseline.predicted_step_time_s, baseline.measured_step_time_s)),
        )
        if baseline.hbm_bytes is not None:
            yield format_bytes(baseline.hbm_bytes)
    for proposal in report.proposals:
        predicted = proposal.predicted
        times = (predicted.step_time_s, predicted.low_s, predicted.high_s)
        yield from (format_seconds(value) for value in times if value is not None)
        ratios = (predicted.speedup, predicted.speedup_low, predicted.speedup_high)
        yield from (f"{value:.2f}×" for value in ratios if value is not None)
        yield from map(format_bytes, (predicted.hbm_bytes, predicted.hbm_limit_bytes))
        if predicted.tokens_per_s is not None:
            yield f"{predicted.tokens_per_s:,.0f} tokens/s"
        yield from _headroom(proposal)


def _headroom(proposal: Proposal) -> Iterator[str]:
    """The share of memory above the upper estimate, which is among the checks: to a digit either
    way, because the checks print rounded values.
    """
    limit = proposal.predicted.hbm_limit_bytes
    for check in proposal.verdict.checks:
        for match in re.finditer(r"memory at most ([\d.]+) (GB|MB|TB)", check):
            scale = {"MB": 1e6, "GB": 1e9, "TB": 1e12}[match[2]]
            free = 100 * (1 - float(match[1]) * scale / limit)
            yield from (f"{round(free) + step} %" for step in (-1, 0, 1))


def _all_terms(report: Report) -> list[dict[str, float]]:
    found = [proposal.terms for proposal in report.proposals]
    return found if report.baseline is None else [*found, report.baseline.terms]


def _printed(name: str, value: float) -> str:
    if name.endswith("_bytes"):
        return format_bytes(value)
    return format_seconds(value) if name.endswith("_s") else format_flops(value)


def _gaps(report: Report) -> Iterator[str]:
    """What two layouts differ by: all that is saved, all that is lost, the share of the whole."""
    for one, two in permutations(_all_terms(report), 2):
        for suffix, form in (("_bytes", format_bytes), ("_s", format_seconds)):
            yield from map(form, _moved(one, two, suffix))
    for left, right in combinations(report.proposals, 2):
        for cost in ("step_time_s", "hbm_bytes", "tokens_per_s"):
            values = sorted(
                v for p in (left, right) if (v := getattr(p.predicted, cost)) is not None
            )
            if len(values) == 2 and values[0] > 0:
                yield f"{100 * (values[1] / values[0] - 1):.1f} %"


def _moved(one: Mapping[str, float], two: Mapping[str, float], suffix: str) -> tuple[float, float]:
    """Sums of what `one` has less and more of than `two`, by term; a term that moves by less than a
    thousandth of the whole decides nothing and is left out of such a sum.
    """
    names = [n for n in one if n in two and n.endswith(suffix) and _is_part(n)]
    least = 0.001 * sum(two[name] for name in names)
    gaps = [two[name] - one[name] for name in names]
    return sum(g for g in gaps if g > least), sum(-g for g in gaps if -g > least)


def _is_part(name: str) -> bool:
    """A whole beside its parts would count twice."""
    return name not in ("serving.ttft_s", "serving.tpot_s")


def _layouts(report: Report) -> Iterator[str]:
    """Degrees, knobs, and what follows from them, the batch and the model's dims."""
    job = report.workload
    for proposal in report.proposals:
        for change in proposal.changes:
            yield f"{change.before or ''} → {change.after}"
        yield from proposal.verdict.checks
        layout = proposal.layout
        yield from _integers((layout.microbatch, layout.gradient_accumulation))
        if job is None:
            continue
        # Batches differ by whole sequences a shard; an interleaved pipeline takes whole rounds.
        shards = layout.batch_shards
        if layout.schedule is PipelineSchedule.INTERLEAVED:
            shards *= layout.mesh.size(Axis.PIPELINE)
        yield from _integers((shards, job.global_batch, job.global_batch + shards))
        yield from _integers((job.devices, job.sequence))
        if job.dims is not None:
            tensor = layout.mesh.size(Axis.TENSOR)
            heads, missing = job.dims.kv_heads, -job.dims.vocab % tensor
            yield from _integers((heads, max(1, tensor // heads), missing))


def _integers(values: Iterable[int]) -> Iterator[str]:
    return (f" {value} " for value in values)
