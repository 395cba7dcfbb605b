# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which bits of a result are undefined, of instructions on registers.

Most are told by running the instruction itself on other values: one that moves bits moves the undefined ones
as it moves the others, and one that combines bits place by place changes its result where an undefined bit
matters. Of the rest an undefined bit makes those above it undefined (sums and products of integers), its half
(packed halves), or the whole result.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import product
from typing import Any

import numpy as np

from gpuprof.executor.arithmetic.formats import SCALE, SMALL
from gpuprof.executor.definedness.operands import (
    RegisterOperand,
    Target,
    consuming,
    followed,
    following,
    places_in,
    require,
    sources_of,
    targets_of,
)
from gpuprof.executor.definedness.undefined import (
    ABSENT_LANE,
    Origins,
    Undefined,
    bits_dtype,
    either,
    first_origin,
    of_another_lane,
    origins_of,
)
from gpuprof.executor.lanes.masks import Bools, Mask, first_true
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.program.flow import has_second_target
from gpuprof.executor.program.ptx import Imm, Instruction, Not, Operand, Reg, Vec
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step
from gpuprof.executor.steps.memory_steps import parts_of

#: How many operands an instruction moves bits of; the others say where to.
_MOVES = {
    **{"selp": 2, "slct": 2, "shl": 1, "shr": 1, "shf": 2},
    **{"bfe": 1, "bfi": 2, "prmt": 2, "brev": 1},
}
_PLACE_BY_PLACE = frozenset({"and", "or", "xor", "not", "lop3"})
_SUMS = frozenset({"add", "sub", "neg", "mul", "mad"})
_INTEGERS = frozenset(f"{kind}{bits}" for kind in "su" for bits in (16, 32, 64))
_PACKED = frozenset({"f32x2", "f16x2", "bf16x2", "u16x2", "s16x2", *SMALL, SCALE})
_WITH_CARRY_IN = frozenset({"addc", "subc", "madc"})

#: From what is undefined of each source register to the undefined bits of the result, of an unsigned dtype.
_Spread = Callable[[Sequence[Undefined | None], np.dtype[Any]], Lanes]


def arithmetic(coder: Coder, item: Instruction, step: Step) -> Step:
    """What the instruction table computes."""
    base = item.opcode[0]
    if base in _MOVES:
        return _moving(coder, item, step, _MOVES[base])
    if base == "cvt" and set(item.opcode[-2:]) <= _INTEGERS | {"u8", "s8"} and "sat" not in item.opcode:
        return _moving(coder, item, step, 1)
    if base in _PLACE_BY_PLACE and not {"and", "or"} & set(item.opcode[1:]):
        return _trying(coder, item, step, sources_of(coder, item))
    if base == "setp" and {"and", "or"} & set(item.opcode):
        return _comparing_with(coder, item, step)
    return _spreading(coder, item, step, _spread_of(item))


def move(coder: Coder, item: Instruction, step: Step) -> Step:
    """`mov`, `movmatrix`: every bit of a register, or of the parts listed in braces."""
    return _moving(coder, item, step, 1)


def shuffle(coder: Coder, item: Instruction, step: Step) -> Step:
    """`shfl`: the undefined bits of the lane that is read, or all where it is not known which one that is."""
    first = 1 + has_second_target(item)
    value, *controls = item.operands[first : first + 3]
    if value in controls:
        inner = across_the_warp(coder, item, step)
    else:
        inner = _with_member_mask(coder, item, _moving(coder, item, step, 1, first=first, controls=2))
    masked, target = coder.mask(item), targets_of(coder, item)[0]

    def shuffling(batch: Batch) -> None:
        mask, state = masked(batch), followed(batch)
        state.absent = None
        inner(batch)
        if (absent := state.absent) is not None:
            origin = origins_of(item.line, np.full((1, 1, 1), ABSENT_LANE))
            unknown = Undefined(_full(absent, target), origin)
            target.put(batch, either(target.place.undefined(batch), unknown), mask)
            state.note(item.line, first_true(absent), ABSENT_LANE)

    return shuffling if isinstance(item.operands[0], Reg) else inner


