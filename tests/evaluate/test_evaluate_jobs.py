"""Scoring whole workloads: adopted layouts, sweeps, resuming, folds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from evaluate_build import run_of, small_sweep, small_workload

from prompts_agent.errors import InputError, WorkloadError
from prompts_agent.estimate.calibration import Calibration, load_calibration
from prompts_agent.evaluate import run as run_module
from prompts_agent.evaluate.ablation import uncalibrated, unplaced
from prompts_agent.evaluate.folds import cross_validated, find_fitter, fold_of
from prompts_agent.evaluate.job import Job, jobs_of, score_job
from prompts_agent.evaluate.journal import Journal
from prompts_agent.evaluate.run import run
from prompts_agent.evaluate.score import ADVISOR, Score
from prompts_agent.evaluate.score_adopted import score_adopted
from prompts_agent.evaluate.score_sweep import score_sweep
from prompts_agent.evaluate.sources import collection_of, framework_of
from prompts_agent.hardware.topology import parse_topology
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.table import LayoutTable
from prompts_agent.workload.workload import Measured, Workload

RUNS = [
    run_of(8, 1, 2.0),
    run_of(4, 2, 1.0),
    run_of(2, 4, 1.02),
    run_of(1, 8, 4.0),
    run_of(8, 1, None, microbatch=8, out_of_memory=True),
]


def test_baselines_of_a_sweep_by_hand() -> None:
    score = score_sweep(small_sweep(RUNS), load_calibration())
    random, smallest = score.methods["random"], score.methods["smallest tensor"]
    # Two of four runs are tied for best; losses are 100%, 0, 2% and 300%.
    assert random.top_1 == 0.5
    assert random.regret == pytest.approx((1.0 + 0.0 + 0.02 + 3.0) / 4)
    # Best of three: three draws of four miss the best run once, and then take the second.
    assert random.regret_3 == pytest.approx(0.02 / 4)
    # Tensor 1 is the run of 2 s.
    assert (smallest.top_1, smallest.regret) == (0.0, pytest.approx(1.0))


def test_out_of_memory_rows_are_facts_and_never_ranked() -> None:
    score = score_sweep(small_sweep(RUNS), load_calibration())
    assert [fact.fitted for fact in score.facts] == [True, True, True, True, False]
    assert len(score.points) == 4
    assert score.legal_meshes == 4


def test_rows_in_use_are_within_twice_the_best() -> None:
    score = score_sweep(small_sweep(RUNS), load_calibration())
    assert [point.near for point in score.points] == [True, True, True, False]


def test_rows_that_do_not_compare_are_not_ranked() -> None:
    sweep = small_sweep(RUNS).model_copy(update={"rankable": False})
    score = score_sweep(sweep, load_calibration())
    assert (score.kind, score.methods) == ("facts", {})
    assert len(score.points) == 4


def test_an_adopted_mesh_is_looked_up_among_all_legal_ones() -> None:
    score = score_adopted(small_workload(adopted={Axis.DATA: 8}), load_calibration())
    # data 2^a × pipeline 2^b × tensor 2^c with a + b + c = 3: ten meshes.
    assert score.legal_meshes == 10
    assert score.methods["random"].top_1 == pytest.approx(0.1)
    assert score.methods["random"].top_3 == pytest.approx(0.3)
    assert score.methods["smallest tensor"].top_1 == 1.0
    assert (score.place is None) == (score.unranked is not None)


def test_an_illegal_adopted_mesh_is_said_to_be_one() -> None:
    # Llama 3 8B has 8 KV heads and 32 layers; context is not among the axes.
    score = score_adopted(small_workload(adopted={Axis.CONTEXT: 8}), load_calibration())
    assert (score.place, score.unranked) == (None, "illegal")
    assert score.methods[ADVISOR].top_3 == 0.0
    assert score.methods["random"].top_1 == 0.0


def test_a_workload_without_an_answer_is_refused() -> None:
    with pytest.raises(WorkloadError, match="names none"):
        score_adopted(small_workload(), load_calibration())


def measured(data: int, tensor: int, seconds: float) -> Measured:
    return small_sweep([run_of(data, tensor, seconds)]).rows[0]


def test_a_file_with_comparable_runs_is_a_sweep_too() -> None:
    rows = (measured(8, 1, 2.0), measured(4, 2, 1.0))
    file = small_workload(adopted={Axis.DATA: 8}).model_copy(update={"alternatives": rows})
    assert [job.sweep is not None for job in jobs_of([file], [])] == [False, True]


def test_runs_that_a_sweep_brings_are_counted_once() -> None:
    rows = (measured(8, 1, 2.0), measured(4, 2, 1.0))
    file = small_workload(adopted={Axis.DATA: 8}).model_copy(update={"alternatives": rows})
    sweep = small_sweep(RUNS)
    found = jobs_of([file], [sweep])
    assert [job.sweep for job in found] == [None, sweep]
    assert found[0].workload.alternatives == ()


def jobs() -> list[Job]:
    names = ("one", "two", "three")
    return [Job(sweep=small_sweep(RUNS[: 2 + k], name)) for k, name in enumerate(names)]


def scored(wanted: Sequence[Job], directory: Path | None = None) -> list[Score]:
    calibration = load_calibration()
    return run(wanted, lambda _job: calibration, directory=directory)


def test_a_killed_evaluation_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = scored(jobs(), tmp_path)
    journal = tmp_path / "scores.jsonl"
    first, second, third = journal.read_bytes().splitlines(keepends=True)
    # Killed while the second line was written; the third never was.
    journal.write_bytes(first + second[:100])
    asked: list[str] = []

    def counted(job: Job, calibration: Calibration) -> Score:
        asked.append(job.workload.name)
        return score_job(job, calibration)

    monkeypatch.setattr(run_module, "score_job", counted)
    assert scored(jobs(), tmp_path) == whole
    assert len(asked) == 2
    assert len(Journal(tmp_path, "scores.jsonl", Score).records()) == 3
    assert third in journal.read_bytes()


def test_other_constants_score_anew(tmp_path: Path) -> None:
    calibration = load_calibration()
    job = jobs()[0]
    assert job.key(calibration) == job.key(calibration)
    assert job.key(calibration) != job.key(uncalibrated(calibration))
    assert job.key(calibration) != jobs()[1].key(calibration)


def test_scores_do_not_depend_on_order_or_processes(tmp_path: Path) -> None:
    calibration = load_calibration()
    forward = scored(jobs())
    backward = scored(jobs()[::-1])[::-1]
    spread = run(jobs(), lambda _job: calibration, processes=2)
    assert forward == backward == spread


def test_nothing_to_score_is_an_error() -> None:
    with pytest.raises(WorkloadError, match="nothing to score"):
        scored([])


def test_folds_keep_groups_together() -> None:
    names = ["a", "b", "a", "c", "a", "d"]
    folds = fold_of(names, 2)
    assert folds == [0, 1, 0, 1, 0, 1]
    assert fold_of(names[::-1], 2) == folds[::-1]


@pytest.mark.parametrize("folds", [1, 5])
def test_impossible_folds_are_refused(folds: int) -> None:
    with pytest.raises(InputError, match="folds"):
        fold_of(["a", "b", "c"], folds)


def test_a_job_is_scored_with_constants_that_never_saw_it() -> None:
    shipped = load_calibration()
    seen: list[list[str]] = []

    def fit(workloads: Sequence[Workload], /) -> Calibration:
        seen.append([w.model.name for w in workloads])
        assert all(w.alternatives for w in workloads)
        return shipped.model_copy(
            update={"serving": shipped.serving.model_copy(update={"source": seen[-1][0]})}
        )

    one = Job(sweep=small_sweep(RUNS))
    renamed = small_workload().model.model_copy(update={"name": "another"})
    workload = small_workload().model_copy(update={"model": renamed})
    other = Job(sweep=small_sweep(RUNS).model_copy(update={"workload": workload}))
    calibration_of = cross_validated([one, other], 2, fit)
    assert sorted(seen) == [["another"], [one.workload.model.name]]
    assert calibration_of(one).serving.source == "another"
    assert calibration_of(other).serving.source == one.workload.model.name


def test_folds_by_workload_may_see_the_model_on_another_machine() -> None:
    def on(name: str, chips: int) -> Job:
        sweep = small_sweep(RUNS)
        topology = parse_topology(f"h100:{chips}x8")
        model = sweep.workload.model.model_copy(update={"name": name})
        update = {"model": model, "topology": topology}
        changed = sweep.workload.model_copy(update=update)
        return Job(sweep=sweep.model_copy(update={"workload": changed}))

    wanted = [on("one", 1), on("one", 2), on("two", 1), on("two", 2)]
    seen: list[set[str]] = []

    def fit(workloads: Sequence[Workload], /) -> Calibration:
        seen.append({w.model.name for w in workloads})
        return load_calibration()

    cross_validated(wanted, 2, fit)
    assert seen == [{"two"}, {"one"}]
    seen.clear()
    cross_validated(wanted, 2, fit, "workload")
    assert seen == [{"one", "two"}, {"one", "two"}]


def test_the_fitter_is_found_or_is_not_there() -> None:
    found = find_fitter()
    assert found is None or callable(found)


def test_without_calibration_only_physics_is_left() -> None:
    plain = uncalibrated(load_calibration())
    # What was learnt of software, chips and people is gone too.
    assert (plain.stacks, plain.chips, plain.preferences) == ({}, {}, {})
    assert load_calibration().stacks
    for constants in plain.platforms.values():
        assert constants["matmul_efficiency"].value == 1.0
        assert constants["link_efficiency"].value == 1.0
        assert constants["fsdp_overlap"].value == 0.0
        assert constants["step_overhead_s"].value == 0.0
        assert constants["workspace_bytes"].value == 0.0


def test_without_placement_no_axis_crosses_a_domain() -> None:
    sweep = small_sweep([run_of(8, 1, 1.0)])
    table = LayoutTable.of(row.layout for row in sweep.rows)
    crossed = unplaced(table)
    assert (crossed.dcn == 1).all()
    assert (crossed.ici == table.ici * table.dcn).all()


def test_sources_are_told_apart() -> None:
    assert framework_of("AI-Hypercomputer/tpu-recipes training/v6e") == "MaxText"
    assert framework_of(None) == "other"
    assert collection_of("NVIDIA/dgxc-benchmarking, README@1") == "NVIDIA/dgxc-benchmarking"
    assert collection_of("arXiv 2204.02311, table 4") == "arXiv 2204.02311"
