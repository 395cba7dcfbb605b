# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a fault is about: the array, both lines of a shared-memory race, and where a barrier is missing."""

import re
from collections.abc import Mapping, Sequence
from functools import partial

from gpuprof.executor import (
    Buffer,
    FaultKind,
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
from gpuprof.text import listed

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
    if found is None:
        return fault
    byte = found.byte
    text = _place(program, byte)
    dynamic = rf"\.extern\s+\.shared\b[^;]*\b{re.escape(_symbol(program, byte)[0])}\[\]"
    if fault.kind is FaultKind.OUT_OF_BOUNDS and text and re.search(dynamic, program.interface.module):
        text += ", whose size is the launch's dynamic_shared_bytes"
    if fault.kind is FaultKind.SHARED_RACE and found.met_line is not None:
        text += f"{', ' if text else ''}{_missing(program, found, found.met_line, fault)}"
    detail, line = fault.detail, fault.source_line
    if found.read and found.read[0]:
        where = f"line {line} " if line else ""
        detail = f"reads byte {byte} of shared memory, which was never written"
        line, use = found.read
        text = f"{text}{'; ' if text else ''}{where}{use} a value that depends on it"
    return fault.told(f"{detail}: {text}", line) if text else fault


def _missing(program: Program, found: SharedByte, before: int, fault: KernelFault) -> str:
    """What the access `before` was, where the fault does not say it, and what orders none of the two."""
    line, barrier = fault.source_line, "a barrier is"
    if found.apart:
        barrier = "a barrier of the cluster that orders them is"
    told = f" in line {before}" in fault.detail
    did = "" if told else f"{found.did} in line {before}, and "
    if before != line:
        first, last = sorted((before, line))
        # That warps ran in some order does not say where: only in a loop does the first line run next.
        flow = flow_of(program)
        again = leads_to(flow, last, first)
        if again and (before > line or not leads_to(flow, first, last)):
            return f"{did}{barrier} missing behind line {last}, before line {first} runs next"
        return f"{did}{barrier} missing between lines {first} and {last}"
    if not found.reads and found.did != "read":
        return f"{did}two threads write it in that line"
    does = "" if told else f"{did}{'read' if found.reads else 'written'} there by another thread: "
    both = "" if found.reads else ", or one atomic operation must do both"
    return f"{does}{barrier} missing between the two{both}"


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
