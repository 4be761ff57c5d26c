"""Everything that this package raises on purpose, and the exit code of each.

PromptsError
├── InputError                  exit 2: the input is wrong; the message says how to mend it
│   ├── TraceError              a trace file or directory
│   │   ├── TraceNotFoundError      nothing at that path, or no trace below it
│   │   ├── EmptyTraceError         zero bytes, or no planes
│   │   ├── DamagedTraceError       cut off, copied in text mode, concatenated
│   │   └── WrongFormatError        readable, but something else than a trace
│   ├── ModelError              a model name, a config.json or a ModelSpec
│   ├── HardwareError           a chip or a topology
│   ├── LayoutError             a mesh or a layout
│   ├── WorkloadError           a workload file
│   ├── RecipeError             a recipe of the knowledge base
│   ├── SettingError            a setting in a file or in the environment
│   └── OutputError             a result that cannot be written where it was asked for
├── NotDiagnosableError         exit 3: readable, but no diagnosis can stand on it
├── CompileError                exit 3: the compiler gave no program, or is not installed
└── InternalError               exit 70: a defect of this package, with what to report
"""

from __future__ import annotations

from enum import IntEnum

__all__ = [
    "CompileError",
    "DamagedTraceError",
    "EmptyTraceError",
    "ExitCode",
    "HardwareError",
    "InputError",
    "InternalError",
    "LayoutError",
    "ModelError",
    "NotDiagnosableError",
    "OutputError",
    "PromptsError",
    "RecipeError",
    "SettingError",
    "TraceError",
    "TraceNotFoundError",
    "WorkloadError",
    "WrongFormatError",
]


class ExitCode(IntEnum):
    """What the process returns: 1 where a gate that was asked for does not pass, 70 as sysexits'
    EX_SOFTWARE, 130 = 128 + SIGINT, as shells expect.
    """

    DONE = 0
    GATE = 1
    BAD_INPUT = 2
    NOT_DIAGNOSABLE = 3
    INTERNAL = 70
    INTERRUPTED = 130


class PromptsError(Exception):
    """An error that a user can act on: what was seen, the rule it breaks, the cure.

    The three parts are attributes, so that a renderer can lay them out and a test can check one.
    """

    exit_code: ExitCode = ExitCode.INTERNAL

    def __init__(self, value: str, *, rule: str, cure: str) -> None:
        super().__init__(f"{value}: {rule}. {cure}")
        self.value = value
        self.rule = rule
        self.cure = cure


class InputError(PromptsError):
    """The input is wrong; the message says how to mend it."""

    exit_code = ExitCode.BAD_INPUT


class TraceError(InputError):
    """A trace file or directory cannot be used."""


class TraceNotFoundError(TraceError):
    """Nothing at that path, or no trace below it."""


class EmptyTraceError(TraceError):
    """The file has no bytes, or the trace has no planes."""


class DamagedTraceError(TraceError):
    """The file was a trace once: cut off, copied in text mode, or two glued together."""


class WrongFormatError(TraceError):
    """The file is something else than a trace."""


class ModelError(InputError):
    """A model name, a config.json or an architecture's dims are wrong."""


class HardwareError(InputError):
    """A chip or topology is unknown or impossible."""


class LayoutError(InputError):
    """A mesh or layout breaks a rule."""


class WorkloadError(InputError):
    """A workload file is wrong or says too little."""


class RecipeError(InputError):
    """A recipe of the knowledge base breaks its schema."""


class SettingError(InputError):
    """A setting in a file or in the environment breaks a rule."""


class OutputError(InputError):
    """A result cannot be written where it was asked for."""


class NotDiagnosableError(PromptsError):
    """The trace is readable, but no diagnosis can stand on it."""

    exit_code = ExitCode.NOT_DIAGNOSABLE


class CompileError(PromptsError):
    """The compiler gave no program to work with: it refuses it, or is not installed."""

    exit_code = ExitCode.NOT_DIAGNOSABLE


class InternalError(PromptsError):
    """A defect of this package."""
