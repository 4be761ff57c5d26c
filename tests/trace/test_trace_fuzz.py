"""Whatever the bytes, the outcome is a Profile or an error that says what is wrong."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from trace_samples import HLO_TEXT, chrome, kineto, nsys, three_steps, xspace

from prompts_agent.errors import PromptsError
from prompts_agent.trace.capture import Capture
from prompts_agent.trace.measure.profile import measure
from prompts_agent.trace.read import read


def _nsys_bytes() -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        return nsys(Path(directory) / "r.sqlite").read_bytes()


SAMPLES = {
    "xspace": xspace(2, 5),
    "xspace.gz": gzip.compress(xspace(2, 5), mtime=0),
    "kineto": json.dumps(kineto(three_steps())).encode(),
    "kineto.gz": gzip.compress(json.dumps(kineto(three_steps())).encode(), mtime=0),
    "chrome": json.dumps(chrome()).encode(),
    "hlo text": HLO_TEXT.encode(),
    "nsight": _nsys_bytes(),
}

quick = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def outcome(data: bytes) -> Capture | PromptsError:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "trace"
        path.write_bytes(data)
        try:
            capture = read([path], deep=True)
            measure(capture)
        except PromptsError as error:
            return error
        return capture


@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples_are_sound(name: str) -> None:
    assert isinstance(outcome(SAMPLES[name]), Capture)


@quick
@given(st.binary(max_size=400))
@example(b"\n\x00")
@example(b"\x0a\x02\x08\x01")
@example(b"{")
@example(b"[]")
@example(b"[{}]")
@example(b"\x1f\x8b")
@example(b"SQLite format 3\x00")
@example(b"HloModule x\n")
def test_any_bytes(data: bytes) -> None:
    outcome(data)


@quick
@given(
    st.sampled_from(
        [b"\n\x10\x08\x01\x12", b"\x1f\x8b\x08", b'{"traceEvents": [', b"HloModule f\n"]
    ),
    st.binary(max_size=200),
)
def test_any_bytes_after_a_beginning_that_looks_right(start: bytes, data: bytes) -> None:
    outcome(start + data)


@quick
@given(st.sampled_from(sorted(SAMPLES)), st.data())
def test_a_trace_that_is_cut_off(name: str, data: st.DataObject) -> None:
    whole = SAMPLES[name]
    outcome(whole[: data.draw(st.integers(0, len(whole) - 1))])


@settings(quick, max_examples=200)
@given(st.sampled_from(sorted(SAMPLES)), st.data())
def test_flipped_bits(name: str, data: st.DataObject) -> None:
    damaged = bytearray(SAMPLES[name])
    for _ in range(data.draw(st.integers(1, 8))):
        place = data.draw(st.integers(0, len(damaged) - 1))
        damaged[place] ^= 1 << data.draw(st.integers(0, 7))
    outcome(bytes(damaged))


@settings(quick, max_examples=100)
@given(st.sampled_from(sorted(SAMPLES)), st.sampled_from(sorted(SAMPLES)), st.data())
def test_a_piece_of_another_file_in_the_middle(one: str, other: str, data: st.DataObject) -> None:
    into, piece = SAMPLES[one], SAMPLES[other]
    place = data.draw(st.integers(0, len(into)))
    start = data.draw(st.integers(0, len(piece)))
    outcome(into[:place] + piece[start : start + 300] + into[place:])


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = st.sampled_from(
    ["ph", "name", "ts", "dur", "pid", "tid", "cat", "args", "device", "Collective name", "dtype",
     "Group size", "In msg nelems", "Process Group Ranks", "long_name", "hlo_category", "step_num"]
)  # fmt: skip


@settings(quick, max_examples=150)
@given(
    st.sampled_from(["kineto", "chrome"]),
    st.lists(st.tuples(st.integers(0, 30), st.booleans(), KEYS, values), min_size=1, max_size=6),
)
def test_events_with_values_of_any_type(
    name: str, changes: list[tuple[int, bool, str, object]]
) -> None:
    document = json.loads(SAMPLES[name])
    events = document["traceEvents"]
    for place, inside, key, value in changes:
        event = events[place % len(events)]
        target = event.get("args") if inside else event
        if isinstance(target, dict):
            target[key] = value
    outcome(json.dumps(document).encode("utf-8", "replace"))


@settings(quick, max_examples=100)
@given(values, values, values)
def test_headers_of_any_type(info: object, properties: object, groups: object) -> None:
    document = kineto(three_steps())
    document["distributedInfo"] = info
    document["deviceProperties"] = properties
    outcome(json.dumps(document).encode("utf-8", "replace"))
    document["distributedInfo"] = {"rank": info, "world_size": properties, "pg_config": groups}
    document["deviceProperties"] = [{"id": info, "name": properties, "totalGlobalMem": groups}]
    outcome(json.dumps(document).encode("utf-8", "replace"))
