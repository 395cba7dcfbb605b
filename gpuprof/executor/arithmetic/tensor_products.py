# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Products of the tensor cores of an H200, bit for bit: of one instruction, from registers to registers.

Matrices are arrays with the warps last, so that NumPy's inner loops are long: A is (k, m, warps), B
(k, n, warps), and C and D are (m, n, warps).

Floating point, but for f64: all products of one instruction and the addend make *one* sum. Products are exact
and not normalised; every term is cut off, towards zero, two bits below the last fraction bit of a float32
that has the largest exponent among them. What remains is added exactly and rounded once, towards zero to f32
and to nearest to f16. A zero has no sign. This was fitted to 24,576 products of random matrices of each type
and held against the card's answers, which tests/executor/hardware has.

f64 is a chain of fused multiply-adds in the order of k. Integers are exact and wrap, or saturate.

Of `mma.sp`, A is sparse: of each four neighbours in a row two are stored, and a word tells which. Of tf32 one
in two is stored, by the same words: its half of four bits names both 16-bit halves of an element.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.arithmetic.exact import in_mode
from gpuprof.executor.arithmetic.floats import multiply_add
from gpuprof.executor.arithmetic.formats import (
    AS_THEY_ARE,
    FORMATS,
    LOWEST_EXPONENT,
    NOT_FINITE,
    FloatFormat,
    exponents,
)
from gpuprof.executor.arithmetic.fragments import (
    GROUPS,
    LANES,
    Elements,
    Packed,
    leading,
    matrix_a,
    matrix_b,
    matrix_c,
    registers_of,
)
from gpuprof.executor.arithmetic.nans import canonical, with_nans
from gpuprof.executor.lanes.masks import WARP
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes

#: Fraction bits that a term keeps, counted from the largest exponent, and those of a sum.
_KEPT_BITS, _F32_BITS = 25, 23
#: Both, of 8-bit floats that are not unpacked.
_EIGHT_BIT_FRACTION = 13
_F16_LOWEST = -14


def float_sum(
    a: Lanes,
    b: Lanes,
    c: Lanes,
    a_format: FloatFormat,
    b_format: FloatFormat,
    kept_bits: int = _KEPT_BITS,
    fraction_bits: int = _F32_BITS,
) -> Lanes:
    """Return A B + C of one tensor-core instruction.

    A, (k, m, warps), and B, (k, n, warps), are unsigned bits; C and D are float32 or float16.
    """
    with np.errstate(all="ignore"):
        x, y, addend = a_format.values(a), b_format.values(b), c.astype(np.float32)
        lowest = _F16_LOWEST if c.dtype == np.float16 else LOWEST_EXPONENT
        limits = a_format.lowest_exponent, b_format.lowest_exponent, lowest
        of_terms = [exponents(*one) for one in zip((x, y, addend), limits, strict=True)]
        total = _aligned_sum((x, y, addend), of_terms, kept_bits)
        result = _rounded(total, c.dtype, fraction_bits)
        if any((exponent == NOT_FINITE).any() for exponent in of_terms):
            _replace_not_finite(result, x, y, addend)
    return result


def _aligned_sum(
    operands: Sequence[Lanes], exponents_of: Sequence[Lanes], kept_bits: int
) -> NDArray[np.float64]:
    """Return the exact sum of all terms, each cut off so many bits below the largest exponent.

    16 products below 4 x 2^25, or 32 below 4 x 2^13: less than 2^31, as no significand is as large as 2.
    """
    from gpuprof.executor.arithmetic import native  # LLVM is loaded when a kernel computes

    assert all(each.shape[2] == operands[2].shape[2] for each in operands)
    taken = [np.ascontiguousarray(each) for pair in zip(operands, exponents_of, strict=True) for each in pair]
    total = np.empty(operands[2].shape)
    depth = len(operands[0])
    native.aligned_sum(depth)(*(each.ctypes.data for each in (*taken, total)), *total.shape, kept_bits)
    return total


