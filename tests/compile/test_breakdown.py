"""Classes of buffers sum to the need, and each byte has one class."""

from __future__ import annotations

from compile_build import ASSIGNED_BYTES, ASSIGNMENT, MIB, RANGES

from prompts_agent.compile.assignment import (
    Allocation,
    Value,
    live_at_peak,
    live_ranges,
    read_assignment,
)
from prompts_agent.compile.breakdown import Shapes, buffers, largest_values

SHAPES = Shapes(
    classes=("parameters", "optimizer", "inputs"),
    weights=((4, 512, 512),),
    gathered=((512, 2048),),
    periods=(4,),
    tokens=1024,
    vocab=(32000,),
    gradient_dtype="f32",
)


def _golden() -> tuple[list[Allocation], set[str]]:
    allocations, ranges = read_assignment(ASSIGNMENT), live_ranges(RANGES)
    assert allocations is not None
    assert ranges is not None
    return allocations, live_at_peak(allocations, ranges)


def test_every_byte_has_one_class() -> None:
    # `saved` and `carry` are one buffer of 8 MiB; of 13 MiB of temporaries 12 are told apart.
    found = buffers(*_golden(), SHAPES)
    assert found.parameters == 4 * MIB
    assert found.optimizer == 4 * MIB
    assert found.inputs == 4096
    assert found.activations == 8 * MIB
    assert found.gradients == 4 * MIB
    assert found.temporaries == 1 * MIB
    assert found.total == ASSIGNED_BYTES
    assert found.largest() == ("activations", 8 * MIB)


def test_without_live_ranges_temporaries_are_one_class() -> None:
    found = buffers(_golden()[0], None, SHAPES)
    assert found.temporaries == 13 * MIB
    assert found.total == ASSIGNED_BYTES


def _class_of(dtype: str, dims: tuple[int, ...], shapes: Shapes = SHAPES) -> str:
    value = Value(name="v{}", size=64, offset=0, dtype=dtype, dims=dims)
    allocation = Allocation(64, None, 0, thread_local=False, temporary=True, values=[value])
    found = buffers([allocation], {"v{}"}, shapes).model_dump()
    return next(name for name, size in found.items() if size == 64)


def test_a_temporary_is_known_by_its_shape() -> None:
    assert _class_of("f32", (512, 4, 512)) == "gradients"
    assert _class_of("bf16", (4, 512, 512)) == "weights_in_use"
    assert _class_of("bf16", (1, 2048, 512)) == "weights_in_use"
    assert _class_of("bf16", (1, 1024, 32000)) == "logits"
    assert _class_of("f32", (8, 32000)) == "temporaries"
    assert _class_of("bf16", (4, 1, 1024, 4096)) == "activations"
    serving = SHAPES.model_copy(update={"gradient_dtype": None, "cache": ((4, 8, 2, 1024, 128),)})
    assert _class_of("bf16", (4, 8, 2, 1024, 128), serving) == "kv_cache"
    assert _class_of("bf16", (4, 1, 1024, 4096), serving) == "temporaries"


def test_the_largest_values_are_shown_once_each() -> None:
    shown = largest_values(*_golden(), SHAPES, top=2)
    assert shown[0].startswith("8.39 MB bf16[4,1,1024,1024]: activations")
    assert shown[1].startswith("4.19 MB f32[4,512,512]: gradients")
