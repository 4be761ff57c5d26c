from __future__ import annotations

import pytest

from prompts_agent.errors import ModelError
from prompts_agent.model import catalog
from prompts_agent.model.catalog import find_model, model_names


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("meta-llama/Llama-3.1-70B", "llama3.1-70b"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama3.1-70b"),
        ("Llama_3.1 8b", "llama3.1-8b"),
        ("meta-llama/Llama-2-7b-chat-hf", "llama2-7b"),
        ("nvidia/Llama-3.1-405B-Instruct-FP8", "llama3.1-405b"),
        ("Qwen/Qwen3-235B-A22B-Instruct-2507", "qwen3-235b-a22b"),
        ("google/gemma-2-2b-it", "gemma2-2b"),
        ("google/gemma-3-4b-it", "gemma3-4b"),
        ("deepseek-ai/DeepSeek-R1", "deepseek3-671b"),
        ("DeepSeek-V3", "deepseek3-671b"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"),
        ("mistralai/Mistral-7B-v0.1", "mistral-7b-v0.1"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("GPT-175B", "gpt3-175b"),
        ("EleutherAI/gpt-neox-20b", "gpt-neox-20b"),
        ("google/flan-t5-xxl", "flan-t5-xxl"),
    ],
)
def test_aliases(name: str, model: str) -> None:
    assert find_model(name).name == model


def test_every_name_finds_itself() -> None:
    for name in model_names():
        assert find_model(name).name == name


def test_no_alias_means_two_models() -> None:
    seen: dict[str, str] = {}
    index = catalog._read(catalog._DATA / "index.yaml")
    for models in index.values():
        for model, aliases in models.items():
            for alias in (model, *aliases):
                assert seen.setdefault(catalog._key(alias), model) == model, alias


def test_only_the_asked_family_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog._family.cache_clear()
    read: list[str] = []
    original = catalog._read

    def noted(path: object) -> object:
        read.append(str(path))
        return original(path)  # type: ignore[arg-type]

    monkeypatch.setattr(catalog, "_read", noted)
    find_model("mixtral-8x7b")
    assert [path.rsplit("/", 1)[-1] for path in read if "index" not in path] == ["mistral.yaml"]


def test_an_unknown_model_lists_near_ones() -> None:
    with pytest.raises(ModelError) as error:
        find_model("llama3-9b")
    assert "llama3-8b" in error.value.cure
    assert "config.json" in error.value.cure


@pytest.mark.parametrize("name", ["", "  ", "/", "-instruct", "instruct", "gpt-9"])
def test_odd_names_are_refused(name: str) -> None:
    with pytest.raises(ModelError):
        find_model(name)
