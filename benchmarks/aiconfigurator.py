"""AIConfigurator on the GPU pools that it covers, scored as `prompts evaluate` scores us.

    python -m venv aic && aic/bin/pip install aiconfigurator==0.12.0
    python benchmarks/aiconfigurator.py DIR --python aic/bin/python

DIR holds serving/sweeps/fixed_pool_rankings.csv. AIConfigurator lives in an environment of its own,
since it pins other versions of what we need; this script calls itself there with --worker, one
point estimate a layout. It looks pools up in kernel measurements of the same authors, who also
published the pools. Without --python nothing is run, and the reason is printed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

# Its name of a model, as far as its package brings the model's config.
PATHS = {
    "llama3.1-8b": "meta-llama/Meta-Llama-3.1-8B",
    "llama3.1-70b": "meta-llama/Meta-Llama-3.1-70B",
    "qwen3-32b": "Qwen/Qwen3-32B",
    "qwen3-235b-a22b": "Qwen/Qwen3-235B-A22B-FP8",
    "gpt-oss-120b": "openai/gpt-oss-120b",
}
# Its name of a dtype of dense weights; models with experts come with theirs in the config.
DTYPES = {"fp8": "fp8", "fp4": "nvfp4"}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path, nargs="?")
    parser.add_argument("--python", type=Path, help="of the environment with aiconfigurator")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work()
    elif arguments.python is None or not arguments.python.is_file():
        print("skipped: --python names no environment with aiconfigurator")
    else:
        compare(arguments.directory, arguments.python)


def compare(directory: Path, python: Path) -> None:
    """Asks AIConfigurator for every layout of every pool of eight, and scores both on the same."""
    import numpy as np

    from prompts_agent.estimate.calibration import load_calibration
    from prompts_agent.estimate.estimator import estimate
    from prompts_agent.evaluate.bootstrap import mean_figure
    from prompts_agent.evaluate.methods import by_estimate, random_of
    from prompts_agent.evaluate.score import Method
    from prompts_agent.evaluate.scores import kendall_tau, regret, tied_best
    from prompts_agent.evaluate.sweep_others import pools
    from prompts_agent.layout.mesh import Axis
    from prompts_agent.layout.table import LayoutTable

    sweeps = [s for s in pools(directory / "serving/sweeps") if s.workload.topology.devices == 8]
    asked, places = [], []
    for number, sweep in enumerate(sweeps):
        for k, row in enumerate(sweep.rows):
            places.append((number, k))
            asked.append(question(sweep, row, Axis))
    answers = dict(zip(places, ask(asked, python), strict=True))
    calibration = load_calibration()
    found: dict[str, dict[str, dict[str, list[Method]]]] = {}
    left_out = 0
    for number, sweep in enumerate(sweeps):
        rates = [answers[number, k] for k in range(len(sweep.rows))]
        if any(rate is None for rate in rates):
            left_out += 1
            continue
        times_s = np.array([1.0 / (row.tokens_per_s or 1.0) for row in sweep.rows])
        guess = 1.0 / np.array(rates, dtype=np.float64)
        table = LayoutTable.of(row.layout for row in sweep.rows)
        ours = estimate(table, sweep.workload, calibration=calibration)
        first = int(np.argmin(guess))
        methods = {
            "aiconfigurator": Method(
                top_1=float(tied_best(times_s)[first]),
                regret=regret(times_s, [first]),
                tau=kendall_tau(guess, times_s),
            ),
            "prompts": by_estimate(ours, table, sweep.workload, times_s),
            "random": random_of(times_s),
        }
        kind = "experts" if sweep.workload.model.moe is not None else "dense"
        for name, method in methods.items():
            clusters = found.setdefault(kind, {}).setdefault(name, {})
            clusters.setdefault(sweep.cluster, []).append(method)
    print(f"{len(sweeps)} pools, {left_out} that AIConfigurator does not cover")
    for kind, by_name in found.items():
        for name, clusters in by_name.items():
            cells = []
            for field in ("top_1", "regret", "tau"):
                values = {
                    c: [v for m in ms if (v := getattr(m, field)) is not None]
                    for c, ms in clusters.items()
                }
                figure = mean_figure(values)
                cells.append(f"{field} {figure.value:.3f}" if figure else f"{field} -")
            print(f"{kind:8} {len(clusters):3} workloads {name:15} {'  '.join(cells)}")


def question(sweep, row, axes):  # type: ignore[no-untyped-def]
    """One layout as keywords of AIConfigurator's point estimate, and what its answer is times."""
    workload, mesh = sweep.workload, row.layout.mesh
    replicas, tensor = mesh.size(axes.DATA), mesh.size(axes.TENSOR)
    expert = mesh.size(axes.EXPERT)
    keywords = {
        "model_path": PATHS.get(workload.model.name),
        "system_name": f"{workload.topology.chip}_sxm",
        "backend_name": sweep.framework,
        "isl": workload.traffic.input_tokens,
        "osl": workload.traffic.output_tokens,
        "batch_size": max(1, workload.traffic.concurrency // replicas),
        "tp_size": tensor,
    }
    if workload.model.moe is not None:
        keywords |= {"moe_tp_size": tensor // expert, "moe_ep_size": expert}
    elif workload.precision.weights in DTYPES:
        keywords["gemm_quant_mode"] = DTYPES[workload.precision.weights]
    return {"keywords": keywords, "replicas": replicas}


def ask(questions, python):  # type: ignore[no-untyped-def]
    """Output tokens/s of every pool, or None where it has no answer."""
    done = subprocess.run(
        [str(python), "-I", "-W", "ignore", __file__, "--worker"],
        # -I: without this directory on the path, in which this file has the name of their package.
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"the worker failed: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def work() -> None:
    """Inside AIConfigurator's environment: questions on stdin, answers on stdout."""
    import logging

    logging.disable(logging.WARNING)
    from aiconfigurator.cli.api import cli_estimate  # type: ignore[import-not-found]

    known: dict[str, float | None] = {}
    answers = []
    for question in json.load(sys.stdin):
        words, replicas = question["keywords"], question["replicas"]
        key = json.dumps(words, sort_keys=True)
        if key not in known:
            try:
                found = cli_estimate(**words)
                seconds = (found.ttft + found.tpot * (words["osl"] - 1)) / 1e3
                known[key] = words["batch_size"] * words["osl"] / seconds
            except Exception as error:  # noqa: BLE001  (whatever it lacks, it has no answer)
                sys.stderr.write(f"{words['model_path']}: {str(error)[:150]}\n")
                known[key] = None
        rate = known[key]
        answers.append(None if rate is None else replicas * rate)
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
