# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A wrong result in a sentence: how many elements, where they lie, what they look like, and the first.

What they look like, such as never written, transposed or scaled, is a hypothesis of what the kernel computed
instead. It is held against the result by the same rule as the reference was, with a few times the bound, so
that none is claimed that the numbers do not bear out. Results without an order have no places: which of them
are there is told row by row.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from numbers import Integral
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpuprof.problems.check import ErrorBound, ErrorComparison, compare
from gpuprof.problems.problem import ArraySpec, Problem
from gpuprof.problems.references import Array, Expected, sorted_rows
from gpuprof.problems.wrong_places import Axis, Mask, describe_places
from gpuprof.records import replace

#: Fewest wrong elements that show more than themselves.
_FEWEST = 3
#: An error of at most so many times what is allowed, and of at most this share of the largest value, may well
#: be rounding.
_NEARLY, _LITTLE = 100.0, 1e-4
#: A factor or an offset is itself taken from a result that may be off.
_MORE_ROOM = 4
#: How near a factor must come to a number to be called so.
_NEAR = 1e-3
#: Wrong values that a sentence names.
_NAMED = 3


class WrongResult(Struct, frozen=True):
    """One output that is not what it must be, and which elements were never written, where that shows."""

    shape: tuple[int, ...]
    axes: Sequence[Axis]
    got: Array
    expected: Expected
    wrong: Mask
    unwritten: Mask | None
    bound: ErrorBound
    scalars: Mapping[str, float]


def describe_wrong(
    problem: Problem,
    output: str,
    got: Array,
    expected: Expected,
    wrong: Mask,
    unwritten: Mask | None = None,
    checked: NDArray[np.intp] | None = None,
) -> str:
    """What is wrong with an output: how many elements, where they lie, what they look like, and the first.

    Where only some elements are known, `checked` are their indices.
    """
    whole = checked is None
    result = WrongResult(
        problem.array(output).shape if whole else (),
        problem.axes(output) if whole else (),
        *(got, expected, wrong, unwritten, problem.bound(output), problem.scalars),
    )
    count, total = int(wrong.sum()), len(wrong)
    name = f" of {output}" if len(problem.outputs) > 1 else ""
    kind = "elements" if whole else "checked elements"
    if count == total:
        text = f"all {total} {kind}{name} are wrong" if total > 1 else f"its one element{name} is wrong"
    else:
        be = "is" if count == 1 else "are"
        text = f"{count} of {total} {kind}{name} ({_percent(count, total)}) {be} wrong"
    places = describe_places(wrong.reshape(result.shape), result.axes) if whole else ""
    values = describe_values(result)
    if values and count == 1:
        verb, _, rest = values.partition(" ")
        values = f"it {_OF_ONE[verb]} {rest}"
    elif values:
        values = f"they {values}"
    listed = "; ".join(fact for fact in (places, values) if fact)
    first = int(np.flatnonzero(wrong)[0])
    where = problem.describe_element(output, int(checked[first]) if checked is not None else first)
    shown, wanted = told_apart(got[first], expected.values[first])
    found = f" is {shown}, expected {wanted}"
    if shown == wanted:  # nobody wrote it
        found = f", which held the right {wanted} before"
    return f"{text}{f': {listed}' if listed else ''}; first: {where}{found}"


#: What is said of several elements, of one.
_OF_ONE = {"are": "is", "were": "was", "differ": "differs"}


def _percent(count: int, total: int) -> str:
    share = 100 * count / total
    return f"{share:.3g} %" if share < 99 else f"{min(share, 99.99):.4g} %"


def told_apart(got: Any, expected: Any) -> tuple[str, str]:
    """Two values that differ, each as short as still shows that: integers in full."""
    if isinstance(got, Integral) and isinstance(expected, Integral):
        return str(got), str(expected)
    shown = ("", "")
    for digits in (6, 9, 17):
        shown = f"{got:.{digits}g}", f"{expected:.{digits}g}"
        if shown[0] != shown[1]:
            break
    return shown


def describe_values(result: WrongResult) -> str:
    """What the wrong elements have in common.

    Returns:
        The rest of a sentence that begins with `they`, for example `are 0`; empty where they have nothing.
    """
    if found := next(_alike(result), ""):
        return found
    wrong, rounded = result.wrong, _rounded(result)
    with np.errstate(all="ignore"):
        if int(wrong.sum()) < _FEWEST or (rounded and _agrees(result, result.expected.values[wrong], wrong)):
            return rounded
        return next(_instead(result), rounded)


