"""`prompts verify --fn`: a user's own function."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from prompts_agent.cli.app import app
from prompts_agent.compile.outcome import Outcome
from prompts_agent.compile.own import check as check_module
from prompts_agent.compile.own.check import check_function
from prompts_agent.compile.request import Until
from prompts_agent.errors import InputError
from prompts_agent.hardware.topology import parse_topology

V5E = parse_topology("v5e:4x4")
# x @ w with the contracted dim cut over model: a sum of [1024, 8192] of bf16 over 4 devices.
MODULE = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

def step(w, x):
    return x @ w

def abstract_args(devices):
    mesh = Mesh(np.array(devices).reshape(4, 4), ("data", "model"))
    w = jax.ShapeDtypeStruct((8192, 8192), jnp.bfloat16, sharding=NamedSharding(mesh, P("model")))
    cut = NamedSharding(mesh, P("data", "model"))
    return w, jax.ShapeDtypeStruct((4096, 8192), jnp.bfloat16, sharding=cut)

one = (jax.ShapeDtypeStruct((8, 128), jnp.bfloat16),)
huge = (jax.ShapeDtypeStruct((2**17, 2**17), jnp.bfloat16),) * 2
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(MODULE, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("name", ["mine", "mine:", ":step", "a b:step", "mine:step()"])
def test_a_name_that_names_no_function(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--fn"):
        check_function(name, "mine:one", V5E, directory=tmp_path)


def test_without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_module, "find_toolchain", lambda chip: None)
    found = check_function("mine:step", "mine:one", V5E, directory=tmp_path)
    assert found.outcome is Outcome.NO_COMPILER
    assert "prompts-agent[tpu]" in found.reason


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing to compile"),
        (["--fn", "mine:step", "--target", "v5e:4x4"], "none are given"),
        (["--fn", "mine:step", "--args", "mine:one"], "for a topology"),
        (["--fn", "mine:step", "--flags", "flags.txt"], "one thing"),
        (["fsdp=16"], "for a job"),
        (["no-such-file"], "no such file"),
    ],
)
def test_what_is_missing_is_said(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["verify", *arguments])
    assert done.exit_code == 2
    assert said in done.stderr


@pytest.mark.usefixtures("tpu_compiler")
def test_its_memory_and_its_collectives_by_its_own_axes(directory: Path) -> None:
    found = check_function(
        "mine:step", "mine:abstract_args", V5E, directory=directory, until=Until.END
    )
    assert found.outcome is Outcome.FITS
    # w / 4 and x / 16 and the result / 4, in bf16: 32, 4 and 16 MiB.
    assert found.hbm_need_bytes is not None
    assert found.hbm_need_bytes >= (32 + 4 + 16) * 2**20
    assert found.schedule is not None
    (reduce,) = found.schedule.collectives
    assert (reduce.kind, reduce.axis, reduce.group_size) == ("all-reduce", "model", 4)
    assert reduce.bytes == 1024 * 8192 * 2


@pytest.mark.usefixtures("tpu_compiler")
def test_what_does_not_fit_is_refused(directory: Path) -> None:
    found = check_function("mine:step", "mine:huge", V5E, directory=directory)
    assert found.outcome is Outcome.DOES_NOT_FIT
    # Three matrices of 32 GiB.
    assert found.hbm_need_bytes == pytest.approx(96 * 2**30, rel=0.01)


@pytest.mark.usefixtures("tpu_compiler")
@pytest.mark.parametrize(
    ("function", "arguments", "said"),
    [
        ("nowhere:step", "mine:one", "importing failed: ModuleNotFoundError"),
        ("mine:stop", "mine:one", "has no attribute 'stop'"),
        ("mine:step", "mine:one", "tracing failed: TypeError"),
    ],
)
def test_what_fails_before_the_compiler_is_the_input_s_fault(
    directory: Path, function: str, arguments: str, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        check_function(function, arguments, V5E, directory=directory)
