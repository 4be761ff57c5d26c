"""Serving: first-token time, time per token and throughput of replicas under a load.

`data` counts replicas. Every function returns float64[n].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.arrivals import open_loop
from prompts_agent.estimate.memory_serving import running_sequences
from prompts_agent.estimate.serving_steps import decode_step, prefill_step
from prompts_agent.estimate.setting import Setting
from prompts_agent.estimate.sizes import given_sequences
from prompts_agent.workload.workload import Phase

__all__ = ["serving_times"]

FloatColumn = NDArray[np.float64]


def serving_times(at: Setting, kv_cache_bytes: FloatColumn) -> dict[str, FloatColumn]:
    """`ttft_s`, `tpot_s`, `tokens_per_s` (all replicas; input tokens for prefill, else output
    tokens), of mixed serving `running_sequences` and, where requests come at a rate (`open_loop`),
    `utilisation`, and what the phase's step is made of: the parts
    of `prefill_step` for prefill, whose sum is TTFT; else those of `decode_step`, and in mixed
    serving `prefill_s`, whose sum is TPOT.

    A pipeline of p stages splits the batch into p microbatches: a token passes all stages, and each
    is busy with another microbatch meanwhile.
    """
    workload, stages = at.workload, at.sizes.pipeline
    sequences = running_sequences(at)
    replicas = at.table.batch_shards.astype(np.float64)
    step = decode_step(at, sequences, kv_cache_bytes)
    decode = np.sum(list(step.values()), axis=0)
    prompt = float(workload.traffic.input_tokens if workload.traffic else workload.sequence)
    if workload.phase is Phase.SERVE:
        traffic = workload.traffic
        if traffic is not None and traffic.requests_per_s is not None:
            output, rate = float(traffic.output_tokens), traffic.requests_per_s
            return open_loop(at, sequences, prompt, output, rate)
        return _mixed(at, sequences, step, prompt)
    prompt_step = prefill_step(at, prompt)
    prefill = np.sum(list(prompt_step.values()), axis=0)
    if workload.phase is Phase.PREFILL:
        rate = replicas * stages * prompt / prefill
        return {"ttft_s": prefill, "tpot_s": decode, "tokens_per_s": rate, **prompt_step}
    rate = replicas * sequences / decode
    return {"ttft_s": prefill, "tpot_s": decode, "tokens_per_s": rate, **step}


def _mixed(
    at: Setting, sequences: FloatColumn, step: dict[str, FloatColumn], prompt: float
) -> dict[str, FloatColumn]:
    """Continuous batching of b sequences a replica (arXiv 2309.06180, section 2.3; Yu et al., OSDI
    2022): while b sequences write `output` tokens each, b prompts are prefilled, so b sequences
    take `b × prefill + output × decode`.

    A prompt finds `queue × b^exponent` others before it, at most b - 1: prompts come in clumps. It
    waits for them and for the step that runs, half of one on average. The rest of the prompts fall
    between its tokens. Stages work on several prompts at once where there are several. Requests
    beyond b wait for a place: of C requests in flight, C/b - 1 times as long as one is served.
    """
    traffic, constants = at.workload.traffic, at.constants
    output = float(traffic.output_tokens if traffic else at.workload.sequence)
    decode = np.sum(list(step.values()), axis=0)
    others = np.maximum(sequences - 1.0, 0.0)
    ahead = np.minimum(constants.prompt_queue * sequences**constants.prompt_queue_exponent, others)
    prefill = np.sum(list(prefill_step(at, prompt, 1.0 + ahead).values()), axis=0)
    each = prefill / np.minimum(at.sizes.pipeline, 1.0 + ahead)
    between = (others - ahead) * each / output
    token = decode + between
    first = prefill + ahead * each + 0.5 * decode
    served = first + (output - 1.0) * token
    waiting = given_sequences(at.table, at.workload) / sequences - 1.0
    replicas = at.table.batch_shards.astype(np.float64)
    return {
        "ttft_s": first + waiting * served,
        "tpot_s": token,
        "tokens_per_s": replicas * sequences * output / served,
        **step,
        "prefill_s": between,
        "running_sequences": sequences,
    }
