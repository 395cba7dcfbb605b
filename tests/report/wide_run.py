# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The widest report that is promised to stay light: 60 kernels at 8 sizes, with real counters and sources."""

from itertools import cycle, islice

from synthetic_runs import Gemm, counted_run, gemm_case, timing

from gpuprof.bounds import with_bounds
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.records import replace
from gpuprof.results import Run, TimingPair

EDGES = (128, 256, 512, 1024, 2048, 4096, 6144, 8192)


def wide_run(kernels: int = 60) -> Run:
    """Sources of the shipped GEMM kernels under other names, with counts of a real run and made-up times."""
    held = counted_run()
    like = [case for case in held.cases if case.outcome == "ok" and case.lines]
    sources = [kernel for kernel in shipped_ladder("gemm").kernels if kernel.source]
    records, cases = [], []
    for index, (case, kernel) in enumerate(islice(zip(cycle(like), cycle(sources)), kernels)):
        name = f"{kernel.id}_{index:02}"
        first = held.kernel(case.kernel)
        records.append(replace(first, id=name, rung=float(index), source=kernel.source, after=""))
        for edge in EDGES:
            time_us = 4.0 + edge**3 / 2e7 * (1 + index / 10)
            samples = timing(time_us, count=400)
            shown = replace(
                case,
                kernel=name,
                problem=Gemm(edge, edge, edge),
                timing=TimingPair(samples, samples),
                clocks=gemm_case(name, case.problem, time_us).clocks,
                bounds={},
                bound_by=None,
            )
            cases.append(with_bounds(shown, held.device))
    return replace(held, kernels=tuple(records), cases=tuple(cases))
