"""What is emitted reads back as the layout that it was written for."""

from __future__ import annotations

from pathlib import Path

import pytest
from emit_build import DENSE, MOE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prompts_agent.emit.existing.check import check_config
from prompts_agent.emit.existing.guess import read_config
from prompts_agent.emit.existing.layout import place
from prompts_agent.emit.existing.shell import shell_entries
from prompts_agent.emit.facts import JobFacts
from prompts_agent.emit.framework import global_batch
from prompts_agent.emit.registry import emit
from prompts_agent.errors import LayoutError
from prompts_agent.hardware.topology import Topology, parse_topology
from prompts_agent.layout.layout import Layout, PipelineSchedule, Remat
from prompts_agent.layout.mesh import Axis, Mesh
from prompts_agent.workload.workload import Phase

SUFFIX = {"yaml": "yml", "bash": "sh", "python": "py"}
NODE = "h100:1x8"
size = st.sampled_from([1, 2, 4, 8])


@st.composite
def meshes(draw: st.DrawFn, axes: tuple[Axis, ...]) -> dict[str, int]:
    """Degrees whose product is 8."""
    left, found = 8, {}
    for axis in axes[:-1]:
        degree = draw(st.sampled_from([n for n in (1, 2, 4, 8) if left % n == 0]))
        found[axis.value] = degree
        left //= degree
    return found | {axes[-1].value: left}


def again(layout: Layout, facts: JobFacts, framework: str, directory: Path) -> Layout | None:
    """The layout that the emitted text means to the reader; None where it was refused."""
    try:
        config = emit(layout, facts, framework)
    except LayoutError:
        return None
    path = directory / f"config.{SUFFIX[config.language]}"
    path.write_text(config.text, encoding="utf-8")
    topology = facts.topology or parse_topology(NODE)
    batch = global_batch(layout) if facts.phase.is_training else None
    existing = read_config(path, framework)
    assert existing.unknown == ()
    placed = place(existing, topology, model=facts.model, global_batch=batch)
    assert placed.layout is not None, placed.faults
    return placed.layout


def facts_of(topology: Topology, phase: Phase, *, moe: bool = False) -> JobFacts:
    model = MOE if moe else DENSE
    return JobFacts(
        phase=phase, sequence=4096, model_name=model.name, model=model, topology=topology
    )


trainers = st.sampled_from(["maxtext", "megatron", "torchtitan"])


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    framework=trainers,
    degrees=meshes((Axis.PIPELINE, Axis.DATA, Axis.FSDP, Axis.CONTEXT, Axis.TENSOR)),
    microbatch=size,
    accumulation=size,
    remat=st.sampled_from(list(Remat)),
    parallel=st.booleans(),
    zero=st.integers(0, 1),
    over_context=st.booleans(),
    virtual=st.sampled_from([1, 2]),
)
def test_training(
    tmp_path: Path,
    framework: str,
    degrees: dict[str, int],
    microbatch: int,
    accumulation: int,
    remat: Remat,
    parallel: bool,
    zero: int,
    over_context: bool,
    virtual: int,
) -> None:
    pipeline, tensor = degrees["pipeline"], degrees["tensor"]
    interleaved = pipeline in (2, 4) and virtual > 1
    layout = Layout(
        mesh=Mesh.of(**degrees),
        microbatch=microbatch,
        gradient_accumulation=accumulation,
        remat=remat,
        # A switch that does nothing is not written.
        sequence_parallel=parallel and tensor > 1,
        zero_stage=zero if degrees["data"] > 1 and framework != "megatron" else 0,
        weights_over_context=over_context,
        virtual_stages=virtual if interleaved else 1,
        schedule=PipelineSchedule.INTERLEAVED if interleaved else PipelineSchedule.ONE_F_ONE_B,
    )
    found = again(layout, facts_of(parse_topology(NODE), Phase.PRETRAIN), framework, tmp_path)
    if found is None:
        return
    assert found.mesh == layout.mesh
    assert found.remat is layout.remat
    assert found.sequence_parallel == layout.sequence_parallel
    assert found.virtual_stages == layout.virtual_stages
    assert found.microbatch == layout.microbatch
    assert found.gradient_accumulation == layout.gradient_accumulation


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    framework=st.sampled_from(["vllm", "sglang", "vllm-tpu"]),
    degrees=meshes((Axis.PIPELINE, Axis.DATA, Axis.TENSOR)),
    limit=st.integers(1, 500),
    kv_dtype=st.sampled_from(["bf16", "fp8"]),
)
def test_serving_of_a_dense_model(
    tmp_path: Path, framework: str, degrees: dict[str, int], limit: int, kv_dtype: str
) -> None:
    layout = Layout(mesh=Mesh.of(**degrees), batch_limit=limit, kv_dtype=kv_dtype)
    topology = parse_topology("v6e:2x4" if framework == "vllm-tpu" else NODE)
    found = again(layout, facts_of(topology, Phase.SERVE), framework, tmp_path)
    assert found is not None
    assert found.mesh == layout.mesh
    assert (found.batch_limit, found.kv_dtype) == (limit, kv_dtype)


