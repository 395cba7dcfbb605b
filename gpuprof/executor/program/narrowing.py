# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Load of a vector only what is used, as ptxas does.

A kernel that reads a `float4` and uses two of its elements has the whole in its PTX. The hardware loads the
least power of two of bytes, aligned to itself, that holds the used ones; of four words two that lie in no
such half are loaded one by one. Elements of a byte stay together, and volatile loads as they are. Read off
the machine code that ptxas makes for sm_90 of every choice of elements.
"""

from collections.abc import Iterator, Set
from dataclasses import replace

from gpuprof.executor.program.flow import BasicBlock, reads_and_writes
from gpuprof.executor.program.ptx import Instruction, Mem, Reg, Vec

_KEPT = frozenset({"volatile", "acquire", "mmio"})
_WORD_BYTES = 4


def narrow_vector_loads(blocks: list[BasicBlock]) -> None:
    """Replace in place the loads of vectors from global and shared memory by those of their used elements."""
    used = {name for block in blocks for item in block.items for name in reads_and_writes(item)[0]}
    for block in blocks:
        block.body = [each for item in block.body for each in _narrowed(item, used)]


def _narrowed(item: Instruction, used: Set[str]) -> Iterator[Instruction]:
    vector, memory = (*item.operands, None, None)[:2]
    bits = item.opcode[-1].lstrip("bsuf")
    plain = (
        item.opcode[0] == "ld" and {"global", "shared"} & set(item.opcode) and not _KEPT & set(item.opcode)
    )
    if not (plain and isinstance(vector, Vec) and isinstance(memory, Mem) and bits in ("16", "32", "64")):
        yield item
        return
    live = [i for i, each in enumerate(vector.items) if isinstance(each, Reg) and each.name in used]
    first, width, size = 0, len(vector.items), int(bits) // 8
    while live and width > 1 and live[0] // (width // 2) == live[-1] // (width // 2):
        width //= 2
        first = live[0] // width * width
    # The first of two loads must leave the address to the second.
    apart = len(live) == 2 and (width, size) == (4, _WORD_BYTES) and memory.base not in vector.items
    *head, _, kind = item.opcode
    if width == len(vector.items) and not apart:
        yield item
        return
    for start, count in [(i, 1) for i in live] if apart else [(first, width)]:
        items = vector.items[start : start + count]
        yield replace(
            item,
            opcode=(*head, kind) if count == 1 else (*head, f"v{count}", kind),
            operands=(
                items[0] if count == 1 else Vec(items),
                Mem(memory.base, memory.offset + start * size),
                *item.operands[2:],
            ),
            vector=(memory.offset, size * len(vector.items)),
        )
