"""Nsight Systems exports (`nsys export --type sqlite`), read-only.

Columns differ between releases (greenContextId came in 2024.5), so they are looked up, never
assumed. Sizes and groups of NCCL calls lie in NVTX payloads and are not read.
"""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from prompts_agent.errors import DamagedTraceError, NotDiagnosableError
from prompts_agent.trace.capture import Device, DeviceEvents, HostEvent, ModuleRun, Op
from prompts_agent.trace.columns import Columns, LoadedCapture, OpTable
from prompts_agent.trace.discover import InputFile
from prompts_agent.trace.events import as_int, as_number
from prompts_agent.trace.kernels import collective_opcode, short_name
from prompts_agent.trace.profile import TraceFile
from prompts_agent.trace.steps import Steps, annotated_steps, repeating_steps

__all__ = ["read_nsight"]

_KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
_COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
_SETS = "CUPTI_ACTIVITY_KIND_MEMSET"
_COPY_KINDS = {1: "memcpy-h2d", 2: "memcpy-d2h", 8: "memcpy-d2d", 10: "memcpy-p2p"}
"""CUpti_ActivityMemcpyKind."""

_COMPILE = re.compile(r"TSL:XlaCompile:|XlaCompile:")
_PS_PER_NS = 1000
_MAX_NS = 2**62 // _PS_PER_NS

_Key = tuple[int, int]
"""Process and device ordinal: each process may see its own GPU 0."""

_Row = tuple[Any, ...]


def read_nsight(files: Sequence[InputFile], file: TraceFile) -> LoadedCapture:
    """Reads exports, one host each.

    Raises `DamagedTraceError` for a database that SQLite refuses, `NotDiagnosableError` where no
    GPU work was recorded.
    """
    decoded: list[tuple[Device, DeviceEvents]] = []
    host_events: list[HostEvent] = []
    caveats, versions = list(file.caveats), dict[str, str]()
    for item in files:
        try:
            with closing(_open(item.path)) as database:
                export = _Export(database, item)
                decoded += export.devices()
                host_events = host_events or export.host_events()
                versions = versions or export.versions()
                caveats += export.caveats
        except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
            raise DamagedTraceError(
                f"{item.path} cannot be read as SQLite ({error})",
                rule="the export was cut off or is damaged",
                cure="Run `nsys export --type sqlite` again.",
            ) from error
    if not decoded:
        raise NotDiagnosableError(
            f"{', '.join(item.path.name for item in files)}: no kernel and no copy on any GPU",
            rule="layouts are judged by what the devices did",
            cure="Profile with `nsys profile --trace=cuda,nvtx`, and see that no other profiler "
            "holds CUPTI (CUPTI_ERROR_INSUFFICIENT_PRIVILEGES).",
        )
    capture = LoadedCapture(
        file=file.model_copy(update={"caveats": tuple(dict.fromkeys(caveats))}),
        devices=[device for device, _ in decoded],
        host_events=host_events,
        versions=versions,
        missing=_unsized(decoded),
    )
    capture.decoded = decoded
    return capture


def _unsized(decoded: Sequence[tuple[Device, DeviceEvents]]) -> list[str]:
    if any(collective_opcode(op.text or "") for _, events in decoded for op in events.table):
        return ["size and ranks of collectives (the export has them in NVTX payloads only)"]
    return []


def _open(path: Path) -> sqlite3.Connection:
    # immutable: no journal is created beside a file that may lie on read-only storage.
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    database = sqlite3.connect(uri, uri=True)
    database.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return database


