# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Video instructions: integers of 8, 16 or 32 bits picked from words, what is made of them put together."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuprof.executor.arithmetic.compare import ORDERED
from gpuprof.executor.arithmetic.mnemonic import Compute, Lowered, Mnemonic, NotInTable
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes

_OPERATIONS: dict[str, Compute] = {
    "vadd": np.add,
    "vsub": np.subtract,
    "vabsdiff": lambda a, b: np.abs(a - b),
    "vmin": np.minimum,
    "vmax": np.maximum,
    # Of an odd sum the half away from zero.
    "vavrg": lambda a, b: (a + b + (a + b >= 0)) >> 1,
    "vshl": np.left_shift,
    "vshr": np.right_shift,
}
_COMPARISONS = {name: ORDERED[name] for name in ("eq", "ne", "lt", "le", "gt", "ge")}
_OF_WORDS = frozenset({"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vset"})
_OF_LANES = frozenset({"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vavrg", "vset"})
#: What is done with a result and the third operand.
_SECOND: dict[str, Compute] = {"add": np.add, "min": np.minimum, "max": np.maximum}
NAMES = ("vmad", *_OF_WORDS, *(f"{name}{lanes}" for name in _OF_LANES for lanes in (2, 4)))
_U32 = ARITHMETIC["u32"]
_WORD = 0xFFFF_FFFF


def lower(op: Mnemonic) -> Lowered:
    """Lower `vabsdiff4.u32.u32.u32.add` or `vadd.s32.u32.s32.sat`.

    The parser makes a flag such as `a.h1` of what is picked of an operand, d, a, b or c, and `-a` of a sign.
    """
    if op.base == "vmad":
        return _multiply_add(op)
    lanes = int(op.base[-1]) if op.base[-1].isdigit() else 1
    name = op.base.rstrip("24")
    picked = dict(flag.split(".") for flag in op.flags if "." in flag)
    flags = {flag for flag in op.flags if "." not in flag}
    types = op.types if name != "vset" else ("u32", *op.types)
    second = next(iter(flags & {*_SECOND} if lanes == 1 else flags & {"add"}), None)
    how = next((flag for flag in op.flags if flag in (_COMPARISONS if name == "vset" else _MODES)), None)
    known = {second, how, None if name == "vset" else "sat"}
    if len(types) != 3 or not {*types} <= {"u32", "s32"} or flags - known:
        raise NotInTable
    if (name in ("vset", "vshl", "vshr")) != (how is not None):
        raise NotInTable
    operation = _COMPARISONS[how or ""] if name == "vset" else _OPERATIONS[name]

    def compute(a: Lanes, b: Lanes, c: Any = 0) -> Lanes:
        both = (a, b) if lanes > 1 else None
        first = _picked(both or (a,), picked.get("a", _LOW[lanes]), types[1])
        other = _picked(both or (b,), picked.get("b", _HIGH[lanes]), types[2])
        if how in _MODES:
            other = np.minimum(other, 32) if how == "clamp" else other & 31
        found = operation(first, other).astype(np.int64)
        if name == "vshl":  # machine code keeps 34 bits
            found = found << 30 >> 30
        target = picked.get("d", _LOW[lanes])
        bits, places = _places(target)
        if "sat" in flags:
            limits = np.iinfo(f"{'i' if types[0] == 's32' else 'u'}{bits // 8}")
            found = np.clip(found, limits.min, limits.max)
        if second is not None and lanes > 1:
            return _word(found[..., places].sum(axis=-1) + c.astype(np.int64))
        if second is not None:
            given = c.view(ARITHMETIC[types[0]]).astype(np.int64)
            return _word(_SECOND[second](_picked((_word(found[..., 0]),), "", types[0])[..., 0], given))
        kept = np.asarray(c, dtype=np.int64) & ~sum(((1 << bits) - 1) << bits * i for i in places) & _WORD
        of = found[..., places] if lanes > 1 else found
        return _word(kept | ((of & ((1 << bits) - 1)) << bits * np.array(places)).sum(axis=-1))

    return Lowered(compute, (_U32,) * (3 if lanes > 1 or second or "d" in picked else 2))


def _multiply_add(op: Mnemonic) -> Lowered:
    """Lower `vmad.s32.u32.s32.sat.shr7`, like machine code: whole words are signed, the sum has 64 bits."""
    picked = dict(flag.split(".") for flag in op.flags if "." in flag)
    flags = {flag for flag in op.flags if "." not in flag}
    if not {*op.types} <= {"u32", "s32"} or flags - {"po", "sat", "shr7", "shr15", "-a", "-b", "-c"}:
        raise NotInTable
    minus = ("-a" in flags) != ("-b" in flags)
    signed = "s32" in op.types[1:] or minus or "-c" in flags
    shift = 7 * ("shr7" in flags) + 15 * ("shr15" in flags)
    limits = np.iinfo(np.int32 if signed else np.uint32)

    def part(word: Lanes, name: str, kind: str) -> Any:
        parts = picked.get(name, "")
        return _picked((word,), parts, kind if parts else "s32")[..., 0]

    def compute(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        product, addend = part(a, "a", op.types[1]) * part(b, "b", op.types[2]), part(c, "c", "s32")
        found = (-product if minus else product) + (-addend if "-c" in flags else addend) + ("po" in flags)
        found = found >> shift if signed else (found.view(np.uint64) >> np.uint64(shift)).view(np.int64)
        return _word(np.clip(found, limits.min, limits.max) if "sat" in flags else found)

    return Lowered(compute, (_U32,) * 3)


_MODES = ("clamp", "wrap")
#: The parts that lanes are made of where nothing is picked: all of a word, or the lanes of a, and those of b.
_LOW = {1: "", 2: "h10", 4: "b3210"}
_HIGH = {1: "", 2: "h32", 4: "b7654"}


def _places(parts: str) -> tuple[int, list[int]]:
    """Return the bits of each part and the parts that `h10` or `b2` names, the lowest lane first."""
    return {"b": 8, "h": 16, "": 32}[parts[:1]], [int(digit) for digit in reversed(parts[1:] or "0")]


def _picked(words: Sequence[Lanes], parts: str, kind: str) -> Lanes:
    """Return parts of words, which stand beside each other, as integers of 64 bits."""
    bits, places = _places(parts)
    shifts = np.arange(0, 32, bits, dtype=np.uint32)
    pieces = [np.asarray(word.astype(np.uint32)[..., None] >> shifts) for word in np.broadcast_arrays(*words)]
    narrow = np.concatenate(pieces, axis=-1)[..., places].astype(f"u{bits // 8}")
    return (narrow.view(f"i{bits // 8}") if kind == "s32" else narrow).astype(np.int64)


def _word(value: Any) -> Lanes:
    """Return the low 32 bits."""
    return np.asarray(np.asarray(value) & _WORD).astype(_U32)
