# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""When a result is right: the comparison of outputs with the float64 reference, and its bound."""

from typing import Any

from msgspec import Struct

from gpuprof.problems.numpy_later import NDArray, np

Doubles = NDArray[Any]
#: Elements compared at a time: few enough that what is computed of them stays in the CPU's cache.
_PART_ELEMENTS = 1 << 16


class ErrorBound(Struct, frozen=True):
    """How far an element of the result may lie from its reference.

    Args:
        relative: Share of the element's magnitude; 0 with `absolute` 0 demands equality.
        absolute: What underflow may add, whatever the magnitude.
        largest: Largest finite value of the element type: a result that may exceed it may be an infinity.
        rounding: Share of the reference's own size that is allowed besides: the rounding of a result that was
            computed in a wider type.
    """

    relative: float
    absolute: float
    largest: float
    rounding: float = 0.0


class ErrorComparison(Struct, frozen=True):
    """How a result compares with its reference.

    Args:
        max_abs_error: Largest |result - expected|; infinite where a result is not a number.
        max_rel_error: Largest share of an element's magnitude that its error takes beyond `absolute` and
            `rounding`.
    """

    wrong: "NDArray[np.bool_]"
    max_abs_error: float
    max_rel_error: float


def compare(
    got: NDArray[Any], expected: NDArray[Any], magnitude: Doubles, bound: ErrorBound
) -> ErrorComparison:
    """Hold results against their references; the rule that the GPU's `compare` applies too.

    An element is right when its error is at most `relative * magnitude + absolute + rounding * |expected|`.
    Where the reference comes so near to the end of the type's range that a result within the bound may have
    overflowed, an infinity of the reference's sign is right as well. NaN never is.
    """
    parts = []
    for start in range(0, max(1, len(got)), _PART_ELEMENTS):
        part = slice(start, start + _PART_ELEMENTS)
        sizes = magnitude if len(magnitude) == 1 else magnitude[part]
        parts.append(_compare(got[part], expected[part], sizes, bound))
    return ErrorComparison(
        np.concatenate([part.wrong for part in parts]),
        max(part.max_abs_error for part in parts),
        max(part.max_rel_error for part in parts),
    )


def _compare(
    got: NDArray[Any], expected: NDArray[Any], magnitude: Doubles, bound: ErrorBound
) -> ErrorComparison:
    if np.issubdtype(expected.dtype, np.integer):
        return _compare_integers(got, expected, magnitude, bound)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        got = got.astype(np.float64)
        if (got == expected).all() and not np.isnan(magnitude).any():
            return ErrorComparison(np.zeros(len(got), np.bool_), 0.0, 0.0)
        scale = np.minimum(magnitude, np.finfo(np.float64).max)
        free = bound.absolute + bound.rounding * np.minimum(np.abs(expected), np.finfo(np.float64).max)
        allowed = bound.relative * scale + free
        overflowed = np.isinf(got) & (np.sign(got) == np.sign(expected))
        overflowed &= np.abs(expected) + allowed >= bound.largest
        error = np.where(overflowed | (got == expected), 0.0, np.abs(got - expected))
        wrong = ~(error <= allowed)
        relative = np.where(error <= free, 0.0, (error - free) / scale)
    return ErrorComparison(wrong, _largest(error), _largest(relative))


def _compare_integers(
    got: NDArray[Any], expected: NDArray[Any], magnitude: Doubles, bound: ErrorBound
) -> ErrorComparison:
    """As `compare`; equality is told from the integers themselves, which a double may not hold."""
    equal = got == expected
    error = np.abs(got.astype(np.float64) - expected.astype(np.float64))
    error = np.where(equal, 0.0, np.maximum(error, 1.0))
    wrong = ~(error <= bound.relative * magnitude + bound.absolute)
    with np.errstate(divide="ignore"):
        relative = np.where(equal, 0.0, error / np.maximum(magnitude, 1.0))
    return ErrorComparison(wrong, _largest(error), _largest(relative))


def _largest(values: Doubles) -> float:
    """The largest value; infinite with a NaN among them, which no maximum shows reliably."""
    largest = float(values.max(initial=0.0))
    return largest if np.isfinite(largest) else float("inf")
