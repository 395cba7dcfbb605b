# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A fault of the executor as an explanation: line, thread, and what it did to which array.

Of a race in shared memory both lines, and where a barrier is missing; of a hang what every warp waits for.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from gpuprof.backends.base import ExplainedFailure
from gpuprof.backends.sim.executed import stands_elsewhere
from gpuprof.executor import (
    RANK_SHIFT,
    Buffer,
    FaultKind,
    GlobalMemory,
    KernelFault,
    MemoryPlace,
    Program,
    SharedByte,
    callers,
    flow_of,
    leads_to,
    lines_behind,
    source_name,
    trapped_in,
)
from gpuprof.kernels.shape import ConfiguredCase
from gpuprof.results import Cause, Explanation
from gpuprof.text import listed

T = TypeVar("T")
#: What the executor calls a fault, and what an explanation calls its cause.
CAUSES: dict[FaultKind, Cause] = {
    FaultKind.OUT_OF_BOUNDS: "illegal address",
    FaultKind.READ_ONLY: "write to an input",
    FaultKind.MISALIGNED: "misaligned address",
    FaultKind.UNINITIALISED_SHARED: "undefined value",
    FaultKind.UNINITIALISED_LOCAL: "undefined value",
    FaultKind.UNINITIALISED_REGISTER: "undefined value",
    FaultKind.ABSENT_LANE: "undefined value",
    FaultKind.SHARED_RACE: "race",
    FaultKind.GLOBAL_RACE: "race",
    FaultKind.BARRIER: "barrier",
    FaultKind.MBARRIER: "mbarrier",
    FaultKind.ASYNC_COPY: "asynchronous copy",
    FaultKind.PROXY: "missing fence",
    FaultKind.STALE: "race",
    FaultKind.BAD_TARGET: "illegal address",
    FaultKind.TRAP: "trap",
    FaultKind.ENDLESS: "endless loop",
}
#: Reading these is a fault only where a result depends on it, which following the value tells.
FOLLOWED = (FaultKind.UNINITIALISED_SHARED, FaultKind.UNINITIALISED_LOCAL, FaultKind.ABSENT_LANE)
#: Bytes beside an array that are taken for its own, where arrays lie as the driver places them.
_REACH = 2048


def _meant(buffers: Sequence[Buffer], address: int, reach: int) -> tuple[Buffer | None, int]:
    """The array that an address was meant for, the one it lies in or the nearest, and the byte there.

    `reach` is how many bytes beside an array are taken for its own.
    """

    def distance(buffer: Buffer) -> int:
        return max(buffer.address - address, address - buffer.address - buffer.size, 0)

    nearest = min(buffers, key=distance, default=None)
    if nearest is None or distance(nearest) > reach:
        return None, 0
    return nearest, address - nearest.address


def following(run: Callable[[bool], T]) -> T:
    """What a run finds; one that reads what was never written is run again, to follow where that ends."""
    try:
        return run(False)
    except KernelFault as fault:
        if fault.kind not in FOLLOWED:
            raise
    return run(True)


def failure_of(fault: KernelFault, case: ConfiguredCase, memory: GlobalMemory) -> ExplainedFailure:
    """A fault as the failure of its case."""
    elsewhere = stands_elsewhere(case)
    explanation = explain_fault(fault, case.problem.dimensions, memory.buffers, elsewhere=elsewhere)
    line = f", line {fault.source_line}"
    what = fault.what.replace(f"{line}:", f"{line}{_OF_INCLUDED}:", 1) if elsewhere else fault.what
    return ExplainedFailure(what, explanation)


