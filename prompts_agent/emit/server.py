"""What the inference servers have in common: a command, and whether experts are at stake."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from prompts_agent.emit.facts import JobFacts
from prompts_agent.errors import LayoutError
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.record import Record

__all__ = ["Ranks", "batch_limit", "command_text", "is_moe", "replicas_that_share"]


class Ranks(Record):
    """A server's own degrees, and how many servers of that kind run side by side."""

    tensor: int
    data: int = 1
    """Independent replicas inside one server."""
    attention_data: int = 1
    """Groups of tensor ranks that serve other requests in attention."""
    expert: int = 1
    servers: int = 1


def replicas_that_share(layout: Layout) -> int:
    """Data ranks that hold one set of experts together: expert 8 over tensor 2 are 4 of them.

    1 where experts lie inside one replica, or are cut by its ranks. Raises `LayoutError` where the
    experts come out uneven over tensor and data.
    """
    tensor, data, expert = (layout.mesh.size(a) for a in (Axis.TENSOR, Axis.DATA, Axis.EXPERT))
    if not layout.expert_divides or expert <= tensor:
        return 1
    share, rest = divmod(expert, tensor)
    if rest or data % share:
        raise LayoutError(
            f"expert {expert} over tensor {tensor} × data {data}",
            rule="a server's experts lie on whole replicas",
            cure=f"Plan with an expert axis that {tensor} divides and that divides "
            f"{tensor * data}.",
        )
    return share


def is_moe(layout: Layout, facts: JobFacts) -> bool:
    """Whether there are experts; told from the layout where the model is not known."""
    if facts.model is not None:
        return facts.model.moe is not None
    return layout.mesh.size(Axis.EXPERT) > 1


def batch_limit(layout: Layout, facts: JobFacts) -> int | None:
    """Sequences that one replica holds at a time: the layout's limit, else its share of the load.

    A replica is a data rank of the layout: 384 sequences over data 32 are 12. None where neither is
    known.
    """
    if layout.batch_limit is not None or facts.global_batch is None:
        return layout.batch_limit
    return -(-facts.global_batch // layout.batch_shards)


def command_text(
    layout: Layout,
    command: Sequence[str],
    arguments: Sequence[str],
    *,
    servers: int = 1,
    environment: Sequence[str] = (),
) -> str:
    r"""A shell command, one argument a line, under a comment with the mesh.

    `command` is quoted here, `arguments` and `environment` are written as they are.
    """
    head = [f"# {layout}: {layout.devices} devices."]
    if servers > 1:
        head.append(f"# Start {servers} of these servers behind one load balancer.")
    whole = " ".join([*environment, shlex.join(command)])
    return "\n".join([*head, " \\\n".join([whole, *(f"  {part}" for part in arguments)])]) + "\n"
