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
    WARP,
    Access,
    Buffer,
    Entry,
    FaultKind,
    KernelFault,
    Listener,
    MemoryPlace,
    Observer,
    Program,
    SharedByte,
    ThreadOrder,
    Touch,
    callers,
    source_name,
)
from gpuprof.text import Extent

#: Accesses to one byte that are remembered, and of one instruction.
_KEPT, _KEPT_OF_ONE = 4096, 64
_DID = {
    Access.READ: "read",
    Access.WRITE: "written",
    Access.COPY: "written",
    Access.LANDED: "written",
    Access.ATOMIC: "changed",
    Access.MBARRIER: "used as an mbarrier",
    Access.BULK: "written",
    Access.REDUCTION: "changed",
    Access.SOURCE: "copied",
    Access.SOURCED: "copied",
}
_READS = {Access.READ, Access.SOURCE, Access.SOURCED}


@dataclass(frozen=True, slots=True)
class ByteAccess:
    """What a thread did to the byte, in which step; threads count through the launch and the cluster."""

    access: Access
    line: int
    step: int
    who: int
    number: int


class SharedMeetings(Observer, Listener):
    """Remembers who accessed the byte of shared memory that a race is about, until its thread came last."""

    def __init__(self, fault: KernelFault, place: SharedByte) -> None:
        self._fault, self._place = fault, place
        self._named: Callable[[int], Any] = lambda thread: ((thread, 0, 0), (0, 0, 0))
        self._seen: deque[ByteAccess] = deque(maxlen=_KEPT)
        self._order: ThreadOrder | None = None
        self._step = 0
        #: The last access of the fault's thread in its line.
        self._came: ByteAccess | None = None

    def begin(self, named: Callable[[int], Any]) -> None:
        self._named = named
        self._seen.clear()

    def batch(self, order: ThreadOrder) -> None:
        self._order = order

    def wants(self, buffer: Any) -> bool:
        """As an observer: what it is told of shared memory it is told as a listener."""
        return False

    def touch(self, access: Access, pattern: Any, line: int, values: Any = None) -> None:
        order = self._order
        if access not in _DID or order is None:
            return
        self._step += 1
        threads = Touch(Entry(Access.WRITE, pattern, line), 1, order.blocks)  # reads would merge threads
        byte = self._place.rank * order.layout.stride + self._place.byte
        hits = np.flatnonzero((threads.start <= byte) & (byte < threads.start + pattern.size))[:_KEPT_OF_ONE]
        for who in order.threads[threads.block[hits], threads.warp[hits], threads.lane[hits]].tolist():
            one = ByteAccess(access, line, self._step, who, who % (order.warps * WARP))
            self._seen.append(one)
            if line == self._fault.source_line and self._named(who) == self._own:
                self._came = one

    @property
    def _own(self) -> tuple[Extent, Extent]:
        return self._fault.thread, self._fault.block

    def other(self) -> tuple[ByteAccess, Extent] | None:
        """The access that the fault's own met, as far as it is remembered, and the block that made it."""
        others, named, came = [], [], self._came
        for one in self._seen:
            if came and one.step <= came.step and not {one.access, came.access} <= _READS:
                thread, block = self._named(one.who)
                if (thread, block) != self._own and self._cluster(block) == self._cluster(self._fault.block):
                    others.append((one, block))
                    named += others[-1:] if one.number == self._place.met else []
        return next(reversed(named or others), None)

    def _cluster(self, block: Extent) -> list[int]:
        assert self._order is not None
        return [index // extent for index, extent in zip(block, self._order.layout.extents, strict=True)]


def told(
    fault: KernelFault,
    programs: Mapping[str, Program],
    buffers: Sequence[Buffer],
    run_again: Callable[[Observer], None],
) -> KernelFault:
    """A fault in the words of arrays; of a hang also what every warp waits for.

    `run_again` runs the case from the start to the same fault, an observer listening.
    """
    program, waits = programs.get(fault.kernel), fault.waits
    fault = _told(fault, program, buffers, run_again)
    if program is None:
        return fault
    if waits:
        names = [wait.sentence(partial(_element, program, buffers)) for wait in waits]
        return fault.hanging(()).told(f"{fault.detail}. Waiting: {'; '.join(names)}")
    called = callers(program.interface.module, fault.source_line)
    where = f"line {fault.source_line} is of a function called in line {' or '.join(map(str, called))}"
    return fault.told(f"{fault.detail}; {where}") if called else fault


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
    if fault.kind is FaultKind.SHARED_RACE:
        before, block, did = found.met_line, fault.other_block, ""
        if before is None:
            meetings = SharedMeetings(fault, found)
            with suppress(KernelFault, CaseSkipped):
                run_again(meetings)
            if other := meetings.other():
                access, block = other
                before, did = access.line, f"{_DID[access.access]} in line {access.line}, and "
        if before is not None:
            missing = _missing(before, fault.source_line, within=block == fault.block)
            text += f"{', ' if text else ''}{did}{missing}"
    detail, line = fault.detail, fault.source_line
    if found.read and found.read[0]:
        where = f"line {line} " if line else ""
        detail = f"reads byte {byte} of shared memory, which was never written"
        line, use = found.read
        text = f"{text}{'; ' if text else ''}{where}{use} a value that depends on it"
    return fault.told(f"{detail}: {text}", line) if text else fault


def _missing(before: int, line: int, *, within: bool) -> str:
    if before == line:
        return "two threads do so in that line"
    barrier = "a barrier is" if within else "a barrier of the cluster that orders them is"
    if before < line:
        return f"{barrier} missing between lines {before} and {line}"
    return f"{barrier} missing behind line {before}, before line {line} runs next"


def _global_place(buffers: Sequence[Buffer], address: int) -> str:
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
