# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How undefined values go through products of matrices, and through what moves their tiles.

A product is undefined where its row of A, its column of B or its element of C holds anything undefined: zero
times an unknown float may be NaN. Moves take the undefined bits where they take the values. The origin of a
value is that of any undefined one that its warp gave.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from gpuprof.executor.arithmetic.fragments import transposed
from gpuprof.executor.definedness.operands import (
    RegisterOperand,
    consuming,
    followed,
    following,
    places_in,
    require,
    sources_of,
    target_of,
    targets_of,
)
from gpuprof.executor.definedness.state import Moved, size_of
from gpuprof.executor.definedness.undefined import Origins, Undefined, first_origin, origins_of
from gpuprof.executor.lanes.masks import Mask, first_true
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.memory.global_memory import moved_dtype
from gpuprof.executor.program.ptx import Instruction, Operand, Reg, Vec
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step
from gpuprof.executor.steps.matrix_steps import MatrixMove
from gpuprof.executor.steps.memory_steps import parts_of
from gpuprof.executor.steps.mma_steps import product_of
from gpuprof.executor.steps.spaces import Space
from gpuprof.executor.steps.wmma_layout import Shape
from gpuprof.executor.steps.wmma_steps import FragmentMove, by_tiles, shape_of

_ADDRESS = "accesses memory at"
_Registers = list[RegisterOperand | None]


def multiply(coder: Coder, item: Instruction, step: Step) -> Step:
    """`mma` and `wmma.mma`."""
    if "sp" in item.opcode:
        return consuming(coder, item, step, sources_of(coder, item), f"gives {item.name}")
    if item.opcode[0] == "mma":
        product = product_of(item)
        shape = Shape(product.rows, 8, product.depth, product)
    else:
        shape = shape_of(item)
    d, a, b, c = (parts_of(operand) for operand in item.operands)
    first, second = (b, a) if shape.exchanged else (a, b)
    groups = [_places(coder, item, parts) for parts in (first, second, c)]
    places = [place for group in groups for place in group if place]
    numbers = [i for i, part in enumerate(d) if isinstance(part, Reg)]
    factor, total = (
        np.dtype(f"u{kind.itemsize}") for kind in (shape.product.factor_register, shape.product.sum_register)
    )

    def find(batch: Batch, mask: Mask) -> list[Undefined | None]:
        found = _undefined(batch, places)
        if not found:
            return [None] * len(numbers)
        of_first, of_second, of_sums = (
            [_bits(batch, place, kind) for place in group]
            for group, kind in zip(groups, (factor, factor, total), strict=True)
        )
        bits = by_tiles(shape, shape.product.spread, of_first, of_second, of_sums)
        origin = _of_the_warp(found)
        return [Undefined(bits[number], origin) for number in numbers]

    return following(coder, item, step, places, targets_of(coder, item), find)


def warpgroup(coder: Coder, item: Instruction, step: Step) -> Step:
    """`wgmma`: what it adds to may be undefined, as it need not add."""
    if item.opcode[1] != "mma_async":
        return step
    places = places_in(coder, item.operands[1:4], item.line)
    return consuming(coder, item, step, places, f"gives {item.name}")


def exchange(coder: Coder, item: Instruction, step: Step) -> Step:
    """`movmatrix`."""
    places, targets = sources_of(coder, item), targets_of(coder, item)

    def find(batch: Batch, mask: Mask) -> list[Undefined | None]:
        found = _undefined(batch, places)
        if not found:
            return [None] * len(targets)
        bits = transposed(_bits(batch, places[0], np.dtype(np.uint32)))
        return [Undefined(bits, _of_the_warp(found)) for _ in targets]

    return following(coder, item, step, places, targets, find)


def load_tiles(coder: Coder, item: Instruction, step: Step) -> Step:
    """`ldmatrix`."""
    move = MatrixMove(coder, item)
    return _load(coder, item, step, lambda batch, mask, read: move.load(batch, mask, read))


def store_tiles(coder: Coder, item: Instruction, step: Step) -> Step:
    """`stmatrix`."""
    return _store(coder, item, step, MatrixMove(coder, item), np.dtype(np.uint32))


def fragment(coder: Coder, item: Instruction, step: Step) -> Step:
    """`wmma.mma`, `wmma.load` and `wmma.store`."""
    if item.opcode[1] == "mma":
        return multiply(coder, item, step)
    loads = item.opcode[1] == "load"
    move = FragmentMove(coder, item, item.operands[loads], item.opcode[1])
    if not loads:
        return _store(coder, item, step, move, np.dtype(f"u{move.register.itemsize}"))
    count = move.register_count
    parts = len(parts_of(item.operands[0]))

    def load(batch: Batch, mask: Mask, read: Callable[..., Lanes]) -> list[Lanes]:
        found = move.load(batch, mask, read)
        return [found[i % count] for i in range(parts)]

    return _load(coder, item, step, load)


