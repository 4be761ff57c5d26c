"""Training sweeps: what each published file means as workloads and layouts.

What the sources do not say and is assumed stands beside each reader.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from prompts_agent.evaluate.sweep import Sweep
from prompts_agent.evaluate.sweep_build import Tried, sweep_of
from prompts_agent.evaluate.sweep_table import (
    Row,
    load_model,
    number,
    read_config,
    read_rows,
    whole,
)
from prompts_agent.hardware.topology import parse_topology
from prompts_agent.layout.layout import Remat
from prompts_agent.layout.mesh import Axis
from prompts_agent.model.spec import ModelSpec
from prompts_agent.workload.framework import Framework
from prompts_agent.workload.workload import Constraints, Phase, Precision, Workload

__all__ = ["amp", "bigscience", "internevo", "nanotron", "vtrain"]

_MEGATRON_AXES = (Axis.PIPELINE, Axis.DATA, Axis.TENSOR)


def _groups(directory: Path, name: str) -> Iterator[tuple[dict[str, str], list[dict[str, str]]]]:
    """Each group of one sweep with its rows."""
    groups = read_rows(directory / "ranking_groups.csv", ("group_id", "sweep", "model", "chips"))
    needed = ("group_id", "config_json", "value", "failed", "oom")
    rows: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in read_rows(directory / "ranking_rows.csv", needed):
        rows[row["group_id"]].append(row)
    for group in groups:
        if group["sweep"] == name:
            yield group, rows[group["group_id"]]


def nanotron(directory: Path) -> Iterator[Sweep]:
    """H100, 8 to 512 GPUs: tokens/s per GPU. The trainer runs sequence parallel wherever it cuts
    tensors (tp_mode REDUCE_SCATTER), recomputes nothing, accumulates gradients in fp32.
    """
    for group, rows in _groups(directory, "nanotron_ultrascale"):
        chips = whole(group, "chips")
        batch, sequence = whole(group, "gbs_seqs"), whole(group, "seq_len")
        workload = Workload(
            name=f"{group['model']} on {chips} h100",
            model=load_model(group["model"]),
            topology=parse_topology(f"h100:{max(1, chips // 8)}x{min(8, chips)}"),
            phase=Phase.PRETRAIN,
            global_batch=batch,
            sequence=sequence,
            precision=Precision(gradients="fp32"),
            constraints=Constraints(
                axes=_MEGATRON_AXES,
                virtual_stages=(1,),
                remat=(Remat.NONE,),
                sequence_parallel=(True,),
            ),
            framework=Framework.NANOTRON,
            source="vinjn/nanotron-ultrascale-playbook",
        )
        tried = []
        for row in rows:
            config = read_config(row["config_json"])
            rate = number(row, "value")
            step_time_s = batch * sequence / (rate * chips) if rate else None
            tried.append(
                _megatron(
                    config,
                    step_time_s,
                    row,
                    zero_stage=min(1, int(config["zero_stage"])),
                    gradient_accumulation=config["grad_accum"],
                    remat=Remat.NONE,
                    sequence_parallel=config["tensor"] > 1,
                )
            )
        yield sweep_of(workload, tried, "nanotron", "nanotron_ultrascale")


def _megatron(
    config: Mapping[str, Any], step_time_s: float | None, row: Row, **knobs: Any
) -> Tried:
    memory = number(row, "mem") if row.get("mem_unit") == "GB" else None
    return Tried(
        degrees={
            Axis.PIPELINE: int(config.get("pipeline", 1)),
            Axis.DATA: int(config["data"]),
            Axis.TENSOR: int(config["tensor"]),
        },
        knobs={"microbatch": int(config["microbatch"]), **knobs},
        step_time_s=step_time_s,
        hbm_bytes=int(memory * 1e9) if memory else None,
        out_of_memory=row.get("oom") == "1",
    )


def vtrain(directory: Path) -> Iterator[Sweep]:
    """A100, 2 to 8 GPUs: seconds a step. Megatron-DeepSpeed with activation checkpointing; fp16,
    a vocabulary of 51200 (GPT-2's, padded) and 80 GB a GPU are assumed.
    """
    needed = ("gpus", "layers", "hidden", "heads", "seq_len", "gbs_seqs", "tp", "dp", "pp", "mbs")
    rows = read_rows(directory / "vtrain_single.csv", (*needed, "iter_ms"))
    for group in _grouped(rows, needed[:6]):
        gpus, layers, hidden, heads, sequence, batch = (whole(group[0], k) for k in needed[:6])
        workload = Workload(
            name=f"gpt {layers}x{hidden} seq {sequence} batch {batch} on {gpus} a100",
            model=_gpt(layers, hidden, heads, vocab=51200, positions=sequence),
            topology=parse_topology(f"a100-80:1x{gpus}"),
            phase=Phase.PRETRAIN,
            global_batch=batch,
            sequence=sequence,
            precision=Precision(compute="fp16", gradients="fp16"),
            constraints=_old_megatron(),
            framework=Framework.MEGATRON_CLASSIC,
            source="VIA-Research/vTrain",
        )
        tried = [
            _plain(row, step_time_s=(number(row, "iter_ms") or 0.0) / 1e3, zero_stage=0)
            for row in group
        ]
        cluster = f"gpt {layers}x{hidden} on {gpus} a100"
        yield sweep_of(workload, tried, "Megatron-DeepSpeed", "vtrain_single", cluster=cluster)


def _plain(row: Row, *, step_time_s: float | None, zero_stage: int) -> Tried:
    """A row of tp, pp, dp, mbs under full recomputation."""
    memory = number(row, "mem_gb") if "mem_gb" in row else None
    return Tried(
        degrees={
            Axis.PIPELINE: whole(row, "pp", 1),
            Axis.DATA: whole(row, "dp", 1),
            Axis.TENSOR: whole(row, "tp", 1),
        },
        knobs={
            "microbatch": whole(row, "mbs"),
            "zero_stage": zero_stage,
            "remat": Remat.FULL,
            "sequence_parallel": False,
        },
        step_time_s=step_time_s or None,
        hbm_bytes=int(memory * 1e9) if memory else None,
        out_of_memory=row.get("oom") == "1",
    )


def bigscience(directory: Path) -> Iterator[Sweep]:
    """A100-80GB, the trials before BLOOM: seconds an iteration. Megatron-DeepSpeed, ZeRO 1, full
    recomputation and sequences of 2048; 64 heads where the page does not say, a vocabulary of
    250880. Rows are compared within one section, model and batch.
    """
    needed = ("section", "gpus", "layers", "hidden", "heads", "gbs_seqs", "gpu", "tp", "pp", "dp")
    rows = [
        row
        for row in read_rows(directory / "bigscience.csv", (*needed, "mbs", "sec_per_it", "oom"))
        if row["gpu"] == "A100-80GB"
        and all(row[k] for k in ("gpus", "layers", "hidden", "gbs_seqs", "mbs"))
        and not (row["extra"] or row["zero"])
    ]
    for group in _grouped(rows, needed[:6]):
        first = group[0]
        gpus, layers, hidden, batch = (
            whole(first, k) for k in ("gpus", "layers", "hidden", "gbs_seqs")
        )
        if gpus % 8:
            continue
        heads = whole(first, "heads", 64)
        workload = Workload(
            name=f"bloom {layers}x{hidden} heads {heads} batch {batch} on {gpus} a100,"
            f" {first['section'].rpartition('> ')[2]}",
            model=_gpt(layers, hidden, heads, vocab=250880, positions=0),
            topology=parse_topology(f"a100-80:{gpus // 8}x8"),
            phase=Phase.PRETRAIN,
            global_batch=batch,
            sequence=2048,
            precision=Precision(gradients="fp32"),
            constraints=_old_megatron(),
            framework=Framework.MEGATRON_CLASSIC,
            source="bigscience-workshop/bigscience",
        )
        tried = [
            _plain(row, step_time_s=number(row, "sec_per_it"), zero_stage=1)
            for row in group
            if row["failed"] != "1" or row["oom"] == "1"
        ]
        cluster = f"bloom {layers}x{hidden} on {gpus} a100"
        yield sweep_of(workload, tried, "Megatron-DeepSpeed", "bigscience", cluster=cluster)


def internevo(directory: Path) -> Iterator[Sweep]:
    """A100-80GB, 8 to 1024 GPUs: tokens/s per GPU of InternLM 7B, without recomputation. Rows that
    shard the optimizer inside the node alone have no layout of ours and are left out.
    """
    for group, rows in _groups(directory, "internevo"):
        chips, sequence = whole(group, "chips"), whole(group, "seq_len")
        batch = whole(group, "gbs_seqs")
        workload = Workload(
            name=f"internlm-7b on {chips} a100",
            model=load_model("internlm-7b"),
            topology=parse_topology(f"a100-80:{max(1, chips // 8)}x{min(8, chips)}"),
            phase=Phase.PRETRAIN,
            global_batch=batch,
            sequence=sequence,
            constraints=Constraints(
                axes=_MEGATRON_AXES, remat=(Remat.NONE,), sequence_parallel=(False,)
            ),
            framework=Framework.INTERNEVO,
            source="InternLM/InternEvo",
        )
        tried = []
        for row in rows:
            config = read_config(row["config_json"])
            if config["zero1"] not in (-1, 1):
                continue
            rate = number(row, "value")
            step_time_s = batch * sequence / (rate * chips) if rate else None
            tried.append(
                _megatron(
                    config,
                    step_time_s,
                    row,
                    gradient_accumulation=config["grad_accum"],
                    zero_stage=1,
                    remat=Remat.NONE,
                    sequence_parallel=False,
                )
            )
        yield sweep_of(workload, tried, "InternEvo", "internevo")


def amp(directory: Path) -> Iterator[Sweep]:
    """16 T4 in nodes of four: seconds a step of GPT-2 345M; sequences of 1024 and fp16 without
    recomputation are assumed. The mixed cluster and the GAN are not workloads of ours.
    """
    for group, rows in _groups(directory, "amp_t4_v100"):
        if group["model"] != "gpt2-345m homogeneous":
            continue
        workload = Workload(
            name="gpt2-345m on 16 t4",
            model=load_model("gpt2-345m"),
            topology=parse_topology("t4:4x4"),
            phase=Phase.PRETRAIN,
            global_batch=whole(group, "gbs_seqs"),
            sequence=1024,
            precision=Precision(compute="fp16", gradients="fp16"),
            constraints=Constraints(
                axes=_MEGATRON_AXES,
                remat=(Remat.NONE,),
                sequence_parallel=(False,),
                virtual_stages=(1,),
            ),
            framework=Framework.MEGATRON_CLASSIC,
            source="DachengLi1/AMP",
        )
        tried = [
            _megatron(
                read_config(row["config_json"]),
                number(row, "value"),
                row,
                zero_stage=0,
                remat=Remat.NONE,
                sequence_parallel=False,
            )
            for row in rows
        ]
        yield sweep_of(workload, tried, "DeepSpeed", "amp_t4_v100")


def _gpt(layers: int, hidden: int, heads: int, *, vocab: int, positions: int) -> ModelSpec:
    """A GPT of Megatron's: four times as wide between, biases and layer norms, tied embeddings."""
    return ModelSpec(
        name=f"gpt {layers}x{hidden}x{heads}",
        family="gpt",
        layers=layers,
        embed=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        mlp=4 * hidden,
        gated_mlp=False,
        vocab=vocab,
        tied_embeddings=True,
        learned_positions=positions,
        norm="layernorm",
        qkv_bias=True,
        out_bias=True,
        mlp_bias=True,
        source="dims as the sweep prints them, the rest as Megatron-LM's GPT has it",
    )


def _old_megatron() -> Constraints:
    """Pipeline, data and tensor; full recomputation; no sequence parallelism, no chunks."""
    return Constraints(
        axes=_MEGATRON_AXES,
        remat=(Remat.FULL,),
        sequence_parallel=(False,),
        virtual_stages=(1,),
    )


def _grouped(rows: Iterable[dict[str, str]], keys: tuple[str, ...]) -> list[list[dict[str, str]]]:
    groups: dict[tuple[str, ...], list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[key].removesuffix(".0") for key in keys)].append(row)
    return list(groups.values())
