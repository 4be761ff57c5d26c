"""GPU kernel and copy names: which are communication, and of which kind.

A kernel's name is often all there is: metadata came to PyTorch in 2024 and only for NCCL, while
serving engines and expert parallelism bring their own kernels. Measured on public traces: of 74
communication kernels of a B200 serving step 73 are not called nccl, and of DeepSeek's H800
training step none is.
"""

from __future__ import annotations

import re

__all__ = [
    "UNKNOWN_COLLECTIVE",
    "collective_opcode",
    "memcpy_opcode",
    "named_collective",
    "short_name",
]

UNKNOWN_COLLECTIVE = "unknown"
"""A communication kernel whose kind neither name nor metadata tells (`ncclDevKernel_Generic`)."""

_COMMUNICATION = re.compile(
    r"nccl|rccl|hccl|hcom_|mscclpp?|oneccl|nvshmem|rocshmem|nvls|deep_?ep\b|deep_ep"
    r"|\bep::(?:internode|intranode)|\bmori::|multimem_|symm_mem"
    r"|cross_device_reduce|quick_?reduce|(?:one|two)_?shot"
    r"|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all",
    re.IGNORECASE,
)

_KINDS = (
    ("reduce-scatter", re.compile(r"reducescatter")),
    ("all-gather", re.compile(r"allgather")),
    ("all-to-all", re.compile(r"alltoall|a2a|dispatch|combine")),
    (
        "all-reduce",
        re.compile(r"allreduce|crossdevicereduce|quickreduce|oneshot|twoshot|multimem"),
    ),
    ("send", re.compile(r"sendrecv|isend|irecv|(?:kernel|hcom|ccl:?)(?:send|recv|receive)")),
    ("collective-broadcast", re.compile(r"broadcast")),
)
"""Looked for in this order in the name without underscores: the fused kernels of two kinds
(`reduce_scatter_cross_device_store`) are named after the first."""

_METADATA = {
    "allreduce": "all-reduce",
    "allgather": "all-gather",
    "reducescatter": "reduce-scatter",
    "alltoall": "all-to-all",
    "broadcast": "collective-broadcast",
    "send": "send",
    "recv": "recv",
    "barrier": "all-reduce",  # ProcessGroupNCCL sends one element around
}

_HTOD = re.compile(
    r"h(?:ost)?to?d(?:evice)?|(?:host|pinned|pageable)\s*->\s*device|h2d", re.IGNORECASE
)
_DTOH = re.compile(
    r"d(?:evice)?to?h(?:ost)?|device\s*->\s*(?:host|pinned|pageable)|d2h", re.IGNORECASE
)
_PTOP = re.compile(r"p(?:eer)?to?p(?:eer)?\b|p2p", re.IGNORECASE)
_DTOD = re.compile(r"d(?:evice)?to?d(?:evice)?|device\s*->\s*device|d2d", re.IGNORECASE)


def collective_opcode(name: str) -> str | None:
    """XLA's opcode of a communication kernel, `unknown` if its kind is hidden, None for others."""
    if not _COMMUNICATION.search(name):
        return None
    plain = name.lower().replace("_", "")
    return next((kind for kind, pattern in _KINDS if pattern.search(plain)), UNKNOWN_COLLECTIVE)


def named_collective(collective: str) -> str | None:
    """XLA's opcode for PyTorch's `Collective name` (`_allgather_base`, `reduce_scatter_tensor`)."""
    plain = re.sub(r"[^a-z]", "", collective.lower())
    return next((opcode for word, opcode in _METADATA.items() if word in plain), None)


def memcpy_opcode(name: str) -> str:
    """`memcpy-h2d`, `-d2h`, `-d2d`, `-p2p`, or `memcpy-unknown` (older ROCm: kind:Unknown)."""
    for opcode, pattern in (
        ("memcpy-p2p", _PTOP),
        ("memcpy-h2d", _HTOD),
        ("memcpy-d2h", _DTOH),
        ("memcpy-d2d", _DTOD),
    ):
        if pattern.search(name):
            return opcode
    return "memcpy-unknown"


def short_name(name: str) -> str:
    """A C++ kernel without return type, template arguments and parameters, cut at 100."""
    plain = name.removeprefix("void ").replace("(anonymous namespace)::", "")
    return (re.split(r"[<(]", plain, maxsplit=1)[0].strip() or plain)[:100]
