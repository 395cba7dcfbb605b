# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The table of arithmetic instructions: one entry per opcode, saying what it computes.

An entry is a function from a `Mnemonic` to a `Lowered`: which dtypes the operands are read as, and
the NumPy function from operand arrays to the result. Rounding, saturation and flushing are chosen here,
once, when the program is decoded.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gpuprof.executor.arithmetic import approximations, floats, halves, integers, video
from gpuprof.executor.arithmetic.compare import (
    COMPARISONS,
    lower_selp,
    lower_set,
    lower_setp,
    lower_slct,
    lower_testp,
)
from gpuprof.executor.arithmetic.convert import lower_cvt
from gpuprof.executor.arithmetic.mnemonic import Compute, Lowered, Mnemonic, NotInTable, of_one_type
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes

_U32 = ARITHMETIC["u32"]
_BOOL = np.dtype(np.bool_)


def _two_operands(op: Mnemonic) -> Lowered:
    if len(op.types) > 1:
        return floats.widening(op, _two_operands)
    if op.type == "f32x2":
        return floats.in_pairs(op, _two_operands)
    if op.is_float:
        return floats.rounded(op, 2)
    if op.type in halves.TYPES:
        return halves.lower(op, 2)
    if op.base == "mul24":
        return of_one_type(op, integers.multiply_24_high if op.has("hi") else integers.multiply_24, 2)
    if op.base == "mul":
        return _product(op)
    if op.type in integers.PAIRS:
        return _pair_of_integers(op, np.add if op.base == "add" else np.subtract)
    compute: Compute = np.add if op.base == "add" else np.subtract
    if op.has("sat"):
        wide = np.dtype(np.int64)
        return of_one_type(
            op, lambda a, b: integers.saturated(compute(a.astype(wide), b.astype(wide)), op.dtype), 2
        )
    if op.has("cc"):
        # Of a difference, that of a + ~b + 1: 128-bit division has `addc` take it from `subc.cc`.
        carry = np.greater_equal if op.base == "sub" else lambda a, b: a + b < a
        unsigned = np.dtype(f"u{op.dtype.itemsize}")
        return Lowered(compute, (unsigned,) * 2, carry)
    return of_one_type(op, compute, 2)


def _pair_of_integers(op: Mnemonic, compute: Compute) -> Lowered:
    """Lower an instruction on two 16-bit integers in a word; `.relu` makes negative ones 0."""
    if {*op.flags} - {"relu"}:
        raise NotInTable
    part = integers.PAIRS[op.type]

    def each(a: Lanes, b: Lanes) -> Any:
        parts = (np.ascontiguousarray(words)[..., None].view(part) for words in (a, b))
        result = compute(*parts)
        if op.has("relu"):
            result = np.maximum(result, part.type(0))
        return np.ascontiguousarray(result).view(np.uint32)[..., 0]

    return Lowered(each, (_U32, _U32))


def _product(op: Mnemonic) -> Lowered:
    if op.has("wide"):
        return Lowered(integers.multiply_wide, (op.dtype,) * 2)
    return of_one_type(op, integers.multiply_high if op.has("hi") else np.multiply, 2)


def _with_carry(op: Mnemonic) -> Lowered:
    unsigned = np.dtype(f"u{op.dtype.itemsize}")

    def compute(a: Lanes, b: Lanes, carry: Lanes) -> Any:
        return a + (b if op.base == "addc" else ~b) + carry.astype(unsigned)

    def carries(a: Lanes, b: Lanes, carry: Lanes) -> Any:
        total = compute(a, b, carry)
        return (total < a) | (carry & (total == a))

    return Lowered(compute, (unsigned, unsigned, _BOOL), carries)


def _multiply_add(op: Mnemonic) -> Lowered:
    if op.is_float:
        return floats.fused(op)
    if op.base == "mad24":
        product: Compute = integers.multiply_24_high if op.has("hi") else integers.multiply_24
    else:
        product = _product(op).compute
    result = integers.double_width(op.dtype) if op.has("wide") else op.dtype
    if op.has("sat"):
        wide = np.dtype(np.int64)
        return of_one_type(
            op, lambda a, b, c: integers.saturated(product(a, b).astype(wide) + c, op.dtype), 3
        )
    if op.has("cc") or op.base == "madc":
        return _carrying_multiply_add(op, product)
    return Lowered(lambda a, b, c: product(a, b) + c, (op.dtype, op.dtype, result))