def _alike(result: WrongResult) -> Iterator[str]:
    """What single elements show too."""
    wrong, got = result.wrong, result.got
    count = int(wrong.sum())
    if result.unwritten is not None:
        left = int((result.unwritten & wrong).sum())
        if left == count:
            yield "were never written"
        elif left:
            yield f"include {left} that {'was' if left == 1 else 'were'} never written"
    with np.errstate(invalid="ignore"):
        values = got[wrong].astype(np.float64)
    if not values.any() and not np.isnan(values).any():
        yield "are 0"
    elif np.isnan(values).all():
        yield "are NaN"
    elif np.isinf(values).all():
        yield "are infinite"
    elif result.bound.relative == result.bound.absolute == 0 and got.dtype.kind == "f":
        right = result.expected.values[wrong].astype(np.float64)
        if (np.abs(values - right) <= 2 * np.finfo(got.dtype).eps * np.abs(right)).all():
            yield 'differ by rounding alone, which equal = true does not allow, and relative = "4 * u" does'


def _rounded(result: WrongResult) -> str:
    """What is said of errors that are small beside the largest value."""
    values, right = result.got[result.wrong].astype(np.float64), result.expected.values.astype(np.float64)
    if not result.bound.relative or result.got.dtype.kind != "f" or not np.isfinite(values).all():
        return ""
    off = np.abs(values - right[result.wrong]).max()
    most = np.abs(right[np.isfinite(right)]).max(initial=0)
    if not off <= min(_NEARLY * result.bound.relative, _LITTLE) * most:  # nor where one should be NaN
        return ""
    allowing = "a larger relative allows that, or the magnitude of a sum's terms"
    return f"differ in their last digits, by at most {off:.2g}: {allowing}"


def _instead(result: WrongResult) -> Iterator[str]:
    """What was computed instead, where all wrong elements agree on it."""
    if _is_transposed(result):
        yield "are the right values, transposed"
    yield from _shifted(result)
    yield from _scaled(result)
    yield from _offset(result)
    if _is_permuted(result):
        yield "are the right values in other places"


def _agrees(result: WrongResult, values: Array, where: Mask, scale: float = 1.0, least: float = 0.0) -> bool:
    """Whether a result holds other values than the expected ones, each as if it were of the `least` size."""
    magnitude = result.expected.magnitude
    sizes = magnitude if len(magnitude) == 1 else magnitude[where]
    bound = result.bound
    bound = replace(bound, relative=_MORE_ROOM * bound.relative, absolute=_MORE_ROOM * bound.absolute)
    sizes = np.maximum(np.maximum(abs(scale) * sizes, np.abs(values)), least)
    compared = compare(result.got[where], values, sizes, bound)
    return not compared.wrong.any()


def _is_transposed(result: WrongResult) -> bool:
    if len(result.shape) != 2 or 1 in result.shape or not _tells(result.expected.values):
        return False
    turned = result.expected.values.reshape(result.shape).T.ravel()
    return _agrees(result, turned, np.ones(len(turned), np.bool_))


