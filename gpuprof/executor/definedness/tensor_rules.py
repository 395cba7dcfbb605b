# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How undefined values go through products of matrices.

A product is undefined where its row of A, its column of B or its element of C holds anything undefined: zero
times an unknown float may be NaN. The origin of a value is that of any undefined one that its warp gave.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from gpuprof.executor.definedness.operands import (
    RegisterOperand,
    consuming,
    following,
    places_in,
    sources_of,
    targets_of,
)
from gpuprof.executor.definedness.undefined import Undefined, first_origin, of_another_lane
from gpuprof.executor.lanes.masks import Mask
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.program.ptx import Instruction, Operand, Reg
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step
from gpuprof.executor.steps.memory_steps import parts_of
from gpuprof.executor.steps.mma_steps import product_of
from gpuprof.executor.steps.wmma_layout import Shape
from gpuprof.executor.steps.wmma_steps import by_tiles, shape_of

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
        origin = of_another_lane(first_origin(found))
        return [Undefined(bits[number], origin) for number in numbers]

    return following(coder, item, step, places, targets_of(coder, item), find)


def warpgroup(coder: Coder, item: Instruction, step: Step) -> Step:
    """`wgmma`: what it adds to may be undefined, as it need not add."""
    if item.opcode[1] != "mma_async":
        return step
    places = places_in(coder, item.operands[1:4], item.line)
    return consuming(coder, item, step, places, f"gives {item.name}")


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
