# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Instructions that the hardware approximates: `.approx` ones, and the transcendental functions.

The hardware interpolates tables. What is computed here is the value that it approximates, correctly rounded,
which is within the error that the ISA states; what decides the class of a result is as on the hardware: where
subnormals are zeros, the argument of sine and cosine as a rounded number of turns, and the upper word to
which f64 is cut off.
"""

import numpy as np

from gpuprof.executor.arithmetic import floats
from gpuprof.executor.arithmetic.exact import flush
from gpuprof.executor.arithmetic.mnemonic import Compute, Lowered, Mnemonic, NotInTable
from gpuprof.executor.arithmetic.nans import CANONICAL
from gpuprof.executor.lanes.scalars import Lanes

#: Beyond this the reciprocal that `div.approx.f32` multiplies by is 0.
_LARGEST_WITH_RECIPROCAL = np.float32(2.0**126)
#: What sine and cosine multiply their argument by first: turns in a radian, as an f32.
_TURNS = np.float32(1 / (2 * np.pi))
_UPPER_WORD = np.uint64(0xFFFF_FFFF_0000_0000)
_F64_TINY = 2.0**-1022  # smallest normal float64


def _divide(a: Lanes, b: Lanes) -> Lanes:
    """Return a quotient, but 0 (of an infinity NaN) where the divisor has no reciprocal."""
    has_none = (np.abs(b) > _LARGEST_WITH_RECIPROCAL) & np.isfinite(b)
    return np.where(has_none, a * np.copysign(np.float32(0), b), np.divide(a, b)).astype(np.float32)


def _sine(a: Lanes) -> Lanes:
    """Return the sine, of zeros and of half turns a zero with the sign of the argument."""
    turns = _turned(a)
    value = np.sin(2 * np.pi * (turns - np.rint(turns)))
    halves = turns * 2
    return np.where(np.isfinite(halves) & (halves == np.rint(halves)), np.copysign(0.0, a), value)


def _cosine(a: Lanes) -> Lanes:
    """Return the cosine, of odd quarter turns 0."""
    turns = _turned(a)
    rest = np.abs(turns - np.rint(turns))
    return np.where(rest == 0.25, 0.0, np.cos(2 * np.pi * rest))


def _turned(a: Lanes) -> Lanes:
    return flush(a.astype(np.float32) * _TURNS).astype(np.float64)


#: From float64 operands to float64; the result is rounded to f32.
_SINGLE: dict[str, Compute] = {
    "sqrt": np.sqrt,
    "rcp": lambda a: 1.0 / a,
    "rsqrt": lambda a: 1.0 / np.sqrt(a),
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": _sine,
    "cos": _cosine,
    "tanh": np.tanh,
}
_DOUBLE: dict[str, Compute] = {"rcp": lambda a: 1.0 / a, "rsqrt": lambda a: 1.0 / np.sqrt(a)}


def lower(op: Mnemonic) -> Lowered:
    """Lower an approximation of f32, or one of the two of f64."""
    if op.type == "f64":
        if op.base not in _DOUBLE or not op.has("ftz"):
            raise NotInTable
        compute = _of_upper_words(_DOUBLE[op.base])
        return Lowered(compute, (op.dtype,), op.dtype)
    if op.type != "f32":
        raise NotInTable
    if op.base == "div":
        return floats.modified(op, _divide, 2)
    function = _SINGLE[op.base]
    return floats.modified(op, lambda a: function(a.astype(np.float64)).astype(np.float32), 1)


def _of_upper_words(function: Compute) -> Compute:
    """A function of f64 that neither reads nor gives lower words, nor subnormals; its NaN is an f32's."""

    def compute(a: Lanes) -> Lanes:
        value = _cut(function(_cut(a)))
        nan = (CANONICAL.view(np.uint32).astype(np.uint64) << np.uint64(32)).view(np.float64)
        return np.where(np.isnan(value), nan, value)

    return compute


def _cut(value: Lanes) -> Lanes:
    cut = (value.view(np.uint64) & _UPPER_WORD).view(np.float64)
    return np.where(np.abs(cut) < _F64_TINY, np.copysign(0.0, cut), cut)
