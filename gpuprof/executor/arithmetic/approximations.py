# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Instructions that the hardware approximates: `.approx` ones, and the transcendental functions.

The hardware interpolates tables. What is computed here is the value that it approximates, correctly rounded,
which is within the error that the ISA states; what ptxas composes is composed, as a quotient by a reciprocal.
What decides the class of a result is as on the hardware: where subnormals are zeros, the argument of sine and
cosine as a fixed-point number of turns, and the upper word to which f64 is cut off.
"""

from functools import partial

import numpy as np

from gpuprof.executor.arithmetic import floats
from gpuprof.executor.arithmetic.exact import flush, in_mode
from gpuprof.executor.arithmetic.mnemonic import Compute, Lowered, Mnemonic, NotInTable
from gpuprof.executor.arithmetic.nans import CANONICAL
from gpuprof.executor.lanes.scalars import Lanes

#: Divisors below the one are scaled, and but by `div.approx` those beyond the other, whose reciprocal is 0.
_LEAST_DIVISOR, _LARGEST_DIVISOR = np.float32(2.0**-126), np.float32(2.0**126)
#: What sine and cosine multiply their argument by first: turns in a radian, as an f32.
_TURNS = np.float32(1 / (2 * np.pi))
#: Steps of a quarter turn that they tell apart.
_QUARTER = 1 << 23
_UPPER_WORD = np.uint64(0xFFFF_FFFF_0000_0000)


def _divide(a: Lanes, b: Lanes, largest: np.float32 = _LARGEST_DIVISOR) -> Lanes:
    """Multiply by a reciprocal that is never subnormal, as ptxas has it done."""
    scale = np.where(np.abs(b) < _LEAST_DIVISOR, np.float32(2.0**24), np.float32(1))
    scale = np.where(np.abs(b) > largest, np.float32(0.25), scale)
    divisor = flush((b * scale).astype(np.float32)).astype(np.float64)
    return np.asarray(flush((1.0 / divisor).astype(np.float32)) * (a * scale))


def _sine(a: Lanes) -> Lanes:
    quadrant, rest = _turned(a)
    size = _first_quadrant(np.where(quadrant % 2 == 1, _QUARTER - 1 - rest, rest))
    return _signed(a, size, (quadrant >= 2) != np.signbit(a))


def _cosine(a: Lanes) -> Lanes:
    quadrant, rest = _turned(a)
    size = _first_quadrant(np.where(quadrant % 2 == 0, _QUARTER - 1 - rest, rest))
    return _signed(a, size, (quadrant == 1) | (quadrant == 2))


def _turned(a: Lanes) -> tuple[Lanes, Lanes]:
    """Return the quadrant of |a| and how far in it, in steps, cut off; mirrored, it has all bits flipped."""
    product = in_mode(np.multiply, "rz")(a.astype(np.float32), _TURNS)
    turns = np.abs(flush(product)).astype(np.float64)
    fixed = np.floor(np.where(np.isfinite(turns), turns % 1.0, 0.0) * 4 * _QUARTER).astype(np.int64)
    return fixed // _QUARTER, fixed % _QUARTER


def _first_quadrant(rest: Lanes) -> Lanes:
    return np.asarray(np.sin(rest * (np.pi / 2 / _QUARTER)))


def _signed(a: Lanes, size: Lanes, negative: Lanes) -> Lanes:
    return np.where(np.isfinite(a), np.where(negative, -size, size), np.nan)


#: From float64 operands to float64; the result is rounded to f32.
_SINGLE: dict[str, Compute] = {
    "sqrt": np.sqrt,
    "rsqrt": lambda a: 1.0 / np.sqrt(a),
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": _sine,
    "cos": _cosine,
    "tanh": np.tanh,
}
_DOUBLE: dict[str, Compute] = {"rcp": lambda a: 1.0 / a, "rsqrt": lambda a: 1.0 / np.sqrt(a)}


def lower(op: Mnemonic) -> Lowered:
    """Lower an approximation of f32, or one of the three of f64."""
    if op.type == "f64" and op.base == "rsqrt" and not op.has("ftz"):
        return Lowered(_inverse_root, (op.dtype,))
    if op.type == "f64":
        if op.base not in _DOUBLE or not op.has("ftz"):
            raise NotInTable
        compute = _of_upper_words(_DOUBLE[op.base])
        return Lowered(compute, (op.dtype,))
    if op.type != "f32":
        raise NotInTable
    if op.base == "div":
        largest = np.float32(np.inf) if op.has("approx") else _LARGEST_DIVISOR
        return floats.modified(op, partial(_divide, largest=largest), 2)
    if op.base == "rcp":
        return floats.modified(op, lambda a: _divide(np.ones_like(a), a), 1)
    function = _SINGLE[op.base]
    return floats.modified(op, lambda a: function(a.astype(np.float64)).astype(np.float32), 1)


def _inverse_root(a: Lanes) -> Lanes:
    """Return 1 over a root, subnormals included: ptxas refines the coarse one to all bits but the last."""
    negative = np.array(0xFFF8_0000_0000_0000, dtype=np.uint64).view(np.float64)
    with np.errstate(all="ignore"):
        return np.where(a < 0, negative, np.where(np.isnan(a), a + a, 1.0 / np.sqrt(a)))


def _of_upper_words(function: Compute) -> Compute:
    """A function of f64 that neither reads nor gives lower words, nor subnormals; its NaN is an f32's."""

    def compute(a: Lanes) -> Lanes:
        value = _cut(function(_cut(a)))
        nan = (CANONICAL.view(np.uint32).astype(np.uint64) << np.uint64(32)).view(np.float64)
        return np.where(np.isnan(value), nan, value)

    return compute


def _cut(value: Lanes) -> Lanes:
    return flush((value.view(np.uint64) & _UPPER_WORD).view(np.float64))