def _carrying_multiply_add(op: Mnemonic, product: Compute) -> Lowered:
    unsigned = np.dtype(f"u{op.dtype.itemsize}")

    def compute(a: Lanes, b: Lanes, c: Lanes, *carry: Lanes) -> Any:
        total = product(a, b).view(unsigned) + c
        return total + carry[0].astype(unsigned) if carry else total

    def carries(a: Lanes, b: Lanes, c: Lanes, *carry: Lanes) -> Any:
        total = product(a, b).view(unsigned) + c
        return (total < c) | (compute(a, b, c, *carry) < total)

    sources = (op.dtype, op.dtype, unsigned) + ((_BOOL,) if op.base == "madc" else ())
    return Lowered(compute, sources, carries)


def _fused(op: Mnemonic) -> Lowered:
    if len(op.types) > 1:
        return floats.widening(op, _fused)
    if op.type == "f32x2":
        return floats.in_pairs(op, _fused)
    return halves.lower(op, 3) if op.type in halves.TYPES else floats.fused(op)


def _fused_with_signs(op: Mnemonic) -> Lowered:
    """Multiply-adds that PTX has no names for: products and sums are contracted to them."""
    fma = _fused(Mnemonic("fma", op.flags, op.types))
    if op.type == "f32x2":
        return floats.in_pairs(op, _fused_with_signs)
    minus = halves.minus(op.type) if op.type in halves.TYPES else floats.minus

    def compute(a: Lanes, b: Lanes, c: Lanes) -> Any:
        return fma.compute(minus(a) if op.base != "fms" else a, b, minus(c) if op.base != "fnma" else c)

    return replace(fma, compute=compute)


def _division(op: Mnemonic) -> Lowered:
    if op.is_float:
        coarse = op.has("approx") or op.has("full")
        return approximations.lower(op) if coarse else floats.rounded(op, 2)
    return of_one_type(op, integers.divide if op.base == "div" else integers.remainder, 2)


def _root_or_reciprocal(op: Mnemonic) -> Lowered:
    return approximations.lower(op) if op.has("approx") else floats.rounded(op, 1)


def _transcendental(op: Mnemonic) -> Lowered:
    if op.type in halves.TYPES and op.base in ("ex2", "tanh"):
        return halves.lower(op, 1)
    return approximations.lower(op)


def _extreme(op: Mnemonic) -> Lowered:
    lowest = op.base == "min"
    if op.type in halves.TYPES:
        return halves.lower(op, 2)
    if not op.is_float:
        choose: Compute = np.minimum if lowest else np.maximum
        if op.type in integers.PAIRS:
            return _pair_of_integers(op, choose)
        if op.has("relu"):
            return of_one_type(op, lambda a, b: np.maximum(choose(a, b), op.dtype.type(0)), 2)
        return of_one_type(op, choose, 2)
    return floats.extremes(op)


def _sign(op: Mnemonic) -> Lowered:
    if op.type in halves.TYPES:
        return halves.lower(op, 1)
    compute = np.negative if op.base == "neg" else np.abs
    return floats.modified(op, compute, 1) if op.is_float else of_one_type(op, compute, 1)


def _words(compute: Compute, count: int) -> Lowered:
    """Lower to a function of `count` words to a word."""
    return Lowered(compute, (_U32,) * count)


def _permute(op: Mnemonic) -> Lowered:
    if not op.flags:
        return _words(integers.permute_bytes, 3)
    (mode,) = op.flags
    if mode not in integers.PERMUTATIONS:
        raise NotInTable
    return _words(partial(integers.permute_bytes_by, mode), 3)


def _logic(op: Mnemonic) -> Lowered:
    def compute(a: Lanes, b: Lanes, c: Lanes, table: Lanes, *predicate: Lanes) -> Lanes:
        # The truth table is an immediate, so it is the same in every lane.
        return integers.three_input_logic(a, b, c, int(table.flat[0]))

    if not op.flags:
        return _words(compute, 4)
    combine: Compute = np.logical_or if op.has("or") else np.logical_and

    def second(a: Lanes, b: Lanes, c: Lanes, table: Lanes, predicate: Lanes) -> Any:
        return combine(compute(a, b, c, table) != 0, predicate)

    return Lowered(compute, (*(_U32,) * 4, _BOOL), second)


