# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A fault of the executor as an explanation: line, thread, and what it did to which array."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from gpuprof.backends.base import ExplainedFailure
from gpuprof.backends.sim.executed import stands_elsewhere
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
#: What stands between an access to global memory and its address in a fault's words.
_GLOBAL = " of global memory at "


@dataclass(frozen=True, slots=True)
class FaultPlace:
    """A byte in or beside an array."""

    buffer: Buffer
    offset: int

    @property
    def element(self) -> int:
        """The element that the byte belongs to, or would if the array went on."""
        return self.offset // self.buffer.item_bytes

    def describe(self) -> str:
        """Where the byte lies, after `reads 4 bytes`."""
        word = "element" if self.buffer.item_bytes > 1 else "byte"
        count = self.buffer.size // self.buffer.item_bytes
        if self.offset < 0:
            return f"before the start of {self.buffer.name}: {word} {self.element}"
        if self.element >= count:
            return f"past the end of {self.buffer.name}: {word} {self.element} of {count}"
        return f"of {self.buffer.name}, {word} {self.element} of {count}"


def place_of(buffers: Sequence[Buffer], address: int, reach: int) -> FaultPlace | None:
    """The array that an address was meant for: the one it lies in, or the nearest.

    `reach` is how many bytes beside an array are taken for its own.
    """

    def distance(buffer: Buffer) -> int:
        return max(buffer.address - address, address - buffer.address - buffer.size, 0)

    nearest = min(buffers, key=distance, default=None)
    if nearest is None or distance(nearest) > reach:
        return None
    return FaultPlace(nearest, address - nearest.address)


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
    cause, detail, place = CAUSES[fault.kind], fault.detail, None
    access, is_global, _ = detail.partition(_GLOBAL)
    if is_global and fault.address is not None:
        place = place_of(buffers, fault.address, reach)
        detail = (
            f"{access} {place.describe() if place else f'at address {fault.address:#x}, where no array is'}"
        )
        inside = place is not None and 0 <= place.offset < place.buffer.size
        if place is not None and inside and place.buffer.read_only and not access.startswith("reads"):
            cause, detail = "write to an input", f"{detail}, which is an input"
        elif inside and fault.kind is FaultKind.OUT_OF_BOUNDS:
            detail += ", and what lies behind its end"
    elif fault.address is not None and (place := place_of(buffers, fault.address, 0)) is not None:
        detail = detail.replace(f"{fault.address:#x}", f"byte {place.offset} of {place.buffer.name}")
    return Explanation(
        cause=cause,
        text=f"{who(fault.source_line, fault.thread, fault.block, elsewhere=elsewhere)} {detail}",
        sizes=sizes,
        line=line_of(fault.source_line, elsewhere=elsewhere),
        entry=fault.kernel,
        block=fault.block,
        thread=fault.thread,
        array=place.buffer.name if place else "",
        offset=place.offset if place else None,
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