class _Export:
    """One database, with the columns that it has."""

    def __init__(self, database: sqlite3.Connection, item: InputFile) -> None:
        self.database = database
        self.item = item
        self.caveats: list[str] = []
        self._broken = 0
        self._base_ns: int | None = None

    def _columns(self, table: str) -> set[str]:
        return {str(row[1]) for row in self.database.execute(f'pragma table_info("{table}")')}

    def _rows(self, table: str, wanted: Sequence[str]) -> list[_Row]:
        """Rows of `wanted` columns, None for a column that this release does not write."""
        have = self._columns(table)
        if not have:
            return []
        select = ", ".join(f'"{name}"' if name in have else "null" for name in wanted)
        return self.database.execute(f'select {select} from "{table}"').fetchall()  # noqa: S608

    def _strings(self) -> dict[int, str]:
        rows = self._rows("StringIds", ("id", "value"))
        return {number: value for number, value in rows if isinstance(value, str)}

    def devices(self) -> list[tuple[Device, DeviceEvents]]:
        """Every GPU that did something, a GPU seen by two processes counted twice."""
        strings = self._strings()
        rows: dict[_Key, list[tuple[int, int, Op]]] = defaultdict(list)
        for key, start, end, op in self._work(strings):
            rows[key].append((start, end, op))
        ordinals = [ordinal for _, ordinal in rows]
        if len(set(ordinals)) < len(ordinals):
            self.caveats.append(
                f"{self.item.path.name}: several processes use a GPU of the same number; they "
                "were counted as GPUs of their own, as each process may see another"
            )
        if self._broken:
            self.caveats.append(
                f"{self.item.path.name}: {self._broken:,} rows with impossible times dropped"
            )
        if not rows:
            return []
        self._base_ns = min(start for found in rows.values() for start, _, _ in found)
        marked = annotated_steps(self._ranges(strings))
        gpus = self._gpus()
        return [
            (self._device(index, key, gpus), self._events(rows[key], marked))
            for index, key in enumerate(sorted(rows))
        ]

    def _work(self, strings: dict[int, str]) -> list[tuple[_Key, int, int, Op]]:
        found = []
        times = ("start", "end", "deviceId", "globalPid")
        ops: dict[Any, Op] = {}
        for *row, name, short in self._rows(_KERNELS, (*times, "demangledName", "shortName")):
            if (name, short) not in ops:
                text = strings.get(name) or strings.get(short) or "unknown kernel"
                ops[name, short] = Op(
                    name=short_name(text), opcode=collective_opcode(text) or "kernel", text=text
                )
            found.append((row, ops[name, short]))
        for *row, kind in self._rows(_COPIES, (*times, "copyKind")):
            opcode = _COPY_KINDS.get(kind, "memcpy-unknown")
            to_host = opcode in {"memcpy-h2d", "memcpy-d2h"}
            ops.setdefault(opcode, Op(name=opcode, opcode=opcode, is_host_transfer=to_host))
            found.append((row, ops[opcode]))
        memset = Op(name="memset", opcode="memset")
        found += [(list(row), memset) for row in self._rows(_SETS, times)]
        return [sound for row, op in found if (sound := self._sound(row, op)) is not None]

    def _sound(self, row: list[Any], op: Op) -> tuple[_Key, int, int, Op] | None:
        start, end, device, process = row
        times_ok = isinstance(start, int) and isinstance(end, int) and start <= end
        if not times_ok or abs(start) > _MAX_NS or abs(end) > _MAX_NS:
            self._broken += 1
            return None
        return (as_int(process) or 0, as_int(device) or 0), start, end, op

    def _events(self, rows: list[tuple[int, int, Op]], marked: Steps | None) -> DeviceEvents:
        base = self._base_ns or 0
        table, columns = OpTable(), Columns()
        for start, end, op in rows:
            place = table.find(op)
            place = table.add(op, op) if place is None else place
            columns.append(place, (start - base) * _PS_PER_NS, (end - start) * _PS_PER_NS)
        events = DeviceEvents(table=table.ops, ops=columns.events(), modules=[])
        steps = marked
        if steps is None:
            ordered = sorted(rows, key=lambda row: row[0])
            steps = repeating_steps(
                [(op.text or op.name, start - base, end - start) for start, end, op in ordered]
            )
        if steps is not None:
            self.caveats.append(f"{self.item.path.name}: steps derived from {steps.source}")
            events.modules.extend(
                ModuleRun(steps.source, None, int(start * _PS_PER_NS), int(length * _PS_PER_NS))
                for start, length in steps.spans
            )
        return events

    def _ranges(self, strings: dict[int, str]) -> list[tuple[str, float, float]]:
        """NVTX push/pop and start/end ranges: name, start since the first GPU event, duration."""
        base = self._base_ns or 0
        found = []
        for start, end, text, number in self._rows(
            "NVTX_EVENTS", ("start", "end", "text", "textId")
        ):
            name = text if isinstance(text, str) else strings.get(number)
            if not name or not isinstance(start, int) or not isinstance(end, int):
                continue  # marks have no end
            if 0 <= end - start < _MAX_NS and abs(start - base) < _MAX_NS:
                found.append((name, float(start - base), float(end - start)))
        return found

    def host_events(self) -> list[HostEvent]:
        """XLA's compilations, which it marks with NVTX ranges."""
        return [
            HostEvent("compile", name, int(start * _PS_PER_NS), int(length * _PS_PER_NS))
            for name, start, length in self._ranges(self._strings())
            if _COMPILE.match(name)
        ]

    def _gpus(self) -> dict[int, _Row]:
        columns = ("cuDevice", "id", "name", "totalMemory", "memoryBandwidth")
        rows = self._rows("TARGET_INFO_GPU", columns)
        return {(row[0] if row[0] is not None else row[1]): row for row in rows}

    def _device(self, index: int, key: _Key, gpus: dict[int, _Row]) -> Device:
        row = gpus.get(key[1]) or (next(iter(gpus.values())) if len(gpus) == 1 else None)
        _, _, name, memory, bandwidth = row or (None,) * 5
        return Device(
            host=self.item.host,
            index=index,
            label=str(name) if name else "unknown GPU",
            platform="gpu",
            memory_bytes=as_int(memory) or None,
            memory_bandwidth_bytes_per_s=as_number(bandwidth) or None,
        )

    def versions(self) -> dict[str, str]:
        """What wrote the export; empty in old files."""
        rows: dict[Any, Any] = dict(self._rows("META_DATA_EXPORT", ("name", "value")))
        version = rows.get("EXPORT_PRODUCT_VERSION")
        return {"nsys": str(version)} if version else {}
