# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Decode `wgmma`: products of four warps whose operands lie in shared memory.

A warp computes 16 rows of D, from 16 rows of A and all of B. Its sums are there at once, so that nothing
tells of an accumulator that is read before its group was waited for; operands in shared memory are read until
then.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpuprof.executor.arithmetic.fragments import LANES, matrix_a, matrix_c, registers_of
from gpuprof.executor.arithmetic.tensor_products import Product, sparse_product, sparse_sums
from gpuprof.executor.faults import FaultKind, SharedByte, UnsupportedInstruction
from gpuprof.executor.lanes.masks import WARP, Bools, Mask
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes, uniform_blocks
from gpuprof.executor.memory.shared_memory import CHUNK_BYTES, ChunkPattern
from gpuprof.executor.program.ptx import Imm, Instruction, Operand, Vec
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step, where_active
from gpuprof.executor.steps.mma_steps import require_whole_warps

#: Warps that multiply together, and the rows of D that each computes.
_WARPGROUP, _ROWS, _COLUMNS_OF_TILE = 4, 16, 8
_I64 = ARITHMETIC["s64"]
#: Types whose operands may be transposed, and negated.
_TRANSPOSED = ("f16", "bf16")
_SIGNED = ("f16", "bf16", "tf32", "e4m3", "e5m2")
#: Those that Nsight Compute counts as HMMA, one for each warp; of others it is not known what it counts.
COUNTED_AS_HMMA = ("f16", "bf16", "tf32")
#: Bytes of a row of A as it is stored.
_DEPTH_BYTES = 32


#: Words of an opcode that tell nothing of shape and types.
_OF_NO_OPERAND = ("sync", "aligned", "satfinite", "sp", "and", "popc")
_CORE_BYTES, _CORE_ROWS = 16, 8
#: Bytes of a row by the layout that a descriptor names; 16 where nothing is permuted.
_ROW_BYTES = np.array([16, 128, 64, 32])
#: Bits of an address that each layout permutes, counted in units of 16 bytes.
_PERMUTED = np.array([0, 7, 3, 1])


