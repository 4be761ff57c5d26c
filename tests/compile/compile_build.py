"""Small workloads, layouts and dump texts that the tests of this room share."""

from __future__ import annotations

from typing import Any

from prompts_agent.hardware.topology import parse_topology
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Mesh
from prompts_agent.model.catalog import find_model
from prompts_agent.model.spec import ModelSpec
from prompts_agent.workload.workload import Precision, Workload

MIB = 2**20

TINY: dict[str, Any] = {
    "name": "tiny", "family": "test", "layers": 2, "embed": 64, "heads": 8, "kv_heads": 4,
    "head_dim": 16, "mlp": 128, "gated_mlp": True, "vocab": 64, "tied_embeddings": False,
    "source": "made up for tests",
}  # fmt: skip

# A program of one weight stack (argument 0), its optimizer slot (argument 1) and a batch (argument
# 2) on one device. Of the temporaries, `saved` (8 MiB at 0) and `gradient` (4 MiB at 8 MiB) live
# together; `early` (2 MiB at 0) is gone by then; `carry` is the place of `saved` once more.
ASSIGNMENT = """BufferAssignment
allocation 0: size 512, thread-local:
 value: <0 lane @0> (size=512,offset=0): f32[]{:T(128)}
allocation 1: size 4194304, parameter 0, shape |f32[4,512,512]| at ShapeIndex {}, maybe-live-out:
 value: <1 weight @0> (size=4194304,offset=0): f32[4,512,512]{2,1,0:T(8,128)}
allocation 2: size 4194304, parameter 1, shape |f32[4,512,512]| at ShapeIndex {}, maybe-live-out:
 value: <2 slot @0> (size=4194304,offset=0): f32[4,512,512]{2,1,0:T(8,128)}
allocation 3: size 4096, parameter 2, shape |s32[1,1024]| at ShapeIndex {}:
 value: <3 batch @0> (size=4096,offset=0): s32[1,1024]{1,0:T(1,128)}
allocation 4: size 13631488, preallocated-temp:
 value: <4 early @0> (size=2097152,offset=0): bf16[1,1024,1024]{2,1,0:T(8,128)(2,1)}
 value: <5 saved @0> (size=8388608,offset=0): bf16[4,1,1024,1024]{3,2,1,0:T(8,128)(2,1)}
 value: <6 carry{2} (phi) @1> (size=8388608,offset=0): bf16[4,1,1024,1024]{3,2,1,0:T(8,128)(2,1)}
 value: <7 gradient @0> (size=4194304,offset=8388608): f32[4,512,512]{2,1,0:T(8,128)}
 value: <8 scalar @0> (size=4,offset=13631484): s32[]{:T(128)}
allocation 5: size 1048576, color 1, preallocated-temp:
 value: <9 vmem @0> (size=1048576,offset=0): bf16[512,1024]{1,0:T(8,128)(2,1)S(1)}
"""
RANGES = """HloLiveRange (max 40):
  InstructionSequence:
    0:early
    10:saved
  BufferLiveRange:
    early{}:0-5
    saved{}:10-30
    carry{2}:10-30
    gradient{}:20-30
    scalar{}:0-40
  Live ranges at 2 (peak):
    early{}: 2097152 bytes (cumulative: 2097152 bytes)
"""
ASSIGNED_BYTES = 4 * MIB + 4 * MIB + 4096 + 13 * MIB


def layout(**knobs: Any) -> Layout:
    """Axes and knobs by name: `layout(fsdp=4, remat="none")`."""
    fields = {name: knobs.pop(name) for name in list(knobs) if name in Layout.model_fields}
    return Layout(mesh=Mesh.of(**knobs), **fields)


def llama(topology: str = "v5e:4x4", **fields: Any) -> Workload:
    """A pretraining step of llama2-7b, as the table of published needs has it."""
    given: dict[str, Any] = {
        "name": "llama", "model": find_model("llama2-7b"), "phase": "pretrain",
        "global_batch": 16, "sequence": 4096, "precision": Precision(gradients="fp32"),
    }  # fmt: skip
    return Workload(topology=parse_topology(topology), **(given | fields))


def tiny(phase: str = "pretrain", model: dict[str, Any] | None = None, **fields: Any) -> Workload:
    """A model that runs on virtual CPU devices, in fp32 so that layouts can be compared."""
    precision = Precision(compute="fp32", weights="fp32", gradients="fp32")
    given: dict[str, Any] = {"global_batch": 8, "sequence": 32, "precision": precision}
    return Workload(
        name="tiny",
        model=ModelSpec.model_validate(TINY | (model or {})),
        topology=parse_topology("v5e:2x4"),
        phase=phase,
        **(given | fields),
    )