def _shifted(result: WrongResult) -> Iterator[str]:
    """Each the value of a neighbour; at the edge there is none."""
    if not result.shape or not _tells(result.expected.values[result.wrong]):
        return
    whole = result.expected.values.reshape(result.shape)
    wrong = result.wrong.reshape(result.shape)
    for axis, words in enumerate(result.axes):
        for step, side, edge in ((1, "before", 0), (-1, "after", -1)):
            inside = np.ones(result.shape, np.bool_)
            np.moveaxis(inside, axis, 0)[edge] = False
            where = wrong & inside
            if int(where.sum()) < max(_FEWEST, int(wrong.sum()) // 2):
                continue
            if _agrees(result, np.roll(whole, step, axis)[where], where.ravel()):
                yield f"are those that belong one {words.one}{words.of} {side}"


def _scaled(result: WrongResult) -> Iterator[str]:
    """Each the same multiple of what it must be."""
    wrong = result.wrong
    values, got = result.expected.values[wrong].astype(np.float64), result.got[wrong].astype(np.float64)
    usable = np.isfinite(values) & np.isfinite(got) & (values != 0)
    if not usable.any():
        return
    largest = int(np.argmax(np.where(usable, np.abs(values), 0)))
    factor = float(got[largest] / values[largest])
    # Sums that nearly vanish are off by roundoffs of their terms, which are as large as most results.
    usual = abs(factor) * float(np.median(np.abs(values[usable])))
    if not isfinite(factor) or factor == 0 or not _agrees(result, factor * values, wrong, factor, usual):
        return
    for name, value in result.scalars.items():
        if value not in (0, 1) and _is_near(factor * value, 1):
            yield f"lack the factor {name} = {value:g}"
        if value not in (0, 1) and _is_near(factor, value):
            yield f"have the factor {name} = {value:g} once too often"
    if _is_near(factor, -1):
        yield "have the wrong sign"
    if (written := f"{factor:.3g}") != "1":
        yield f"are {written} times what they must be"


def _offset(result: WrongResult) -> Iterator[str]:
    """Each off by the same amount."""
    wrong = result.wrong
    values, got = result.expected.values[wrong].astype(np.float64), result.got[wrong].astype(np.float64)
    difference = got - values
    amount = float(np.median(difference))
    if not isfinite(amount) or amount == 0 or not _agrees(result, values + amount, wrong):
        return
    if np.abs(difference - amount).max() <= _NEAR * abs(amount):
        yield f"are {abs(amount):.6g} too {'large' if amount > 0 else 'small'}"


def _is_permuted(result: WrongResult) -> bool:
    """Whether the same values lie elsewhere; only where that may not be by chance."""
    wrong = result.wrong
    values, got = np.sort(result.expected.values[wrong]), np.sort(result.got[wrong].astype(np.float64))
    if not _tells(values) or not np.isfinite(got).all():
        return False
    shared = len(result.expected.magnitude) == 1
    sizes = result.expected.magnitude if shared else np.abs(values)
    return not compare(got, values.astype(np.float64), sizes, result.bound).wrong.any()


def _tells(values: Array) -> bool:
    """Whether values differ enough among themselves for their places to show."""
    return len(np.unique(values[:10_000])) >= _FEWEST


def _is_near(value: float, other: float) -> bool:
    return abs(value - other) <= _NEAR * abs(other)


def compare_unordered(
    spec: ArraySpec,
    got: Array,
    expected: Expected,
    bound: ErrorBound,
    missing: Array | None = None,
    keys: Sequence[Array] = (),
) -> tuple[ErrorComparison, str]:
    """Hold all of an output against its reference, whose elements ascend within each row.

    What nobody wrote, where `missing` tells, is wrong whatever happens to be there. What stands together with
    it orders elements before their own values do.

    Returns:
        The comparison, whose elements have no places; and what is wrong, as the rest of a sentence.
    """
    count = len(expected.values)
    if missing is not None and missing[:count].any():
        wrong = missing[:count]
        return ErrorComparison(wrong, float("inf"), float("inf")), (
            f"{int(wrong.sum())} of {count} elements of {spec.name} were never written"
        )
    ascending = sorted_rows(got[:count], spec.shape, [key[:count] for key in keys])
    found = compare(ascending, expected.values, expected.magnitude, bound)
    if not found.wrong.any():
        return found, ""
    if keys or bound.relative or bound.absolute or bound.rounding:
        first = int(found.wrong.argmax())
        value, wanted = told_apart(ascending[first], expected.values[first])
        order = "in the order of what stands beside them" if keys else "in ascending order"
        text = f"{order}, {value} stands where {wanted} is expected"
        return found, f"{int(found.wrong.sum())} of {count} elements of {spec.name} are wrong: {text}"
    return found, _difference(spec, ascending, expected.values, found.wrong)


def _difference(spec: ArraySpec, got: Array, expected: Array, wrong: Mask) -> str:
    """Which values of exact results are there in vain, and which are missing."""
    width = spec.shape[-1] if len(spec.shape) > 1 else max(1, len(got))
    extra: Counter[object] = Counter()
    lacking: Counter[object] = Counter()
    for row in np.unique(np.flatnonzero(wrong) // width):
        part = slice(row * width, (row + 1) * width)
        there, wanted = Counter(got[part].tolist()), Counter(expected[part].tolist())
        extra += there - wanted
        lacking += wanted - there
    text = f"{extra.total()} of {len(got)} elements of {spec.name}, in whatever order, are wrong"
    return f"{text}: {_named(extra)} instead of {_named(lacking)}"


def _named(values: "Counter[object]") -> str:
    named = [
        f"{value} {count} times" if count > 1 else str(value) for value, count in values.most_common(_NAMED)
    ]
    return ", ".join(named) + (" …" if len(values) > _NAMED else "")
