"""Configs as people write them, each a few lines."""

from __future__ import annotations

from pathlib import Path

MAXTEXT = """\
# our big run
base_config: base.yml
model_name: llama3.1-70b
ici_fsdp_parallelism: -1
ici_tensor_parallelism: 4  # inside a host
dcn_data_parallelism: 2
per_device_batch_size: 1
max_target_length: 8192
remat_policy: full
"""
MEGATRON = """\
#!/bin/bash
TP=2
NODES=${NODES:-2}
GPUS_PER_NODE=8
DISTRIBUTED_ARGS="--nproc_per_node $GPUS_PER_NODE \\
    --nnodes $NODES"
MODEL_ARGS=(
    --num-layers 32
    --hidden-size 4096
    --ffn-hidden-size 14336
    --num-attention-heads 32
    --num-query-groups 8
    --vocab-size 128256
    --swiglu
    --untie-embeddings-and-output-weights
)
TRAIN_ARGS=(
    --micro-batch-size 1
    --global-batch-size=128   # sequences
    --seq-length 8192
    --tensor-model-parallel-size ${TP}
    --pipeline-model-parallel-size 2
    "--context-parallel-size 1"
    --sequence-parallel
    --use-distributed-optimizer
    --recompute-granularity selective
)
torchrun $DISTRIBUTED_ARGS pretrain_gpt.py "${MODEL_ARGS[@]}" "${TRAIN_ARGS[@]}"
"""
TORCHTITAN = """\
from torchtitan.config import ParallelismConfig
from torchtitan.distributed.activation_checkpoint import FullAC
from torchtitan.models.llama3.config_registry import llama3_70b

TP = 8


def mine():
    config = llama3_70b()
    config.parallelism = ParallelismConfig(
        data_parallel_shard_degree=-1,
        tensor_parallel_degree=TP,
    )
    config.training.local_batch_size = 2
    config.training.seq_len = 8192
    config.activation_checkpoint = FullAC.Config()
    return config
"""
TORCHTITAN_TOML = """\
# torchtitan, 2025
[training]
local_batch_size = 1
seq_len = 4096

[parallelism]
data_parallel_shard_degree = 8
tensor_parallel_degree = 2

[activation_checkpoint]
mode = "full"
"""
VLLM = """\
export HF_HOME=/cache
vllm serve meta-llama/Llama-3.1-70B-Instruct \\
  -tp 4 --data-parallel-size=2 \\
  --max-model-len 8192 \\
  --max-num-seqs 64 --kv-cache-dtype fp8
"""
SGLANG = """\
# sglang
model-path: deepseek-ai/DeepSeek-V3
tp-size: 8
dp-size: 8
enable-dp-attention: true
ep-size: 8
context-length: 4096
max-running-requests: 256
"""
FILES = {
    "maxtext": ("train.yml", MAXTEXT),
    "megatron": ("train.sh", MEGATRON),
    "torchtitan": ("mine.py", TORCHTITAN),
    "vllm": ("serve.sh", VLLM),
    "sglang": ("serve.yaml", SGLANG),
}


def written(directory: Path, framework: str) -> Path:
    """The framework's file in `directory`."""
    name, text = FILES[framework]
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path