def vote(coder: Coder, item: Instruction, step: Step) -> Step:
    """`vote`: undefined where the undefined lanes' predicates decide; of a ballot, their bits."""
    if "uni" in item.opcode:
        return across_the_warp(coder, item, step)
    return _with_member_mask(
        coder, item, _trying(coder, item, step, places_in(coder, item.operands[1:2], item.line))
    )


def across_the_warp(coder: Coder, item: Instruction, step: Step) -> Step:
    """`match` and `redux`: undefined for the whole warp if any lane that takes part is."""
    targets, places = targets_of(coder, item), sources_of(coder, item)
    if "sync" in item.opcode:
        member_mask = places_in(coder, item.operands[-1:], item.line)
        places = places[: len(places) - len(member_mask)]

    def find(batch: Batch, mask: Mask) -> list[Undefined | None]:
        found = [
            one for place in places if (one := place.undefined(batch)) and (one := one.within(mask.lanes))
        ]
        return [_in_the_whole_warp(found, target) for target in targets]

    return _with_member_mask(coder, item, following(coder, item, step, places, targets, find))


def _in_the_whole_warp(found: Sequence[Undefined], target: Target) -> Undefined | None:
    if not found:
        return None
    lanes = np.asarray(_lanes(found).any(axis=2, keepdims=True))
    return Undefined(_full(lanes, target), of_another_lane(first_origin(found)))


def multiply(coder: Coder, item: Instruction, step: Step, decode: Callable[..., Step]) -> Step:
    """`mma` and `wmma.mma`: undefined where a row of A, a column of B or an element of C holds anything so.

    Zero times an unknown float may be NaN.
    """
    places, targets = sources_of(coder, item), targets_of(coder, item)
    goal, *given = item.operands
    spread = decode(coder, replace(item, operands=(goal, *map(_without_numbers, given))), spreads=True)

    def find(batch: Batch, mask: Mask) -> list[Undefined | None]:
        found = [one for place in places if (one := place.undefined(batch))]
        if not found:
            return [None] * len(targets)
        origin = of_another_lane(first_origin(found))
        bits = _results(batch, spread, {place.slot: place.bits(batch) for place in places}, targets)
        return [Undefined(one, origin) for one in bits]

    return following(coder, item, step, places, targets, find)


def _without_numbers(operand: Operand) -> Operand:
    """Return an operand whose numbers, all of whose bits are defined, are zeros."""
    return Vec(tuple(part if isinstance(part, Reg) else Imm(0) for part in parts_of(operand)))


def multiply_by_warpgroups(coder: Coder, item: Instruction, step: Step) -> Step:
    """`wgmma.mma_async`: what it adds to may be undefined, as it need not add."""
    places = places_in(coder, item.operands[1 : 6 if "sp" in item.opcode else 4], item.line)
    return consuming(coder, item, step, places, f"gives {item.name}")


def _with_member_mask(coder: Coder, item: Instruction, step: Step) -> Step:
    """The lanes that a warp operation waits for must be defined."""
    masked = coder.mask(item)
    places = places_in(coder, item.operands[-1:], item.line) if "sync" in item.opcode else []

    def checking(batch: Batch) -> None:
        require(batch, places, masked(batch).lanes, item.line, "takes as the mask of a warp operation")
        step(batch)

    return checking if places else step


