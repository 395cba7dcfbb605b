# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The barriers of a block: what their operands may be, whether threads agree on them, and `bar.red`."""

from collections.abc import Callable

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from gpuprof.executor.faults import FaultKind, UnsupportedInstruction
from gpuprof.executor.lanes.masks import WARP, Bools, Mask
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes, reinterpret
from gpuprof.executor.program.ptx import Instruction, Reg
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder

#: Barriers of a thread block.
_BARRIERS = 16
_U32 = ARITHMETIC["u32"]
#: What barriers of a block may say, and waits at that of a cluster.
_MODIFIERS = {"cta", "sync", "aligned", "arrive", "red", "popc", "and", "or", "u32", "pred"}
_MODIFIERS |= {"cluster", "wait", "acquire"}


def barrier_operands(coder: Coder, item: Instruction) -> Callable[[Batch], list[Lanes]]:
    """Return a reader of a barrier's number, and of how many threads it takes where it says so."""
    if not _MODIFIERS.issuperset(item.opcode[1:]):
        raise UnsupportedInstruction(item.name, item.line)
    operands = item.operands[1:-1] if "red" in item.opcode else item.operands
    reads = [coder.reader(operand, _U32, item) for operand in operands]
    return lambda batch: [read(batch) for read in reads]


class Reduction(Struct, frozen=True):
    """What `bar.red` makes of a predicate of the threads that meet."""

    combine: str
    holds: Callable[[Batch], Lanes]
    slot: int
    kept: np.dtype[np.generic]

    @classmethod
    def of(cls, coder: Coder, item: Instruction) -> "Reduction | None":
        """Decode it; None for a barrier that only waits."""
        if "red" not in item.opcode:
            return None
        combine = next((part for part in ("popc", "and", "or") if part in item.opcode), None)
        target = item.operands[0]
        if combine is None or not isinstance(target, Reg):
            raise UnsupportedInstruction(item.name, item.line)
        slot = coder.slots.register(target.name, item.line)
        return cls(combine, coder.predicate(item.operands[-1], item), slot, coder.slots.kept[slot])

    def votes(self, batch: Batch, mask: Mask) -> Bools:
        """Return the lanes of a mask whose predicate holds: shape (blocks, warps, 32)."""
        return batch.spread(np.asarray(self.holds(batch) & mask.lanes))

    def give(self, batch: Batch, lanes: Bools, yes: Bools, voters: Bools) -> None:
        """Write the result to `lanes`, of what all `voters` of their blocks said."""
        yes, voters = (batch.layout.by_block(part, batch.blocks) for part in (yes, voters))
        if self.combine == "popc":
            found = np.asarray(yes.sum(axis=(1, 2), dtype=np.uint32))
        elif self.combine == "and":
            found = np.asarray((yes | ~voters).all(axis=(1, 2)))
        else:
            found = np.asarray(yes.any(axis=(1, 2)))
        value = reinterpret(batch.layout.in_batch(found), self.kept)
        batch.registers[self.slot] = np.where(lanes, value, batch.registers[self.slot])


def check_operands(batch: Batch, line: int, mask: Mask, identity: int, count: int | None) -> None:
    """Report a barrier that no block has, or a count that is not of whole warps."""
    text = ""
    if identity >= _BARRIERS:
        text = f"uses barrier {identity}, but a block has {_BARRIERS}, from 0"
    elif count is not None and (count == 0 or count % WARP):
        text = f"waits at a barrier for {count} threads, which are not whole warps of {WARP}"
    if text:
        batch.fault(FaultKind.BARRIER, text, line, mask.first())


class Agreement(Struct):
    """Holds the threads that meet at a barrier to one count: cards stop at the second.

    A count that is the block's size is another one than none, which means all that have not ended: -1 of
    `counts`, which have a number for each block, 0 where nobody waits.
    """

    counts: dict[int, NDArray[np.int64]] = field(default_factory=dict)

    def come(self, batch: Batch, line: int, mask: Mask, identity: int, count: int | None) -> None:
        layout = batch.layout
        blocks = batch.blocks * layout.blocks
        known = self.counts.setdefault(identity, np.zeros(blocks, dtype=np.int64))
        lanes = layout.by_block(mask.lanes, batch.blocks)
        here = lanes.any(axis=(1, 2))
        mine = -1 if count is None else count
        wrong = here & (known != 0) & (known != mine)
        if wrong.any():
            block = int(wrong.argmax())
            warp, lane = (int(i) for i in np.argwhere(lanes[block])[0])
            other = int(known[block])
            cluster, rank = divmod(block, layout.blocks)
            position = (cluster, rank * layout.warps + warp, lane)
            text = (
                f"comes to barrier {identity} for {_threads(mine)},"
                f" where others wait for {_threads(other)}: cards stop there"
            )
            batch.fault(FaultKind.BARRIER, text, line, position)
        known[here] = mine

    def complete(self, identity: int, blocks: Bools) -> None:
        """The barrier is over in blocks that are true."""
        if identity in self.counts:
            self.counts[identity][blocks] = 0


def _threads(count: int) -> str:
    return "all threads of its block" if count < 0 else f"{count} threads"
