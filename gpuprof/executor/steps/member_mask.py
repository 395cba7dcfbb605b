# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The member mask of a warp operation: with whom its lanes exchange, once these have come."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuprof.executor.faults import FaultKind
from gpuprof.executor.lanes.masks import Bools, Mask, first_true
from gpuprof.executor.lanes.meetings import Arrival, LaneBits, ballot, groups, in_bits, missing
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes
from gpuprof.executor.program.ptx import Imm, Instruction
from gpuprof.executor.steps.batch import Batch

if TYPE_CHECKING:
    from gpuprof.executor.steps.coding import Coder

_S32 = ARITHMETIC["s32"]
_EVERYBODY = 0xFFFFFFFF


@dataclass(frozen=True)
class _Seen:
    """What was found for these lanes, with these members, while these lived.

    Attributes:
        group: For each lane those that it exchanges with; None where that is all who run the instruction.
        incomplete: The lanes that must wait; None if none must.
    """

    mask: Mask
    members: Lanes
    live: Mask
    group: LaneBits | None
    incomplete: Bools | None


def names_all(item: Instruction) -> bool:
    """Tell whether a warp operation names all lanes of the warp, whatever registers hold."""
    operand = item.operands[-1]
    return isinstance(operand, Imm) and operand.bits & _EVERYBODY == _EVERYBODY


class MemberMask:
    """The operand of a warp operation that names its lanes; one without `.sync` waits for nobody."""

    def __init__(self, coder: "Coder", item: Instruction) -> None:
        self._item = item
        self._waits = "sync" in item.opcode
        self._names_all = names_all(item)
        if self._waits:
            self._read = coder.reader(item.operands[-1], _S32, item)
        self._seen: _Seen | None = None

    def meet(self, batch: Batch, mask: Mask, *values: Lanes) -> tuple[LaneBits | None, tuple[Lanes, ...]]:
        """Return with whom each lane exchanges, and what all of them bring.

        Args:
            batch: The batch.
            mask: The lanes that run the operation now.
            values: What they bring.

        Returns:
            For each lane those of its warp that it exchanges with, or None where that is everybody in `mask`;
            and the values.

        Raises:
            Arrival: Some must wait for lanes that are elsewhere.
        """
        if batch.meeting is not None:
            others = batch.meeting.values
            together = [
                np.where(mask.lanes, mine, brought) for mine, brought in zip(values, others, strict=True)
            ]
            return batch.meeting.group, tuple(together)
        if not self._waits or (self._names_all and batch.alone and mask is batch.mask):
            return None, values
        seen = self._examined(batch, mask)
        if seen.incomplete is not None:
            name, line = self._item.name, self._item.line
            raise Arrival(name, line, mask, seen.members.view(np.uint32), seen.incomplete, values)
        return seen.group, values

    def _examined(self, batch: Batch, mask: Mask) -> _Seen:
        members, seen = self._read(batch), self._seen
        known = seen is not None and seen.mask is mask and seen.live is batch.live
        if known and seen is not None and np.array_equal(seen.members, members):
            return seen
        named = members.view(np.uint32)
        outside = mask.lanes & ~in_bits(named)
        if outside.any():
            position = first_true(outside)
            shown = int(np.broadcast_to(named, outside.shape)[position])
            text = f"gives {self._item.name} the member mask {shown:#010x}, which does not name itself"
            batch.fault(FaultKind.BARRIER, text, self._item.line, position)
        group = groups(mask.lanes, named)
        waits = mask.lanes & (missing(group, named, batch.live.lanes) != 0)
        everybody = ballot(mask.lanes)
        apart = bool(((group != everybody) & mask.lanes).any())
        incomplete = waits if waits.any() else None
        self._seen = seen = _Seen(mask, members, batch.live, group if apart else None, incomplete)
        return seen
