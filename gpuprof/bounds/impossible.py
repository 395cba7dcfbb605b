# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Times that nothing on the device can reach: whoever needs so little did not do the work."""

from dataclasses import replace

from gpuprof.bounds.parts import DRAM, LAUNCH, PARTS
from gpuprof.results import Bound, Measurement

#: Share of a bound below which a time is no measurement of that work. What lies between is within what
#: clocks, caches that were not quite empty and the events' resolution may differ by; reports say so.
_IMPOSSIBLE = 0.9
_NO_SPEED = "an impossible time gives no speed"


def without_impossible_time(case: Measurement) -> Measurement:
    """A case as it is, or refused where it took less than a part of the device needs for its work.

    Bounds count here that follow from the problem's own bytes, or from counts of the whole grid: those of a
    sample may be estimates. The launch does not: a time as short as an empty kernel's is no more than short.
    """
    median_us = case.timing.cold.median_us if case.timing and case.timing.cold else None
    bounds = {key: bound for key, bound in case.bounds.items() if _is_certain(case, key, bound)}
    if median_us is None or not bounds or case.outcome != "ok" or case.is_reference:
        return case
    key = max(bounds, key=lambda each: bounds[each].least_us)
    least = bounds[key].least_us
    if median_us >= _IMPOSSIBLE * least:
        return case
    reason = (
        f"Faster than possible: {median_us:.4g} us, where its work takes {least:.4g} us of"
        f" {PARTS[key].label} ({bounds[key].formula}). It skips work when it is timed, or its operation"
        " declares more bytes than it must move."
    )
    return replace(
        case,
        outcome="incorrect",
        reason=reason,
        timing=None,
        timing_reason=_NO_SPEED,
        throughput=None,
        throughput_reason=_NO_SPEED,
        bounds={},
        bound_by=None,
        bounds_reason="the case did not succeed",
    )


def _is_certain(case: Measurement, key: str, bound: Bound) -> bool:
    """Whether a bound is no estimate."""
    if key in (LAUNCH.key, DRAM.key):
        return key == DRAM.key
    counters = {**case.counters, **case.executor_counters}
    used = [counters[name] for name in bound.counters if name in counters]
    return bool(used) and all(one.sampled_blocks == one.total_blocks for one in used)
