"""The way into this room: paths in, Capture or Profile out."""

from __future__ import annotations

import shutil
import sys
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path

from prompts_agent.errors import DamagedTraceError, WrongFormatError
from prompts_agent.trace.capture import Capture
from prompts_agent.trace.discover import InputFile, TraceInput, discover
from prompts_agent.trace.profile import Profile
from prompts_agent.trace.sniff import TraceFormat, is_gzip
from prompts_agent.trace.unpack import MAX_UNPACKED_BYTES, unpack

__all__ = ["profile", "read"]

_UNPACKED = {TraceFormat.XSPACE, TraceFormat.NSIGHT, TraceFormat.HLO_TEXT}
"""Readers of these need a file; JSON is decompressed straight into memory."""


def profile(paths: Sequence[Path | str]) -> Profile:
    """Reads the trace of one job and measures it. Raises what `read` and `measure` raise."""
    from prompts_agent.trace.measure.profile import measure

    return measure(read(paths))


def read(paths: Sequence[Path | str], *, deep: bool = False, xprof: bool = False) -> Capture:
    """Finds the files of one job and reads them with the reader of their format.

    `-` reads standard input. With `deep` the events of every device are decoded once, so that
    damage inside them is found here and not later; with `xprof`, XProf is asked for what an XSpace
    does not show (see `second_source`). Files that had to be decompressed live in a
    private directory that goes with the Capture. Raises `TraceError` and its kin for input that
    cannot be read, `NotDiagnosableError` where it holds no device events.
    """
    directory = Path(tempfile.mkdtemp(prefix="prompts-trace-"))
    try:
        found = discover([_spooled(path, directory) for path in paths])
        capture = _read(_unpacked(found, directory), xprof=xprof)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    weakref.finalize(capture, shutil.rmtree, directory, ignore_errors=True)
    if deep:
        for device in capture.active_devices():
            capture.events(device)
    return capture


def _spooled(path: Path | str, directory: Path) -> Path | str:
    """Standard input as a file; other paths as they are."""
    if str(path) != "-":
        return path
    target = directory / "stdin"
    total = 0
    with target.open("wb") as file:
        while chunk := sys.stdin.buffer.read(1 << 20):
            total += len(chunk)
            if total > MAX_UNPACKED_BYTES:
                raise WrongFormatError(
                    "standard input does not end",
                    rule=f"more than {MAX_UNPACKED_BYTES:,} bytes are no trace",
                    cure="Give a file.",
                )
            file.write(chunk)
    return target


def _unpacked(found: TraceInput, directory: Path) -> TraceInput:
    """The same input with gzip'd files replaced by their content; digest and size stay."""
    if found.format not in _UNPACKED:
        return found
    files = []
    for number, file in enumerate(found.files):
        path = file.path
        if is_gzip(path):
            own = directory / str(number)
            own.mkdir()
            path = unpack(path, own)
        files.append(InputFile(path=path, host=file.host))
    return found.model_copy(update={"files": tuple(files)})


def _read(found: TraceInput, *, xprof: bool) -> Capture:
    match found.format:
        case TraceFormat.XSPACE:
            from prompts_agent.trace.xspace.reader import read_xspace

            hosts = [(file.host, file.path) for file in found.files]
            return read_xspace(hosts, found.trace_file(), xprof=xprof)
        case TraceFormat.CHROME:
            from prompts_agent.trace.chrome import read_chrome

            return read_chrome(found.files, found.trace_file())
        case TraceFormat.KINETO:
            from prompts_agent.trace.kineto import read_kineto

            return read_kineto(found.files, found.trace_file())
        case TraceFormat.NSIGHT:
            from prompts_agent.trace.nsight import read_nsight

            return read_nsight(found.files, found.trace_file())
        case TraceFormat.HLO_TEXT:
            return _read_program(found)
        case TraceFormat.HLO_PROTO:
            raise WrongFormatError(
                f"{found.files[0].path} is a compiled program (HloProto), not a trace",
                rule="it holds what was compiled, and no run of it",
                cure="Give the *.xplane.pb of the capture, which holds its programs too; for the "
                "structure alone, XLA's text: XLA_FLAGS=--xla_dump_to=DIR --xla_dump_hlo_as_text.",
            )


def _read_program(found: TraceInput) -> Capture:
    """A compiled program without a run: structure, and no time at all."""
    from prompts_agent.trace.hlo.text import read_hlo_text

    path = found.files[0].path
    try:
        program = read_hlo_text(path.read_bytes().decode("utf-8", "replace"))
    except (ValueError, IndexError, KeyError, RecursionError) as error:
        raise DamagedTraceError(
            f"{path} is an HLO dump that does not parse ({error})",
            rule="a dump that was cut off or edited cannot be read",
            cure="Dump it again: XLA_FLAGS=--xla_dump_to=DIR --xla_dump_hlo_as_text.",
        ) from error
    return Capture(
        file=found.trace_file(),
        devices=[],
        programs={program.program_id: program},
        devices_in_job=program.device_count,
        missing=["times of any kind: a compiled program is no run of it"],
    )
