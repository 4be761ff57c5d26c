"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

__all__ = [
    "Batch",
    "CalibrationFile",
    "Commit",
    "Force",
    "Format",
    "FormatName",
    "Framework",
    "FrameworkName",
    "FromConfig",
    "Kb",
    "KbPath",
    "Llm",
    "LlmBaseUrl",
    "LlmDryRun",
    "Model",
    "NoLlm",
    "Objective",
    "ObjectiveName",
    "Output",
    "Phase",
    "PhaseName",
    "PlanFormat",
    "PlanFormatName",
    "Quiet",
    "RecordFile",
    "Redact",
    "Resume",
    "Sequence",
    "Sweeps",
    "Target",
    "Top",
    "Verbose",
    "Verify",
    "VerifyName",
    "WorkloadPaths",
]

# Spelled here, because the enums and tables that they mirror would load half the package for
# --help; tests hold the two together.
FormatName = Literal["text", "json", "markdown", "github"]
PlanFormatName = Literal["text", "json", "markdown", "github", "sarif"]
ObjectiveName = Literal["throughput", "latency", "fit", "cost"]
VerifyName = Literal["auto", "none", "fit", "full"]
PhaseName = Literal["pretrain", "posttrain", "prefill", "decode", "serve"]
FrameworkName = Literal["jax", "maxtext", "megatron", "sglang", "torchtitan", "vllm", "vllm-tpu"]

Format = Annotated[
    FormatName | None,
    typer.Option(
        "--format",
        "-f",
        help="How to print the report. Default: by the suffix of --output, else text.",
        show_default=False,
    ),
]
PlanFormat = Annotated[
    PlanFormatName | None,
    typer.Option(
        "--format",
        "-f",
        help="How to print the report. sarif: what to change in --from-config, by line. Default: "
        "by the suffix of --output, else text.",
        show_default=False,
    ),
]
Verify = Annotated[
    VerifyName,
    typer.Option(
        "--verify",
        help="Ask XLA's compiler for the chip whether each proposal compiles and fits. auto: "
        "where it is installed. full: the whole compile, in minutes, and a step's time.",
    ),
]
Commit = Annotated[
    str | None,
    typer.Option(
        "--commit",
        metavar="SHA",
        help="What the advice was made for; --format github prints it.",
        envvar="PROMPTS_COMMIT",
        show_default=False,
    ),
]
Redact = Annotated[
    bool,
    typer.Option(
        "--redact/--no-redact",
        help="--format github: leave out names of ops, hosts, users and files.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write here instead of to stdout, all or nothing.",
        show_default=False,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Let --output replace a file.")]
Top = Annotated[int, typer.Option("--top", min=1, max=10, help="How many layouts to propose.")]
Objective = Annotated[
    ObjectiveName | None,
    typer.Option(
        "--objective",
        help="What is better. Default: throughput, or what the workload says.",
        show_default=False,
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="TOPOLOGY",
        help="The devices to plan for: v5e:4x4, 2*v5p:8x8x8, h100:8x8 (nodes x GPUs).",
        show_default=False,
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME|FILE",
        help="A model's name, or the path of its config.json.",
        show_default=False,
    ),
]
Phase = Annotated[
    PhaseName | None,
    typer.Option("--phase", help="What the job does with the model.", show_default=False),
]
Batch = Annotated[
    int | None,
    typer.Option(
        "--batch", min=1, help="Sequences per step, or in flight when serving.", show_default=False
    ),
]
Sequence = Annotated[
    int | None,
    typer.Option("--sequence", min=1, help="Tokens per sequence.", show_default=False),
]
Framework = Annotated[
    FrameworkName | None,
    typer.Option(
        "--framework",
        help="Write each proposal for this framework. Default: by the phase and the trace.",
        show_default=False,
    ),
]
KbPath = Annotated[
    Path | None,
    typer.Option(
        "--kb-path",
        metavar="DIR",
        help="Your team's recipes, searched with the others. Default: PROMPTS_KB.",
        show_default=False,
    ),
]
Kb = Annotated[
    str | None,
    typer.Option(
        "--kb",
        metavar="URL",
        help="A Chroma server that holds the recipes; its token is in PROMPTS_KB_TOKEN.",
        show_default=False,
    ),
]
CalibrationFile = Annotated[
    Path | None,
    typer.Option(
        "--calibration",
        metavar="FILE",
        help="Constants that `prompts calibrate fit` wrote, in place of those that ship.",
        show_default=False,
    ),
]
FromConfig = Annotated[
    Path | None,
    typer.Option(
        "--from-config",
        metavar="FILE",
        help="Your own config: its layout is the one to beat, and the report says what to change.",
        show_default=False,
    ),
]
WorkloadPaths = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[PATH]...",
        help="Workload files, or directories of them. Default: those that came with prompts.",
        show_default=False,
    ),
]
Sweeps = Annotated[
    Path | None,
    typer.Option(
        "--sweeps",
        metavar="DIR",
        help="A directory of published sweeps (training/sweeps, serving/sweeps).",
        show_default=False,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Progress as lines on stderr, and how long it took."),
]
Llm = Annotated[
    str | None,
    typer.Option(
        "--llm",
        metavar="MODEL",
        help="A language model that judges and explains; it can change no number. Default: "
        "PROMPTS_LLM_MODEL, prompts.toml, else none.",
        show_default=False,
    ),
]
LlmBaseUrl = Annotated[
    str | None,
    typer.Option(
        "--llm-base-url",
        metavar="URL",
        help="Its OpenAI-compatible endpoint, up to /v1. Default: PROMPTS_LLM_BASE_URL, "
        "OPENAI_BASE_URL, else OpenAI.",
        show_default=False,
    ),
]
NoLlm = Annotated[bool, typer.Option("--no-llm", help="No language model, whatever is configured.")]
LlmDryRun = Annotated[
    bool,
    typer.Option("--llm-dry-run", help="Print what the model would be sent, and send nothing."),
]
RecordFile = Annotated[
    Path | None,
    typer.Option(
        "--record",
        metavar="FILE",
        help="Record questions and answers here, for prompts replay. Default: a new file under "
        "~/.local/state/prompts/runs.",
        show_default=False,
    ),
]
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Go on where this command with a model was interrupted."),
]