def _rounded(value: Lanes, dtype: np.dtype[np.floating], fraction_bits: int) -> Lanes:
    """Round float64 to f32 towards zero, overflow to infinity included, or to f16 to nearest."""
    if dtype == np.float16:
        return np.asarray(value.astype(np.float16) + np.float16(0))  # + 0: a zero is positive
    cut = (value.view(np.int64) & ~np.int64((1 << 52 - fraction_bits) - 1)).view(np.float64)
    small = np.abs(value) < 2.0**LOWEST_EXPONENT
    if small.any():
        cut[small] = np.trunc(value[small] * 2.0**149) * 2.0**-149
    return np.asarray(cut.astype(np.float32) + np.float32(0))


def _replace_not_finite(result: Lanes, x: Lanes, y: Lanes, addend: Lanes) -> None:
    """Put infinities and NaN where IEEE arithmetic gives them; float64 overflows for no finite operands."""
    warps = ~(np.isfinite(x).all((0, 1)) & np.isfinite(y).all((0, 1)) & np.isfinite(addend).all((0, 1)))
    x, y = x[..., warps].astype(np.float64), y[..., warps].astype(np.float64)
    total = addend[..., warps].astype(np.float64)
    for i in range(len(x)):
        total = total + x[i, :, None] * y[i, None]
    result[..., warps] = np.where(
        np.isfinite(total), result[..., warps], canonical(total.astype(result.dtype))
    )


#: A B + C of 8-bit floats by `wgmma`: terms and the sum keep 13 bits of fraction.
warpgroup_eight_bit_sum = partial(float_sum, kept_bits=_EIGHT_BIT_FRACTION, fraction_bits=_EIGHT_BIT_FRACTION)


def eight_bit_sum(a: Lanes, b: Lanes, c: Lanes, a_format: FloatFormat, b_format: FloatFormat) -> Lanes:
    """Return A B + C of 8-bit floats as sm_90 computes `mma.sync` of them: unpacked to f16, in two steps.

    The first multiplies the lower two of each four elements in a row, the second adds the others to that. C
    is added at the end, by an ordinary addition.
    """
    place = np.arange(len(a)) % 4
    total = np.zeros_like(c)
    for step in (place < 2, place >= 2):
        total = float_sum(a[step], b[step], total, a_format, b_format)
    with np.errstate(all="ignore"):
        return canonical(np.asarray(total + c))


def double_sum(a: Lanes, b: Lanes, c: Lanes, *, rounding: str) -> Lanes:
    """Return A B + C of float64: one fused multiply-add after the other; a NaN is that of B, C or A."""
    total, fused = c, with_nans(in_mode(multiply_add("f64"), rounding), "fma", "f64")
    with np.errstate(all="ignore"):
        for i in range(len(a)):
            total = np.asarray(fused(a[i, :, None], b[i, None], total))
    return total


def bit_sum(a: Lanes, b: Lanes, c: Lanes, *, exclusive: bool) -> Lanes:
    """Return C plus how often bits of A and B are both one or, with `exclusive`, one of them: in int32."""
    both = integer_sum(a, b, np.zeros_like(c), saturates=False)
    if exclusive:
        ones = [x.sum(axis=0, dtype=np.int32) for x in (a, b)]
        both = ones[0][:, None] + ones[1][None] - 2 * both
    return np.asarray(both + c)


def integer_sum(a: Lanes, b: Lanes, c: Lanes, *, saturates: bool) -> Lanes:
    """Return A B + C of 8-bit integers, signed or not as their dtype is, in int32."""
    a, b = a.astype(np.int32), b.astype(np.int32)
    products = np.zeros(c.shape, dtype=np.int32)
    for i in range(len(a)):
        products += a[i, :, None] * b[i, None]
    if not saturates:
        return np.asarray(products + c)
    limits = np.iinfo(np.int32)
    return np.clip(products.astype(np.int64) + c, limits.min, limits.max).astype(np.int32)


