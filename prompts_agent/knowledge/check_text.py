"""What a recipe's words must keep to beyond the schema: addresses, units, shares, named chips."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from functools import cache
from urllib.parse import urlsplit

from prompts_agent.hardware.catalog import chip_names
from prompts_agent.knowledge.recipe import Recipe
from prompts_agent.knowledge.vocabulary import RecipeKind

__all__ = ["text_faults"]

_Fault = tuple[str, str, str]
"""What was seen, the rule, the cure."""

_SPELLINGS = {
    r"[TGPM]?FLOPS\b|\b[tgpm]flops?\b|\b[TGPM]?[Ff]lops?(?:/s(?:ec)?)?\b": "TFLOP/s or FLOPs",
    r"\b[KMGT]i?B(?:ps|/sec)\b": "GB/s",
    r"\b[KMGT]bps\b": "Gb/s",
    r"(?<=[\d ])(?:secs?|msecs?|usecs?|us)\b(?! )": "s, ms or µs",
    r"(?<=\d )(?:mb|gb|tb|kb|Gb|Mb|Tb)\b(?!/s)": "MB, GB or TB",
    r"(?<![-\w.])\d+(?:\.\d+)?(?:[KMGT]i?B|ms|µs)\b": "a space between number and unit",
}
_UNITS = {re.compile(pattern): right for pattern, right in _SPELLINGS.items()}
_SHARE = re.compile(
    r"\b(\d+(?:\.\d+)?)\s?%\s+(?:of\s+)?(?:MFU|HFU|(?:the\s+)?peak)\b"
    r"|\b(?:MFU|HFU)\s+(?:of\s+|is\s+)?(\d+(?:\.\d+)?)\s?%"
)
_CODE = re.compile(r"`[^`]*`")
_ARXIV = re.compile(r"/abs/\d{4}\.\d{4,5}(v\d+)?$")
_NUMBER = re.compile(r"\d")


def text_faults(recipe: Recipe) -> Iterator[_Fault]:
    """Every fault of the recipe's addresses and text."""
    yield from _addresses(recipe)
    yield from _units(recipe)
    if not _NUMBER.search(recipe.mechanism):
        yield (
            "'## Why it works' without a number",
            "the relation is worked out once with numbers",
            "Put in the figures of one chip or job, and name it.",
        )
    needs_chip = recipe.sharding and recipe.kind is RecipeKind.PRINCIPLE
    if needs_chip and not _chips().search(recipe.body):
        yield (
            "no chip is named",
            "a rule that moves the layout is worked out for a named chip",
            "Say for which chip the numbers hold, for example v5p or H100.",
        )


def _addresses(recipe: Recipe) -> Iterator[_Fault]:
    urls = [source.url for source in recipe.sources]
    for url in urls:
        parts = urlsplit(url)
        host = parts.hostname or ""
        if urls.count(url) > 1:
            yield f"source {url}", "a source is listed once", "Drop one of the two."
            return
        if _is_private(host):
            yield f"source {url}", "a source is public", "Give an address that anybody can open."
        elif host == "arxiv.org" and not _ARXIV.match(parts.path):
            yield f"source {url}", "arXiv is linked as /abs/NNNN.NNNNN", "Link the abstract."
        elif parts.query and "utm_" in parts.query:
            yield f"source {url}", "a link carries no tracking", "Cut it off at the question mark."


def _is_private(host: str) -> bool:
    if host == "localhost" or host.endswith((".local", ".internal", ".corp", ".lan", ".localhost")):
        return True
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return False


def _units(recipe: Recipe) -> Iterator[_Fault]:
    text = _CODE.sub("``", f"{recipe.title}\n{recipe.costs}\n{recipe.body}")
    for pattern, right in _UNITS.items():
        found = pattern.search(text)
        if found is not None:
            yield f"unit {found[0]!r}", f"the unit is written {right}", "Rewrite it."
    for found in _SHARE.finditer(text):
        share = float(found[1] or found[2])
        if not 0 < share <= 100:
            yield f"{found[0]!r}", "a share of the peak lies above 0 and up to 100%", "Correct it."


@cache
def _chips() -> re.Pattern[str]:
    """Names of chips as prose writes them: `h100`, `H100`, `A100-80`, `MI300X`, `tpu7x`."""
    stems = sorted({re.split(r"-(?=\d|pcie|nvl)", name)[0] for name in chip_names()}, reverse=True)
    names = "|".join(map(re.escape, stems))
    return re.compile(rf"(?<![A-Za-z0-9])(?:{names})(?![a-z0-9])", re.IGNORECASE)
