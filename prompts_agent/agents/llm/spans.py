"""Spans: OpenTelemetry's `gen_ai.*` for each question, where `PROMPTS_OTEL=1` asks for them.

Names and counts only: neither prompts nor replies are attributes. Needs the extra `otel`; where it
is not installed, there are no spans.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from prompts_agent.agents.llm.config import LlmConfig

__all__ = ["VARIABLE", "Span", "Spans", "asked_for"]

VARIABLE = "PROMPTS_OTEL"


class Span:
    """One question's span; without OpenTelemetry nothing."""

    def __init__(self, span: Any = None) -> None:
        self._span = span

    def answered(self, input_tokens: int, output_tokens: int) -> None:
        """Set what the reply took."""
        if self._span is not None:
            self._span.set_attribute("gen_ai.usage.input_tokens", input_tokens)
            self._span.set_attribute("gen_ai.usage.output_tokens", output_tokens)


class Spans:
    """Starts spans, or does nothing."""

    def __init__(self, tracer: Any = None) -> None:
        self._tracer = tracer if tracer is not None else _tracer()

    @property
    def active(self) -> bool:
        """There is somebody to tell."""
        return self._tracer is not None

    @contextlib.contextmanager
    def chat(self, node: str, config: LlmConfig) -> Iterator[Span]:
        """The span of one question."""
        if self._tracer is None:
            yield Span()
            return
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": config.model,
            "gen_ai.request.seed": config.seed,
            "gen_ai.agent.name": node,
            "gen_ai.workflow.name": "prompts",
        }
        name = f"chat {config.model}"
        with self._tracer.start_as_current_span(
            name, attributes=attributes, record_exception=False
        ) as span:
            yield Span(span)


def asked_for() -> bool:
    """The environment turns spans on."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


def _tracer() -> Any:
    """A tracer that exports over OTLP as `OTEL_EXPORTER_OTLP_*` says; None unless asked for."""
    if not asked_for():
        return None
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        return None
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        provider = TracerProvider(resource=Resource.create({"service.name": "prompts"}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        trace.set_tracer_provider(provider)
    return trace.get_tracer("prompts")