_EIGHT_BIT = ("e4m3", "e5m2")
_INTEGERS = ("s8", "u8")
_FOUR_BIT = ("s4", "u4")
#: What can be done with bits, before those that are one are counted.
BITWISE = ("and", "xor")
#: Products that are modelled: shape, types of A and B, and types of accumulators.
_MODELLED: tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...] = (
    (("m16n8k8", "m16n8k16"), ("f16",), ("f16", "f32")),
    (("m16n8k8", "m16n8k16"), ("bf16",), ("f32",)),
    (("m16n8k4", "m16n8k8"), ("tf32",), ("f32",)),
    (("m16n8k16", "m16n8k32"), _EIGHT_BIT, ("f16", "f32")),
    (("m8n8k16", "m16n8k16", "m16n8k32"), _INTEGERS, ("s32",)),
    (("m8n8k32", "m16n8k32", "m16n8k64"), _FOUR_BIT, ("s32",)),
    (("m8n8k128", "m16n8k128", "m16n8k256"), ("b1",), ("s32",)),
    (("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"), ("f64",), ("f64",)),
)
#: The elements of A and B, as they lie in registers.
_ELEMENTS: dict[str, Elements] = {
    **{name: np.dtype(f"u{form.item_bytes}") for name, form in FORMATS.items()},
    **{name: ARITHMETIC[name] for name in (*_INTEGERS, "f64")},
    **{name: Packed(4, signed=name == "s4") for name in _FOUR_BIT},
    "b1": Packed(1, signed=False),
}