def _element_bytes(
    bits: NDArray[np.int64], rows: int, depth: int, item_bytes: int, *, transposed: bool
) -> NDArray[np.int64]:
    """Return the byte at which each element begins: shape (…, rows, depth), after that of the descriptors.

    An operand is made of cores of 8 rows by 16 bytes. Rows go along M or N where the matrix is stored along
    K, the usual way, and along K where it is transposed: there elements along M or N are neighbours. In a
    swizzled layout (1, 2 and 3: rows of 128, 64 and 32 bytes) a row holds several cores side by side, whose
    places the row's number permutes as tensor copies do. `leading` bytes lie from one core, or row of cores,
    to the next along the dimension that is stored contiguously, `stride` along the other.
    """
    bits = bits[..., None, None]
    start, leading, stride = ((bits >> shift & 0x3FFF) << 4 for shift in (0, 16, 32))
    layout = bits >> 62 & 3
    pitch, plain = _ROW_BYTES[layout], layout == 0
    row, k = np.arange(rows)[:, None], np.arange(depth)[None]
    if transposed:
        along, byte = k, row * item_bytes
        core = byte // _CORE_BYTES
        cores = pitch // _CORE_BYTES
        # Cores of one row lie side by side; the next ones along the rows are `leading` apart.
        beside = core % cores * _CORE_BYTES + core // cores * leading
        far = np.where(plain, core * stride + along // _CORE_ROWS * leading, 0)
        place = np.where(plain, far, beside + along // _CORE_ROWS * stride)
    else:
        along, byte = row, k * item_bytes
        core = byte // _CORE_BYTES
        place = core * np.where(plain, leading, _CORE_BYTES) + along // _CORE_ROWS * stride
    address = start + place + along % _CORE_ROWS * pitch + byte % _CORE_BYTES
    return np.asarray(address ^ (address >> 7 & _PERMUTED[layout]) << 4)


class _WgmmaForm(Struct, frozen=True):
    """What a `wgmma.mma_async` multiplies; the selector is that of a sparse A, else -1."""

    product: Product
    columns: int
    negated: tuple[bool, bool]
    transposed: tuple[bool, bool]
    selector: int

    @classmethod
    def of(cls, item: Instruction) -> "_WgmmaForm":
        words = [word for word in item.opcode[2:] if word not in _OF_NO_OPERAND]
        if len(words) != 4:
            raise UnsupportedInstruction(item.name, item.line)
        shape, d_type, a_type, b_type = words
        columns, depth = map(int, shape[1:].partition("n")[2].split("k"))
        narrow, saturates = f"m16n8k{depth}", "satfinite" in item.opcode
        bitwise = "and" if "and" in item.opcode else ""
        after, selector = 4, -1
        if "sp" in item.opcode:
            after, chosen = 6, item.operands[4]
            selector = chosen.bits if isinstance(chosen, Imm) else LANES
            product = sparse_product(narrow, a_type, b_type, d_type, selector, saturates=saturates)
        else:
            product = Product.of(narrow, a_type, b_type, d_type, saturates=saturates, bitwise=bitwise)
        stored = 8 * _DEPTH_BYTES * (2 if selector >= 0 else 1)
        if product is None or depth * product.element_bits != stored:
            raise UnsupportedInstruction(item.name, item.line)
        numbers = [operand.bits for operand in item.operands[after:] if isinstance(operand, Imm)]
        signs = numbers[:2] if a_type in _SIGNED else [1, 1]
        turns = numbers[2:] if a_type in _TRANSPOSED else []
        if isinstance(item.operands[1], Vec):
            turns = [0, *turns]
        a, b = (sign != 1 for sign in signs)
        product = replace(product, warpgroup=True)
        turned = bool(turns and turns[0]), bool(turns and turns[-1])
        return cls(product, columns, (a, b), turned, selector)


def multiply(coder: Coder, item: Instruction) -> Step:
    """`wgmma.mma_async`."""
    form = _WgmmaForm.of(item)
    product = form.product
    d, a, b = item.operands[:3]
    if not isinstance(d, Vec):
        raise UnsupportedInstruction(item.name, item.line)
    coder.phased = True
    coder.shared_granule = min(coder.shared_granule, CHUNK_BYTES)
    reads = [coder.reader(part, product.sum_register, item) for part in d.items]
    writes = [coder.target(part, item) for part in d.items]
    of_a, of_b = _Operand(coder, item, a, form, 0), _Operand(coder, item, b, form, 1)
    in_shared = [each for each in (of_a, of_b) if not each.registers]
    sparse = form.selector >= 0
    adds = coder.predicate(item.operands[5 if sparse else 3], item)
    places = coder.reader(item.operands[3], product.factor_register, item) if sparse else None
    counters = {} if sparse or product.bitwise else {"operations": f"tensor_{product.source}_operations"}
    if product.source in COUNTED_AS_HMMA:
        counters["requests"] = "hmma_instructions"
    site = coder.site(f"wgmma_{product.source}", item, **counters)
    if sparse:  # what the card counts of it is not known
        coder.site(f"sparse_{product.source}", item)
    tile = product.register_counts[2]
    accumulator = ARITHMETIC[product.accumulator]

    def step(batch: Batch, mask: Mask) -> None:
        require_whole_warps(batch, mask, item)
        operations = product.operations * form.columns // _COLUMNS_OF_TILE
        batch.tally.charge(site, mask.of_warps({"operations": operations, "requests": 1}))
        descriptors = [mask.joined(operand.descriptor(batch)) for operand in in_shared]

        def read_by_warps() -> tuple[ChunkPattern, list[NDArray[np.int64]]]:
            each = [*zip(in_shared, descriptors, strict=True)]
            addresses = [operand.addresses(batch, mask, bits) for operand, bits in each]
            chunks = [one.chunks(batch, mask, at) for one, at in zip(in_shared, addresses, strict=True)]
            return _pattern(batch, mask, chunks), addresses

        if batch.events.address_only:  # whether they lie in shared memory is all that is to be seen
            for number, bits in enumerate(descriptors):
                known = batch.memo.inside[site, number]
                if known.issuperset(bits[..., 0].reshape(-1).tolist()):
                    continue
                for one in {*_distinct(bits, mask)} - known:
                    warps = mask.of(mask.lanes & (bits == one))
                    address = in_shared[number].addresses(batch, warps, np.full((1, 1, 1), one, bits.dtype))
                    in_shared[number].require_inside(batch, warps, address)
                    known.add(one)
            return
        pattern, addresses = batch.memo.products[site].of(descriptors, mask, read_by_warps)
        batch.products.read(pattern, item.line)
        second = of_b.matrix(batch, mask, addresses[-1])
        first = of_a.matrix(batch, mask, addresses[0])
        shape = (batch.blocks, batch.warps)
        held = [read(batch) for read in reads]
        before = np.concatenate(
            [matrix_c(held[i : i + tile], accumulator, _ROWS, shape) for i in range(0, len(held), tile)],
            axis=1,
        )
        kept = batch.spread(adds(batch))[..., 0].reshape(-1)
        before = np.where(kept, before, accumulator.type(0))
        active = np.broadcast_to(mask.lanes.any(axis=2), shape).reshape(-1)
        if places is not None:
            total = sparse_sums(product, first, second, before, places(batch), form.selector, shape)
        elif active.all():
            total = product.sums(first, second, before)
        else:  # other warps' registers hold anything, and their products would be for nothing
            total = np.zeros_like(before)
            total[..., active] = product.sums(*(each[..., active] for each in (first, second, before)))
        for i in range(0, len(held), tile):
            column = i // tile * _COLUMNS_OF_TILE
            part = np.ascontiguousarray(total[:, column : column + _COLUMNS_OF_TILE])
            values = registers_of(part, product.sum_register, shape)
            for write, value in zip(writes[i : i + tile], values, strict=True):
                write(batch, value, mask)

    return where_active(coder, item, step)


class _Operand:
    """A or B: in registers, or in shared memory by a descriptor."""

    def __init__(
        self, coder: Coder, item: Instruction, operand: Operand, form: _WgmmaForm, number: int
    ) -> None:
        self._form, self._number = form, number
        self._item = item
        self._start = coder.shared_start
        product = form.product
        self._kind = (product.a, product.b)[number]
        self._dtype = product.element(self._kind)
        self._rows = form.columns if number else _ROWS
        self.registers: list[Callable[[Batch], Lanes]] = []
        if isinstance(operand, Vec):
            self.registers = [coder.reader(part, product.factor_register, item) for part in operand.items]
        else:
            self.descriptor = coder.reader(operand, _I64, item)
        sparse_a = form.selector >= 0 and not number
        self._depth = product.depth * product.element_bits // (8 * self._dtype.itemsize) // (1 + sparse_a)

    def require_inside(self, batch: Batch, mask: Mask, address: NDArray[np.int64]) -> Bools:
        """Report the first warp that multiplies what is not in shared memory; return which warps multiply."""
        limit = batch.layout.shared_bytes
        used = np.asarray(mask.lanes.any(axis=2))[..., None, None]
        outside = (address < 0) | (address + self._dtype.itemsize > limit)
        if outside.any() and (wrong := outside & used).any():
            block, warp, row, k = (int(i) for i in np.argwhere(wrong)[0])
            first = int(np.broadcast_to(address, wrong.shape)[block, warp, row, k])
            text = f"multiplies byte {first} of shared memory, which has {limit} bytes"
            batch.fault(FaultKind.OUT_OF_BOUNDS, text, self._item.line, (block, warp, 0), SharedByte(first))
        return used

    def chunks(self, batch: Batch, mask: Mask, address: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return which chunks each warp reads: shape (blocks or 1, warps, …)."""
        used = self.require_inside(batch, mask, address)
        chunk = np.where(used, (address + _first_byte(batch)) // CHUNK_BYTES, -1)
        if self._number:  # all warps of a group read the same B: it counts for the first
            first_warps = np.arange(chunk.shape[1]) % _WARPGROUP == 0
            chunk = np.where(first_warps[:, None, None], chunk, -1)
        return chunk.reshape(*chunk.shape[:2], -1)

    def matrix(self, batch: Batch, mask: Mask, address: NDArray[np.int64]) -> Lanes:
        """Return the elements, of registers or at addresses: shape (k, rows, warps of all blocks in turn)."""
        shape = (batch.blocks, batch.warps)
        if self.registers:
            values = [read(batch) for read in self.registers]
            elements = matrix_a(values, self._dtype, _ROWS, shape)
        else:
            used = np.asarray(mask.lanes.any(axis=2))[..., None, None]
            place = address + _first_byte(batch)
            index = np.where(used, place, 0) // self._dtype.itemsize
            view = batch.shared.view(self._dtype.itemsize).view(self._dtype)
            index = np.broadcast_to(index, (*shape, *index.shape[2:]))
            found = view[np.arange(shape[0])[:, None, None, None], index]
            elements = found.reshape(-1, *index.shape[2:]).transpose(2, 1, 0)
        if self._form.negated[self._number]:
            elements = elements ^ self._dtype.type(1 << 8 * self._dtype.itemsize - 1)
        if self._form.product.bitwise:  # the lowest bit of a byte comes first
            bits = elements[:, None] >> np.arange(8, dtype=np.uint8)[:, None, None] & np.uint8(1)
            elements = bits.reshape(-1, *elements.shape[1:])
        return np.ascontiguousarray(elements)

    def addresses(self, batch: Batch, mask: Mask, descriptor: Lanes) -> NDArray[np.int64]:
        """Return the first byte of each element: shape (blocks or 1, warps, rows, k)."""
        bits = uniform_blocks(np.asarray(descriptor))
        bits = np.broadcast_to(bits, (len(bits), batch.warps, WARP))[..., 0]
        used = np.asarray(mask.lanes.any(axis=2))
        if ((bits >> 49 & 7 != 0) & used).any():  # the row of the pattern where the matrix begins
            raise UnsupportedInstruction(f"{self._item.name} with a base offset", self._item.line)
        rows = self._rows
        if self._number == 0:  # a warp has the rows of its number in the group
            rows *= _WARPGROUP
        transposed = self._form.transposed[self._number]
        address = _element_bytes(bits, rows, self._depth, self._dtype.itemsize, transposed=transposed)
        if self._number == 0:
            first = np.arange(batch.warps) % _WARPGROUP * _ROWS
            chosen = (first[:, None] + np.arange(_ROWS))[None, :, :, None]
            address = np.take_along_axis(
                address, np.broadcast_to(chosen, (len(address), *chosen.shape[1:])), 2
            )
        return address - self._start


def _distinct(bits: Lanes, mask: Mask) -> list[int]:
    """Return the different descriptors of warps that take part."""
    used, of_warps = np.broadcast_arrays(mask.lanes.any(axis=2), np.asarray(bits)[..., 0])
    found: list[int] = np.unique(of_warps[used]).tolist()
    return found


def _first_byte(batch: Batch) -> NDArray[np.int64]:
    """Return where the shared memory of each warp's block starts in its cluster's: (1, warps or 1, 1, 1)."""
    layout = batch.layout
    return layout.rank_of_warp[..., None] * layout.stride if layout.several else np.zeros((1,) * 4, np.int64)


def _pattern(batch: Batch, mask: Mask, parts: list[NDArray[Any]]) -> ChunkPattern:
    """Return what the warps read, each chunk once, as what their first lanes read."""
    blocks = max([len(mask.lanes), *(len(part) for part in parts)])
    spread = [np.broadcast_to(part, (blocks, *part.shape[1:])) for part in parts]
    return batch.bulk.listed(uniform_blocks(np.concatenate(spread, axis=2)), mask)
