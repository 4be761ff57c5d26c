"""Answers by content: what changes a key, and what a broken cache costs."""

from __future__ import annotations

from pathlib import Path

import pytest
from compile_build import layout, llama

from prompts_agent.compile import cache
from prompts_agent.compile.outcome import CompiledFit, Outcome
from prompts_agent.compile.request import Request, key_of
from prompts_agent.compile.target import target_of
from prompts_agent.compile.toolchain import Toolchain
from prompts_agent.layout.layout import Layout
from prompts_agent.model.catalog import find_model
from prompts_agent.workload.workload import Workload

CHAIN = Toolchain(platform="tpu", compiler="libtpu", versions={"jax": "1", "libtpu": "1"})


def _key(cut: Layout, job: Workload, chain: Toolchain = CHAIN) -> str:
    target = target_of(job.topology)
    return key_of(Request(workload=job, layout=cut, target=target, compiler="libtpu"), chain)


def test_a_key_hangs_on_what_the_compiler_sees() -> None:
    cut, job = layout(fsdp=16), llama()
    key = _key(cut, job)
    assert key == _key(layout(fsdp=16), llama())
    renamed = job.model.model_copy(update={"name": "other", "source": "elsewhere"})
    assert key == _key(cut, llama(name="other", model=renamed))
    newer = CHAIN.model_copy(update={"versions": {"jax": "1", "libtpu": "2"}})
    others = {
        _key(layout(fsdp=4, tensor=4), job),
        _key(layout(fsdp=16, remat="none"), job),
        _key(cut, llama(sequence=2048)),
        _key(cut, llama(topology="v6e:4x4")),
        _key(cut, job, newer),
    }
    assert key not in others
    assert len(others) == 5
    # A framework decides what is compiled for a mixture alone.
    assert key == _key(cut, llama(framework="torchtitan"))
    mixture = {"model": find_model("mixtral-8x7b")}
    assert _key(cut, llama(**mixture)) != _key(cut, llama(framework="torchtitan", **mixture))


def test_an_answer_comes_back_as_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROMPTS_CACHE", str(tmp_path))
    cache.store("abc", CompiledFit(outcome=Outcome.FITS, hbm_need_bytes=7))
    found = cache.load("abc")
    assert found is not None
    assert (found.hbm_need_bytes, found.cached) == (7, True)
    assert [path.name for path in tmp_path.rglob("*.tmp")] == []


def test_a_damaged_answer_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROMPTS_CACHE", str(tmp_path))
    cache.store("abc", CompiledFit(outcome=Outcome.FITS))
    (tmp_path / "compile" / "ab" / "abc.json").write_text('{"outcome": "fi', encoding="utf-8")
    assert cache.load("abc") is None
    assert cache.load("missing") is None


def test_a_cache_that_cannot_be_written_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("PROMPTS_CACHE", str(tmp_path / "file"))
    cache.store("abc", CompiledFit(outcome=Outcome.FITS))
    assert cache.load("abc") is None


def test_the_directory_follows_xdg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROMPTS_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache.cache_directory() == Path("/somewhere/prompts/compile")
