# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Decode the instructions by which lanes of a warp exchange values, once those that they name have come."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.arithmetic.atomics import ATOMICS
from gpuprof.executor.arithmetic.nans import canonical
from gpuprof.executor.faults import FaultKind, UnsupportedInstruction
from gpuprof.executor.lanes.masks import WARP, Bools, Mask
from gpuprof.executor.lanes.meetings import Arrival, LaneBits, ballot, groups, in_bits, missing
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes
from gpuprof.executor.memory.accesses import Access
from gpuprof.executor.program.flow import has_second_target
from gpuprof.executor.program.means import names_all
from gpuprof.executor.program.ptx import Instruction
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step, computing, where_active

_U32, _S32, _U64, _PRED = (ARITHMETIC[kind] for kind in ("u32", "s32", "u64", "pred"))
_LANE = np.arange(WARP, dtype=np.int64)
_BIT = (np.uint32(1) << np.arange(WARP, dtype=np.uint32)).astype(np.uint32)
#: The lane that a lane reads in a `shfl` by a distance.
_MOVED = {"up": np.subtract, "down": np.add, "bfly": np.bitwise_xor}


class MemberMask:
    """The operand of a warp operation that names its lanes; one without `.sync` waits for nobody."""

    def __init__(self, coder: Coder, item: Instruction) -> None:
        self._item = item
        self._waits = "sync" in item.opcode
        self._names_all = names_all(item)
        if self._waits:
            self._read = coder.reader(item.operands[-1], _S32, item)

    def meet(self, batch: Batch, mask: Mask, *values: Lanes) -> tuple[LaneBits | None, tuple[Lanes, ...]]:
        """Return with whom each lane exchanges, and what all of them bring.

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
        # Nobody who is named can be elsewhere.
        complete = mask.whole_warps is not None or (batch.alone and mask is batch.mask)
        if not self._waits or (self._names_all and complete):
            return None, values
        named, item = self._read(batch).view(np.uint32), self._item
        text = f"gives {item.name} the member mask {{:#010x}}, which does not name itself"
        batch.refuse(FaultKind.BARRIER, mask, ~in_bits(named), item.line, text, named)
        group = groups(mask.lanes, named)
        waits = mask.lanes & (missing(group, named, batch.live.lanes) != 0)
        if waits.any():
            raise Arrival(item.name, item.line, mask, named, waits, values)
        apart = bool(((group != ballot(mask.lanes)) & mask.lanes).any())
        return group if apart else None, values


def spread(value: Lanes, batch: Batch) -> Lanes:
    """Return `value` with an element for every lane of the warp; other axes stay as they are."""
    return np.broadcast_to(value, (*value.shape[:2], WARP))


def _sources(coder: Coder, item: Instruction, first: int) -> Callable[[Batch], tuple[Lanes, Bools]]:
    """Return what tells which lane each lane reads in a `shfl`, and whether that lies in its segment.

    Elsewhere it reads its own. After the operand `first` come the lane and the bounds of segments.
    """
    mode = next((part for part in (*_MOVED, "idx") if part in item.opcode), None)
    if mode is None:
        raise UnsupportedInstruction(item.name, item.line)
    lane, control = (coder.reader(operand, _S32, item) for operand in item.operands[first + 1 : first + 3])

    def sources(batch: Batch) -> tuple[Lanes, Bools]:
        c = control(batch).astype(np.int64)
        clamp, segment = c & 0x1F, (c >> 8) & 0x1F
        b = lane(batch).astype(np.int64) & 0x1F
        limit = (_LANE & segment) | (clamp & ~segment)
        within = (_LANE & segment) | (b & ~segment)
        source = within if mode == "idx" else _MOVED[mode](_LANE, b)
        valid = source >= limit if mode == "up" else source <= limit
        return np.where(valid, source, _LANE), valid

    return sources


def _of_lanes(value: Lanes, source: NDArray[np.int64]) -> Lanes:
    """Return for each lane what the lane at `source` has."""
    shape = np.broadcast_shapes(value.shape, source.shape)
    return np.take_along_axis(np.broadcast_to(value, shape), np.broadcast_to(source, shape), axis=2)


def shuffle(coder: Coder, item: Instruction) -> Step:
    """`shfl.sync.{up,down,bfly,idx}`: read another lane's value, if it is in range."""
    if len(item.operands) < 4:
        raise UnsupportedInstruction(item.name, item.line)
    # Where the operands after the targets begin: the value, its lane, and the bounds of segments.
    first = 1 + has_second_target(item)
    sources, members = _sources(coder, item, first), MemberMask(coder, item)
    read, write = coder.reader(item.operands[first], _S32, item), coder.target(item.operands[0], item)
    write_valid = coder.target(item.operands[1], item) if first == 2 else None

    def step(batch: Batch, mask: Mask) -> None:
        group, (value,) = members.meet(batch, mask, spread(read(batch), batch))
        source, valid = sources(batch)
        if group is not None or not mask.whole:
            taking = spread(mask.lanes, batch)
            there = _of_lanes(taking, source) if group is None else in_bits(group, source)
            if (absent := np.asarray(taking & ~there)).any():
                if batch.shadow is not None and batch.passes_on(FaultKind.ABSENT_LANE):
                    batch.shadow.absent = absent
                else:
                    text = "reads lane {} of its warp, which takes no part in the exchange"
                    batch.refuse(FaultKind.ABSENT_LANE, mask, absent, item.line, text, source)
        write(batch, _of_lanes(value, source), mask)
        if write_valid is not None:
            write_valid(batch, valid, mask)

    return where_active(coder, item, step)


