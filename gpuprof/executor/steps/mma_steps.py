# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Decode `mma.sync`: one product of small matrices by all lanes of a warp."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gpuprof.executor.arithmetic.mnemonic import ROUNDINGS
from gpuprof.executor.arithmetic.tensor_products import BITWISE, Product, compute_sparse, sparse_product
from gpuprof.executor.faults import FaultKind, UnsupportedInstruction
from gpuprof.executor.lanes.masks import WARP, Mask, first_true
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.program.ptx import Imm, Instruction, Operand
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step, where_active
from gpuprof.executor.steps.memory_steps import parts_of

#: The pipe of the tensor cores that multiplies each type; what counts products of bits is not known.
_PIPES = {**dict.fromkeys(("f16", "bf16", "tf32"), "hmma"), "f64": "dmma", "i8": "imma"}
#: What the opcode of a sparse product says besides its shape and types.
_OF_SPARSE = ("sp", "ordered_metadata", "sync", "aligned", "satfinite")


def multiply(coder: Coder, item: Instruction, *, spreads: bool = False) -> Step:
    """`mma.sync.aligned.SHAPE.row.col[.satfinite].D.A.B.C[.OPERATION.popc]`.

    If it `spreads`, it tells what depends on bits that are one, and not the product (`Product.spread`).
    """
    product = product_of(item)
    _, *given = (parts_of(operand) for operand in item.operands)
    if tuple(map(len, given)) != product.register_counts:
        raise UnsupportedInstruction(item.name, item.line)
    count = tensor_counter(coder, item, product)
    compute = product.spread if spreads else product.compute
    return by_registers(coder, item, product, compute, lambda batch, mask: count(batch, mask, 1))


def by_registers(
    coder: Coder,
    item: Instruction,
    product: Product,
    compute: Callable[..., list[Lanes]],
    count: Callable[[Batch, Mask], None],
    more: Sequence[Operand] = (),
    of_c: np.dtype[Any] | None = None,
) -> Step:
    """Return the step of a product that takes A, B and C from registers.

    `compute` makes the registers of D of them, and of what `more` operands hold; `count` counts it. `of_c` is
    what registers of C are read as where C is no D.
    """
    d, *given = (parts_of(operand) for operand in item.operands[:4])
    if of_c is None and len(given[2]) != len(d):
        raise UnsupportedInstruction(item.name, item.line)
    kinds = (product.factor_register, product.factor_register, of_c or product.sum_register)
    reads = [
        [coder.reader(part, kind, item) for part in parts] for parts, kind in zip(given, kinds, strict=True)
    ]
    others = [coder.reader(operand, product.factor_register, item) for operand in more]
    writes = [coder.target(part, item) for part in d]

    def multiply(batch: Batch, mask: Mask) -> None:
        count(batch, mask)
        if batch.events.address_only:
            return
        values = [[read(batch) for read in those] for those in reads]
        made = compute(*values, *(read(batch) for read in others))
        for write, value in zip(writes, made, strict=True):
            write(batch, value, mask)

    return by_whole_warps(coder, item, multiply)


def multiply_sparse(coder: Coder, item: Instruction) -> Step:
    """`mma.sp`: A has half of its elements, and a word tells which."""
    words = [word for word in item.opcode[1:] if word not in _OF_SPARSE]
    selector = item.operands[5] if len(item.operands) == 6 else None
    if len(words) != 7 or words[3] != words[6] or not isinstance(selector, Imm):
        raise UnsupportedInstruction(item.name, item.line)
    saturates = "satfinite" in item.opcode
    product = sparse_product(words[0], words[4], words[5], words[3], selector.bits, saturates=saturates)
    if product is None:
        raise UnsupportedInstruction(item.name, item.line)
    site = coder.site(f"sparse_{product.source}", item, requests=f"{_PIPES[product.source]}_instructions")
    compute = partial(compute_sparse, product, selector=selector.bits)

    def count(batch: Batch, mask: Mask) -> None:
        batch.tally.add(site, "requests", mask.warp_count)

    return by_registers(coder, item, product, compute, count, item.operands[4:5])


def product_of(item: Instruction) -> Product:
    """Return what an `mma.sync` multiplies.

    Raises:
        UnsupportedInstruction: It is not modelled.
    """
    _, *words = item.opcode
    saturates = "satfinite" in words
    bitwise = next((word for word in words if word in BITWISE), "")
    rounding = next((word for word in words if word in ROUNDINGS), "")
    others = ("sync", "aligned", "satfinite", "popc", *BITWISE, *ROUNDINGS)
    rest = [word for word in words if word not in others]
    if len(rest) != 7 or rest[1:3] != ["row", "col"] or rest[3] != rest[6]:
        raise UnsupportedInstruction(item.name, item.line)
    shape, _, _, d_type, a_type, b_type, _ = rest
    product = Product.of(
        shape, a_type, b_type, d_type, saturates=saturates, bitwise=bitwise, rounding=rounding or "rn"
    )
    if product is None or (saturates and d_type != "s32") or bool(bitwise) != (a_type == "b1"):
        raise UnsupportedInstruction(item.name, item.line)
    if rounding and a_type != "f64":
        raise UnsupportedInstruction(item.name, item.line)
    return product


def tensor_counter(coder: Coder, item: Instruction, product: Product) -> Callable[[Batch, Mask, int], None]:
    """Return what counts the products of an instruction: of a batch, its lanes, and how many products."""
    names = {"requests": f"{_PIPES[product.source]}_instructions"} if product.source in _PIPES else {}
    site = coder.site(f"tensor_{product.source}", item, **names)

    def count(batch: Batch, mask: Mask, products: int) -> None:
        each = {"requests": products * product.instructions, "operations": products * product.operations}
        batch.tally.charge(site, mask.of_warps(each))

    return count


def by_whole_warps(coder: Coder, item: Instruction, act: Callable[[Batch, Mask], None]) -> Step:
    """Return the step of an instruction that all lanes of a warp execute together."""

    def together(batch: Batch, mask: Mask) -> None:
        require_whole_warps(batch, mask, item)
        act(batch, mask)

    return where_active(coder, item, together)


def require_whole_warps(batch: Batch, mask: Mask, item: Instruction) -> None:
    """Report a lane that is missing where all lanes of its warp must execute an instruction together."""
    if mask.whole or mask.lanes.shape[2] == 1:
        return
    lanes = np.broadcast_to(mask.lanes, (*mask.lanes.shape[:2], WARP))
    missing = lanes.any(axis=2, keepdims=True) & ~lanes
    if missing.any():
        text = f"is not at {item.name}, which all {WARP} lanes of its warp must execute together"
        batch.fault(FaultKind.BARRIER, text, item.line, first_true(missing))
