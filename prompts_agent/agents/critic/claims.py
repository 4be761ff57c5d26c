"""What a text says about the direction of a mesh axis, and whether the layout does that.

One published proposal was titled "model parallelism reduction" and raised the model axis from 4
to 8: words and mesh are written separately, so somebody has to compare them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from prompts_agent.agents.report import Change
from prompts_agent.layout.mesh import Axis

__all__ = ["Claim", "claims", "contradicted"]

Direction = Literal["raise", "lower"]

_AXIS_WORDS = {
    "pipeline": Axis.PIPELINE,
    "data": Axis.DATA,
    "replica": Axis.DATA,
    "fsdp": Axis.FSDP,
    "expert": Axis.EXPERT,
    "context": Axis.CONTEXT,
    "sequence": Axis.CONTEXT,
    "seq": Axis.CONTEXT,
    "tensor": Axis.TENSOR,
    "model": Axis.TENSOR,
}
_RAISE = (
    r"rais(?:e|es|ed|ing)|increas(?:e|es|ed|ing)|grow(?:s|ing)?|enlarg(?:e|es|ed|ing)"
    r"|more|larger|higher|widen(?:s|ed|ing)?"
)
_LOWER = (
    r"lower(?:s|ed|ing)?|reduc(?:e|es|ed|ing)|decreas(?:e|es|ed|ing)|shrink(?:s|ing)?"
    r"|less|smaller|cut(?:s|ting)?|narrow(?:s|ed|ing)?"
)
_NOUNS = r"reduction|decrease|increase|growth"
_AXES = "|".join(_AXIS_WORDS)
_TAIL = r"(?:[- ](?:axis|parallelism|parallel|degree|sharding))"
_BEFORE = r"(?:the |a |an |its )?(?:(?:size|degree) of (?:the )?)?"

_VERB_FIRST = re.compile(
    rf"\b({_RAISE}|{_LOWER}) {_BEFORE}({_AXES})\b({_TAIL}?)(?![-\w])", re.IGNORECASE
)
_NOUN_LAST = re.compile(rf"\b({_AXES}){_TAIL}? ({_NOUNS})\b", re.IGNORECASE)
# "the tensor axis is raised", "tensor parallelism goes up", "the fsdp degree shrinks".
_UP = r"(?:rais|increas|enlarg|widen)ed|grow(?:s|n|ing)?|rises?|risen|(?:go|goe|went|gone)s? up"
_DOWN = (
    r"(?:lower|reduc|decreas|narrow)ed|cut|shr[aiu]nk(?:s|en)?|falls?|fallen"
    r"|(?:go|goe|went|gone)s? down"
)
_AXIS_FIRST = re.compile(
    rf"\b({_AXES})(?:{_TAIL})+ (?:(?:is|are|was|gets|be|being|has been) )?({_UP}|{_DOWN})\b",
    re.IGNORECASE,
)
# What may follow a bare axis name if the axis itself is meant: "raises tensor to …".
_BARE_END = re.compile(
    r"\s*(?:$|[.,;:)({]|\b(?:to|from|and|by|so|which|while|for|in|at|because)\b)"
)
# "data" and "model" are common words: "moves less data" and "a smaller model" are no axes.
_COMMON = frozenset({"data", "model", "sequence", "expert", "context"})


class Claim(NamedTuple):
    """`text` says that `axis` is raised or lowered."""

    axis: Axis
    direction: Direction
    text: str


def claims(text: str) -> Iterator[Claim]:
    """Every statement about the direction of an axis."""
    for match in _VERB_FIRST.finditer(text):
        verb, word, tail = match.group(1), match.group(2).lower(), match.group(3)
        bare = not tail
        if bare and (word in _COMMON or not _BARE_END.match(text[match.end() :])):
            continue
        direction: Direction = "raise" if re.fullmatch(_RAISE, verb, re.IGNORECASE) else "lower"
        yield Claim(_AXIS_WORDS[word], direction, match.group())
    for match in _AXIS_FIRST.finditer(text):
        word, verb = match.group(1).lower(), match.group(2)
        up = re.fullmatch(_UP, verb, re.IGNORECASE) is not None
        yield Claim(_AXIS_WORDS[word], "raise" if up else "lower", match.group())
    for match in _NOUN_LAST.finditer(text):
        word, noun = match.group(1).lower(), match.group(2).lower()
        yield Claim(
            _AXIS_WORDS[word],
            "raise" if noun in ("increase", "growth") else "lower",
            match.group(),
        )


def contradicted(text: str, changes: tuple[Change, ...]) -> tuple[str, ...]:
    """Claims of `text` that the changes do not bear out, each as a sentence."""
    done = {change.what: change.direction for change in changes}
    found = []
    for claim in claims(text):
        actual = done.get(claim.axis.value)
        if actual == claim.direction:
            continue
        what = {"raise": "raises it", "lower": "lowers it", "set": "sets it anew"}.get(
            actual or "", "leaves it as it is"
        )
        found.append(f'"{claim.text}": the layout {what} ({claim.axis})')
    return tuple(dict.fromkeys(found))
