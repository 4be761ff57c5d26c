"""Precedence, what is off by default, and where a key may go."""

from __future__ import annotations

from pathlib import Path

import pytest

from prompts_agent.agents.llm.config import OPENAI_URL, LlmConfig, LlmFlags, configure
from prompts_agent.errors import SettingError

KEY = "sk-test-0123456789abcdef"
OFF = LlmFlags()


def made(
    directory: Path, flags: LlmFlags = OFF, environment: dict[str, str] | None = None
) -> LlmConfig | None:
    return configure(flags, environment or {}, directory)


def test_a_key_alone_turns_nothing_on(tmp_path: Path) -> None:
    assert made(tmp_path, environment={"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "x"}) is None


def test_flag_before_environment_before_file(tmp_path: Path) -> None:
    (tmp_path / "prompts.toml").write_text('[llm]\nmodel = "file"\nseconds = 5\ntokens = 7\n')
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    environment = {"PROMPTS_LLM_MODEL": "environment", "PROMPTS_LLM_SECONDS": "6"}
    from_file = made(below)
    from_environment = made(below, environment=environment)
    from_flag = made(below, LlmFlags(model="flag"), environment)
    assert from_file is not None
    assert (from_file.model, from_file.seconds, from_file.tokens) == ("file", 5.0, 7)
    assert from_environment is not None
    assert (from_environment.model, from_environment.seconds) == ("environment", 6.0)
    assert from_flag is not None
    assert from_flag.model == "flag"


def test_no_llm_wins(tmp_path: Path) -> None:
    flags = LlmFlags(model="flag", off=True)
    assert made(tmp_path, flags, {"PROMPTS_LLM_MODEL": "environment"}) is None


def test_the_table_in_pyproject(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.prompts.llm]\nmodel = "local"\n')
    found = made(tmp_path)
    assert found is not None
    assert found.model == "local"
    assert found.origin == str(tmp_path / "pyproject.toml")
    assert (found.seconds, found.tokens) == (60.0, 60_000)


def test_a_setting_above_the_table_in_pyproject(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.prompts]\nmodel = "m"\n')
    with pytest.raises(SettingError, match=r"\[tool.prompts.llm\]"):
        made(tmp_path)


def test_somebody_elses_broken_pyproject_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[[[")
    assert made(tmp_path) is None


def test_an_endpoint_from_a_file_never_gets_openais_key(tmp_path: Path) -> None:
    (tmp_path / "prompts.toml").write_text(
        '[llm]\nmodel = "m"\nbase_url = "https://evil.example/v1"\n'
    )
    found = made(tmp_path, environment={"OPENAI_API_KEY": KEY})
    assert found is not None
    assert found.api_key is None
    named = made(
        tmp_path,
        environment={"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "https://api.example/v1"},
    )
    assert named is not None
    assert named.base_url == "https://api.example/v1"
    assert named.api_key is not None


def test_openais_own_endpoint_gets_the_key(tmp_path: Path) -> None:
    found = made(tmp_path, LlmFlags(model="m"), {"OPENAI_API_KEY": KEY})
    assert found is not None
    assert found.base_url == OPENAI_URL
    assert found.api_key is not None
    assert KEY not in repr(found)
    assert KEY not in found.model_dump_json()


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('[llm]\napi_key = "sk-secret-123456"\n', "do not belong in files"),
        ('[llm]\nmodle = "m"\n', "no setting"),
        ('llm = "m"\n', "is a table"),
        ("llm = [[[", "not readable TOML"),
        ('[llm]\nmodel = "m"\nseconds = -1\n', "greater than 0"),
        ('[llm]\nmodel = "m"\nbase_url = "ftp://x"\n', "http:// or https://"),
        ('model = "m"\n', r"belongs in the table \[llm\]"),
        ('[llm]\nmodel = "m"\nusd = 1\n', "kept by prices"),
    ],
)
def test_a_file_that_breaks_a_rule(tmp_path: Path, text: str, rule: str) -> None:
    (tmp_path / "prompts.toml").write_text(text)
    with pytest.raises(SettingError, match=rule) as raised:
        made(tmp_path)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    ["https://user:hunter2@host/v1", "https://host/v1?key=hunter2", "http://api.example.com/v1"],
)
def test_urls_that_would_give_something_away(tmp_path: Path, url: str) -> None:
    with pytest.raises(SettingError) as raised:
        made(tmp_path, LlmFlags(model="m", base_url=url))
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8080/v1", "http://vllm:8000/v1", "http://[::1]/v1"]
)
def test_plain_http_nearby(tmp_path: Path, url: str) -> None:
    found = made(tmp_path, LlmFlags(model="m", base_url=url))
    assert found is not None
    assert found.base_url == url
