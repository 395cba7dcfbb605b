# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What both backends say of a comparison: several outputs as one verdict, and errors that are no number."""

from collections.abc import Sequence
from math import isfinite
from numbers import Integral
from typing import Any

from gpuprof.results import Verification


def worst(found: Sequence[Verification]) -> Verification:
    """Several outputs' verifications as one: that of the output furthest off, with all elements counted."""
    first = max(found, key=lambda one: (not one.passed, _share(one)))
    if len(found) == 1:
        return first
    return Verification(
        max_abs_error=first.max_abs_error,
        max_rel_error=first.max_rel_error,
        bound=first.bound,
        absolute_bound=first.absolute_bound,
        checked_elements=sum(one.checked_elements for one in found),
        wrong_elements=sum(one.wrong_elements for one in found),
        detail=first.detail,
    )


def finite(value: float) -> float | None:
    """An error as results keep it: one that is no number is None."""
    return value if isfinite(value) else None


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


def _share(one: Verification) -> float:
    """How much of its bound an output's error takes."""
    if one.max_rel_error is None:
        return float("inf")
    return one.max_rel_error / one.bound if one.bound else one.max_rel_error