def _moving(
    coder: Coder, item: Instruction, step: Step, count: int, *, first: int = 1, controls: int | None = None
) -> Step:
    """An instruction that moves bits of `count` operands, as the `controls` after them say."""
    targets, middle = targets_of(coder, item), first + count
    data = places_in(coder, item.operands[first:middle], item.line)
    others = places_in(
        coder, item.operands[middle : None if controls is None else middle + controls], item.line
    )
    if {*data} & {*others}:
        return _spreading(coder, item, step, _whole)
    across = item.opcode[0] == "shfl"
    given = [each.items if isinstance(each, Vec) else (each,) for each in item.operands[first:middle]]
    constants = len(data) < sum(map(len, given))
    receiving = {place.slot for place in places_in(coder, item.operands[:1], item.line)}

    def find(batch: Batch, mask: Mask) -> list[Undefined | None]:
        if batch.meeting is not None:  # what lanes from elsewhere bring is not followed
            require(batch, (*data, *others), mask.lanes, item.line, f"gives {item.name}")
        found = {place: one for place in data if (one := place.undefined(batch))}
        unsure = [one for place in others if (one := place.undefined(batch))]
        news: list[Undefined | None] = [None] * len(targets)
        if found:
            bits = _results(batch, step, {place.slot: place.bits(batch) for place in data}, targets)
            if constants:  # whose bits are all defined
                zeros = {place.slot: np.zeros((1, 1, 1), place.kept) for place in data}
                bits = [
                    one ^ of_zeros
                    for one, of_zeros in zip(bits, _results(batch, step, zeros, targets), strict=True)
                ]
            origin = of_another_lane(first_origin([*found.values()]))
            for number, target in enumerate(targets):
                if target.place.slot in receiving:
                    if across:
                        origin = _shuffled(batch, step, data[0], origin, target)
                    news[number] = Undefined(bits[number], origin)
        if not unsure:
            return news
        blind = [Undefined(_full(_lanes(unsure), target), first_origin(unsure)) for target in targets]
        return list(map(either, news, blind))

    return following(coder, item, step, (*data, *others), targets, find)


def _shuffled(batch: Batch, step: Step, place: RegisterOperand, origin: Origins, target: Target) -> Origins:
    """Let origins go where the values go, in two words."""
    words = np.ascontiguousarray(origin)[..., None].view(np.uint32)
    moved = [
        _results(batch, step, {place.slot: np.ascontiguousarray(words[..., i]).view(place.kept)}, [target])[0]
        for i in range(2)
    ]
    both = np.stack(np.broadcast_arrays(*(word.view(np.uint32) for word in moved)), axis=-1)
    return np.asarray(both.view(np.int64)[..., 0])


def _trying(coder: Coder, item: Instruction, step: Step, places: list[RegisterOperand]) -> Step:
    """An instruction whose result is undefined where it is not the same whatever the undefined bits are.

    To try them all zero and all one, operand by operand, is enough where each bit is treated by itself, and
    for votes.
    """
    targets, places = targets_of(coder, item), list(dict.fromkeys(places))

    def find(batch: Batch, mask: Mask) -> list[Undefined | None]:
        found = {place: one for place in places if (one := place.undefined(batch))}
        if not found:
            return [None] * len(targets)
        choices = [
            [(place.slot, _filled(batch, place, one, ones=ones)) for ones in (False, True)]
            for place, one in found.items()
        ]
        first, *others = (_results(batch, step, dict(choice), targets) for choice in product(*choices))
        origin = first_origin([*found.values()])
        origin = of_another_lane(origin) if item.opcode[0] == "vote" else origin
        return [
            Undefined(reduce(np.bitwise_or, (one ^ each[number] for each in others)), origin)
            for number, one in enumerate(first)
        ]

    return following(coder, item, step, places, targets, find)


def _results(batch: Batch, step: Step, values: dict[int, Lanes], targets: list[Target]) -> list[Lanes]:
    """Return what an instruction makes of other values, as bits; it must do nothing but write its targets."""
    registers = list(batch.registers)
    for slot, value in values.items():
        registers[slot] = value
    made = followed(batch).on_bits(step, registers)
    return [made[target.place.slot].view(bits_dtype(target.place.kept)) for target in targets]


def _filled(batch: Batch, place: RegisterOperand, undefined: Undefined, *, ones: bool) -> Lanes:
    """The value of a register with its undefined bits set or cleared."""
    value = batch.registers[place.slot].view(bits_dtype(place.kept))
    return np.asarray(value | undefined.bits if ones else value & ~undefined.bits).view(place.kept)


def _comparing_with(coder: Coder, item: Instruction, step: Step) -> Step:
    """`setp` combined with a predicate: one that settles the result by itself makes it defined."""
    operand = item.operands[-1]
    if not isinstance(operand, Reg | Not):
        return _spreading(coder, item, step, _whole)
    read = coder.predicate(operand, item)
    (place,) = places_in(coder, (operand,), item.line)
    settles = "or" in item.opcode

    def settled(batch: Batch) -> Bools:
        unsure = place.undefined(batch)
        holds = np.asarray(read(batch) == settles)
        return holds if unsure is None else holds & ~unsure.lanes

    return _spreading(coder, item, step, _whole, settled)


