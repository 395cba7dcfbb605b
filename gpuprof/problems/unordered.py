# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Results without an order, such as those of a stream compaction: which of them are there, row by row."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from gpuprof.problems.check import Doubles, ErrorBound, ErrorComparison, compare
from gpuprof.problems.problem import ArraySpec
from gpuprof.problems.references import Array, Expected, sorted_rows
from gpuprof.problems.wrong_values import told_apart

#: Wrong values that a sentence names.
_NAMED = 3


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


def _difference(spec: ArraySpec, got: Array, expected: Array, wrong: Doubles | Array) -> str:
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
