# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a kernel can do wrong in the executor, what the executor cannot run, and what nothing can launch."""

import functools
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from gpuprof.errors import CaseFailure, CaseSkipped

#: x, y and z of a thread in its block, or of a block in its grid.
Index = tuple[int, int, int]


class FaultKind(StrEnum):
    """The ways in which a kernel's execution can be wrong."""

    OUT_OF_BOUNDS = "out of bounds"
    MISALIGNED = "misaligned"
    UNINITIALISED_SHARED = "uninitialised shared read"
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
    ENDLESS = "instruction budget exceeded"


@dataclass(frozen=True)
class SharedByte:
    """A byte of its block's shared memory that a fault is about.

    Attributes:
        met: Of a race, the number in its block of the thread that was met, where it is known.
        read: Of what nobody had written, the line that read it, and what the thread does with the value.
    """

    byte: int
    met: int | None = None
    read: tuple[int, str] | None = None


class KernelFault(CaseFailure):
    """A kernel did something that CUDA leaves undefined, or that the hardware traps.

    Args:
        kind: Which rule was broken.
        detail: The clause that says what happened, such as "reads 4 bytes at …".
        kernel: Name of the entry function.
        source_line: Line in the kernel's own source file; 0 when the PTX carries no line information.
        block: Index (x, y, z) of the thread block.
        thread: Index (x, y, z) of the thread in its block.
        address: Byte address: absolute for global memory, an offset within its window otherwise.
        other_block: Of a race, the thread block of the other thread.
        shared: The byte of shared memory that it is about.
    """

    def __init__(
        self,
        kind: FaultKind,
        detail: str,
        *,
        kernel: str,
        source_line: int,
        block: tuple[int, int, int],
        thread: tuple[int, int, int],
        address: int | None = None,
        other_block: tuple[int, int, int] | None = None,
        shared: SharedByte | None = None,
    ) -> None:
        super().__init__(f"{kernel}, line {source_line}: thread {thread} of block {block} {detail} ({kind}).")
        self.detail = detail
        self.kind = kind
        self.kernel = kernel
        self.source_line = source_line
        self.block = block
        self.thread = thread
        self.address = address
        self.other_block = other_block
        self.shared = shared

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild from the fields, so that a worker process can send the fault to its parent."""
        return functools.partial(type(self), **self._where), (self.kind, self.detail)

    @property
    def _where(self) -> dict[str, Any]:
        names = ("kernel", "source_line", "block", "thread", "address", "other_block", "shared")
        return {name: getattr(self, name) for name in names}

    def told(self, detail: str, line: int | None = None) -> "KernelFault":
        """Return the same in other words, perhaps as one of another line."""
        return KernelFault(self.kind, detail, **self._where | ({} if line is None else {"source_line": line}))

    @property
    def is_race(self) -> bool:
        """Whether two threads met whom nothing orders."""
        return self.kind in (FaultKind.SHARED_RACE, FaultKind.GLOBAL_RACE)


class LaunchRefused(CaseFailure):
    """The arguments or the shape of a launch do not fit the kernel, or what CUDA allows: nothing ran."""


class UnsupportedInstruction(CaseSkipped):
    """The kernel needs something that the executor does not model.

    Args:
        name: The opcode, function or feature.
        line: Source line of its use; 0 when unknown.
        reached_by: Index (x, y, z) of the thread that came to it, and of that thread's block; None when the
            kernel was not run at all.
    """

    def __init__(self, name: str, line: int, reached_by: tuple[Index, Index] | None = None) -> None:
        what = f"The executor does not model `{name}` (line {line}), "
        if reached_by is None:
            text = f"{what}so this kernel was not run."
        else:
            text = f"{what}which thread {reached_by[0]} of block {reached_by[1]} reached."
        super().__init__(text, fix="Run it on a GPU instead.")
        self.name = name
        self.line = line
        self.reached_by = reached_by

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild from the fields, so that a worker process can send it to its parent."""
        return type(self), (self.name, self.line, self.reached_by)
