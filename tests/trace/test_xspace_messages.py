"""The committed descriptor set is what the .proto files say, and stands beside other copies."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from prompts_agent.trace.xspace import messages

PROTO = Path(messages.__file__).parent / "proto"


def test_the_descriptor_set_is_up_to_date(tmp_path: Path) -> None:
    protoc = pytest.importorskip("grpc_tools.protoc")
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    target = tmp_path / "messages.binpb"
    arguments = [
        "protoc",
        f"-I{PROTO}",
        f"--descriptor_set_out={target}",
        "xplane.proto",
        "hlo.proto",
    ]
    assert protoc.main(arguments) == 0
    built = FileDescriptorSet.FromString(target.read_bytes())
    committed = FileDescriptorSet.FromString((PROTO / "messages.binpb").read_bytes())
    assert built == committed


def test_messages_are_in_no_shared_pool() -> None:
    from google.protobuf import descriptor_pool

    assert messages.xspace().DESCRIPTOR.full_name == "prompts_agent.xspace.XSpace"
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName("prompts_agent.xspace.XSpace")


def test_the_old_field_of_device_lists_is_kept() -> None:
    fields = messages.message_class("prompts_agent.hlo.CollectiveDeviceListProto").DESCRIPTOR.fields
    assert [(field.number, field.name) for field in fields] == [
        (1, "replica_groups"),
        (2, "iota_replica_group_list"),
    ]


def test_protobuf_is_not_loaded_with_the_module() -> None:
    import subprocess

    code = (
        "import sys, prompts_agent.trace.xspace.messages, prompts_agent.trace.hlo.text; "
        "sys.exit('google.protobuf' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
