# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A fault of the executor as an explanation: line, thread, and what it did to which array."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from gpuprof.backends.base import ExplainedFailure
from gpuprof.backends.sim.executed import stands_elsewhere
from gpuprof.backends.sim.told_faults import GLOBAL
from gpuprof.executor import Buffer, FaultKind, GlobalMemory, KernelFault
from gpuprof.kernels.shape import ConfiguredCase
from gpuprof.results import Cause, Explanation

T = TypeVar("T")
#: What the executor calls a fault, and what an explanation calls its cause.
CAUSES: dict[FaultKind, Cause] = {
    FaultKind.OUT_OF_BOUNDS: "illegal address",
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
    FaultKind.TRAP: "trap",
    FaultKind.ENDLESS: "endless loop",
}
#: Reading these is a fault only where a result depends on it, which following the value tells.
FOLLOWED = (FaultKind.UNINITIALISED_SHARED, FaultKind.UNINITIALISED_LOCAL, FaultKind.ABSENT_LANE)
#: Bytes beside an array that are taken for its own, where arrays lie as the driver places them.
_REACH = 2048


def _described(buffer: Buffer, offset: int) -> str:
    """Where a byte in or beside an array lies, after `reads 4 bytes`."""
    word = "element" if buffer.item_bytes > 1 else "byte"
    element, count = offset // buffer.item_bytes, buffer.size // buffer.item_bytes
    if offset < 0:
        return f"before the start of {buffer.name}: {word} {element}"
    if element >= count:
        return f"past the end of {buffer.name}: {word} {element} of {count}"
    return f"of {buffer.name}, {word} {element} of {count}"


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
    return ExplainedFailure(fault.what, explanation)


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
    cause, detail = CAUSES[fault.kind], fault.detail
    access, is_global, more = detail.partition(GLOBAL)
    buffer, offset = None, 0
    if fault.address is not None:
        buffer, offset = _meant(buffers, fault.address, reach if is_global else 0)
        where = _described(buffer, offset) if buffer else f"at address {fault.address:#x}, where no array is"
        byte = f"byte {offset} of {buffer.name}" if buffer else f"{fault.address:#x}"
        detail = f"{access} {where}" if is_global else detail.replace(f"{fault.address:#x}", byte)
    if is_global:
        inside = buffer is not None and 0 <= offset < buffer.size
        if buffer is not None and inside and buffer.read_only and not access.startswith("reads"):
            cause, detail = "write to an input", f"{detail}, which is an input"
        elif inside and fault.kind is FaultKind.OUT_OF_BOUNDS:
            detail += ", and what lies behind its end"
        detail += "".join(more.partition("; ")[1:])
    return Explanation(
        cause=cause,
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
    where = f"line {line}{' of an included file' if elsewhere else ''}, " if line else ""
    return f"{where}thread {thread} of block {block}"


def line_of(line: int, *, elsewhere: bool) -> int | None:
    """A line as results keep it: of the kernel file, or none."""
    return None if elsewhere or not line else line