@pytest.mark.parametrize("framework", ["vllm", "sglang"])
@pytest.mark.parametrize("degrees", [{"tensor": 8, "expert": 8}, {"tensor": 8}])
def test_serving_of_experts(tmp_path: Path, framework: str, degrees: dict[str, int]) -> None:
    layout = Layout(mesh=Mesh.of(**degrees), expert_divides=True, batch_limit=8)
    found = again(
        layout, facts_of(parse_topology(NODE), Phase.SERVE, moe=True), framework, tmp_path
    )
    assert found is not None
    assert found.mesh == layout.mesh


@given(st.text(max_size=300))
def test_any_text_is_read_as_shell(text: str) -> None:
    entries, words = shell_entries(text)
    last = text.count("\n") + 1
    assert all(1 <= entry.line <= last for entry in entries)
    assert all(1 <= line <= last for _, line in words)


def test_a_hash_inside_a_word_is_no_comment() -> None:
    text = "run 'a b'#c --x 1 # --y 2\n--z 3;# end\n'open"
    entries, words = shell_entries(text)
    assert [(entry.key, entry.value, entry.line) for entry in entries] == [("x", 1, 1), ("z", 3, 2)]
    assert words == (("run", 1), ("a b#c", 1), ("open", 3))


def test_variables_that_double_themselves_stay_small() -> None:
    text = "X=ab\n" + "X=$X$X\n" * 200 + "run --a $X\n"
    (entry,) = shell_entries(text)[0]
    assert len(str(entry.value)) <= 10_000


@pytest.mark.parametrize("size", ["0", "-5", "99999999999999999", "10000000", "1e400", "4.5"])
@pytest.mark.parametrize("target", [None, "h100:1x8"])
def test_absurd_sizes_are_faults_or_unknown(tmp_path: Path, size: str, target: str | None) -> None:
    path = tmp_path / "run.sh"
    keys = ("tensor-model", "pipeline-model", "context", "expert-model")
    flags = " ".join(f"--{key}-parallel-size {size}" for key in keys)
    path.write_text(f"python pretrain_gpt.py {flags} --global-batch-size {size}\n")
    result = check_config(path, target=target, model="llama3.1-8b")
    assert not result.clean or any("not a number" in text for text in result.unchecked)


SHELL = ("--a", "-tp", "1", "$X", "'", '"', "\\\n", "\n", "(", "X=2", "#", "$((X*2))")


@given(st.lists(st.sampled_from(SHELL)))
def test_any_mix_of_shells_own_characters_is_read(parts: list[str]) -> None:
    entries, _ = shell_entries(" ".join(parts))
    assert all(entry.key in ("a", "tp") for entry in entries)
