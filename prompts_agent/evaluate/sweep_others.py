"""Two more kinds of sweep: trials on one TPU host, and pools of GPUs that serve."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from prompts_agent.errors import PromptsError
from prompts_agent.estimate.pools import SERVERS
from prompts_agent.evaluate.sweep import Sweep
from prompts_agent.evaluate.sweep_build import Tried, sweep_of
from prompts_agent.evaluate.sweep_table import number, read_rows, whole
from prompts_agent.hardware.topology import parse_topology
from prompts_agent.layout.layout import Remat
from prompts_agent.layout.mesh import Axis
from prompts_agent.model.catalog import find_model
from prompts_agent.workload.framework import Framework
from prompts_agent.workload.workload import Constraints, Phase, Precision, Traffic, Workload

__all__ = ["pools", "tpu_trials"]

# JAX's checkpoint policies of the same meaning as ours; others (offload, chosen names) have none.
_REMAT = {
    "nothing_saveable": Remat.FULL,
    "jax.checkpoint(forward_loss)": Remat.FULL,
    "checkpoint_dots_with_no_batch_dims": Remat.MINIMAL,
    "everything_saveable": Remat.NONE,
}
_TPU_SHAPES = {"4": "v6e:2x2", "8": "v6e:2x4"}


def tpu_trials(directory: Path) -> Iterator[Sweep]:
    """v6e-4 and v6e-8. Code and flags change from trial to trial: rows are facts one by one
    (did it fit, how long did a step take), and never ranked.
    """
    needed = ("model", "chips", "seq_len", "gbs_seqs", "fsdp", "tp", "remat", "tok_s_chip", "oom")
    groups: dict[tuple[str, ...], list[dict[str, str]]] = defaultdict(list)
    for row in read_rows(directory / "tpu_v6e_autoresearch.csv", needed):
        if row["gbs_seqs"] and row["remat"] in _REMAT and row["chips"] in _TPU_SHAPES:
            groups[tuple(row[key] for key in needed[:4])].append(row)
    for (name, chips, _, _), rows in groups.items():
        try:
            model = find_model(name)
        except PromptsError:
            continue
        batch, sequence = whole(rows[0], "gbs_seqs"), whole(rows[0], "seq_len")
        workload = Workload(
            name=f"{name} seq {sequence} batch {batch} on {chips} v6e",
            model=model,
            topology=parse_topology(_TPU_SHAPES[chips]),
            phase=Phase.PRETRAIN,
            global_batch=batch,
            sequence=sequence,
            constraints=Constraints(axes=(Axis.DATA, Axis.FSDP, Axis.CONTEXT, Axis.TENSOR)),
            framework=Framework.MAXTEXT,
            source="vlasenkoalexey/tpu_performance_autoresearch_wiki",
        )
        tried = []
        for row in rows:
            rate = number(row, "tok_s_chip")
            tried.append(
                Tried(
                    degrees={Axis.FSDP: whole(row, "fsdp"), Axis.TENSOR: whole(row, "tp")},
                    knobs={"remat": _REMAT[row["remat"]]},
                    step_time_s=batch * sequence / (rate * int(chips)) if rate else None,
                    out_of_memory=row["oom"] == "1",
                )
            )
        cluster = f"{name} seq {sequence} on {chips} v6e"
        yield sweep_of(
            workload, tried, "jax", "tpu_v6e_autoresearch", cluster=cluster, rankable=False
        )


def pools(directory: Path) -> Iterator[Sweep]:
    """Pools of 2 to 8 GPUs with two or more layouts: output tokens/s of the whole pool.

    Unstated weights are bf16. Where a model has experts, `expert` divides the tensor ranks.
    """
    needed = ("group", "system", "model_path", "precision", "backend", "isl", "osl", "pool_gpus")
    more = ("total_concurrency", "tp", "attention_dp", "moe_ep", "derived_total_output_tok_s")
    groups: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in read_rows(directory / "fixed_pool_rankings.csv", needed + more):
        groups[row["group"]].append(row)
    for rows in groups.values():
        if len(rows) > 1:
            yield _pool(rows)


def _pool(rows: list[dict[str, str]]) -> Sweep:
    first = rows[0]
    gpus, concurrency = whole(first, "pool_gpus"), whole(first, "total_concurrency")
    traffic = Traffic(
        input_tokens=whole(first, "isl"),
        output_tokens=whole(first, "osl"),
        concurrency=concurrency,
    )
    model = find_model(first["model_path"])
    mixture = model.moe is not None
    weights = first["precision"] if first["precision"] != "unstated" else "bf16"
    chip = first["system"].removesuffix("_sxm")
    cluster = (
        f"{model.name} {weights} {first['backend']} {first['backend_version']}"
        f" {traffic.input_tokens}in {traffic.output_tokens}out on {gpus} {chip}"
    )
    workload = Workload(
        name=f"{cluster} c{concurrency}",
        model=model,
        topology=parse_topology(f"{chip}:1x{gpus}"),
        phase=Phase.SERVE,
        global_batch=concurrency,
        sequence=traffic.input_tokens + traffic.output_tokens,
        precision=Precision(weights=weights),
        traffic=traffic,
        constraints=Constraints(expert_divides=mixture),
        framework=SERVERS.get(first["backend"]),
        source="ai-dynamo/aiconfigurator",
    )
    tried = []
    for row in rows:
        groups = whole(row, "attention_dp", 1)
        tensor = whole(row, "tp") * groups
        ttft_ms, tpot_ms = number(row, "ttft_ms"), number(row, "tpot_ms")
        tried.append(
            Tried(
                degrees={
                    Axis.DATA: gpus // tensor,
                    Axis.EXPERT: whole(row, "moe_ep", 1),
                    Axis.TENSOR: tensor,
                },
                knobs={"attention_data": groups} if groups > 1 else {},
                tokens_per_s=number(row, "derived_total_output_tok_s"),
                ttft_s=ttft_ms / 1e3 if ttft_ms else None,
                tpot_s=tpot_ms / 1e3 if tpot_ms else None,
            )
        )
    return sweep_of(workload, tried, first["backend"], "fixed_pool_rankings", cluster=cluster)
