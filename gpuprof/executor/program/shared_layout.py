# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Where the shared variables of a kernel lie, as ptxas places them; all of it is read off its machine code.

Static variables that the kernel names follow each other in the order of the text, each at its own alignment;
others take no room. Every `extern` array starts behind them, at the largest alignment of its own and of those
`extern` arrays that stand before it in the text, named or not: two need not start together, and an array lies
elsewhere once another kernel of the file brings a stricter one. What a launch asks for is added to the static
size, which is rounded up to the largest alignment of any `extern` array of the module.
"""

from collections.abc import Iterable
from itertools import accumulate

from msgspec import Struct

from gpuprof.executor.program.ptx import (
    Function,
    Instruction,
    Module,
    Variable,
    symbols_of,
)

#: The least alignment of dynamic shared memory.
_DYNAMIC_ALIGNMENT = 16


class SharedLayout(Struct, frozen=True):
    """Places in a kernel's own shared memory, in bytes from its start.

    `allotted_bytes` is what ptxas states as static size; dynamic bytes come on top of it. `dynamic_offset` is
    where the last `extern` array that the kernel names starts.
    """

    offsets: dict[str, int]
    static_bytes: int
    allotted_bytes: int
    dynamic_offset: int

    def behind(self, count: int) -> "SharedLayout":
        """Return the same places behind so many bytes, which are no part of what ptxas states."""
        return SharedLayout(
            {name: offset + count for name, offset in self.offsets.items()},
            self.static_bytes + count,
            self.allotted_bytes,
            self.dynamic_offset + count,
        )


def shared_layout(module: Module, function: Function) -> SharedLayout:
    """Place the shared variables of a kernel, which has no calls left."""
    declared = [v for v in (*module.variables, *function.variables) if v.space == "shared"]
    named = {
        name for item in function.body if isinstance(item, Instruction) for name in symbols_of(item.operands)
    }
    offsets, end = laid_out(v for v in declared if not v.extern and v.name in named)
    dynamic = {v.name: max(_DYNAMIC_ALIGNMENT, v.align) for v in declared if v.extern}
    alignments = dict(zip(dynamic, accumulate(dynamic.values(), max), strict=True))
    starts = {name: aligned(end, alignment) for name, alignment in alignments.items() if name in named}
    allotted = aligned(end, max(alignments.values())) if alignments else end
    least = aligned(end, _DYNAMIC_ALIGNMENT)
    return SharedLayout(offsets | starts, end, allotted, max(starts.values(), default=least))


def aligned(offset: int, alignment: int) -> int:
    """Return the next multiple of an alignment."""
    return -(-offset // alignment) * alignment


def laid_out(variables: Iterable[Variable]) -> tuple[dict[str, int], int]:
    """Place variables one after the other; return their offsets and the end."""
    offsets: dict[str, int] = {}
    end = 0
    for variable in variables:
        if variable.name not in offsets:
            offsets[variable.name] = start = aligned(end, variable.align)
            end = start + variable.size
    return offsets, end
