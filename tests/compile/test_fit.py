"""What becomes of each way in which a compile can end; the compiler is played by files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from compile_build import ASSIGNED_BYTES, ASSIGNMENT, RANGES, layout, llama

from prompts_agent.compile import fit as fit_module
from prompts_agent.compile.child import Ended, Run
from prompts_agent.compile.fit import fit, fit_many
from prompts_agent.compile.outcome import CompiledFit, Outcome
from prompts_agent.compile.program import differences, kernel_for
from prompts_agent.compile.stage import in_stages
from prompts_agent.compile.target import target_of
from prompts_agent.compile.toolchain import TESTED, Toolchain
from prompts_agent.hardware.topology import parse_topology
from prompts_agent.layout.mesh import Axis
from prompts_agent.model.catalog import find_model
from prompts_agent.model.spec import MoeDims

GIB = 2**30
DUMP = "module_0000.jit_step.cl_1.after_optimizations"
SHAPES = {
    "classes": ["parameters", "optimizer", "inputs"], "weights": [[4, 512, 512]],
    "gathered": [[512, 512]], "periods": [4], "tokens": 1024, "vocab": [32000],
    "gradient_dtype": "f32",
}  # fmt: skip
Script = Callable[[Path], Run]


def _run(ended: Ended = Ended.STOPPED, exit_code: int = -9, stderr: str = "") -> Run:
    return Run(
        ended=ended, exit_code=exit_code, wall_s=3.0, cpu_s=2.5, memory_bytes=GIB, stderr=stderr
    )


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Script], list[Path]]:
    """Replaces the child process by a function that writes what a child would leave."""
    monkeypatch.setenv("PROMPTS_CACHE", str(tmp_path / "cache"))
    versions = {name: TESTED[name][0] for name in ("jax", "libtpu")}
    chain = Toolchain(platform="tpu", compiler="libtpu", versions=versions)
    monkeypatch.setattr(fit_module, "find_toolchain", lambda chip: chain)

    def play(script: Script) -> list[Path]:
        calls: list[Path] = []

        def run_child(module: str, directory: Path, **limits: Any) -> Run:
            calls.append(directory)
            assert json.loads((directory / "request.json").read_bytes())["compiler"] == "libtpu"
            return script(directory)

        monkeypatch.setattr(fit_module, "run_child", run_child)
        return calls

    return play


def _lowered(directory: Path) -> None:
    facts = {"shapes": SHAPES, "knowledge": "libtpu"}
    (directory / "lowered.json").write_text(json.dumps(facts), encoding="utf-8")


def _assigned(directory: Path) -> Run:
    _lowered(directory)
    for ending, text in (("-buffer-assignment.txt", ASSIGNMENT), ("-live-range.txt", RANGES)):
        (directory / "dump" / f"{DUMP}{ending}").write_text(text, encoding="utf-8")
    return _run()


def _result(directory: Path, **facts: object) -> Run:
    _lowered(directory)
    (directory / "result.json").write_text(json.dumps(facts), encoding="utf-8")
    return _run()


def _fit(**fields: Any) -> CompiledFit:
    return fit(layout(fsdp=16), llama(**fields))


def test_a_layout_that_fits_is_told_with_its_buffers(
    played: Callable[[Script], list[Path]],
) -> None:
    played(_assigned)
    found = _fit()
    assert (found.outcome, found.compiles, found.fits) == (Outcome.FITS, True, True)
    assert found.hbm_need_bytes == ASSIGNED_BYTES
    assert found.buffers is not None
    assert found.buffers.total == ASSIGNED_BYTES
    assert found.stopped_early
    assert found.cpu_s == 2.5
    assert "llama2-7b" in found.program
    assert found.differences
    assert not found.notes


def test_a_second_question_runs_nothing(played: Callable[[Script], list[Path]]) -> None:
    calls = played(_assigned)
    first, second = _fit(), _fit()
    assert len(calls) == 1
    assert second == first.model_copy(update={"cached": True})
    assert not calls[0].exists()


def test_the_compilers_refusal_carries_the_need(played: Callable[[Script], list[Path]]) -> None:
    played(
        lambda directory: _result(
            directory,
            error="RESOURCE_EXHAUSTED: the total memory required for HLO temporaries (26.42G) "
            "exceeds available HBM (15.75G).",
        )
    )
    found = _fit()
    assert (found.outcome, found.compiles, found.fits) == (Outcome.DOES_NOT_FIT, False, False)
    assert found.hbm_need_bytes == round(26.42 * GIB)
    assert found.hbm_limit_bytes == round(15.75 * GIB)
    assert found.margin == pytest.approx(1 - 26.42 / 15.75)
    assert "26.42 GiB" in found.reason
    assert found.advice


def test_a_gpu_compiler_never_refuses_so_the_card_does(
    played: Callable[[Script], list[Path]],
) -> None:
    # 60 + 40 GiB on a card of 79.11 GiB; 4 GiB of outputs lie in donated arguments.
    def script(directory: Path) -> Run:
        sizes = {"argument": 60, "temporary": 40, "output": 4, "alias": 4}
        return _result(directory, **{f"{n}_bytes": s * GIB for n, s in sizes.items()})

    played(script)
    found = fit(layout(fsdp=8), llama(topology="h100:8"))
    assert (found.outcome, found.compiles, found.fits) == (Outcome.DOES_NOT_FIT, True, False)
    assert found.hbm_need_bytes == 100 * GIB
    assert "the card cannot hold it" in found.reason
    assert any("whole compile" in note for note in found.notes)


def test_an_abort_is_told_with_the_check_that_failed(
    played: Callable[[Script], list[Path]],
) -> None:
    stderr = "F0000 00:00 layout.cc:7] Check failed: a == b (1 vs. 2)\n*** SIGABRT ***\n"
    calls = played(lambda directory: _run(Ended.EXITED, -6, stderr))
    found = _fit()
    assert (found.outcome, found.compiles, found.fits) == (Outcome.CRASHED, None, None)
    assert "signal 6" in found.reason
    assert "Check failed: a == b" in found.reason
    _fit()
    assert len(calls) == 2, "a crash is asked again"


def test_limits_say_nothing_about_the_layout(played: Callable[[Script], list[Path]]) -> None:
    played(lambda directory: _run(Ended.TIMED_OUT))
    assert _fit().outcome is Outcome.TIMED_OUT
    played(lambda directory: _run(Ended.OUT_OF_MEMORY))
    found = _fit()
    assert found.outcome is Outcome.OUT_OF_HOST_MEMORY
    assert found.fits is None
    assert "1.0 GiB of this machine's memory" in found.reason


def test_another_refusal_is_given_in_the_compilers_words(
    played: Callable[[Script], list[Path]],
) -> None:
    played(lambda directory: _result(directory, error="ValueError: no such compile option\nmore"))
    found = _fit()
    assert (found.outcome, found.reason) == (
        Outcome.REFUSED,
        "ValueError: no such compile option",
    )


def test_a_dump_of_another_form_falls_back_to_a_whole_compile(
    played: Callable[[Script], list[Path]],
) -> None:
    def script(directory: Path) -> Run:
        run = _result(directory, argument_bytes=5, temporary_bytes=7, output_bytes=3, alias_bytes=2)
        (directory / "dump" / f"{DUMP}-buffer-assignment.txt").write_text("?", encoding="utf-8")
        return run

    played(script)
    found = _fit()
    assert found.hbm_need_bytes == 13
    assert found.buffers is None


def test_what_the_reference_cannot_express_is_not_compiled(
    played: Callable[[Script], list[Path]],
) -> None:
    calls = played(_assigned)
    encodes = find_model("llama2-7b").model_copy(update={"encoder_layers": 32})
    unlike = fit(layout(pipeline=16), llama(model=encodes))
    assert unlike.outcome is Outcome.NOT_BUILT
    assert "stages are not alike" in unlike.reason
    # 24 GPUs in two stages are 12 each: one node and a half.
    halves = fit(layout(pipeline=2, tensor=12), llama(phase="decode", topology="h100:3x8"))
    assert halves.outcome is Outcome.NOT_BUILT
    assert "12 devices of h100" in halves.reason
    wrong = fit(layout(fsdp=8), llama())
    assert "8 devices and v5e:4x4 has 16" in wrong.reason
    assert calls == []


def test_without_the_compiler_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_module, "find_toolchain", lambda chip: None)
    found = _fit()
    assert found.outcome is Outcome.NO_COMPILER
    assert "prompts-agent[tpu]" in found.reason
    assert fit(layout(fsdp=8), llama(topology="mi300x:8")).outcome is Outcome.NO_COMPILER


def test_a_program_that_could_not_be_made_says_nothing_of_the_layout(
    played: Callable[[Script], list[Path]],
) -> None:
    def fails(directory: Path) -> Run:
        run = _result(directory, error="KeyError: Float8E4M3FNType")
        (directory / "lowered.json").unlink()
        return run

    played(fails)
    found = _fit()
    assert (found.outcome, found.compiles) == (Outcome.NOT_BUILT, None)
    assert "could not be made: KeyError" in found.reason


def test_heads_that_cudnn_does_not_take_are_attended_block_by_block() -> None:
    gpu, tpu = target_of(parse_topology("h100:1x8")), target_of(parse_topology("v5e:4x4"))
    narrow = find_model("llama2-7b")  # heads of 128
    wide = narrow.model_copy(update={"head_dim": 160})
    assert kernel_for(gpu, narrow) == "cudnn"
    assert kernel_for(gpu, wide) == "blocked"
    assert kernel_for(tpu, wide) == "splash"


def test_every_stage_is_compiled_like_the_fullest() -> None:
    # 40 layers in 16 stages: 3 on the fullest, 48 in all.
    job, cut = llama(model=find_model("llama2-13b")), layout(pipeline=16)
    assert in_stages(job, cut)[0].model.layers == 48
    assert in_stages(job, cut)[1] == cut
    assert any("48 layers in all" in text for text in differences(job, cut))
    assert in_stages(job, layout(fsdp=16)) == (job, layout(fsdp=16))


def test_dense_layers_at_the_start_count_as_layers_with_experts() -> None:
    moe = MoeDims(experts=8, experts_per_token=2, mlp=1024, dense_layers=1)
    job = llama(model=find_model("llama2-7b").model_copy(update={"moe": moe}))
    (compiled, cut) = in_stages(job, layout(pipeline=4, fsdp=4))
    assert compiled.model.moe is not None
    assert (compiled.model.moe.dense_layers, compiled.model.layers) == (0, 32)
    assert any("1 dense layers at the start" in text for text in differences(job, cut))


def test_of_a_server_one_stage_is_compiled() -> None:
    # 40 layers in 4 stages of 4 chips: 10 layers on a slice of four.
    job, cut = llama(model=find_model("llama2-13b"), phase="decode"), layout(pipeline=4, tensor=4)
    compiled, alone = in_stages(job, cut)
    assert compiled.model.layers == 10
    assert str(compiled.topology) == "v5e:2x2"
    assert (alone.devices, alone.mesh.size(Axis.TENSOR)) == (4, 4)
    assert any("One stage is compiled" in text for text in differences(job, cut))


def test_many_keep_their_order(played: Callable[[Script], list[Path]]) -> None:
    played(_assigned)
    jobs = [(layout(fsdp=16), llama()), (layout(fsdp=8), llama())]
    found = fit_many(jobs, workers=2)
    assert [one.outcome for one in found] == [Outcome.FITS, Outcome.NOT_BUILT]


def test_a_result_survives_json() -> None:
    found = CompiledFit(outcome=Outcome.FITS, hbm_need_bytes=98, hbm_limit_bytes=100)
    assert CompiledFit.model_validate_json(found.model_dump_json()) == found
    assert found.marginal
