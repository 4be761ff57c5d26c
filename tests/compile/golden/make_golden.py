"""Compiles the small programs of this folder, for chips that are not there.

`python tests/compile/golden/make_golden.py` needs `prompts-agent[tpu,gpu]`; the tests only read
what it wrote. One program, twice: 5 layers of a matmul whose weights are gathered over fsdp = 2 and
whose result is summed over tensor = 4, in bf16, on 1024 rows of 1024.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from prompts_agent.compile.child import _environment
from prompts_agent.compile.final_program import final_program, store_program
from prompts_agent.compile.target import target_of
from prompts_agent.compile.toolchain import find_toolchain
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.hardware.topology import parse_topology

LAYERS, ROWS, WIDTH = 5, 1024, 1024
HERE = Path(__file__).resolve().parent
TOPOLOGIES = {"tpu": "v5e:2x4", "gpu": "h100:1x8"}


def compile_for(platform: str, directory: Path) -> None:
    """In a process of its own: libtpu wants its environment set before it is loaded."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    from prompts_agent.compile.absent import absent_devices, absent_mesh
    from prompts_agent.layout.layout import Layout
    from prompts_agent.layout.mesh import Mesh

    topology = parse_topology(TOPOLOGIES[platform])
    toolchain = find_toolchain(find_chip(topology.chip))
    assert toolchain is not None
    target = target_of(topology)
    devices, _ = absent_devices(target, toolchain.compiler)
    layout = Layout(mesh=Mesh.of(fsdp=2, tensor=4))
    mesh = absent_mesh(devices, {"fsdp": 2, "tensor": 4}, layout, 1)

    def layer(x: Any, w: Any) -> Any:
        whole = jax.lax.all_gather(w, "fsdp", axis=1, tiled=True)
        summed = jax.lax.psum(x @ whole, "tensor")
        start = jax.lax.axis_index("tensor") * x.shape[1]
        return jax.lax.dynamic_slice_in_dim(summed, start, x.shape[1], 1), None

    def step(x: Any, w: Any) -> Any:
        return jax.lax.scan(layer, x, w)[0]

    spec = P(None, "tensor", "fsdp")
    cut = jax.shard_map(
        step,
        mesh=mesh,
        check_vma=False,
        in_specs=(P(None, "tensor"), spec),
        out_specs=P(None, "tensor"),
    )
    x = jax.ShapeDtypeStruct(
        (ROWS, WIDTH), jnp.bfloat16, sharding=NamedSharding(mesh, P(None, "tensor"))
    )
    w = jax.ShapeDtypeStruct(
        (LAYERS, WIDTH, WIDTH), jnp.bfloat16, sharding=NamedSharding(mesh, spec)
    )
    options = target.flags | {
        "xla_dump_to": str(directory / "dump"),
        "xla_dump_hlo_as_text": True,
        "xla_dump_hlo_as_proto": True,
    }
    compiled = jax.jit(step_named(cut)).lower(x, w).compile(compiler_options=options)
    (module,) = compiled.runtime_executable().hlo_modules()
    (directory / "module.pb").write_bytes(module.as_serialized_hlo_module_proto())


def step_named(function: Any) -> Any:
    """`jit_step`, as the files of a dump are looked for."""

    def step(*args: Any) -> Any:
        return function(*args)

    return step


def main() -> None:
    """Both programs, each in a child."""
    for platform in TOPOLOGIES:
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name)
            environment = _environment(directory)
            command = [sys.executable, __file__, platform, name]
            subprocess.run(command, check=True, env=os.environ | environment)
            found = final_program(directory)
            assert found is not None
            store_program(HERE / f"layers-{platform}.hlo.pb.gz", found[0])


if __name__ == "__main__":
    if len(sys.argv) == 3:
        compile_for(sys.argv[1], Path(sys.argv[2]))
    else:
        main()
