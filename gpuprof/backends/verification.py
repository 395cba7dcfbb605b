# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What both backends say of a comparison: several outputs as one verdict, and what must not be read."""

from collections.abc import Callable, Sequence
from math import isfinite

from msgspec import Struct

from gpuprof.backends.base import Findings
from gpuprof.problems.check import ErrorBound, ErrorComparison, compare
from gpuprof.problems.problem import ArraySpec, Problem
from gpuprof.problems.references import Array, Expected
from gpuprof.problems.wrong_values import compare_unordered, describe_wrong
from gpuprof.records import replace
from gpuprof.results import Verification

_SAME = (
    "its result depends on what was there before. Measure it anyway with --no-poison-inout, or with"
    " poison_inout = false in its header"
)


def verification_of(
    spec: ArraySpec,
    bound: ErrorBound,
    compared: ErrorComparison,
    detail: str,
    wrong: Array | None = None,
    indices: Sequence[int] | Array | None = None,
) -> Verification:
    """What a comparison on the host says of an output; without `indices` its elements have no places."""
    wrong = compared.wrong if wrong is None else wrong
    return Verification(
        max_abs_error=finite(compared.max_abs_error),
        max_rel_error=finite(compared.max_rel_error),
        bound=bound.relative,
        absolute_bound=bound.absolute,
        checked_elements=len(wrong),
        wrong_elements=int(wrong.sum()),
        detail=detail,
        array="" if indices is None else spec.name,
        first_wrong=int(indices[int(wrong.argmax())]) if indices is not None and wrong.any() else None,
    )


def compare_output(
    problem: Problem,
    spec: ArraySpec,
    got: Array,
    expected: Expected,
    indices: Array | None = None,
    unwritten: Array | None = None,
    missing: Array | None = None,
) -> Verification:
    """Hold an output, or these elements of it, against its reference on the host.

    What is `missing` is wrong whatever happens to be there; what is `unwritten` is told as such.
    """
    bound = problem.bound(spec.name)
    compared = compare(got, expected.values, expected.magnitude, bound)
    wrong = compared.wrong if missing is None else compared.wrong | missing
    detail = (
        describe_wrong(problem, spec.name, got, expected, wrong, unwritten, indices) if wrong.any() else ""
    )
    places = range(spec.elements) if indices is None else indices
    return verification_of(spec, bound, compared, detail, wrong, places)


def compare_without_order(
    problem: Problem,
    spec: ArraySpec,
    read: Callable[[ArraySpec], Array],
    expected: Expected,
    missing: Array | None = None,
) -> Verification:
    """Hold an output whose elements have no order against its reference on the host."""
    values, *keys = map(read, (spec, *map(problem.array, problem.checks[spec.name].together)))
    bound = problem.bound(spec.name)
    compared, detail = compare_unordered(spec, values, expected, bound, missing, keys)
    return verification_of(spec, bound, compared, detail)


def worst(found: Sequence[Verification]) -> Verification:
    """Several outputs' verifications as one: that of the output furthest off, with all elements counted."""
    first = max(found, key=lambda one: (not one.passed, _share(one)))
    if len(found) == 1:
        return first
    return replace(
        first,
        checked_elements=sum(one.checked_elements for one in found),
        wrong_elements=sum(one.wrong_elements for one in found),
    )


class Proof(Struct, frozen=True):
    """Whether a case is right, and what outputs held that it must not read; None for poison."""

    verification: Verification
    unread: float | None = None
    remarks: tuple[str, ...] = ()


def prove(problem: Problem, poison_inout: bool, attempt: Callable[[float | None], Verification]) -> Proof:
    """Verify a case, and find out whether it reads what it must not.

    Some arrays may be read for some scalars only, such as C of a GEMM: not where beta is 0. They are poisoned
    like any output. A case that is wrong is tried once more with numbers in them; without `poison_inout`
    what it does then is what counts.
    """
    verification = attempt(None)
    arrays = " and ".join(f"{spec.name} though {spec.unread}" for spec in problem.outputs if spec.unread)
    if verification.passed or not arrays:
        return Proof(verification)
    # Not zeros: a kernel that adds to what was there would pass.
    with_ones = attempt(1.0)
    if with_ones.passed and not poison_inout:
        return Proof(with_ones, 1.0, (f"Reads {arrays}; measured with ones there",))
    if with_ones.passed:
        return Proof(replace(verification, detail=f"reads {arrays}: {_SAME}"))
    if attempt(0.0).passed:
        return Proof(replace(verification, detail=f"adds to what was in {arrays}"))
    return Proof(verification) if poison_inout else Proof(with_ones, 1.0)


def incorrect(verification: Verification, why: str, *, later: bool) -> Findings:
    """What is said of a wrong kernel, which has no times, and `why`."""
    reason = sentence_of(verification, later=later)
    return Findings("incorrect", reason, verification=verification, timing_reason=why, event_floor_reason=why)


def sentence_of(verification: Verification, *, later: bool) -> str:
    """A wrong kernel's sentence."""
    detail = verification.detail
    if later:
        return f"Right in its first launch, wrong in a later one: {detail}."
    return f"{detail[:1].upper()}{detail[1:]}."


def finite(value: float) -> float | None:
    """An error as results keep it: one that is not a number is None."""
    return value if isfinite(value) else None


def _share(one: Verification) -> float:
    """How much of its bound an output's error takes."""
    if one.max_rel_error is None:
        return float("inf")
    return one.max_rel_error / one.bound if one.bound else one.max_rel_error
