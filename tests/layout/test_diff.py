from __future__ import annotations

from prompts_agent.layout.diff import LayoutChange, changes, same_degrees
from prompts_agent.layout.layout import Layout, Remat
from prompts_agent.layout.mesh import Mesh


def told(before: Layout | None, after: Layout) -> list[tuple[str, str | None, str, str]]:
    return [(c.what, c.before, c.after, c.direction) for c in changes(before, after)]


def test_axes_then_knobs() -> None:
    # The paper's case 1: data 8 → 16, seq 8 → 4.
    before = Layout(mesh=Mesh.of(data=8, context=8, tensor=8), microbatch=4)
    after = Layout(
        mesh=Mesh.of(data=16, context=4, tensor=8),
        microbatch=2,
        remat=Remat.MINIMAL,
        sequence_parallel=True,
        batch_limit=8,
    )
    assert told(before, after) == [
        ("data", "8", "16", "more"),
        ("context", "8", "4", "less"),
        ("microbatch", "4", "2", "less"),
        ("remat", "full", "minimal", "other"),
        ("sequence_parallel", "off", "on", "other"),
        ("batch_limit", "none", "8", "other"),
    ]
    assert not same_degrees(before, after)


def test_a_moved_split_is_a_change_of_equal_degrees() -> None:
    before = Layout(mesh=Mesh.model_validate({"data": {"dcn": 2}, "fsdp": 8}))
    after = Layout(mesh=Mesh.model_validate({"data": 2, "fsdp": {"ici": 4, "dcn": 2}}))
    assert told(before, after) == [
        ("data", "2 (ici 1 × dcn 2)", "2", "other"),
        ("fsdp", "8", "8 (ici 4 × dcn 2)", "other"),
    ]
    assert same_degrees(before, after)


def test_from_nothing() -> None:
    after = Layout(mesh=Mesh.of(fsdp=16), microbatch=2)
    assert changes(None, after) == (
        LayoutChange(what="fsdp", before=None, after="16", direction="other"),
        LayoutChange(what="microbatch", before=None, after="2", direction="other"),
    )


def test_equal_layouts_differ_in_nothing() -> None:
    layout = Layout(mesh=Mesh.of(fsdp=16))
    assert changes(layout, layout) == ()
    assert same_degrees(layout, layout)