@dataclass(frozen=True)
class Product:
    """D = A B + C, with 8 columns.

    `rows` is 8 or 16, of A, C and D; `bitwise` is what is done with bits, one of `BITWISE`; f64 alone has
    another `rounding` than to nearest. A `warpgroup` multiplies 8-bit floats as they are; other products
    unpack them to f16.
    """

    rows: int
    depth: int
    a: str
    b: str
    accumulator: str
    saturates: bool = False
    bitwise: str = ""
    rounding: str = "rn"
    warpgroup: bool = False

    @classmethod
    def of(cls, shape: str, a: str, b: str, accumulator: str, **how: Any) -> "Product | None":
        """Return the product of a shape such as `m16n8k16`; None when it is not modelled."""
        for shapes, factors, sums in _MODELLED:
            if shape in shapes and {a, b} <= {*factors} and accumulator in sums:
                rows, depth = int(shape[1:].split("n")[0]), int(shape.split("k")[1])
                return cls(rows, depth, a, b, accumulator, **how)
        return None

    @property
    def source(self) -> str:
        """The element type that the tensor core multiplies, as Nsight Compute sorts operations."""
        if self.a in _EIGHT_BIT:
            return "e4m3" if self.warpgroup else "f16"
        return "i8" if self.a in (*_INTEGERS, *_FOUR_BIT) else self.a

    @property
    def instructions(self) -> int:
        """Tensor instructions that a warp executes: 8-bit floats and 4-bit integers take two on sm_90."""
        return 2 if self.a in (*_EIGHT_BIT, *_FOUR_BIT) else 1

    @property
    def operations(self) -> int:
        """Multiplications and additions of a warp."""
        return 2 * self.rows * GROUPS * self.depth

    @property
    def factor_register(self) -> np.dtype[Any]:
        """The type in which registers of A and B are read."""
        return ARITHMETIC["f64" if self.a == "f64" else "b32"]

    @property
    def sum_register(self) -> np.dtype[Any]:
        """The type in which registers of C and D are read and written."""
        return ARITHMETIC["b32" if self.accumulator == "f16" else self.accumulator]

    @property
    def element_bits(self) -> int:
        kept = _ELEMENTS[self.a]
        return kept.bits if isinstance(kept, Packed) else 8 * kept.itemsize

    @property
    def register_counts(self) -> tuple[int, int, int]:
        """Registers that a lane gives of A, B and C."""
        halves = self.rows // GROUPS
        tiles = self.depth * self.element_bits // (256 if self.a == "f64" else 128)
        return halves * tiles, tiles, halves * (1 if self.accumulator == "f16" else 2)

    def compute(self, a: Sequence[Lanes], b: Sequence[Lanes], c: Sequence[Lanes]) -> list[Lanes]:
        """Return the registers of D, from those of A and B (`factor_register`) and of C (`sum_register`)."""
        shape = leading([*a, *b, *c])
        accumulator = ARITHMETIC[self.accumulator]
        total = self.sums(
            matrix_a(a, _ELEMENTS[self.a], self.rows, shape),
            matrix_b(b, _ELEMENTS[self.b], shape),
            matrix_c(c, accumulator, self.rows, shape),
        )
        return registers_of(total, self.sum_register, shape)

    @staticmethod
    def element(kind: str) -> np.dtype[Any]:
        """The type that holds elements of A or B: unsigned bits, integers, or bytes of smaller ones."""
        kept = _ELEMENTS[kind]
        return np.dtype(np.uint8) if isinstance(kept, Packed) else kept

    def sums(self, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        """Return A B + C of one instruction: A (k, m, warps), B (k, n, warps), C (m, n, warps)."""
        return np.asarray(self._sum()(a, b, c))

    def spread(self, a: Sequence[Lanes], b: Sequence[Lanes], c: Sequence[Lanes]) -> list[Lanes]:
        """Return all ones where an element of D depends on any bit that is one in these, else zeros."""
        shape = leading([*a, *b, *c])
        kinds = self.element(self.a), ARITHMETIC[self.accumulator]
        factor, total = (np.dtype(f"u{kind.itemsize}") for kind in kinds)
        of_a = (matrix_a(a, factor, self.rows, shape) != 0).any(axis=0)
        of_b = (matrix_b(b, factor, shape) != 0).any(axis=0)
        depends = of_a[:, None] | of_b[None] | (matrix_c(c, total, self.rows, shape) != 0)
        ones = np.where(depends, ~total.type(0), total.type(0))
        return registers_of(ones, np.dtype(f"u{self.sum_register.itemsize}"), shape)

    def _sum(self) -> Any:
        if self.a == "f64":
            return partial(double_sum, rounding=self.rounding)
        if self.bitwise:
            return partial(bit_sum, exclusive=self.bitwise == "xor")
        if self.a in (*_INTEGERS, *_FOUR_BIT):
            return partial(integer_sum, saturates=self.saturates)
        form = eight_bit_sum if self.a in _EIGHT_BIT else float_sum
        formats = FORMATS
        if self.warpgroup:
            form = warpgroup_eight_bit_sum if self.a in _EIGHT_BIT else float_sum
            formats = AS_THEY_ARE
        return partial(form, a_format=formats[self.a], b_format=formats[self.b])


_ROWS = 16
#: The least depth of each type of elements.
_LEAST_DEPTHS = {
    **{"f16": 16, "bf16": 16, "tf32": 8},
    **dict.fromkeys(_INTEGERS, 32),
    **dict.fromkeys((*_EIGHT_BIT, *_FOUR_BIT), 64),
}
#: Bits that say which elements of a group are stored, and the groups that one word has of each of its rows.
_GROUP_BITS, _GROUPS_OF_WORD = 4, 8


def sparse_product(
    shape: str, a: str, b: str, accumulator: str, selector: int, *, saturates: bool = False
) -> Product | None:
    """Return the product, of 16 rows, of a shape such as `m16n8k32`, A being sparse; None if not modelled."""
    narrow, depth = shape.partition("k")[::2]
    known = Product.of(f"m16n8k{int(depth) // 2}", a, b, accumulator, saturates=saturates)
    if narrow != "m16n8" or known is None or int(depth) < _LEAST_DEPTHS.get(a, 1 << 30):
        return None
    product = replace(known, depth=int(depth))
    return product if selector < LANES // _lanes_of_selector(product) else None


def _groups(product: Product) -> int:
    """The groups of a row of A; of 4-bit integers each has four pairs of neighbours, of tf32 two elements."""
    return product.depth // (2 if product.a == "tf32" else 8 if product.a in _FOUR_BIT else 4)


def _lanes_of_selector(product: Product) -> int:
    """How many of four neighbouring lanes have words that count."""
    words = _groups(product) * 2 // _GROUPS_OF_WORD
    return min(words, LANES) if product.element_bits <= 8 else words


def compute_sparse(
    product: Product,
    a: Sequence[Lanes],
    b: Sequence[Lanes],
    c: Sequence[Lanes],
    words: Lanes,
    selector: int,
) -> list[Lanes]:
    """Return the registers of D.

    The words tell which elements of A are stored, and the selector whose words count.
    """
    shape = leading([*a, *b, *c, words])
    stored = matrix_a(a, _ELEMENTS[product.a], _ROWS, shape)
    of_b = matrix_b(b, _ELEMENTS[product.b], shape)
    of_c = matrix_c(c, ARITHMETIC[product.accumulator], _ROWS, shape)
    total = sparse_sums(product, stored, of_b, of_c, words, selector, shape)
    return registers_of(total, product.sum_register, shape)


def sparse_sums(
    product: Product, stored: Lanes, b: Lanes, c: Lanes, words: Lanes, selector: int, shape: tuple[int, int]
) -> Lanes:
    """Return A B + C, (16, n, warps), of what is stored of A, (k / 2, 16, warps), and B, (k, n, warps)."""
    columns, warps = b.shape[1:]
    # Every row has a B of its own: the rows take turns like warps.
    column = np.arange(columns)[None, :, None, None]
    chosen = b[_stored_depths(product, words, selector, shape)[:, None], column, np.arange(warps)]
    total = product.sums(
        stored.reshape(len(stored), 1, -1),
        chosen.reshape(len(stored), columns, -1),
        np.ascontiguousarray(c.transpose(1, 0, 2)).reshape(1, columns, -1),
    )
    rows = total.reshape(columns, _ROWS, warps).transpose(1, 0, 2)
    return np.ascontiguousarray(rows)


def _stored_depths(product: Product, words: Lanes, selector: int, shape: tuple[int, int]) -> Lanes:
    """Return the number along K of each stored element: shape (stored, rows, warps)."""
    spread = np.broadcast_to(words, (*shape, WARP)).view(np.uint32).reshape(-1, GROUPS, LANES)
    groups, lane_count = _groups(product), _lanes_of_selector(product)
    nibbles = spread[..., None] >> np.arange(0, 32, _GROUP_BITS, dtype=np.uint32) & np.uint32(15)
    lanes = lane_count * selector + np.arange(lane_count)
    # Of small elements lanes have rows g and g + 8 in turn; of others the halves of a word are of these rows.
    per_row = _GROUPS_OF_WORD if product.element_bits <= 8 else _GROUPS_OF_WORD // 2
    found = nibbles[:, :, lanes].reshape(len(spread), GROUPS, -1, 2, per_row)
    nibble = found.transpose(3, 1, 2, 4, 0).reshape(_ROWS, groups, -1).astype(np.intp)
    first = np.arange(groups)[:, None]
    if product.a == "tf32":
        depths = (2 * first + (nibble >> 3))[:, :, None]
    else:
        depths = np.stack([4 * first + (nibble & 3), 4 * first + (nibble >> 2)], axis=2)
    if product.a in _FOUR_BIT:
        depths = np.stack([2 * depths, 2 * depths + 1], axis=3)
    return depths.reshape(_ROWS, -1, nibble.shape[-1]).transpose(1, 0, 2)