def vote(coder: Coder, item: Instruction) -> Step:
    """`vote.sync.{all,any,uni,ballot}` over the lanes that meet there."""
    mode = next((part for part in ("all", "any", "uni", "ballot") if part in item.opcode), None)
    if mode is None:
        raise UnsupportedInstruction(item.name, item.line)
    write, holds = coder.target(item.operands[0], item), coder.predicate(item.operands[1], item)
    members = MemberMask(coder, item)

    def step(batch: Batch, mask: Mask) -> None:
        group, (yes_or_no,) = members.meet(batch, mask, holds(batch))
        everyone = ballot(mask.lanes) if group is None else group
        yes = np.asarray(ballot(np.asarray(yes_or_no)) & everyone)
        if mode == "ballot":
            write(batch, yes, mask)
            return
        result = {"all": yes == everyone, "any": yes != 0, "uni": (yes == everyone) | (yes == 0)}[mode]
        write(batch, result, mask)

    return where_active(coder, item, step)


def active_mask(coder: Coder, item: Instruction) -> Step:
    """`activemask`: the lanes that execute it, as bits."""
    masked = coder.mask(item)
    return computing(coder, item, lambda batch: ballot(masked(batch).lanes))


def match(coder: Coder, item: Instruction) -> Step:
    """`match.sync.{any,all}`: which lanes hold the same value."""
    dtype = _U64 if "b64" in item.opcode else _U32
    every = "all" in item.opcode
    paired = has_second_target(item)
    write = coder.target(item.operands[0], item)
    write_same = coder.target(item.operands[1], item) if paired else None
    value = coder.reader(item.operands[1 + paired], dtype, item)
    members = MemberMask(coder, item)

    def step(batch: Batch, mask: Mask) -> None:
        group, (brought,) = members.meet(batch, mask, value(batch))
        held, everyone = spread(brought, batch), ballot(mask.lanes) if group is None else group
        equal = held[..., :, None] == held[..., None, :]
        same = np.where(equal, _BIT, np.uint32(0)).sum(axis=3, dtype=np.uint32) & everyone
        if not every:
            write(batch, same, mask)
            return
        agree = same == everyone
        write(batch, np.where(agree, everyone, np.uint32(0)), mask)
        if write_same is not None:
            write_same(batch, agree, mask)

    return where_active(coder, item, step)


_REDUCTIONS = ("add", "min", "max", "and", "or", "xor")


def reduce(coder: Coder, item: Instruction) -> Step:
    """`redux.sync`: combine the value of all lanes that meet there."""
    name = next((part for part in item.opcode if part in _REDUCTIONS), None)
    if item.opcode[-1] == "f32" and name in ("min", "max"):
        keys, values = _ordered(name == "min", "NaN" in item.opcode, "abs" in item.opcode)
        return _reduced(coder, item, name, np.dtype(np.int32), keys, values)
    if name is None or item.opcode[-1] == "f32":
        raise UnsupportedInstruction(item.name, item.line)
    return _reduced(coder, item, name, ARITHMETIC[item.opcode[-1]])


