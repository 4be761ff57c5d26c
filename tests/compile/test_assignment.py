"""What is read from a dump, on a dump written by hand."""

from __future__ import annotations

from pathlib import Path

from compile_build import ASSIGNED_BYTES, ASSIGNMENT, MIB, RANGES
from hypothesis import given
from hypothesis import strategies as st

from prompts_agent.compile.assignment import (
    find_file,
    live_at_peak,
    live_ranges,
    need_bytes,
    read_assignment,
)


def test_the_need_leaves_out_vmem_and_what_is_thread_local() -> None:
    # 4 MiB + 4 MiB + 4096 + 13 MiB; not the 512 bytes of a thread, not the MiB of color 1.
    allocations = read_assignment(ASSIGNMENT)
    assert allocations is not None
    assert need_bytes(allocations) == ASSIGNED_BYTES


def test_an_argument_is_known_by_its_number_and_a_value_by_its_dims() -> None:
    allocations = read_assignment(ASSIGNMENT)
    assert allocations is not None
    assert [a.parameter for a in allocations] == [None, 0, 1, 2, None, None]
    saved = allocations[4].values[1]
    assert (saved.name, saved.size, saved.offset) == ("saved{}", 8 * MIB, 0)
    assert (saved.dtype, saved.dims) == ("bf16", (4, 1, 1024, 1024))
    assert allocations[4].values[2].name == "carry{2}"


def test_the_fullest_moment_counts_each_place_once() -> None:
    # From 20 on `saved` and `gradient` take 12 MiB; before, `saved` alone 8, though the file's sum
    # would count `carry` in its place again. The file's own peak at 2 does not count.
    allocations, ranges = read_assignment(ASSIGNMENT), live_ranges(RANGES)
    assert allocations is not None
    assert ranges is not None
    live = live_at_peak(allocations, ranges)
    assert live == {"saved{}", "carry{2}", "gradient{}", "scalar{}"}


def test_text_of_another_form_is_no_answer() -> None:
    assert read_assignment("HloModule jit_step, is_scheduled=true") is None
    assert live_ranges("HloModule jit_step") is None


@given(st.text())
def test_no_text_breaks_the_readers(text: str) -> None:
    allocations = read_assignment(text)
    if allocations is not None:
        live_at_peak(allocations, live_ranges(text) or {})


def test_the_steps_own_file_is_found_among_others(tmp_path: Path) -> None:
    for name in ("module_0.jit_other.x.txt", "module_1.jit_step.x.txt", "module_2.jit_step.y.txt"):
        (tmp_path / name).write_text("z", encoding="utf-8")
    found = find_file(tmp_path, "x.txt")
    assert found is not None
    assert found.name == "module_1.jit_step.x.txt"
    assert find_file(tmp_path, "z.txt") is None
