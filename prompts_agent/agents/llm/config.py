"""Config: which model, where, and what a run may spend; from flags, environment, then files.

Off unless a model is named: a key in the environment alone sends nothing anywhere.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError

from prompts_agent.agents.llm.settings_file import Settings, read_settings
from prompts_agent.agents.llm.switch import PREFIX, model_named
from prompts_agent.errors import SettingError
from prompts_agent.record import Record

__all__ = ["OPENAI_URL", "PREFIX", "LlmConfig", "LlmFlags", "configure", "is_here"]

OPENAI_URL = "https://api.openai.com/v1"
_MODEL = re.compile(r"[\w./:@+\-]{1,200}")
_NUMBERS = ("seconds", "tokens", "usd", "usd_per_million_input", "usd_per_million_output")
_OTHERS = ("seed", "temperature", "reply_tokens", "retries")


class LlmFlags(Record):
    """What the command line says; None leaves it to the environment, then to a file."""

    model: str | None = None
    base_url: str | None = None
    off: bool = False
    """`--no-llm`: wins over everything."""


class LlmConfig(Record):
    """A model at an OpenAI-compatible endpoint, and the budget of one run."""

    model: str
    base_url: str = OPENAI_URL
    api_key: SecretStr | None = None
    seconds: float = Field(default=60.0, gt=0)
    """Wall-clock seconds that a run may wait for the model, retries and pauses included."""
    tokens: int = Field(default=60_000, ge=1)
    """Prompt and reply together, over all calls of a run."""
    usd: float | None = Field(default=None, gt=0)
    """Needs both prices."""
    usd_per_million_input: float | None = Field(default=None, ge=0)
    usd_per_million_output: float | None = Field(default=None, ge=0)
    seed: int = 0
    temperature: float | None = Field(default=0.0, ge=0, le=2)
    reply_tokens: int = Field(default=1500, ge=64)
    """The longest reply that is asked for."""
    retries: int = Field(default=2, ge=0, le=10)
    """Of one call, after an error that may pass."""
    origin: str = "--llm"
    """What turned the model on: a flag, a variable or a file, for the line on stderr."""


def configure(
    flags: LlmFlags,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> LlmConfig | None:
    """The configuration, or None where no model is named or `--no-llm` is given.

    Each setting is the flag's, else the environment's, else the nearest file's. Raises
    `SettingError` for a value that breaks a rule; the message never holds a key.
    """
    if flags.off:
        return None
    env = os.environ if environment is None else environment
    settings = read_settings(directory or Path.cwd())
    named = model_named(flags.model, env, settings)
    if named is None:
        return None
    model, origin = named
    base_url, url_from_file = _base_url(flags, env, settings)
    values: dict[str, Any] = {
        "model": _checked_model(model),
        "base_url": _checked_url(base_url),
        "api_key": _key(env, base_url, url_from_file=url_from_file),
        "origin": origin,
    }
    for name in (*_NUMBERS, *_OTHERS):
        value = env.get(PREFIX + name.upper(), "").strip() or settings.values.get(name)
        if value is not None:
            values[name] = None if value == "none" else value
    try:
        return _priced(LlmConfig.model_validate(values))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise SettingError(
            f"language-model setting {where}",
            rule=str(first["msg"]),
            cure=f"Set {PREFIX}{where.upper()}, or `{where}` in {settings.place}.",
        ) from None


def _priced(config: LlmConfig) -> LlmConfig:
    """Raises `SettingError` for a money budget that nothing would be counted against."""
    prices = (config.usd_per_million_input, config.usd_per_million_output)
    if config.usd is not None and None in prices:
        raise SettingError(
            f"a money budget of {config.usd:g} USD",
            rule="is kept by prices, and the model's are not given",
            cure=f"Set {PREFIX}USD_PER_MILLION_INPUT and {PREFIX}USD_PER_MILLION_OUTPUT.",
        )
    return config


def _base_url(flags: LlmFlags, env: Mapping[str, str], settings: Settings) -> tuple[str, bool]:
    """The endpoint, and whether a file named it."""
    given = (
        flags.base_url
        or env.get(f"{PREFIX}BASE_URL", "").strip()
        or env.get("OPENAI_BASE_URL", "").strip()
    )
    if given:
        return given, False
    in_file = settings.values.get("base_url")
    return (str(in_file), True) if in_file else (OPENAI_URL, False)


def _key(env: Mapping[str, str], base_url: str, *, url_from_file: bool) -> SecretStr | None:
    """The key to send.

    A file may come with somebody's repository, so an endpoint that only a file names never gets
    the key for OpenAI.
    """
    own = env.get(f"{PREFIX}API_KEY", "").strip()
    if own:
        return SecretStr(own)
    other = env.get("OPENAI_API_KEY", "").strip()
    if not other or (url_from_file and base_url.rstrip("/") != OPENAI_URL):
        return None
    return SecretStr(other)


def _checked_model(model: str) -> str:
    if not _MODEL.fullmatch(model):
        raise SettingError(
            f"language model {model[:80]!r}",
            rule="a model's name is up to 200 letters, digits and . / : @ + - _",
            cure="Give the name that the server lists under /v1/models.",
        )
    return model


def _checked_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingError(
            "the language model's base URL",
            rule="is http:// or https:// with a host",
            cure="For example --llm-base-url http://127.0.0.1:8080/v1.",
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise SettingError(
            f"the language model's base URL at {parts.hostname}",
            rule="holds no user, password, query or fragment, because it is shown and recorded",
            cure=f"Give the key as {PREFIX}API_KEY.",
        )
    if parts.scheme == "http" and not _is_near(parts.hostname):
        raise SettingError(
            url,
            rule="plain http is for this machine and private networks",
            cure="Use https, so that nobody on the way reads prompts and key.",
        )
    return url.rstrip("/")


def is_here(url: str) -> bool:
    """The endpoint is on this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _is_near(host: str) -> bool:
    """Loopback, a private address, or a name without a dot (a container's, a cluster's)."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".svc", ".localhost"))
    return address.is_loopback or address.is_private
