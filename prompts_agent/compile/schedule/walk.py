"""Walk: the scheduled program on a device's clock.

Ops run one after another. A transfer between devices has the links to itself, in the order of
issue; one to the host or within memory has its own queue; a `-done` waits for its transfer. A loop
is its body, once, times its trips: XLA lets no transfer cross the edge of a body.
"""

from __future__ import annotations

from prompts_agent.compile.schedule.rates import FREE, OpCosts, Rates
from prompts_agent.compile.schedule.scheduled import Scheduled
from prompts_agent.compile.schedule.timeline import Span, Timeline, Transfer, Way
from prompts_agent.compile.schedule.transfers import Transfers
from prompts_agent.trace.hlo.collectives import Collective, collective_of, split_opcode
from prompts_agent.trace.hlo.program import Instruction
from prompts_agent.trace.hlo.shape import Shape

__all__ = ["Walk"]

_STARTS = {"copy", "slice", "async", "dynamic-slice", "dynamic-update-slice", "call"}
_DEPTH = 64


class Walk:
    """Timelines of one program's computations, each worked out once."""

    def __init__(
        self, scheduled: Scheduled, costs: OpCosts, rates: Rates, transfers: Transfers
    ) -> None:
        self._program = scheduled.program
        self._costs, self._rates, self._transfers = costs, rates, transfers
        self._done: dict[str, Timeline] = {}

    def step(self) -> Timeline:
        """Of the whole program, once."""
        return self.of(self._program.entry)

    def of(self, computation: str) -> Timeline:
        """Of one computation; an empty one where there is none of the name."""
        if computation not in self._done:
            # In its place first: a program that called itself would not end.
            self._done[computation] = Timeline(computation)
            self._done[computation] = self._run(computation)
        return self._done[computation]

    def _run(self, computation: str) -> Timeline:
        clock = _Clock(Timeline(computation))
        for instruction in self._program.computations.get(computation, ()):
            if instruction.opcode not in FREE:
                self._put(clock, instruction)
        clock.timeline.duration_s = clock.now_s
        return clock.timeline

    def _put(self, clock: _Clock, instruction: Instruction) -> None:
        if instruction.opcode in ("while", "conditional", "call"):
            self._nested(clock, instruction)
            return
        collective = collective_of(self._program, instruction)
        base, role = split_opcode(instruction.opcode)
        role = collective.role if collective else role if base in _STARTS else None
        if role in ("done", "update"):
            start = self._start_of(instruction)
            if role == "done" or start is None:
                clock.wait(instruction, start)
        elif collective is not None:
            seconds = self._transfers.seconds(collective)
            permute = collective.kind == "collective-permute"
            clock.send(instruction, Way.LINKS, seconds, collective, queued=not permute)
        elif role == "start":
            self._move(clock, instruction)
        else:
            clock.run(instruction, self._costs.seconds(instruction))

    def _nested(self, clock: _Clock, instruction: Instruction) -> None:
        bodies = instruction.calls
        if instruction.opcode == "while":
            bodies = bodies[:1]
        timelines = [self.of(name) for name in bodies]
        # Which branch is taken is not known: the longest counts.
        longest = max(timelines, key=lambda timeline: timeline.duration_s, default=None)
        if longest is None:
            return
        trips = (instruction.trip_count or 1) if instruction.opcode == "while" else 1
        clock.run(instruction, trips * longest.duration_s, longest, trips)

    def _move(self, clock: _Clock, instruction: Instruction) -> None:
        """A copy, a slice, or an async wrapper around one: to the host or within memory."""
        moved = self._moved_bytes(instruction)
        host = instruction.shape.in_host_memory
        rate = self._rates.host_bytes_per_s if host else self._rates.hbm_bytes_per_s
        way = Way.HOST if host else Way.MEMORY
        clock.send(instruction, way, moved / rate, None, queued=True, moved=moved)

    def _moved_bytes(self, instruction: Instruction) -> int:
        """The smallest array of what a start returns: of a slice that is the slice, not its source.

        An update in place returns no array of the update's size, so its operands are looked at.
        """
        arrays = [shape.bytes for shape in _arrays(instruction.shape) if len(shape.dims) > 0]
        updates = [
            self._program.instructions[inner.operands[1]].shape.bytes
            for inner in self._program.called(instruction)
            if inner.opcode == "dynamic-update-slice" and len(inner.operands) > 1
        ]
        return min([*arrays, *updates], default=0)

    def _start_of(self, done: Instruction) -> str | None:
        """The start whose chain of values ends in `done`."""
        known = self._program.instructions
        pending, seen = list(done.operands), set[str]()
        for _ in range(_DEPTH):
            if not pending:
                return None
            name = pending.pop(0)
            operand = known.get(name)
            if operand is None or name in seen:
                continue
            seen.add(name)
            if self._issues(operand):
                return name
            pending += operand.operands
        return None

    def _issues(self, instruction: Instruction) -> bool:
        base, role = split_opcode(instruction.opcode)
        if role == "start" and (base in _STARTS or base not in FREE):
            return True
        return instruction.name.startswith("async-collective-start")


def _arrays(shape: Shape) -> list[Shape]:
    if shape.dtype != "tuple":
        return [shape]
    return [array for part in shape.parts for array in _arrays(part)]


class _Clock:
    """The device's time in one body, and when its queues are free."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.now_s = 0.0
        self._free_s: dict[Way, float] = {}
        self._flying: dict[str, Transfer] = {}

    def run(
        self, instruction: Instruction, seconds: float, body: Timeline | None = None, trips: int = 1
    ) -> None:
        """An op that the device works on."""
        self.timeline.spans.append(Span(instruction, self.now_s, seconds, body, trips))
        self.now_s += seconds

    def send(
        self,
        instruction: Instruction,
        way: Way,
        seconds: float,
        collective: Collective | None,
        *,
        queued: bool,
        moved: int = 0,
    ) -> None:
        """A transfer, from now or when its queue is free; a synchronous one is waited for."""
        start_s = max(self.now_s, self._free_s.get(way, 0.0)) if queued else self.now_s
        end_s = start_s + seconds
        if queued:
            self._free_s[way] = end_s
        transfer = Transfer(
            instruction=instruction,
            way=way,
            issued_s=self.now_s,
            start_s=start_s,
            end_s=end_s,
            collective=collective,
            bytes=collective.bytes if collective else moved,
        )
        self.timeline.transfers.append(transfer)
        if transfer.synchronous:
            self._wait_for(transfer, instruction)
            return
        self.timeline.spans.append(Span(instruction, self.now_s, 0.0))
        self._flying[instruction.name] = transfer

    def wait(self, done: Instruction, start: str | None) -> None:
        """A `-done`: nothing where its transfer is over, or began in no place that we know."""
        transfer = self._flying.pop(start, None) if start else None
        if transfer is None:
            self.timeline.spans.append(Span(done, self.now_s, 0.0))
            return
        self._wait_for(transfer, done)

    def _wait_for(self, transfer: Transfer, by: Instruction) -> None:
        waited_s = max(0.0, transfer.end_s - self.now_s)
        self.timeline.spans.append(Span(by, self.now_s, waited_s))
        self.now_s += waited_s
        transfer.exposed_s = waited_s
        transfer.waited_until_s = self.now_s
        transfer.awaited_by = by.name
