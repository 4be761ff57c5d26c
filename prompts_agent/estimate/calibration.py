"""Calibration: the few constants of the estimates, each with its source, and how far they miss."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from prompts_agent.errors import InputError, InternalError
from prompts_agent.record import Record

__all__ = [
    "Calibration",
    "Constant",
    "Constants",
    "Residuals",
    "Stack",
    "load_calibration",
    "read_calibration",
    "using",
]


class Constant(Record):
    """One number and where it comes from."""

    value: float
    source: str


class Constants(Record):
    """The numbers of one platform. Shares are of the data sheet's figure."""

    matmul_efficiency: float = Field(gt=0, le=1)
    """Share of peak FLOP/s of a large matmul."""
    low_precision_efficiency: float = Field(gt=0, le=1)
    """What a matmul of 8 or 4 bits keeps of `matmul_efficiency`: scaling, casts, transposes."""
    grouped_efficiency: float = Field(gt=0, le=1)
    """What the matmuls of a layer's experts keep of it: many small products in one launch."""
    chip_share: float = Field(gt=0, le=2)
    """What a kind of chip makes of `matmul_efficiency`: its clocks under load, its tile sizes."""
    matmul_half_extent: float = Field(ge=0)
    """Local columns or tokens at which a matmul reaches half of that."""
    attention_efficiency: float = Field(gt=0, le=1)
    """Share of peak FLOP/s of a flash attention kernel."""
    hbm_efficiency: float = Field(gt=0, le=1)
    link_efficiency: float = Field(gt=0, le=1)
    network_efficiency: float = Field(gt=0, le=1)
    hop_latency_s: float = Field(ge=0)
    network_latency_s: float = Field(ge=0)
    fsdp_overlap: float = Field(ge=0, le=1)
    """Share of gathered weights' traffic that compute can hide."""
    data_overlap: float = Field(ge=0, le=1)
    """Of the gradients' all-reduce."""
    data_overlap_sharded: float = Field(ge=0, le=1)
    """Of what ZeRO-1 does in its place: a reduce-scatter, and a gather of the new weights."""
    tensor_overlap: float = Field(ge=0, le=1)
    """Of the all-reduces of whole residuals."""
    tensor_overlap_sharded: float = Field(ge=0, le=1)
    """Of the gathers and scatters under sequence_parallel, which matmuls can be cut to hide."""
    context_overlap: float = Field(ge=0, le=1)
    context_split: float = Field(ge=0)
    """Attention time lost per doubling of context ranks: shorter kernels, unequal halves."""
    expert_overlap: float = Field(ge=0, le=1)
    expert_overlap_staged: float = Field(ge=0, le=1)
    """The same with pipeline stages, where another microbatch computes while tokens travel."""
    expert_imbalance: float = Field(ge=0)
    """Work of the busiest expert rank beyond the mean, where experts are cut over many."""
    pipeline_overlap: float = Field(ge=0, le=1)
    """Share of the transfers between stages that compute can hide."""
    host_efficiency: float = Field(gt=0, le=1)
    """Share of the host link's bandwidth that offloaded activations reach."""
    straggle: float = Field(ge=0)
    """Share of a step lost per doubling of the devices: the slowest of many sets the pace."""
    microbatch_stall_s: float = Field(ge=0)
    """What every microbatch waits, whatever it computes, on 512 devices; it goes as their cube."""
    bucket_bytes: float = Field(gt=0)
    """Gradients are reduced in pieces of so many bytes, each with the latency of a ring."""
    logits_bytes: float = Field(gt=0)
    """Bytes held at once for each logit of a microbatch."""
    fragmentation: float = Field(ge=0, lt=1)
    """Share of what is held that the allocator loses besides."""
    workspace_bytes: float = Field(ge=0)
    """Kernel and collective buffers, whatever the layout."""
    step_overhead_s: float = Field(ge=0)
    """Launch and host time of a training step that nothing hides."""
    layer_floor_s: float = Field(ge=0)
    """Least time of a layer's forward and backward pass in training, however little it computes."""
    layer_latency_s: float = Field(ge=0)
    """Time of a layer's small kernels that does not shrink with the batch, in serving."""
    latent_latency_s: float = Field(ge=0)
    """What a layer with a latent cache (MLA) takes besides: its projections are many small ones."""
    exchange_latency_s: float = Field(ge=0)
    """Time of a small exchange of tokens with experts, there and back, beyond the bytes."""
    serving_matmul_efficiency: float = Field(gt=0, le=1)
    """Share of peak FLOP/s of a large matmul in serving's kernels."""
    serving_hbm_efficiency: float = Field(gt=0, le=1)
    """Share of HBM bandwidth at which a decode step reads weights and cache."""
    serving_expert_efficiency: float = Field(gt=0, le=1)
    """What of it is left for the weights of a layer's experts, a few tokens each."""
    reduce_latency_s: float = Field(ge=0)
    """Time of a small all-reduce in serving per doubling of its ranks, beyond the bytes."""
    serving_overhead_s: float = Field(ge=0)
    """Scheduler, sampling and launch of one serving step."""
    sequence_overhead_s: float = Field(ge=0)
    """What of it comes once a sequence: sampling, stop conditions, detokenising."""
    serving_grouped_efficiency: float = Field(gt=0, le=1)
    """What the matmuls of a layer's experts keep of `serving_matmul_efficiency` in a prefill."""
    expert_spread: float = Field(gt=0, le=1)
    """Share of a layer's experts among which tokens are routed evenly; others are hardly met."""
    expert_row_touches: float = Field(ge=0)
    """How often a routed token's row passes HBM around a layer's experts: sorted, cast, summed."""
    prompt_queue: float = Field(ge=0)
    """Prompts that a prompt finds before it, for one running sequence…"""
    prompt_queue_exponent: float = Field(ge=0, le=1)
    """…and how that grows with them: 1/2 where steps mix prompts and tokens, 1 where prompts go
    first, so that sequences of one length start and end together."""


