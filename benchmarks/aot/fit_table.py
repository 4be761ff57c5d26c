"""HBM needs side by side: as published, as this installation's compiler says, as estimated.

    python benchmarks/aot/fit_table.py [--gpu] [--only TEXT]

Without --gpu: the needs that XLA's TPU compiler reported for an older reference program
(`compiled_needs` of estimate/data/measured.yaml). With --gpu: peaks that public runs measured on
GPUs (`memory_gb` there). Answers are cached, so a second run only prints. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import math

from prompts_agent.compile.fit import fit
from prompts_agent.compile.outcome import CompiledFit
from prompts_agent.estimate.estimator import estimate
from prompts_agent.estimate.fit import compiled_cases, step_cases
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Mesh
from prompts_agent.layout.table import LayoutTable
from prompts_agent.units import GB, GIB
from prompts_agent.workload.workload import Workload


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--only", default="", help="rows whose text contains this")
    arguments = parser.parse_args()
    rows = gpu_rows() if arguments.gpu else tpu_rows()
    print(
        f"{'row':58}{'known':>8}{'compiled':>10}{'ratio':>7}{'estimate':>10}{'ratio':>7}"
        f"{'cpu s':>7}  outcome"
    )
    compiled, estimated = [], []
    for name, layout, workload, known in rows:
        if arguments.only not in name:
            continue
        found = fit(layout, workload)
        guess = float(estimate(LayoutTable.of([layout]), workload).hbm_bytes[0])
        print(line(name, known, found, guess), flush=True)
        if found.hbm_need_bytes is not None:
            compiled.append(math.log(found.hbm_need_bytes / known))
            estimated.append(math.log(guess / found.hbm_need_bytes))
    summary("compiled ÷ known", compiled)
    summary("estimate ÷ compiled", estimated)


def tpu_rows() -> list[tuple[str, Layout, Workload, float]]:
    found = []
    for case, workload, _ in compiled_cases():
        mesh = Mesh.of(**{axis.value: size for axis, size in case.degrees.items()})
        layout = Layout(mesh=mesh, zero_stage=0)
        shard = max(1, workload.global_batch // layout.batch_shards)
        layout = layout.model_copy(update={"microbatch": shard})
        name = f"{case.model} {workload.topology} b{workload.global_batch} {layout}"
        found.append((name, layout, workload, case.need_gib * GIB))
    return found


def gpu_rows() -> list[tuple[str, Layout, Workload, float]]:
    return [
        (
            f"{case.model} {workload.topology} {layout} mb{layout.microbatch} z{layout.zero_stage}",
            layout,
            workload,
            case.memory_gb * GB,
        )
        for case, layout, workload, _ in step_cases()
        if case.memory_gb is not None
    ]


def line(name: str, known: float, found: CompiledFit, guess: float) -> str:
    need = found.hbm_need_bytes
    if need is None:
        return f"{name:58}{known / GIB:8.2f}  {found.outcome.value}: {found.reason[:80]}"
    cpu = f"{found.cpu_s:7.1f}" if found.cpu_s is not None else f"{'':7}"
    return (
        f"{name:58}{known / GIB:8.2f}{need / GIB:10.2f}{need / known:7.2f}{guess / GIB:10.2f}"
        f"{guess / need:7.2f}{cpu}  {found.outcome.value}"
    )


def summary(label: str, errors: list[float]) -> None:
    if not errors:
        return
    sizes = sorted(abs(error) for error in errors)
    bias = math.exp(sum(errors) / len(errors))
    print(
        f"{label}: n {len(errors)}, median error {math.expm1(sizes[len(sizes) // 2]):.1%}, "
        f"worst {math.expm1(sizes[-1]):.1%}, bias {bias:.2f}"
    )


if __name__ == "__main__":
    main()
