# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What was counted, as machine code does it whose loops ptxas unrolled."""

import math
from collections.abc import Sequence, Set

from gpuprof.backends.sim.instructions import NoLink, Weighed, whole
from gpuprof.executor import CountedTotals, LaunchResult
from gpuprof.machine_code.weighing import branch_lines, regrouped
from gpuprof.records import replace

_PARTED = "branch_divergent_warps"


def as_unrolled(
    result: LaunchResult, weighed: Weighed | NoLink, results: Sequence[LaunchResult]
) -> tuple[LaunchResult, Set[str]]:
    """The result of launches with requests as in the loops that ptxas unrolled, and branches that it left.

    And the names of counters of accesses that lanes make there with others than in the executor, and of
    branches where that is not known.
    """
    counters, lines = CountedTotals(result.counters), dict(result.lines)
    others = {_PARTED} if isinstance(weighed, NoLink) and counters[_PARTED] else set[str]()
    for (link, times), one in zip(() if isinstance(weighed, NoLink) else weighed, results, strict=False):
        branches, unknown = branch_lines(link, times)
        for site, counted in one.sites:
            if (parted := counted["divergent_warps"]) and site.ptx_line not in branches - unknown:
                if site.ptx_line in unknown:
                    others.add(_PARTED)
                    continue
                lines[site.line] = CountedTotals(lines[site.line])
                for totals in (counters, lines[site.line]):
                    totals[_PARTED] = whole(totals[_PARTED] - parted)
        for of_loop, made, more in regrouped(link, times, one):
            for site, counted in one.sites:
                if site.ptx_line not in of_loop or "requests" not in counted:
                    continue
                if more is None or not math.isclose(counted["requests"], made):
                    others |= {site.counter(event) for event in counted}
                else:
                    others |= {site.counter(event) for event in counted if event != "requests"}
                    name, lines[site.line] = site.counter("requests"), CountedTotals(lines[site.line])
                    for totals in (counters, lines[site.line]):
                        totals[name] = whole(totals[name] + more)
    return replace(result, counters=counters, lines=lines), others
