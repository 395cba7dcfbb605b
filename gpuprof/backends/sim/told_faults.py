# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a fault is about: the array, both lines of a shared-memory race, and where a barrier is missing."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gpuprof.errors import CaseSkipped
from gpuprof.executor import (
    Buffer,
    FaultKind,
    KernelFault,
    Listener,
    MemoryOperation,
    MemoryPlace,
    Observer,
    Program,
    source_name,
)
from gpuprof.text import Extent

#: Accesses to one byte that are remembered, and of one instruction.
_KEPT, _KEPT_OF_ONE = 4096, 64
_DID = {"read": "read", "write": "written", "update": "changed"}


@dataclass(frozen=True, slots=True)
class ByteAccess:
    """What a thread did to the byte; threads count through the launch."""

    event: str
    line: int
    who: int


class SharedMeetings(Observer, Listener):
    """Remembers who accessed one byte of shared memory, in every block, and where barriers were between."""

    def __init__(self, byte: int) -> None:
        self._byte = byte
        self._named: Callable[[int], Any] = lambda thread: ((thread, 0, 0), (0, 0, 0))
        self._seen: deque[ByteAccess | None] = deque(maxlen=_KEPT)

    def begin(self, named: Callable[[int], Any]) -> None:
        """As an observer."""
        self._named = named
        self._seen.clear()

    def wants(self, buffer: Any) -> bool:
        """As an observer."""
        return getattr(buffer, "space", "") == "shared"

    def read(self, buffer: Any, one: MemoryOperation) -> None:
        """As an observer."""
        self._note("read", buffer, one)

    def write(self, buffer: Any, one: MemoryOperation, values: Any) -> None:
        """As an observer."""
        self._note("write", buffer, one)

    def update(self, buffer: Any, one: MemoryOperation, failed: Any = None) -> None:
        """As an observer."""
        self._note("update", buffer, one)

    def barrier(self, blocks: Any) -> None:
        """As a listener."""
        self._seen.append(None)

    def _note(self, event: str, buffer: Any, one: MemoryOperation) -> None:
        if one.order.layout.several:  # a byte has no number of its own there
            return
        start = (one.place * one.size) % (buffer.size // one.order.blocks)
        hits = np.flatnonzero((start <= self._byte) & (self._byte < start + one.size * one.parts))
        for hit in hits[:_KEPT_OF_ONE]:
            self._seen.append(ByteAccess(event, one.line, int(one.who[hit])))

    def other_of(self, fault: KernelFault, block: Extent) -> ByteAccess | None:
        """The access that a fault's own met between two barriers, as far as it is remembered."""
        seen = list(self._seen)
        own = (fault.thread, fault.block)
        at = [
            number
            for number, one in enumerate(seen)
            if one and one.line == fault.source_line and self._named(one.who) == own
        ]
        if not at:
            return None
        begin = max((number for number in range(at[-1]) if seen[number] is None), default=-1)
        end = next((number for number in range(at[-1], len(seen)) if seen[number] is None), len(seen))
        met = fault.shared.met if fault.shared else None
        others, named = [], []
        for one in filter(None, seen[begin + 1 : end]):
            (x, y, z), where = self._named(one.who)
            if where == fault.block and (x, y, z) != fault.thread:
                others.append(one)
                named += [one] if x + block[0] * (y + block[1] * z) == met else []
        return next(reversed(named or others), None)


def told(
    fault: KernelFault,
    programs: Mapping[str, Program],
    blocks: Mapping[str, Extent],
    buffers: Sequence[Buffer],
    run_again: Callable[[Observer], None],
) -> KernelFault:
    """A fault in the words of arrays; of a hang also what every warp waits for.

    `blocks` are those of each launch, by its function; `run_again` runs the case from the start to the same
    fault, an observer listening.
    """
    program, waits = programs.get(fault.kernel), fault.waits
    fault = _told(fault, program, blocks, buffers, run_again)
    if waits and program is not None:
        names = [wait.sentence(partial(_element, program, buffers)) for wait in waits]
        fault = fault.hanging(()).told(f"{fault.detail}. Waiting: {'; '.join(names)}")
    return fault


def _element(program: Program, buffers: Sequence[Buffer], place: MemoryPlace) -> str:
    """What is waited for, as an array and an index where there is one."""
    if not place.in_shared:
        for one in buffers:
            if one.holds(place.address, place.address + 1):
                return f"{one.name}[{(place.address - one.address) // one.item_bytes}]"
        return str(place)
    symbol, byte = _symbol(program, place.address)
    return f"`{source_name(symbol)}[{byte // place.size}]`" if symbol else str(place)


def _told(
    fault: KernelFault,
    program: Program | None,
    blocks: Mapping[str, Extent],
    buffers: Sequence[Buffer],
    run_again: Callable[[Observer], None],
) -> KernelFault:
    """A fault with the array's name; of a race in shared memory also where the other access stands.

    What was never written is told where it was read, not where it counts.
    """
    found = fault.shared
    if program is None:
        return fault
    if fault.kind is FaultKind.MISALIGNED and fault.address is not None:
        where = _place(program, fault.address) if found else _global_place(buffers, fault.address)
        detail = fault.detail.replace(f"{fault.address:#x}", where or f"{fault.address:#x}")
        return fault.told(detail)
    if found is None:
        return fault
    byte = found.byte
    text = _place(program, byte)
    if fault.kind is FaultKind.SHARED_RACE and fault.other_block is None:
        meetings = SharedMeetings(byte)
        with suppress(KernelFault, CaseSkipped):
            run_again(meetings)
        other = meetings.other_of(fault, blocks[fault.kernel])
        if other is not None:
            text += f"{', ' if text else ''}{_DID[other.event]} in line {other.line}"
            text += f", and {_missing(other.line, fault.source_line)}"
    detail, line = fault.detail, fault.source_line
    if found.read and found.read[0]:
        where = f"line {line} " if line else ""
        detail = f"reads byte {byte} of shared memory, which was never written"
        line, use = found.read
        text = f"{text}{'; ' if text else ''}{where}{use} a value that depends on it"
    return fault.told(f"{detail}: {text}", line) if text else fault


def _missing(before: int, line: int) -> str:
    if before == line:
        return "two threads do so in that line"
    if before < line:
        return f"a barrier is missing between lines {before} and {line}"
    return f"a barrier is missing behind line {before}, before the next iteration comes to line {line}"


def _global_place(buffers: Sequence[Buffer], address: int) -> str:
    """The array that an address lies in."""
    inside = (each for each in buffers if each.holds(address, address + 1))
    return next((f"byte {address - each.address} of {each.name}" for each in inside), "")


def _place(program: Program, byte: int) -> str:
    """The array that a byte of shared memory lies in, or behind."""
    name, within = _symbol(program, byte)
    # The compiler may make a variable of its own of each element: `tile_$_7`.
    symbol, _, element = name.partition("_$_")
    part = f"element {element}" if element else f"byte {within}"
    return f"{part} of `{source_name(symbol)}`" if symbol else ""


def _symbol(program: Program, byte: int) -> tuple[str, int]:
    """The variable that a byte of shared memory lies in, or behind, and where there; empty if in none."""
    starts = [(offset, name) for name, offset in program.own.shared.offsets.items() if offset <= byte]
    start, name = max(starts, default=(byte, ""))
    return name, byte - start