_ROUNDED = "rn rz rm rp ftz sat"
#: The modifiers of each opcode that has some and whose entry does not check them itself. For which types
#: they are the assembler knows.
_MODIFIERS = {
    name: frozenset(modifiers.split())
    for names, modifiers in {
        "add sub": f"{_ROUNDED} cc",
        "mul": f"{_ROUNDED} lo hi wide",
        "mul24": "lo hi",
        "addc subc": "cc",
        "mad": f"{_ROUNDED} lo hi wide cc",
        "mad24": "lo hi sat",
        "madc": "lo hi cc",
        "fma fms fnma fnms": f"{_ROUNDED} relu oob",
        "div": f"{_ROUNDED} approx full",
        "sqrt rcp": f"{_ROUNDED} approx",
        "rsqrt ex2 lg2 sin cos tanh": "approx ftz",
        "min max": "ftz NaN xorsign abs relu",
        "neg abs slct": "ftz",
        "lop3": "and or",
        "setp set": " ".join(("ftz", *COMPARISONS)),
        "shf": "l r wrap clamp",
        "bmsk szext": "wrap clamp",
        "bfind": "shiftamt",
        "dp2a": "lo hi",
    }.items()
    for name in names.split()
}
_CHECKING = frozenset({"cvt", "prmt", "testp", *video.NAMES})


def lower(op: Mnemonic) -> Lowered:
    """Look up what an instruction computes; one with a modifier that its entry does not know is not there."""
    if op.base not in _CHECKING and {*op.flags} - _MODIFIERS.get(op.base, frozenset()):
        raise NotInTable
    return TABLE[op.base](op)


#: Opcode to entry.
TABLE: dict[str, Callable[[Mnemonic], Lowered]] = {
    **dict.fromkeys(("add", "sub", "mul", "mul24"), _two_operands),
    **dict.fromkeys(("addc", "subc"), _with_carry),
    **dict.fromkeys(("mad", "mad24", "madc"), _multiply_add),
    "fma": _fused,
    **dict.fromkeys(("fms", "fnma", "fnms"), _fused_with_signs),
    **dict.fromkeys(("div", "rem"), _division),
    **dict.fromkeys(("sqrt", "rcp"), _root_or_reciprocal),
    **dict.fromkeys(("rsqrt", "ex2", "lg2", "sin", "cos", "tanh"), _transcendental),
    **dict.fromkeys(("min", "max"), _extreme),
    **dict.fromkeys(("neg", "abs"), _sign),
    "prmt": _permute,
    "lop3": _logic,
    "cvt": lower_cvt,
    "setp": lower_setp,
    "set": lower_set,
    "selp": lower_selp,
    "slct": lower_slct,
    "testp": lower_testp,
    # It moves bits, those of NaNs too.
    "copysign": lambda op: of_one_type(op, lambda sign, size: np.copysign(size, sign), 2),
    **dict.fromkeys(video.NAMES, video.lower),
    "and": lambda op: of_one_type(op, np.bitwise_and, 2),
    "or": lambda op: of_one_type(op, np.bitwise_or, 2),
    "xor": lambda op: of_one_type(op, np.bitwise_xor, 2),
    "not": lambda op: of_one_type(op, np.invert, 1),
    "cnot": lambda op: of_one_type(op, lambda a: (a == 0).astype(a.dtype), 1),
    "brev": lambda op: of_one_type(op, integers.reverse_bits, 1),
    "sad": lambda op: of_one_type(op, lambda a, b, c: c + np.where(a < b, b - a, a - b), 3),
    "shl": lambda op: Lowered(integers.shift_left, (op.dtype, _U32)),
    "shr": lambda op: Lowered(integers.shift_right, (op.dtype, _U32)),
    "shf": lambda op: _words(partial(integers.funnel, left=op.has("l"), wrap=op.has("wrap")), 3),
    "popc": lambda op: Lowered(integers.population, (op.dtype,)),
    "clz": lambda op: Lowered(integers.leading_zeros, (op.dtype,)),
    "bfind": lambda op: Lowered(partial(integers.highest_bit, shift_amount=op.has("shiftamt")), (op.dtype,)),
    "bfe": lambda op: Lowered(integers.extract_field, (op.dtype, _U32, _U32)),
    "bfi": lambda op: Lowered(integers.insert_field, (op.dtype, op.dtype, _U32, _U32)),
    "bmsk": lambda op: _words(partial(integers.field_mask, wrap=op.has("wrap")), 2),
    "fns": lambda op: Lowered(integers.nth_set_bit, (_U32, _U32, np.dtype(np.int32))),
    "szext": lambda op: Lowered(partial(integers.extend_sign_or_zero, wrap=op.has("wrap")), (op.dtype, _U32)),
    "dp4a": lambda op: _words(partial(integers.dot, types=op.types, parts=4), 3),
    "dp2a": lambda op: _words(partial(integers.dot, types=op.types, parts=2, high=op.has("hi")), 3),
}