def explain_fault(
    fault: KernelFault,
    sizes: Mapping[str, int],
    buffers: Sequence[Buffer],
    reach: int = _REACH,
    *,
    elsewhere: bool,
) -> Explanation:
    """What a fault says of a case.

    So many bytes beside an array as `reach` says are taken for its own. Lines are those of an included file
    if `elsewhere`.
    """
    detail = fault.detail
    access, is_global, more = detail.partition(GLOBAL)
    buffer, offset = None, 0
    if fault.address is not None:
        buffer, offset = _meant(buffers, fault.address, reach if is_global else 0)
        where = buffer.described(offset) if buffer else f"at address {fault.address:#x}, where no array is"
        byte = f"byte {offset} of {buffer.name}" if buffer else f"{fault.address:#x}"
        detail = f"{access} {where}" if is_global else detail.replace(f"{fault.address:#x}", byte)
    if is_global:
        inside = buffer is not None and 0 <= offset < buffer.size
        if fault.kind is FaultKind.READ_ONLY:
            detail += ", which is an input"
        elif inside and fault.kind is FaultKind.OUT_OF_BOUNDS:
            detail += ", and what lies behind its end"
        detail += "".join(more.partition("; ")[1:])
    return Explanation(
        cause=CAUSES[fault.kind],
        text=f"{who(fault.source_line, fault.thread, fault.block, elsewhere=elsewhere)} {detail}",
        sizes=sizes,
        line=line_of(fault.source_line, elsewhere=elsewhere),
        entry=fault.kernel,
        block=fault.block,
        thread=fault.thread,
        array=buffer.name if buffer else "",
        offset=offset if buffer else None,
    )


def who(
    line: int, thread: tuple[int, int, int], block: tuple[int, int, int], *, elsewhere: bool = False
) -> str:
    """A thread and the line that it runs, as the subject of a sentence."""
    where = f"line {line}{_OF_INCLUDED if elsewhere else ''}, " if line else ""
    return f"{where}thread {thread} of block {block}"


def line_of(line: int, *, elsewhere: bool) -> int | None:
    """A line as results keep it: of the kernel file, or none."""
    return None if elsewhere or not line else line


#: What a line is said to be of where a kernel does not stand in its own file.
_OF_INCLUDED = " of an included file"
#: What stands between an access to global memory and its address in a fault's words.
GLOBAL = " of global memory at "
#: Of the lines that an access depends on, how many are named.
_NEAREST = 4
#: How CUDA's header says what it found.
_PIPELINE = "-D _CUDA_PIPELINE_DEBUG=1 makes an assertion of it, whose condition is told"


def told(
    fault: KernelFault,
    programs: Mapping[str, Program],
    buffers: Sequence[Buffer],
) -> KernelFault:
    """A fault in the words of arrays; of a hang also what every warp waits for."""
    program, waits = programs.get(fault.kernel), fault.waits
    fault = _told(fault, program, buffers)
    if program is None:
        return fault
    if waits:
        names = [wait.sentence(partial(_element, program, buffers)) for wait in waits]
        return fault.hanging(()).told(f"{fault.detail}. Waiting: {'; '.join(names)}")
    at = program.interface.module, program.interface.entry, fault.source_line
    if fault.kind is FaultKind.TRAP and (place := trapped_in(*at)):
        how = f"; {_PIPELINE}" if place[0].startswith("cuda_pipeline") else ""
        return fault.told(f"{fault.detail}, in line {place[1]} of {place[0]}{how}")
    if fault.kind is FaultKind.GLOBAL_RACE or GLOBAL in fault.detail:
        does = "r" if fault.detail.startswith("reads") else "w"
        fault = fault.told(f"{fault.detail}{behind(program, fault.source_line, does)}")
    called = callers(*at)
    where = f"line {fault.source_line} is of a function called in line {' or '.join(map(str, called))}"
    return fault.told(f"{fault.detail}; {where}") if called else fault


def behind(program: Program, line: int, does: str = "w", *, of_value: bool = False) -> str:
    """Say which other lines an access depends on, in a clause; nothing where there are none."""
    found = sorted(lines_behind(flow_of(program), line, does, of_value=of_value)[:_NEAREST])
    return f"; it depends on line{'s' * (len(found) > 1)} {listed([*map(str, found)])}" if found else ""


