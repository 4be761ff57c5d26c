"""Tables, Markdown, JSON, plots and the command."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from typer.testing import CliRunner

from prompts_agent.cli.app import app
from prompts_agent.estimate.calibration import load_calibration
from prompts_agent.estimate.fit_calibration import calibration_text
from prompts_agent.evaluate.ablation import uncalibrated
from prompts_agent.evaluate.bootstrap import Figure
from prompts_agent.evaluate.plot import scatter
from prompts_agent.evaluate.score import ADVISOR, Fact, Method, Point, Score, Tags
from prompts_agent.evaluate.summary import Line, Table, summary
from prompts_agent.evaluate.worst import worst, worst_markdown

EXAMPLE = Path(__file__).parents[2] / "workloads" / "prompts-case-3.yaml"


def score(name: str, *, kind: str = "sweep", regret: float = 0.0, phase: str = "pretrain") -> Score:
    adopted = kind == "adopted"
    method = Method(top_1=0.0) if adopted else Method(top_1=0.0, regret=regret, regret_3=0.0)
    return Score.model_validate(
        {
            "kind": kind,
            "workload": name,
            "cluster": name,
            "tags": Tags(
                chip="h100",
                platform="gpu",
                phase=phase,
                family="llama",
                framework="a framework",
                collection="a collection",
                kind_of_model="dense",
                devices=8,
            ),
            "methods": {ADVISOR: method, "random": method},
            "place": 4 if adopted else None,
            "place_with_ties": 2 if adopted else None,
            "legal_meshes": 9,
        }
    )


def figure(value: float) -> Figure:
    return Figure(value=value, low=value, high=value, workloads=1)


def test_a_figure_without_its_baseline_is_not_shown() -> None:
    table = Table(
        title="t",
        columns=("alone", "both"),
        kinds=("percent", "percent"),
        lines=(
            Line(name=ADVISOR, figures=(figure(1.0), figure(0.5))),
            Line(name="random", figures=(None, figure(0.1))),
        ),
    )
    shown = table.beside_baselines()
    assert shown is not None
    assert shown.columns == ("both",)
    only_ours = table.model_copy(update={"lines": table.lines[:1]})
    assert only_ours.beside_baselines() is None


def table_of(scores: list[Score], title: str) -> Table:
    sections = {section.name: section for section in summary(scores)}
    return next(table for table in sections["training"].tables if table.title == title)


def test_errors_and_coverage_by_hand() -> None:
    def point(measured: float, estimated: float, low: float, high: float) -> Point:
        return Point(
            quantity="step time",
            measured=measured,
            estimated=estimated,
            low=low,
            high=high,
            uncalibrated=estimated / 2,
            near=True,
        )

    # Errors 10% and 50%; the first lies in its interval, the second does not.
    points = (point(10.0, 11.0, 9.0, 12.0), point(10.0, 5.0, 4.0, 6.0))
    found = table_of([score("w").model_copy(update={"points": points})], "Error of step time")
    line = next(line for line in found.lines if line.name == ADVISOR)
    values = [f.value if f is not None else None for f in line.figures]
    assert values == pytest.approx([0.1, 0.5, 0.1, 0.5, 0.5])


def test_recall_of_misfits_and_fits_by_hand() -> None:
    def fact(fitted: bool, called: bool) -> Fact:
        return Fact(fitted=fitted, called_misfit=called, rule_called_misfit=True)

    facts = (
        [fact(False, True)] * 3
        + [fact(False, False)]
        + [fact(True, True)]
        + [fact(True, False)] * 4
    )
    found = table_of([score("w").model_copy(update={"facts": tuple(facts)})], "Memory")
    line = next(line for line in found.lines if line.name == ADVISOR)
    # 3 of 4 misfits are called so, 4 of 5 fits, and 3 of the 4 that are called misfits are.
    assert [f.value for f in line.figures if f is not None] == [0.75, 0.8, 0.75]


def test_runs_of_a_file_with_an_answer_count_once() -> None:
    facts = (Fact(fitted=True, called_misfit=False, rule_called_misfit=False),)
    both = [
        score("w", kind="adopted").model_copy(update={"facts": facts}),
        score("w").model_copy(update={"facts": facts}),
    ]
    found = table_of(both, "Memory")
    line = next(line for line in found.lines if line.name == ADVISOR)
    assert line.figures[0] is not None
    assert line.figures[0].workloads == 1


def test_figures_can_be_split() -> None:
    names = [s.name for s in summary([score("a"), score("b", phase="serve")], ["chip", "phase"])]
    assert names == [
        "training",
        "serving, dense, 8 devices",
        "training, chip h100",
        "serving, chip h100",
        "training, phase pretrain",
        "serving, phase serve",
    ]


def test_the_worst_come_first() -> None:
    scores = [score("good"), score("bad", regret=2.0), score("worse", regret=3.0)]
    asked = [s.workload for s in worst([*scores, score("expert", kind="adopted")], 3)]
    assert asked == ["worse", "bad", "expert"]
    text = worst_markdown(scores, 2)
    assert text.startswith("1. **worse** (a framework, h100, pretrain): regret 300%")


def test_a_plot_is_xml_with_its_points_inside() -> None:
    text = scatter("a < b", [(1.0, 2.0, "gpu"), (10.0, 9.0, "tpu")])
    root = ET.fromstring(text)
    circles = [e for e in root.iter() if e.tag.endswith("circle")]
    assert len(circles) == 2
    assert all(0 < float(c.attrib["cx"]) < 420 for c in circles)


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["evaluate", *arguments])
    return result.exit_code, result.output


def test_the_command_prints_and_writes_the_same_every_time(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    code, printed = run(str(EXAMPLE), "-o", str(first), "--by", "chip", "--quiet")
    assert code == 0
    assert "Layouts that experts adopted" in printed
    assert "random" in printed
    assert run(str(EXAMPLE), "-o", str(second), "--by", "chip")[0] == 0
    assert run(str(EXAMPLE), "-o", str(first), "--by", "chip")[0] == 0
    for name in ("evaluation.json", "evaluation.md"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
    data = json.loads((first / "evaluation.json").read_text())
    assert data["workloads"][0]["workload"] == "prompts-case-3"
    assert len((first / "scores.jsonl").read_text().splitlines()) == 1


def test_constants_of_ones_own_are_scored_and_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(calibration_text(uncalibrated(load_calibration())))
    code, printed = run(str(EXAMPLE), "--calibration", str(file), "--by", "family,chip,phase")
    assert code == 0
    assert "Constants: those of mine.yaml" in " ".join(printed.split())
    assert "training, family " in printed


def test_runs_with_open_knobs_are_counted(tmp_path: Path) -> None:
    stated = ", microbatch: 1, gradient_accumulation: 8, remat: full, sequence_parallel: false"
    rows = "".join(
        f"  - {{mesh: {{data: {8 // tensor}, tensor: {tensor}}}{knobs}, "
        f"measured: {{step_time_s: {tensor}, source: a test}}}}\n"
        for tensor, knobs in ((1, stated + ", virtual_stages: 1"), (2, ""))
    )
    file = tmp_path / "job.yaml"
    file.write_text(
        "model: llama3-8b\nhardware: h100:8\nphase: pretrain\nglobal_batch: 64\n"
        f"sequence: 4096\nalternatives:\n{rows}"
    )
    code, printed = run(str(file))
    assert code == 0, printed
    said = " ".join(printed.split())
    assert (
        "Runs whose source leaves knobs open: 1 of 2 (gradient_accumulation 1, microbatch 1" in said
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--by", "colour"], "--by colour"),
        (["--split", "test"], "split dev"),
        (["--sweeps", "nowhere"], "training/sweeps"),
        ([str(EXAMPLE), "--folds", "9"], "folds"),
        ([str(EXAMPLE), "--folds", "2", "--calibration", "c.yaml"], "constants of its own"),
        ([str(EXAMPLE), "--calibration", "nowhere.yaml"], "nowhere.yaml"),
        (["nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_bad_requests_say_what_is_wrong(arguments: list[str], says: str) -> None:
    code, printed = run(*arguments)
    assert code == 2
    assert says in printed