class Residuals(Record):
    """How far estimates were from measurements, over `cases` points.

    `median` and `p90` are of |ln(estimate ÷ measured)|; `low` and `high` are the 5% and 95%
    quantiles of ln(measured ÷ estimate), so that estimate × exp(low … high) is the 90% interval.
    """

    cases: int = Field(ge=1)
    median: float = Field(ge=0)
    p90: float = Field(ge=0)
    low: float = Field(le=0)
    high: float = Field(ge=0)
    source: str


Platform = Literal["tpu", "gpu"]
Stack = Literal["xla", "megatron", "fsdp", "eager", "classic", "vllm", "tensorrt-llm", "sglang"]
"""Kinds of software whose kernels and overlap differ. Training: XLA on GPUs, Megatron-Core with
Transformer Engine, PyTorch's FSDP, eager PyTorch with parallel layers of its own, and Megatron-LM
before Megatron-Core (Megatron-DeepSpeed among it). Servers on GPUs, by name."""


class Calibration(Record):
    """Constants of the two platforms, and the residuals that give the 90% intervals."""

    version: Literal[1] = 1
    """Of this form of file; another has other fields."""
    platforms: dict[Platform, dict[str, Constant]]
    stacks: dict[Stack, dict[str, Constant]] = Field(default_factory=dict)
    """What a training stack does otherwise than its platform's numbers say."""
    chips: dict[str, dict[str, Constant]] = Field(default_factory=dict)
    """What a kind of chip does otherwise, by short name; training only."""
    preferences: dict[Stack | Literal["tpu"], dict[str, float]] = Field(default_factory=dict)
    """Weights of `preference.FEATURES` in the ranking of training layouts, as ln of time."""
    step_time: dict[Platform | Stack, Residuals]
    """Of a step time that is predicted from nothing measured; a stack's own where it has points."""
    serving: Residuals
    """Of the seconds a token takes in serving. Measured on GPUs; TPUs borrow it."""
    ttft: Residuals
    """Of the time to the first token under load, which a benchmark's arrivals decide besides."""
    hbm: dict[Platform | Stack, Residuals]
    """Of the memory need; a stack's own where there are measured peaks of it."""
    ratio_per_doubling: Residuals
    """Of the ratio of two layouts of one workload, per doubling of a degree between them."""

    def entries(
        self, platform: str, stack: Stack | None = None, chip: str | None = None
    ) -> dict[str, Constant]:
        """The numbers of `platform`, "tpu" or "gpu", with those of `stack` and of `chip` in their
        place, by name; `InternalError` where the platform is missing.
        """
        try:
            found = self.platforms["tpu" if platform == "tpu" else "gpu"]
        except KeyError as error:
            raise InternalError(
                f"no constants for platform {platform!r}",
                rule="the calibration has tpu and gpu",
                cure="Mend estimate/data/calibration.yaml.",
            ) from error
        found = found | (self.stacks.get(stack, {}) if stack else {})
        return found | (self.chips.get(chip, {}) if chip else {})

    def constants(
        self, platform: str, stack: Stack | None = None, chip: str | None = None
    ) -> Constants:
        """The values of `entries`."""
        found = self.entries(platform, stack, chip)
        return Constants(**{name: entry.value for name, entry in found.items()})


_IN_USE: ContextVar[Calibration | None] = ContextVar("calibration in use", default=None)


def load_calibration() -> Calibration:
    """The calibration in use: that of `using`, else the one that ships with the package
    (`estimate/data/calibration.yaml`).
    """
    return _IN_USE.get() or _shipped()


@contextlib.contextmanager
def using(calibration: Calibration | None) -> Iterator[None]:
    """Estimates inside take these constants; None leaves them as they are."""
    if calibration is None:
        yield
        return
    token = _IN_USE.set(calibration)
    try:
        yield
    finally:
        _IN_USE.reset(token)


@cache
def _shipped() -> Calibration:
    text = (
        resources.files("prompts_agent.estimate")
        .joinpath("data/calibration.yaml")
        .read_text("utf-8")
    )
    return Calibration.model_validate(_parsed(text))


def read_calibration(path: Path) -> Calibration:
    """A file that `prompts calibrate fit` wrote. Raises `InputError`."""
    import yaml

    cure = "Give the file that `prompts calibrate fit -o FILE` wrote."
    try:
        return Calibration.model_validate(_parsed(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(str(path), rule=error.strerror or "cannot be read", cure=cure) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise InputError(
            str(path), rule=f"it is no calibration: {where}: {first['msg']}", cure=cure
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(str(path), rule="it is no YAML file", cure=cure) from error


def _parsed(text: str) -> Any:
    import yaml

    return yaml.safe_load(text)