def _element(program: Program, buffers: Sequence[Buffer], place: MemoryPlace) -> str:
    """What is waited for, as an array and an index where there is one."""
    if not place.in_shared:
        for one in buffers:
            if one.holds(place.address, place.address + 1):
                return f"{one.name}[{(place.address - one.address) // one.item_bytes}]"
        return str(place)
    symbol, byte = _symbol(program, place.address)
    return f"`{source_name(symbol)}[{byte // place.size}]`" if symbol else str(place)


def _told(fault: KernelFault, program: Program | None, buffers: Sequence[Buffer]) -> KernelFault:
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
    if fault.kind is FaultKind.READ_ONLY:
        how = "an array that a kernel changes is named in expect, or is declared inout"
        return fault.told(f"{fault.detail}, which is read-only: {how}")
    if found is None:
        return fault
    byte = found.byte
    text = _place(program, byte)
    dynamic = rf"\.extern\s+\.shared\b[^;]*\b{re.escape(_symbol(program, byte)[0])}\[\]"
    if fault.kind is FaultKind.OUT_OF_BOUNDS and text and re.search(dynamic, program.interface.module):
        text += ", whose size is the launch's dynamic_shared_bytes"
    if byte >> RANK_SHIFT > 0 and "mapa" in program.interface.module:
        text = "another block's, of a cluster of one block: say __cluster_dims__ before the kernel"
    if fault.kind is FaultKind.SHARED_RACE and found.met_line is not None:
        text += f"{', ' if text else ''}{_missing(program, found, found.met_line, fault.source_line)}"
    detail, line = fault.detail, fault.source_line
    if found.read and found.read[0]:
        where = f"line {line} " if line else ""
        detail = f"reads byte {byte} of shared memory, which was never written"
        line, use = found.read
        text = f"{text}{'; ' if text else ''}{where}{use} a value that depends on it"
    return fault.told(f"{detail}: {text}", line) if text else fault


def _missing(program: Program, found: SharedByte, before: int, line: int) -> str:
    """What does not order an access in a line and that in the line `before`."""
    barrier = "a barrier is"
    if found.apart:
        barrier = "a barrier of the cluster that orders them is"
    if found.unheard:
        barrier = "a __syncwarp before another lane's arrival at an mbarrier is"
    if before != line:
        first, last = sorted((before, line))
        # That warps ran in some order does not say where: only in a loop does the first line run next.
        flow = flow_of(program)
        again = leads_to(flow, last, first)
        if again and (before > line or not leads_to(flow, first, last)):
            return f"{barrier} missing behind line {last}, before line {first} runs next"
        return f"{barrier} missing between lines {first} and {last}"
    if not any(found.reads):
        return "two threads write it in that line"
    both = "" if found.reads[0] else ", or one atomic operation must do both"
    return f"{barrier} missing between the two{both}"


def _global_place(buffers: Sequence[Buffer], address: int) -> str:
    inside = (each for each in buffers if each.holds(address, address + 1))
    return next((f"byte {address - each.address} of {each.name}" for each in inside), "")


def _place(program: Program, byte: int) -> str:
    """The array that a byte of shared memory lies in, or behind."""
    name, within = _symbol(program, byte)
    # The compiler may make a variable of its own of each element: `tile_$_7`.
    symbol, _, element = name.rpartition("_$_")
    if not element.isdecimal():  # LLVM names a kernel's own variables so: `kernel_$_tile`
        symbol, element = name.removeprefix(f"{program.interface.entry}_$_"), ""
    part = f"element {element}" if element else f"byte {within}"
    return f"{part} of `{source_name(symbol)}`" if symbol else ""


def _symbol(program: Program, byte: int) -> tuple[str, int]:
    """The variable that a byte of shared memory lies in, or behind, and where there; empty if in none."""
    starts = [(offset, name) for name, offset in program.own.shared.offsets.items() if offset <= byte]
    start, name = max(starts, default=(byte, ""))
    return name, byte - start
