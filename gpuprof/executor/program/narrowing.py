# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Load of a vector only what is used, as ptxas does.

A kernel that reads a `float4` and uses two of its elements has the whole in its PTX. The hardware loads the
least power of two of bytes, aligned to itself, that holds the used ones; of four words two that lie in no
such half are loaded one by one, and of three, elsewhere than in global and shared memory, those of one half
together. Elements of a byte stay together, and volatile loads as they are. Read off the machine code that
ptxas makes for sm_90 of every choice of elements.
"""

from collections.abc import Iterator, Set
from dataclasses import replace

from gpuprof.executor.program.flow import BasicBlock, reads_and_writes
from gpuprof.executor.program.ptx import Instruction, Mem, Reg, Vec

_KEPT = frozenset({"volatile", "param"})
_WORD_BYTES = 4


def narrow_vector_loads(blocks: list[BasicBlock]) -> None:
    """Replace in place the loads of vectors by those of their used elements."""
    used = {name for block in blocks for item in block.items for name in reads_and_writes(item)[0]}
    for block in blocks:
        block.body = [each for item in block.body for each in _narrowed(item, used)]


def _narrowed(item: Instruction, used: Set[str]) -> Iterator[Instruction]:
    vector, memory = (*item.operands, None, None)[:2]
    bits = item.opcode[-1].lstrip("bsuf")
    plain = item.opcode[0] == "ld" and not _KEPT & set(item.opcode)
    if not (plain and isinstance(vector, Vec) and isinstance(memory, Mem) and bits in ("16", "32", "64")):
        yield item
        return
    live = [i for i, each in enumerate(vector.items) if isinstance(each, Reg) and each.name in used]
    first, width, size = 0, len(vector.items), int(bits) // 8
    while live and width > 1 and live[0] // (width // 2) == live[-1] // (width // 2):
        width //= 2
        first = live[0] // width * width
    most = 2 if {"global", "shared"} & set(item.opcode) else 3
    apart = (width, size) == (4, _WORD_BYTES) and 1 < len(live) <= most
    *head, _, kind = item.opcode
    if width == len(vector.items) and not apart:
        yield item
        return
    halves = [[i for i in live if i // 2 == half] for half in sorted({i // 2 for i in live})]
    # The first of two loads must leave the address to the second.
    halves.sort(key=lambda half: memory.base in [vector.items[i] for i in half])
    for start, count in [(half[0], len(half)) for half in halves] if apart else [(first, width)]:
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