def _spreading(
    coder: Coder,
    item: Instruction,
    step: Step,
    spread: _Spread,
    settled: Callable[[Batch], Bools] | None = None,
) -> Step:
    """Any other instruction; `settled` tells the lanes whose result is defined whatever is compared."""
    targets = targets_of(coder, item)
    carry = RegisterOperand(coder.carry, np.dtype(np.bool_))
    sources = sources_of(coder, item) + ([carry] if item.opcode[0] in _WITH_CARRY_IN else [])
    if "cc" in item.opcode:
        targets.append(Target(carry, guarded=True, spares=True))

    def find(batch: Batch, mask: Mask) -> list[Undefined | None]:
        read = [place.undefined(batch) for place in sources]
        found = [one for one in read if one is not None]
        if not found:
            return [None] * len(targets)
        lanes, origin = _lanes(found), first_origin(found)
        if settled is not None:
            lanes = lanes & ~settled(batch)
        kinds = [target.place.kept for target in targets]
        return [
            Undefined(lanes if kind == np.bool_ else spread(read, np.dtype(f"u{kind.itemsize}")), origin)
            for kind in kinds
        ]

    return following(coder, item, step, sources, targets, find)


def _spread_of(item: Instruction) -> _Spread:
    base, words = item.opcode[0], set(item.opcode[1:])
    if base == "cvt" and {item.opcode[-2]} & _PACKED and len(item.operands) == 3:
        return _packed([isinstance(operand, Reg) for operand in item.operands[1:]])
    if words & _PACKED and (base != "cvt" or {*item.opcode[-2:]} <= _PACKED):
        return _each_half
    if base in _SUMS and words <= {"lo", "wide", "cc", *_INTEGERS}:
        return _upward
    return _whole


def _whole(sources: Sequence[Undefined | None], dtype: np.dtype[Any]) -> Lanes:
    lanes = _lanes([one for one in sources if one is not None])
    return np.asarray(np.where(lanes, np.invert(dtype.type(0)), dtype.type(0)))


def _upward(sources: Sequence[Undefined | None], dtype: np.dtype[Any]) -> Lanes:
    """Carries run upward only: what is below the lowest undefined bit is defined."""
    total = reduce(np.bitwise_or, (one.bits.astype(dtype) for one in sources if one is not None))
    return np.asarray(total | (~total + dtype.type(1)))


def _each_half(sources: Sequence[Undefined | None], dtype: np.dtype[Any]) -> Lanes:
    """Packed halves are computed each by itself, also where they become wider or narrower."""
    found = [(one.bits, one.bits.dtype.itemsize * 4) for one in sources if one is not None]
    return _of_halves(
        reduce(np.bitwise_or, (bits >> width != 0 for bits, width in found)),
        reduce(np.bitwise_or, (bits & bits.dtype.type((1 << width) - 1) != 0 for bits, width in found)),
        dtype,
    )


def _of_halves(upper: Bools, lower: Bools, dtype: np.dtype[Any]) -> Lanes:
    """Whole halves of a register, where they are undefined."""
    half = dtype.type((1 << dtype.itemsize * 4) - 1)
    return np.asarray(np.where(upper, ~half, dtype.type(0)) | np.where(lower, half, dtype.type(0)))


def _packed(registers: list[bool]) -> _Spread:
    """The first operand becomes the upper half, the second the lower one."""

    def spread(sources: Sequence[Undefined | None], dtype: np.dtype[Any]) -> Lanes:
        given = iter(sources)
        halves = [next(given) if is_register else None for is_register in registers[:2]]
        upper, lower = (np.zeros((1, 1, 1), np.bool_) if one is None else one.lanes for one in halves)
        return _of_halves(upper, lower, dtype)

    return spread


def _lanes(found: Sequence[Undefined]) -> Bools:
    return reduce(np.bitwise_or, (one.lanes for one in found))


def _full(lanes: Bools, target: Target) -> Lanes:
    dtype = bits_dtype(target.place.kept)
    return lanes if dtype == np.bool_ else np.where(lanes, np.invert(dtype.type(0)), dtype.type(0))
