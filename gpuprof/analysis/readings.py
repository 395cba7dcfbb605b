# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How figures follow from a case: each way of reading gives a value, or says why there is none."""

from collections.abc import Callable

from gpuprof.analysis import counters
from gpuprof.analysis.figure import Read, Reading, Standing, Subject
from gpuprof.analysis.groups import kernel_record
from gpuprof.analysis.kinds import blocks_of, on_host, waves
from gpuprof.analysis.limits import Limits, limits_of
from gpuprof.analysis.speed import Speed, speed_of, why_no_speed
from gpuprof.results import Measurement, Occupancy, Resources

NO_ARITHMETIC = "this problem has no arithmetic"
NO_PEAK = "the device's peak is unknown"
_ON_HOST = "it ran on the CPU"
_NO_REASON = "no reason was recorded"


def _missing(*reasons: str | None) -> Reading:
    return Reading(None, next(filter(None, reasons), _NO_REASON))


def of_speed(read: Callable[[Speed], float | None], absent: str = _NO_REASON) -> Read:
    """A figure made of a case's rates."""

    def reading(subject: Subject) -> Reading:
        speed = speed_of(subject.run, subject.case)
        if speed is None:
            return _missing(why_no_speed(subject.run, subject.case))
        value = read(speed)
        if value is not None:
            return Reading(value)
        return _missing(_ON_HOST if on_host(subject.run, subject.case) else absent)

    return reading


def of_rung(read: Callable[[Standing], float | None], absent: str) -> Read:
    """A figure that compares rungs; only the case that stands for its rung has it."""

    def reading(subject: Subject) -> Reading:
        if speed_of(subject.run, subject.case) is None:
            return _missing(why_no_speed(subject.run, subject.case))
        if subject.rung is None:
            return _missing("another case represents the kernel")
        value = read(subject.rung)
        return _missing(absent) if value is None else Reading(value)

    return reading


def of_resources(read: Callable[[Resources], float]) -> Read:
    """A figure of what the compiler gave the kernel."""

    def reading(subject: Subject) -> Reading:
        case = subject.case
        if case.resources is None:
            return _missing(case.resources_reason, case.reason)
        return Reading(read(case.resources))

    return reading


def of_occupancy(
    read: Callable[[Occupancy], float | str | None],
    why: Callable[[Occupancy], str | None] = lambda held: None,
) -> Read:
    """A figure of how many warps are resident."""

    def reading(subject: Subject) -> Reading:
        case = subject.case
        if case.occupancy is None:
            return _missing(case.occupancy_reason, case.reason)
        value = read(case.occupancy)
        return _missing(why(case.occupancy)) if value is None else Reading(value)

    return reading


def of_counters(read: Callable[[Measurement], float | None]) -> Read:
    """A figure made of several counters."""

    def reading(subject: Subject) -> Reading:
        value = read(subject.case)
        if value is not None:
            return Reading(value)
        case = subject.case
        return _missing(case.counters_reason, case.reason, "this kernel has no such counter")

    return reading


def of_counter(name: str) -> Read:
    """One counter."""

    def reading(subject: Subject) -> Reading:
        case = subject.case
        counter = counters.find(case, name)
        if counter is None:
            return _missing(case.counters_reason, case.reason, "this case has no such counter")
        return _missing(counter.reason) if counter.value is None else Reading(counter.value)

    return reading


def of_limits(read: Callable[[Limits], float | str | None]) -> Read:
    """A figure made of a case's bounds."""

    def reading(subject: Subject) -> Reading:
        limits = limits_of(subject.run, subject.case)
        if limits is None:
            return _missing(subject.case.bounds_reason, subject.case.reason, "exact counts are missing")
        value = read(limits)
        if value is not None:
            return Reading(value)
        return _missing(why_no_speed(subject.run, subject.case))

    return reading


def interval(subject: Subject) -> Reading:
    """Half width of the median's 95 % confidence interval, in percent."""
    speed = speed_of(subject.run, subject.case)
    if speed is None:
        return _missing(why_no_speed(subject.run, subject.case))
    width = speed.timing.ci95_rel
    return _missing("too few samples for an interval") if width is None else Reading(100.0 * width)


def error(subject: Subject) -> Reading:
    """The largest error that was found."""
    check = subject.case.verification
    if check is None:
        return _missing(subject.case.verification_reason, subject.case.reason)
    if check.max_rel_error is None:
        return _missing(check.detail, "the result holds no number")
    return Reading(check.max_rel_error)


def error_bound(subject: Subject) -> Reading:
    """The largest error that passes."""
    check = subject.case.verification
    if check is None:
        return _missing(subject.case.verification_reason, subject.case.reason)
    return Reading(check.bound)


def published(subject: Subject) -> Reading:
    """The time that a kernel's authors published for this size."""
    case = subject.case
    for figure in kernel_record(subject.run, case.kernel).published:
        if figure.size == case.problem.label and figure.time_ms is not None:
            return Reading(figure.time_ms * 1e3)
    return _missing("its authors published no time for this size")


def grid(subject: Subject) -> Reading:
    """Blocks of the grid."""
    blocks = blocks_of(subject.case)
    return _missing(subject.case.resources_reason, subject.case.reason) if blocks is None else Reading(blocks)


def waves_filled(subject: Subject) -> Reading:
    """How often the grid fills the device."""
    filled = waves(subject.run, subject.case)
    if filled is None:
        return _missing(subject.case.occupancy_reason, subject.case.reason)
    return Reading(filled)
