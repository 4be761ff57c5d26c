"""HloProgram: what a compiled program says about itself, whatever it was read from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from prompts_agent.trace.hlo.dots import DotDims
from prompts_agent.trace.hlo.groups import DeviceGroups
from prompts_agent.trace.hlo.mesh import Mesh, find_mesh
from prompts_agent.trace.hlo.shape import Shape
from prompts_agent.trace.hlo.sharding import Sharding

__all__ = ["DotDims", "HloProgram", "Instruction", "Parameter", "ProgramMemory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One HLO instruction; names are unique within a program."""

    name: str
    opcode: str
    shape: Shape
    operands: tuple[str, ...] = ()
    computation: str = ""
    calls: tuple[str, ...] = ()
    """Names of called computations: of fusions, loops, async wrappers."""
    op_name: str | None = None
    """The framework's name, e.g. `jit(train_step)/jvp(mlp)/dot_general`."""
    channel_id: int | None = None
    is_host_transfer: bool = False
    groups: DeviceGroups | None = None
    pairs: tuple[tuple[int, int], ...] = ()
    sharding: Sharding | None = None
    dot: DotDims | None = None
    custom_call_target: str | None = None
    parameter_number: int | None = None
    trip_count: int | None = None
    """Of a `while`, where the compiler knows it."""
    across_slices: bool = False
    """A send or receive that Megascale put in the place of a collective between slices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of the entry computation, with its shape on one device."""

    number: int
    name: str
    shape: Shape
    sharding: Sharding | None = None
    donated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramMemory:
    """Sizes of the buffer assignment, thread-local allocations left out.

    Temporaries share one allocation, sized at their peak; so the sum is the peak of the program.
    """

    hbm_bytes: int
    host_bytes: int
    parameter_bytes: int
    temporary_bytes: int
    output_bytes: int


@dataclass(frozen=True, kw_only=True)
class HloProgram:
    """A compiled module. `program_id` is unsigned, as trace events give it."""

    name: str
    program_id: int
    entry: str
    computations: dict[str, tuple[Instruction, ...]]
    device_count: int | None = None
    """Devices that run it together: replicas × partitions."""
    parameters: tuple[Parameter, ...] = ()
    memory: ProgramMemory | None = None

    @cached_property
    def instructions(self) -> dict[str, Instruction]:
        """Of all computations, by name."""
        return {i.name: i for body in self.computations.values() for i in body}

    @cached_property
    def groups(self) -> list[DeviceGroups]:
        """Of all its collectives."""
        return [i.groups for i in self.instructions.values() if i.groups is not None]

    @property
    def shardings(self) -> list[Sharding]:
        """Of the parameters that have one."""
        return [p.sharding for p in self.parameters if p.sharding is not None]

    @cached_property
    def mesh(self) -> Mesh | None:
        """The mesh in use, None where one device runs the program or nothing in it tells."""
        if not self.groups and not any(s.cuts or s.mesh for s in self.shardings):
            return None
        return find_mesh(self.groups, self.shardings, self.device_count)

    def called(self, instruction: Instruction) -> Iterator[Instruction]:
        """Instructions of the computations that it calls, to any depth, each computation once."""
        pending = list(instruction.calls)
        seen: set[str] = set()
        while pending:
            name = pending.pop()
            if name in seen:
                continue
            seen.add(name)
            for inner in self.computations.get(name, ()):
                yield inner
                pending.extend(inner.calls)

    def flops(self, instruction: Instruction) -> int | None:
        """FLOPs of the matmuls in it, once through; None for a custom call: its work is opaque."""
        if instruction.opcode == "custom-call":
            return None
        if instruction.dot is not None:
            return instruction.dot.flops
        return sum(inner.dot.flops for inner in self.called(instruction) if inner.dot is not None)

    def dot_of(self, instruction: Instruction) -> DotDims | None:
        """The largest matmul in it."""
        dots = [inner.dot for inner in (instruction, *self.called(instruction)) if inner.dot]
        return max(dots, key=lambda dot: dot.flops, default=None)

    def runs_per_step(self) -> dict[str, float]:
        """How often each computation runs when the program runs once.

        Loop bodies count with their trip count, 1 where the compiler does not know it; a branch
        counts as taken. Fusions and async wrappers run with their caller.
        """
        runs = dict.fromkeys(self.computations, 0.0)
        if self.entry not in runs:
            return runs
        runs[self.entry] = 1.0
        for name in self._callers_first():
            for i in self.computations[name]:
                factor = float(i.trip_count or 1) if i.opcode == "while" else 1.0
                for callee in i.calls:
                    if callee in runs:
                        runs[callee] += runs[name] * factor
        return runs

    def _callers_first(self) -> list[str]:
        """Computations below the entry, each before those that it calls."""
        finished: list[str] = []
        entered: set[str] = set()
        pending = [(self.entry, False)]
        while pending:
            name, is_done = pending.pop()
            if is_done:
                finished.append(name)
            elif name not in entered and name in self.computations:
                entered.add(name)
                pending.append((name, True))
                pending += [(callee, False) for i in self.computations[name] for callee in i.calls]
        return finished[::-1]