def _ordered(
    lowest: bool, nan_wins: bool, of_sizes: bool
) -> tuple[Callable[[Lanes], Lanes], Callable[[Lanes], Lanes]]:
    """Return what makes integers of f32 in the order in which these are extreme, and f32 of them again."""
    limits = np.iinfo(np.int32)
    of_nan = limits.min if lowest == nan_wins else limits.max

    def keys(bits: Lanes) -> Lanes:
        floats = bits.view(np.float32)
        bits = (np.abs(floats) if of_sizes else floats).view(np.int32)
        return np.where(np.isnan(floats), np.int32(of_nan), bits ^ ((bits >> 31) & np.int32(limits.max)))

    def values(key: Lanes) -> Lanes:
        # Both ends of the order are bits of NaNs.
        return canonical((key ^ ((key >> 31) & np.int32(limits.max))).view(np.float32))

    return keys, values


def _reduced(
    coder: Coder,
    item: Instruction,
    name: str,
    dtype: np.dtype[Any],
    keys: Callable[[Lanes], Lanes] = np.asarray,
    values: Callable[[Lanes], Lanes] = np.asarray,
) -> Step:
    """Combine integers that `keys` makes of the lanes' values; `values` makes values of them again."""
    combine = cast("np.ufunc", ATOMICS[name])
    limits = np.iinfo(dtype)
    neutral = {"min": limits.max, "max": limits.min, "and": -1 if dtype.kind == "i" else limits.max}.get(
        name, 0
    )
    write, value = coder.target(item.operands[0], item), coder.reader(item.operands[1], dtype, item)
    members = MemberMask(coder, item)

    def step(batch: Batch, mask: Mask) -> None:
        group, (brought,) = members.meet(batch, mask, keys(value(batch)))
        if group is None:
            held = np.where(mask.lanes, spread(brought, batch), dtype.type(neutral))
            write(batch, values(combine.reduce(held, axis=2, keepdims=True, dtype=dtype)), mask)
            return
        # A row for each lane: what those have that it exchanges with.
        held = np.where(in_bits(group[..., None]), spread(brought, batch)[..., None, :], dtype.type(neutral))
        write(batch, values(combine.reduce(held, axis=3, dtype=dtype)), mask)

    return where_active(coder, item, step)


def elect(coder: Coder, item: Instruction) -> Step:
    """`elect.sync`: the lowest of the lanes that meet there is the leader."""
    write, write_leader = (coder.target(operand, item) for operand in item.operands[:2])
    members = MemberMask(coder, item)

    def step(batch: Batch, mask: Mask) -> None:
        group, _ = members.meet(batch, mask)
        everyone = ballot(mask.lanes) if group is None else group
        leader = in_bits(everyone[..., None]).argmax(axis=3)
        write(batch, leader.astype(np.uint32), mask)
        write_leader(batch, leader == _LANE, mask)

    return where_active(coder, item, step)


def sync_warp(coder: Coder, item: Instruction) -> Step:
    """`bar.warp.sync`: orders the memory accesses of the lanes that meet there."""
    members = MemberMask(coder, item)
    coder.site("warp_barrier", item)

    def step(batch: Batch, mask: Mask) -> None:
        group, _ = members.meet(batch, mask)
        if batch.meeting is not None:
            if batch.meeting.settled:
                return
            batch.meeting.settled, mask = True, mask.of(batch.meeting.lanes)
        if not batch.events.listeners:
            return
        meets = ballot(mask.lanes) if group is None else group
        whole = mask.lanes
        if group is not None or not batch.alone or mask is not batch.mask:
            whole = mask.lanes & ((ballot(batch.live.lanes) & ~meets) == 0)
        together = np.asarray(whole.any(axis=2, keepdims=True))
        if together.any():
            batch.events.synchronise(Access.SYNCWARP, together, (0, 0), item.line)
        if (rest := np.asarray(mask.lanes & ~together)).any():
            rest, meets = np.broadcast_arrays(rest, meets)
            for group in np.unique(meets[rest]):
                batch.events.synchronise(Access.SYNCLANES, rest & (meets == group), (0, 0), item.line)

    return where_active(coder, item, step)
