"""What the configs of inference servers have in common."""

from __future__ import annotations

import re

from prompts_agent.emit.existing.reader import Taking

__all__ = ["quantised"]


def quantised(take: Taking) -> str | None:
    """Dtype of a server's weights, where its config says how they are quantised."""
    name = take.text("weights", "quantization", "q")
    if name is None:
        return None
    # awq and gptq are mostly of 4 bits, and a lower bound is what is wanted.
    if re.search(r"4|awq|gptq|marlin|bitsandbytes", name.lower()):
        return "fp4"
    return "fp8" if "8" in name else None
