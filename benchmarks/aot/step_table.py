"""Step times side by side: as measured in public, by the compiled schedule, by the estimate.

    python benchmarks/aot/step_table.py [--platform tpu|gpu] [--only TEXT] [--full]

The measured ones are `step_times` of estimate/data/measured.yaml. The schedule is the one before
code generation, its ops by a roofline; with --full the whole compile, by the compiler's cycles.
The estimate's constants were fitted on these points, so its errors here are in-sample; nothing of
the schedule's clock was, but the estimator's share of the links and of attention; then a ratio by
chip, as compile/data/clock.yaml has it, is taken from the other models' rows. The runs' own
programs are not known: remat policies, kernels and flags differ from the reference program's.
Answers are cached, so a second run only prints. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import math

from prompts_agent.compile.fit import fit
from prompts_agent.compile.request import Until
from prompts_agent.estimate.fit import step_cases
from prompts_agent.hardware.catalog import find_chip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--platform", choices=("tpu", "gpu"), default="tpu")
    parser.add_argument("--only", default="", help="rows whose text contains this")
    parser.add_argument("--full", action="store_true")
    arguments = parser.parse_args()
    until = Until.END if arguments.full else Until.SCHEDULE
    print(f"{'row':62}{'measured':>9}{'schedule':>9}{'ratio':>7}{'estimate':>9}{'ratio':>7}")
    schedules, estimates, rows = [], [], []
    for case, layout, workload, estimated_s in step_cases():
        name = f"{case.model} {workload.topology} b{workload.global_batch} {layout}"
        platform = find_chip(workload.topology.chip).platform
        if platform != arguments.platform or arguments.only not in name:
            continue
        if workload.framework is not None:
            continue  # another framework's program: no schedule of XLA's says anything of it
        found = fit(layout, workload, until=until)
        measured_s = case.step_time_s
        if found.schedule is None:
            print(f"{name:62}{measured_s:9.2f}  {found.outcome.value}: {found.reason[:60]}")
            continue
        step_s = found.schedule.step_time_s
        schedules.append(math.log(step_s / measured_s))
        estimates.append(math.log(estimated_s / measured_s))
        rows.append((case.model, workload.topology.chip, schedules[-1]))
        print(
            f"{name:62}{measured_s:9.2f}{step_s:9.2f}{step_s / measured_s:7.2f}"
            f"{estimated_s:9.2f}{estimated_s / measured_s:7.2f}",
            flush=True,
        )
    summary("schedule ÷ measured", schedules)
    summary("estimate ÷ measured", estimates)
    summary("schedule × a ratio from other models ÷ measured", left_out(rows))
    for chip in sorted({chip for _, chip, _ in rows}):
        errors = [error for _, found, error in rows if found == chip]
        print(f"{chip}: ratio {math.exp(-sum(errors) / len(errors)):.3f}, runs {len(errors)}")


def left_out(rows: list[tuple[str, str, float]]) -> list[float]:
    """Errors that remain where each chip's ratio is made from the other models' runs."""
    found = []
    for model, chip, error in rows:
        others = [e for other, where, e in rows if where == chip and other != model]
        found.append(error - sum(others) / len(others) if len(others) > 1 else error)
    return found


def summary(label: str, errors: list[float]) -> None:
    if not errors:
        return
    sizes = sorted(abs(error) for error in errors)
    p90 = sizes[min(len(sizes) - 1, math.ceil(0.9 * len(sizes)) - 1)]
    bias = math.exp(sum(errors) / len(errors))
    print(
        f"{label}: n {len(errors)}, median error {math.expm1(sizes[len(sizes) // 2]):.1%}, "
        f"p90 {math.expm1(p90):.1%}, worst {math.expm1(sizes[-1]):.1%}, bias {bias:.2f}"
    )


if __name__ == "__main__":
    main()
