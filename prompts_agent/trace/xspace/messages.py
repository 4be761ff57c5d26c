"""Message classes of the trace and HLO formats, from the descriptor set in `proto/`.

They live in a descriptor pool of their own, so that TensorFlow's or XProf's copies of the same
formats can be loaded in the same process. The classes are cached: building them takes about 5 ms.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["hlo_proto", "message_class", "xevent", "xevent_metadata", "xline", "xplane", "xspace"]

_DESCRIPTORS = Path(__file__).resolve().parent / "proto" / "messages.binpb"


@cache
def _pool() -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool

    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(_DESCRIPTORS.read_bytes()).file:
        pool.Add(file)
    return pool


@cache
def message_class(name: str) -> Any:
    """The class of a message by its full name, e.g. `prompts_agent.xspace.XPlane`."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(name))


def xspace() -> Any:
    """XSpace: a whole trace. Only for building small ones; files are read lazily."""
    return message_class("prompts_agent.xspace.XSpace")


def xplane() -> Any:
    """XPlane: a device, the host, or metadata."""
    return message_class("prompts_agent.xspace.XPlane")


def xline() -> Any:
    """XLine: a thread, a stream, or a device's op line."""
    return message_class("prompts_agent.xspace.XLine")


def xevent() -> Any:
    """XEvent: a span on a line."""
    return message_class("prompts_agent.xspace.XEvent")


def xevent_metadata() -> Any:
    """XEventMetadata: what the events of one name share."""
    return message_class("prompts_agent.xspace.XEventMetadata")


def hlo_proto() -> Any:
    """HloProto: a compiled program with its buffer assignment."""
    return message_class("prompts_agent.hlo.HloProto")
