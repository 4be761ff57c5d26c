"""Layout: a mesh, and the knobs that move with it."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from prompts_agent.layout.mesh import Axis, Mesh
from prompts_agent.record import Record

__all__ = ["Layout", "PipelineSchedule", "Remat"]


class Remat(StrEnum):
    """Which activations a training step keeps for its backward pass.

    The names are MaxText's policies of the same meaning (`remat_policy`).
    """

    NONE = "none"
    """Everything is kept."""
    MINIMAL = "minimal"
    """Matmul outputs are kept, the rest is recomputed."""
    FULL = "full"
    """Only each layer's input is kept; the forward pass runs twice."""
    OFFLOAD = "offload"
    """Each layer's input, queries, keys and values go to the host's memory and come back for the
    backward pass; the rest is recomputed."""


class PipelineSchedule(StrEnum):
    """Order of microbatches over stages. Bubble shares: Narayanan et al., arXiv 2104.04473 §2.2."""

    ONE_F_ONE_B = "1f1b"
    INTERLEAVED = "interleaved"


class Layout(Record):
    """A whole parallel configuration.

    In training, a step's global batch (sequences) is
    `microbatch × gradient_accumulation × data × fsdp (× expert, unless expert_divides)`.
    """

    mesh: Mesh
    expert_divides: bool = False
    """False: `expert` is a factor of the mesh (MaxText, tpu-inference). True: it divides the
    data × fsdp × context × tensor ranks and is not counted in the product (Megatron, vLLM)."""
    microbatch: int = Field(default=1, ge=1)
    """Sequences of one batch shard in one forward pass."""
    gradient_accumulation: int = Field(default=1, ge=1)
    """Forward passes per optimizer step; with a pipeline, the number of microbatches in flight."""
    remat: Remat = Remat.FULL
    zero_stage: int = Field(default=1, ge=0, le=1)
    """What the *data* axis shards: 0 nothing, 1 the optimizer's state (the fsdp axis is ZeRO-3)."""
    sequence_parallel: bool = False
    """Residual activations are sharded over `tensor` between blocks (arXiv 2205.05198)."""
    weights_over_context: bool = True
    """`context` shards weights as fsdp does (MaxText's rule for embed); False: repeats them."""
    schedule: PipelineSchedule = PipelineSchedule.ONE_F_ONE_B
    virtual_stages: int = Field(default=1, ge=1)
    """Chunks of layers per pipeline stage (interleaved schedule)."""
    attention_data: int = Field(default=1, ge=1)
    """Serving: the tensor ranks are split in so many groups that each serve other requests in
    attention, and work together in the mlp or experts. Divides `tensor`."""
    batch_limit: int | None = Field(default=None, ge=1)
    """Serving: sequences that decode together on one replica."""
    kv_dtype: str = "bf16"
    """Serving: dtype of the KV cache."""

    @property
    def batch_shards(self) -> int:
        """Over how many shards the batch is cut."""
        expert = 1 if self.expert_divides else self.mesh.size(Axis.EXPERT)
        return self.mesh.size(Axis.DATA) * self.mesh.size(Axis.FSDP) * expert

    @property
    def devices(self) -> int:
        """Devices that the layout takes."""
        if self.expert_divides:
            return self.mesh.devices // self.mesh.size(Axis.EXPERT)
        return self.mesh.devices

    def __str__(self) -> str:
        return str(self.mesh)
