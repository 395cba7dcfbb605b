# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a case's counters say of its speed, in plain sentences that each rest on a figure."""

from collections.abc import Iterator

from gpuprof.analysis import counts, numbers
from gpuprof.bounds.parts import WARP_LANES
from gpuprof.counters import COUNTERS
from gpuprof.results import Measurement

_LOW_EFFICIENCY_PCT = 50.0
#: Unused bytes of one kind of access, as a share of the bytes of all sectors.
_MUCH_WASTE = 0.1
#: Two figures count as equal, and one as whole, within this factor.
_SAME = 0.005


def stalls(case: Measurement) -> tuple[tuple[str, float], ...]:
    """Where the cycles of resident warps went, in percent by the counter, the largest share first."""
    spent = {
        name: value
        for name in case.counters
        if name.startswith("stall_") and name in COUNTERS and (value := counts.value(case, name))
    }
    whole = sum(spent.values())
    return tuple(
        sorted(((name, 100 * value / whole) for name, value in spent.items()), key=lambda one: -one[1])
    )


def wasted_sectors(case: Measurement) -> Iterator[str]:
    """Sectors that warps request and hardly use, the larger number of them first."""
    found = []
    every = counts.total(case, *counts.GLOBAL_SECTORS) or 0.0
    for kind in ("load", "store"):
        efficiency = counts.value(case, f"global_{kind}_efficiency_pct")
        if efficiency is None or efficiency >= _LOW_EFFICIENCY_PCT:
            continue
        requests = counts.value(case, f"global_{kind}_requests")
        sectors = counts.value(case, f"global_{kind}_sectors")
        if not requests or not sectors:
            found.append((0.0, f"{kind} efficiency only {numbers.percent(efficiency)}"))
            continue
        unused = sectors * (1 - efficiency / 100)
        if unused < _MUCH_WASTE * every:
            continue
        touched = sectors / requests
        needed = touched * efficiency / 100
        # A fraction of a sector cannot be fetched: then the mean over different instructions has no ideal.
        whole = round(needed) >= 1 and abs(needed - round(needed)) <= _SAME * needed
        enough = (
            f"{round(needed)} would suffice"
            if whole
            else f"{numbers.percent(efficiency)} of their bytes {'used' if kind == 'load' else 'written'}"
        )
        text = f"each warp {kind} touches {numbers.brief(touched)} sectors, {enough}"
        found.append((unused, text))
    for _, text in sorted(found, key=lambda item: -item[0]):
        yield text


def is_of_fmas(case: Measurement, steps: float) -> bool:
    """Whether fused multiply-adds are at least half of a case's work; where nobody counted, they may be."""
    counted = [counts.value(case, f"{kind}fma_thread_instructions") for kind in "fd"]
    known = [fmas for fmas in counted if fmas is not None]
    return not known or 2 * max(known) >= WARP_LANES * steps
