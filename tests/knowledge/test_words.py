from __future__ import annotations

import pytest

from prompts_agent.knowledge.words import words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("all-gather", ("all", "gather")),
        ("all_gather", ("all", "gather")),
        ("AllGather", ("all", "gather")),
        ("the KV heads", ("kv", "head")),
        ("TP", ("tensor", "parallel")),
        ("ZeRO-3", ("fsdp",)),
        ("model parallelism", ("model", "parallel")),
        ("bias loss v5s", ("bias", "loss", "v5s")),
        ("A is in", ()),
        ("", ()),
    ],
)
def test_spellings_meet(text: str, expected: tuple[str, ...]) -> None:
    assert words(text) == expected
