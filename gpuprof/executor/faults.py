# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a kernel can do wrong in the executor, what the executor cannot run, and what nothing can launch."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

from msgspec import Struct

from gpuprof.errors import CaseFailure, CaseSkipped

#: x, y and z of a thread in its block, or of a block in its grid.
Index = tuple[int, int, int]


class FaultKind(StrEnum):
    """The ways in which a kernel's execution can be wrong."""

    OUT_OF_BOUNDS = "out of bounds"
    READ_ONLY = "write to a read-only array"
    MISALIGNED = "misaligned"
    UNINITIALISED_SHARED = "uninitialised shared read"
    UNINITIALISED_LOCAL = "uninitialised local read"
    UNINITIALISED_REGISTER = "uninitialised register"
    ABSENT_LANE = "shuffle from a lane that takes no part"
    SHARED_RACE = "shared-memory race"
    GLOBAL_RACE = "global-memory race"
    BARRIER = "barrier"
    MBARRIER = "mbarrier"
    ASYNC_COPY = "asynchronous copy not waited for"
    PROXY = "missing proxy fence"
    STALE = "read-only load of what was written"
    BAD_TARGET = "jump to nowhere"
    TRAP = "trap"
    ENDLESS = "endless loop"


@dataclass(frozen=True)
class SharedByte:
    """A byte of a block's shared memory that a fault is about.

    Attributes:
        met_line: Of a race, what the thread that was met ran.
        reads: Whether the thread itself only reads, and whether the one that it met did.
        apart: Whether that was a thread of another block.
        unheard: Whether another lane of its warp has arrived at an mbarrier since, where it did not.
        read: Of what nobody had written, the line that read it, and what the thread does with the value.
    """

    byte: int
    met_line: int | None = None
    reads: tuple[bool, bool] = (False, False)
    apart: bool = False
    unheard: bool = False
    read: tuple[int, str] | None = None


def race_clause(whom: str, did: str, line: int, more: str = "") -> str:
    """Say of a place that a thread touches what another one did there, and that nothing orders the two."""
    return f"which {whom} {did} in line {line}{more}, and nothing orders them"


class MemoryPlace(Struct, frozen=True):
    """Bytes of global memory by their address, or of a block's shared memory by their offset."""

    address: int
    size: int
    in_shared: bool

    def __str__(self) -> str:
        """Where that is, for who knows no arrays."""
        if self.in_shared:
            return f"byte {self.address} of shared memory"
        return f"global memory at {self.address:#x}"


class Wait(Struct, frozen=True):
    """What some threads wait for that does not come. `{}` in `what` is where `place` is.

    `where` says the line, and where the function that it stands in was called; empty where there is none.
    """

    who: str
    where: str
    what: str
    place: MemoryPlace | None = None

    def sentence(self, named: Callable[[MemoryPlace], str] = str) -> str:
        """Say it, with places as they are `named`."""
        where = f", {self.where}" * bool(self.where)
        return f"{self.who}{where}: {self.what.format(named(self.place)) if self.place else self.what}"


@dataclass(eq=False, repr=False)
class KernelFault(CaseFailure):
    """A kernel did something that CUDA leaves undefined, or that the hardware traps.

    Attributes:
        detail: The clause that says what happened, such as "reads 4 bytes at …".
        kernel: Name of the entry function.
        source_line: Line in the kernel's own source file; 0 when the PTX carries no line information.
        address: Byte address: absolute for global memory, an offset within its window otherwise.
        other_block: Of a race, the thread block of the other thread.
        shared: The byte of shared memory that it is about.
        waits: Where nothing can go on, what every warp waits for.
    """

    kind: FaultKind
    detail: str
    kernel: str
    source_line: int
    block: Index
    thread: Index
    address: int | None = None
    other_block: Index | None = None
    shared: SharedByte | None = None
    waits: tuple[Wait, ...] = ()

    def __post_init__(self) -> None:
        waiting = "; ".join(wait.sentence() for wait in self.waits)
        line = f", line {self.source_line}" * bool(self.source_line)  # the compiler's own code has none
        who = f"{self.kernel}{line}: thread {self.thread} of block {self.block}"
        super().__init__(f"{who} {self.detail} ({self.kind}).{f' Waiting: {waiting}.' * bool(waiting)}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild from the fields, so that a worker process can send the fault to its parent."""
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    def told(self, detail: str, line: int | None = None) -> "KernelFault":
        """Return the same in other words, perhaps as one of another line."""
        return replace(self, detail=detail, source_line=self.source_line if line is None else line)

    def hanging(self, waits: tuple[Wait, ...]) -> "KernelFault":
        """Return the same where nothing can go on, and what every warp waits for; or where that is told."""
        return replace(self, waits=waits)

    @property
    def is_race(self) -> bool:
        """Whether two threads met whom nothing orders."""
        return self.kind in (FaultKind.SHARED_RACE, FaultKind.GLOBAL_RACE)


class LaunchRefused(CaseFailure):
    """The arguments or the shape of a launch do not fit the kernel, or what CUDA allows: nothing ran."""


#: In names of what a compiler has only for Blackwell.
_SINCE_SM_100 = ("tcgen05", "clusterlaunchcontrol", "block_scale", "::f8f6f4", "st.bulk")


@dataclass(eq=False, repr=False)
class UnsupportedInstruction(CaseSkipped):
    """The kernel needs something that the executor does not model.

    Attributes:
        name: The opcode, function or feature.
        line: Source line of its use; 0 when unknown.
        reached_by: Index (x, y, z) of the thread that came to it, and of that thread's block; None when the
            kernel was not run at all.
    """

    name: str
    line: int
    reached_by: tuple[Index, Index] | None = None

    def __post_init__(self) -> None:
        outcome = "so this kernel was not run"
        if self.reached_by is not None:
            outcome = f"which thread {self.reached_by[0]} of block {self.reached_by[1]} reached"
        what = f"The executor does not model `{self.name}` (line {self.line}), {outcome}."
        fix = "Run it on a GPU instead"
        if any(word in self.name for word in _SINCE_SM_100):
            fix += ", or compile it for sm_90, as for device sim:h200: that does without"
        super().__init__(what, fix=f"{fix}.")

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild from the fields, so that a worker process can send it to its parent."""
        return type(self), (self.name, self.line, self.reached_by)
