# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Integer and bit arithmetic of PTX, on arrays of one integer dtype.

Every function takes and returns arrays of the dtype that the instruction names, so wrapping around,
sign extension and comparison follow from NumPy's own rules.
"""

from typing import Any

import numpy as np

from gpuprof.executor.lanes.scalars import Lanes

#: Types of two integers in a word, and what each is.
PAIRS = {"u16x2": np.dtype(np.uint16), "s16x2": np.dtype(np.int16)}
_REVERSED_BYTE = np.array([int(f"{i:08b}"[::-1], 2) for i in range(256)], dtype=np.uint8)


def bits_of(value: Lanes) -> int:
    """Return the width of the array's dtype, in bits."""
    return 8 * value.dtype.itemsize


def as_unsigned(value: Lanes) -> Lanes:
    """Return the same bits, unsigned."""
    return value.view(f"u{value.dtype.itemsize}")


def double_width(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the same signedness with twice the bits."""
    return np.dtype(f"{dtype.kind}{2 * dtype.itemsize}")


def multiply_wide(a: Lanes, b: Lanes) -> Lanes:
    """Return the full product, in twice the width."""
    wide = double_width(a.dtype)
    product: Lanes = a.astype(wide) * b.astype(wide)
    return product


def multiply_high(a: Lanes, b: Lanes) -> Lanes:
    """Return the upper half of the full product."""
    if a.dtype.itemsize < 8:
        return (multiply_wide(a, b) >> bits_of(a)).astype(a.dtype)
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    ua, ub = as_unsigned(a), as_unsigned(b)
    a_low, a_high, b_low, b_high = ua & low, ua >> half, ub & low, ub >> half
    cross = a_high * b_low + ((a_low * b_low) >> half)
    carried = a_low * b_high + (cross & low)
    high = a_high * b_high + (cross >> half) + (carried >> half)
    if a.dtype.kind == "i":  # a negative operand, read unsigned, is 2^64 too large
        high = high - np.where(a < 0, ub, 0).astype(np.uint64) - np.where(b < 0, ua, 0).astype(np.uint64)
    result: Lanes = high.view(a.dtype)
    return result


def multiply_24(a: Lanes, b: Lanes) -> Lanes:
    """Return the low 32 bits of the product of the operands' low 24 bits."""
    return _low_24(a) * _low_24(b)


def multiply_24_high(a: Lanes, b: Lanes) -> Lanes:
    """Return bits 16 to 47 of the product of the operands' low 24 bits."""
    return (multiply_wide(_low_24(a), _low_24(b)) >> 16).astype(a.dtype)


def _low_24(value: Lanes) -> Lanes:
    return (value << 8) >> 8


def divide(a: Lanes, b: Lanes) -> Lanes:
    """Divide towards zero; dividing by zero gives all ones, as the hardware's sequence does."""
    return np.where(b == 0, np.array(-1).astype(a.dtype), _truncated(a, b))


def remainder(a: Lanes, b: Lanes) -> Lanes:
    """Return a - b * (a / b); by zero all ones, as the hardware's sequence gives."""
    return np.where(b == 0, np.array(-1).astype(a.dtype), a - b * _truncated(a, b))


def _truncated(a: Lanes, b: Lanes) -> Lanes:
    divisor = np.where(b == 0, np.ones_like(b), b)
    if a.dtype.kind == "u":
        return a // divisor
    # Magnitudes are taken unsigned, so that the most negative integer has one.
    size = as_unsigned(np.abs(a)) // as_unsigned(np.abs(divisor))
    return np.where((a < 0) != (divisor < 0), -size, size).view(a.dtype)


def shift_left(value: Lanes, count: Lanes) -> Lanes:
    """Shift left; counts of the width or more give zero, as NumPy has it too."""
    shifted: Lanes = value << np.minimum(count, bits_of(value)).astype(value.dtype)
    return shifted


def shift_right(value: Lanes, count: Lanes) -> Lanes:
    """Shift right, with the sign for signed dtypes; counts of the width or more leave only signs."""
    shifted: Lanes = value >> np.minimum(count, bits_of(value)).astype(value.dtype)
    return shifted


def funnel(low: Lanes, high: Lanes, count: Lanes, *, left: bool, wrap: bool) -> Lanes:
    """Shift high:low by the count modulo 32, or clamped to 32; return the upper word (left), or the lower."""
    count = (count & 31 if wrap else np.minimum(count, 32)).astype(np.uint64)
    both = (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
    return ((both << count) >> np.uint64(32) if left else both >> count).astype(np.uint32)


def _counted(count: Lanes, width: int) -> Lanes:
    """Return a field's position or length: of 32-bit fields, the low byte; at most the width either way."""
    return np.minimum(count & 0xFF if width == 32 else count, width)


def extract_field(value: Lanes, start: Lanes, length: Lanes) -> Lanes:
    """Return `length` bits from bit `start`; of signed dtypes whatever is above them is their highest bit."""
    width = bits_of(value)
    start, length = _counted(start, width), _counted(length, width)
    field = shift_right(as_unsigned(value), start) & _ones(length, value)
    if value.dtype.kind == "u":
        return field
    top = np.minimum(start.astype(np.int64) + length - 1, width - 1)
    negative = (shift_right(as_unsigned(value), np.maximum(top, 0).astype(np.uint32)) & 1).astype(bool)
    kept = _ones(np.minimum(length, width - start), value)
    return np.where(negative & (length > 0), field | ~kept, field).view(value.dtype)


def insert_field(field: Lanes, base: Lanes, start: Lanes, length: Lanes) -> Lanes:
    """Return `base` with `length` bits from bit `start` replaced by the low bits of `field`."""
    width = bits_of(base)
    start = _counted(start, width)
    mask = shift_left(_ones(_counted(length, width), base), start)
    return (base & ~mask) | (shift_left(field, start) & mask)


def _ones(count: Lanes, like: Lanes) -> Lanes:
    one = np.array(1, dtype=f"u{like.dtype.itemsize}")
    ones: Lanes = shift_left(np.broadcast_to(one, count.shape), count) - one
    return ones


def field_mask(start: Lanes, length: Lanes, *, wrap: bool) -> Lanes:
    """Return a word whose `length` bits from bit `start` are ones."""
    start, length = (start & 31, length & 31) if wrap else (np.minimum(start, 32), np.minimum(length, 32))
    return shift_left(_ones(length, start), start)


def reverse_bits(value: Lanes) -> Lanes:
    """Return the bits in opposite order."""
    as_bytes = np.ascontiguousarray(value)[..., None].view(np.uint8)
    return np.ascontiguousarray(_REVERSED_BYTE[as_bytes][..., ::-1]).view(value.dtype)[..., 0]


def leading_zeros(value: Lanes) -> Lanes:
    """Return the number of zero bits above the highest one, as uint32."""
    filled = as_unsigned(value)
    for shift in (1, 2, 4, 8, 16, 32):
        filled = filled | shift_right(filled, np.array(shift, dtype=np.uint32))
    return (bits_of(value) - np.bitwise_count(filled)).astype(np.uint32)


def population(value: Lanes) -> Lanes:
    """Return the number of one bits, as uint32."""
    return np.bitwise_count(as_unsigned(value)).astype(np.uint32)


def highest_bit(value: Lanes, *, shift_amount: bool) -> Lanes:
    """Return the position of the highest bit that differs from the sign, or all ones when there is none."""
    if value.dtype.kind == "i":
        value = np.where(value < 0, ~value, value)
    zeros = leading_zeros(value)
    found = zeros if shift_amount else bits_of(value) - 1 - zeros
    return np.where(zeros == bits_of(value), 0xFFFFFFFF, found).astype(np.uint32)


#: Which bytes of b:a the modes of `prmt` pick for each value of the selector's two lowest bits, lowest first.
PERMUTATIONS = {
    "f4e": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    "b4e": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
    "rc8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    "ecl": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
    "rc16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
}


def permute_bytes(a: Lanes, b: Lanes, selector: Lanes) -> Lanes:
    """Pick four bytes of b:a by the selector's nibbles; a nibble's top bit replicates the byte's sign."""
    a, b, selector = np.broadcast_arrays(a, b, selector)
    given = np.stack([a, b], axis=-1).view(np.uint8)
    choice = selector[..., None] >> np.arange(0, 16, 4, dtype=np.uint32) & 0xF
    picked = np.take_along_axis(given, (choice & 7).astype(np.intp), axis=-1)
    signs = np.where(picked & 0x80, np.uint8(0xFF), np.uint8(0))
    return np.where(choice & 8, signs, picked).view(np.uint32)[..., 0]


def permute_bytes_by(mode: str, a: Lanes, b: Lanes, selector: Lanes) -> Lanes:
    """Pick four bytes of b:a as a mode of `prmt` says for the selector's two lowest bits."""
    nibbles = [sum(byte << 4 * place for place, byte in enumerate(row)) for row in PERMUTATIONS[mode]]
    return permute_bytes(a, b, np.array(nibbles, dtype=np.uint32)[selector & 3])


def nth_set_bit(mask: Lanes, base: Lanes, offset: Lanes) -> Lanes:
    """Return the position of a set bit of `mask`, or all ones where there is none.

    An offset (int32) of 1 is the first set bit from `base` upwards, 2 the one after it, -1 and below likewise
    downwards, 0 the bit at `base` itself.
    """
    mask, base, offset = np.broadcast_arrays(mask, base, offset)
    places = np.arange(32, dtype=np.int64)
    is_set = (mask[..., None] >> places.astype(np.uint32) & 1).astype(np.bool_)
    start, count = base.astype(np.int64)[..., None], offset.astype(np.int64)[..., None]
    up = is_set & (places >= start)
    down = is_set & (places <= start) & (start < 32)
    upwards = np.cumsum(up, axis=-1)
    downwards = np.cumsum(down[..., ::-1], axis=-1)[..., ::-1]
    here = np.where(
        count > 0,
        up & (upwards == count),
        np.where(count < 0, down & (downwards == -count), is_set & (places == start)),
    )
    found = np.where(here.any(axis=-1), here.argmax(axis=-1), 0xFFFFFFFF).astype(np.uint32)
    return np.where(offset == np.iinfo(np.int32).min, np.uint32(0), found)


def extend_sign_or_zero(value: Lanes, length: Lanes, *, wrap: bool) -> Lanes:
    """Return the low `length` bits, extended by their highest one where the dtype is signed.

    A length beyond 32 counts as 32, or modulo 32 with `wrap`.
    """
    length = length & 31 if wrap else np.minimum(length, 32)
    return extract_field(value, np.zeros_like(length), length)


def three_input_logic(a: Lanes, b: Lanes, c: Lanes, table: int) -> Lanes:
    """Return the bitwise function of three inputs whose truth table is `table` (bit index 4a + 2b + c)."""
    result = np.zeros_like(a)
    for row in range(8):
        if table >> row & 1:
            terms = (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
            result = result | terms
    return result


def dot(a: Lanes, b: Lanes, c: Lanes, types: tuple[str, ...], *, parts: int, high: bool = False) -> Lanes:
    """Return c plus the dot product of the four bytes, or the two halfwords, of `a` with bytes of `b`."""
    bits = 32 // parts
    total = c.astype(np.int64)
    signs = ["i" if kind == "s32" else "u" for kind in types]
    for i in range(parts):
        left = (a >> np.uint32(bits * i)).astype(f"{signs[0]}{bits // 8}")
        right = (b >> np.uint32(8 * i + 16 * high)).astype(f"{signs[1]}1")
        total = total + left.astype(np.int64) * right.astype(np.int64)
    return total.astype(np.uint32)


def saturated(wide: Lanes, dtype: np.dtype[Any]) -> Lanes:
    """Return an int64 result clamped to the range of `dtype`."""
    limits = np.iinfo(dtype)
    return np.clip(wide, limits.min, limits.max).astype(dtype)