def _load(
    coder: Coder,
    item: Instruction,
    step: Step,
    load: Callable[[Batch, Mask, Callable[[Space, Batch, Lanes, Mask], Lanes]], list[Lanes]],
) -> Step:
    """An instruction that loads registers: `load` does it with another way to read."""
    parts = parts_of(item.operands[0])
    targets = [
        (i, target_of(coder, item, part.name)) for i, part in enumerate(parts) if isinstance(part, Reg)
    ]
    places, masked = places_in(coder, _inputs(item), item.line), coder.mask(item)

    def loading(batch: Batch) -> None:
        mask, read = masked(batch), _BitsReader(item.line)
        require(batch, places, mask.lanes, item.line, _ADDRESS)
        bits = [] if mask.empty else load(batch, mask, read)
        step(batch)
        origin = np.full((1, 1, 1), read.origin)
        for number, target in targets:
            target.put(batch, Undefined(bits[number], origin) if read.origin else None, mask)

    return loading


class _BitsReader:
    """Reads the undefined bits in the place of the values.

    Attributes:
        origin: Of the first undefined value that was read; 0 if there was none.
    """

    def __init__(self, line: int) -> None:
        self.origin = 0
        self._line = line

    def __call__(self, space: Space, batch: Batch, address: Lanes, mask: Mask) -> Lanes:
        """Return what is undefined of what `space` has at these addresses."""
        kind, state = moved_dtype(size_of(space)), followed(batch)
        result: Lanes = np.zeros((1, 1, 1), dtype=kind)
        for lanes, moved, start in state.found(space, address, mask):
            bits = np.ascontiguousarray(moved.content).view(kind)[..., 0]
            result = bits if result.size == 1 else np.where(lanes, bits, result)
            wrong = np.asarray(moved.content.any(axis=-1) & lanes)
            if not self.origin and wrong.any():
                position = first_true(wrong)
                number, self.origin = moved.first(position, state.shape)
                if not self.origin:
                    byte = int(state.spread(start)[position]) + number
                    self.origin = int(origins_of(self._line, byte))
                    state.note(self._line, position, byte)
        return result


def _store(
    coder: Coder, item: Instruction, step: Step, move: MatrixMove | FragmentMove, kind: np.dtype[np.generic]
) -> Step:
    """An instruction that stores registers: undefined bits may go to shared memory only."""
    values = _places(coder, item, parts_of(item.operands[1]))
    places, masked = places_in(coder, _inputs(item), item.line), coder.mask(item)

    def storing(batch: Batch) -> None:
        mask = masked(batch)
        require(batch, places, mask.lanes, item.line, _ADDRESS)
        found = _undefined(batch, values)
        bits = [_bits(batch, place, kind) for place in values]
        step(batch)
        if not found or mask.empty:
            return
        origin = _of_the_warp(found)

        def mark(space: Space, batch: Batch, address: Lanes, mask: Mask, content: Lanes) -> None:
            whole = np.ascontiguousarray(content)[..., None].view(np.uint8)
            followed(batch).put(space, address, mask, Moved(whole, origin[..., None]), item.line)

        move.store(batch, mask, bits, mark)

    return storing


def _inputs(item: Instruction) -> Sequence[Operand]:
    """Return the operands that say where: the address and the stride."""
    return [operand for operand in item.operands if not isinstance(operand, Vec)][
        isinstance(item.operands[0], Reg) :
    ]


def _places(coder: Coder, item: Instruction, parts: Sequence[Operand]) -> _Registers:
    """Return the registers among operands, and None for others."""
    return [
        RegisterOperand.of(coder, part.name, item.line) if isinstance(part, Reg) else None for part in parts
    ]


def _undefined(batch: Batch, places: Iterable[RegisterOperand | None]) -> list[Undefined]:
    return [one for place in places if place and (one := place.undefined(batch))]


def _bits(batch: Batch, place: RegisterOperand | None, kind: np.dtype[np.generic]) -> Lanes:
    """Return the undefined bits of a register as an unsigned integer."""
    found = place.undefined(batch) if place else None
    return np.zeros((1, 1, 1), dtype=kind) if found is None else found.bits.view(kind)


def _of_the_warp(found: Sequence[Undefined]) -> Origins:
    """Return an origin for each warp: (blocks or 1, warps or 1, 1)."""
    return np.asarray(first_origin(found).max(axis=2, keepdims=True))
