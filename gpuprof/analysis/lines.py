# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Counters on each line of a kernel's source, and which line costs most."""

from dataclasses import dataclass

from gpuprof.analysis.counts import BANK_CONFLICTS, GLOBAL_REQUESTS, GLOBAL_SECTORS, SHARED_WAVEFRONTS
from gpuprof.results import Measurement, SourceLine


@dataclass(frozen=True, slots=True)
class LineFigures:
    """What one source line did.

    Requests and wavefronts are a warp's, multiply-adds those of all threads; shares are of the kernel's
    global sectors, and of what the part that binds it has to do.
    """

    line: int
    requests: float
    sectors: float
    sectors_per_request: float | None
    traffic_pct: float | None
    wavefronts: float
    bank_conflicts: float
    ffma: float
    barriers: float
    async_copies: float
    most_traffic: bool
    most_conflicts: bool
    binding_pct: float | None
    binds: bool


def line_figures(case: Measurement) -> dict[int, LineFigures]:
    """Figures by line number; empty when no lines were counted."""
    # Every line that became machine code has instructions; only what else it did tells lines apart here.
    lines = [line for line in case.lines or () if line.counters.keys() - {"warp_instructions"}]
    sectors = {line.line: _sum(line, *GLOBAL_SECTORS) for line in lines}
    conflicts = {line.line: _sum(line, *BANK_CONFLICTS) for line in lines}
    all_sectors = sum(sectors.values())
    top_sectors, top_conflicts = max(sectors.values(), default=0), max(conflicts.values(), default=0)
    bound = case.bounds.get(case.bound_by or "")
    binding = bound.counters if bound else ()
    work = {line.line: _sum(line, *binding) for line in lines}
    all_work, top_work = sum(work.values()), max(work.values(), default=0)
    figures = {}
    for line in lines:
        requests = _sum(line, *GLOBAL_REQUESTS)
        touched = sectors[line.line]
        figures[line.line] = LineFigures(
            line=line.line,
            requests=requests,
            sectors=touched,
            sectors_per_request=touched / requests if requests else None,
            traffic_pct=100.0 * touched / all_sectors if all_sectors and touched else None,
            wavefronts=_sum(line, *SHARED_WAVEFRONTS),
            bank_conflicts=conflicts[line.line],
            ffma=_sum(line, "ffma_thread_instructions", "dfma_thread_instructions"),
            barriers=_sum(line, "barriers"),
            async_copies=_sum(line, "async_copy_requests"),
            most_traffic=bool(touched) and touched == top_sectors,
            most_conflicts=bool(conflicts[line.line]) and conflicts[line.line] == top_conflicts,
            binding_pct=100.0 * work[line.line] / all_work if work[line.line] else None,
            binds=bool(work[line.line]) and work[line.line] == top_work,
        )
    return figures


def _sum(line: SourceLine, *names: str) -> float:
    return sum(line.counters.get(name, 0) for name in names)
