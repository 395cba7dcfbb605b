# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The profile of a case that takes several launches, from one of each."""

from collections.abc import Sequence
from dataclasses import replace

from gpuprof.counters import COUNTERS
from gpuprof.ncu.outcome import CaseProfile
from gpuprof.results import Counter

_EACH_ITS_OWN = "each of the case's launches has its own: open the report in ncu-ui"
_NO_COUNT = "it was not collected for one of the case's launches"


def combined(profiles: Sequence[CaseProfile], largest: int) -> CaseProfile:
    """What the launches of a case come to together.

    Counts and durations are added up. A share of a count, a rate or a ratio per instruction is the mean of
    the launches', weighted by what it is relative to: exactly what all of them together have. Registers and
    occupancy are the largest launch's, like all that a case says of its launch; the rest has no such sum.

    Args:
        profiles: One of each launch, in order.
        largest: Which of them has the most threads.
    """
    if len(profiles) == 1:
        return profiles[0]
    for profile in profiles:
        if profile.reason:
            return profile
    names = dict.fromkeys(name for profile in profiles for name in profile.counters)
    counters = {name: _combined(name, profiles, largest) for name in names}
    return CaseProfile(counters, profiles[largest].achieved_occupancy_pct)


def _combined(name: str, profiles: Sequence[CaseProfile], largest: int) -> Counter:
    rule = COUNTERS[name].over_launches
    # A kind of copy that a launch does not make is in its profile not at all.
    held = [profile for profile in profiles if name in profile.counters]
    first = held[0].counters[name]
    if rule == "largest":
        return profiles[largest].counters.get(name, first)
    if rule == "none":
        return replace(first, value=None, reason=_EACH_ITS_OWN)
    if rule == "sum":
        weights: list[float | int | None] = [1] * len(held)
    else:
        weights = [profile.counters[rule].value if rule in profile.counters else None for profile in held]
    parts = [(profile.counters[name], weight) for profile, weight in zip(held, weights, strict=True)]
    # Where there is nothing to be a share of, there is no share, and none is lacking.
    counted = [(counter, weight) for counter, weight in parts if weight != 0] or parts
    for counter, weight in counted:
        if counter.value is None or weight is None:
            return replace(first, value=None, reason=counter.reason or _NO_COUNT)
    total = sum((counter.value or 0) * (weight or 0) for counter, weight in counted)
    if rule == "sum":
        return replace(first, value=total, reason=None)
    return replace(first, value=total / sum(weight or 0 for _, weight in counted), reason=None)
