# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Searches on a GPU, each point timed when it is asked for, against the fastest of a table beside them.

What was compiled and counted when the table was recorded is taken from it: only times are taken anew.
"""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tune_strategies import search_of
from tune_table import Table

from gpuprof.comparison.tuned import value_of
from gpuprof.measure.case import Case
from gpuprof.measure.process import WorkerProcess
from gpuprof.measure.protocol import Measure, Open, Prepare
from gpuprof.results import Measurement
from gpuprof.tuning.card_search import BATCH, FIRST_BATCH
from gpuprof.tuning.space import Point

#: Kernel time of a point in a search, as `gpuprof tune` takes it first, and of those that are compared.
_SHORT_S, _LONG_S = 0.05, 0.25
#: The fastest of the table, and of each search, that are compared.
_FASTEST, _SURVIVORS = 8, 4
_TIMEOUT_S, _COMPILE_S = 60.0, 120.0


@dataclass(frozen=True)
class Lived:
    """What came of one search.

    Args:
        space: Its name.
        seed: Its seed.
        timed: Points that it timed.
        best_us: The time of its best, measured at length.
        fastest_us: That of the fastest of the table, measured in the same process.
        label: The values of its best.
        seconds: What timing the points took.
    """

    space: str
    seed: int
    timed: int
    best_us: float
    fastest_us: float
    label: str
    seconds: float

    @property
    def share(self) -> float:
        """How much of the best speed was reached."""
        return min(1.0, self.fastest_us / self.best_us)

    def line(self) -> str:
        """A row of a table in Markdown."""
        return (
            f"| {self.space} | {self.seed} | {self.timed} | {self.best_us:.2f} | {self.fastest_us:.2f} |"
            f" {self.share:.3f} | {self.label} | {self.seconds:.0f} s |"
        )


def live(table: Table, device: str, seeds: int, budget: int) -> Iterator[Lived]:
    """Search a space on a GPU, once for each seed.

    Args:
        table: What was recorded of it.
        device: The GPU's number.
        seeds: How many searches.
        budget: Points that each may time.
    """
    _, _, held = table.candidates
    cases = {one.candidate.point: one.candidate.case for one, _ in held}
    known = {one.candidate.point: us for one, us in held if us is not None}
    fastest = sorted(known, key=known.__getitem__)[:_FASTEST]
    # One of the two waits while the other measures.
    with _opened(device, _SHORT_S) as short, _opened(device, _LONG_S) as long:
        long.tell(Prepare(tuple(cases[point] for point in fastest)))
        again = {point: _measured(long, cases[point]) for point in fastest}
        for seed in range(seeds):
            begun = time.monotonic()
            times = _search(table, seed, budget, short)
            seconds = time.monotonic() - begun
            near = sorted(times, key=times.__getitem__)[:_SURVIVORS]
            again |= {point: _measured(long, cases[point]) for point in near if point not in again}
            reached = {point: value_of(again[point], "time") or math.inf for point in near}
            best = min(reached, key=reached.__getitem__)
            least = min(us for one in again.values() if (us := value_of(one, "time")) is not None)
            label = " ".join(f"{name}={value}" for name, value in best.params)
            yield Lived(table.name, seed, len(times), reached[best], least, label, seconds)


@contextmanager
def _opened(device: str, seconds: float) -> Iterator[WorkerProcess]:
    worker = WorkerProcess(Open(device=device, arch=None, seed=0, seconds_per_case=seconds))
    try:
        yield worker
    finally:
        worker.close()


def _search(table: Table, seed: int, budget: int, worker: WorkerProcess) -> dict[Point, float]:
    """The times of the points that a search asks for."""
    search = search_of(table, seed)
    batch = FIRST_BATCH
    times: dict[Point, float] = {}
    while asked := search.next_cases(budget, batch):
        worker.tell(Prepare(tuple(asked)))
        for case in asked:
            measured = _measured(worker, case)
            search.tell(Point.of(case.kernel, case.params, case.block), measured)
            if (us := value_of(measured, "time")) is not None:
                times[Point.of(case.kernel, case.params, case.block)] = us
        batch = BATCH
    return times


def _measured(worker: WorkerProcess, case: Case) -> Measurement:
    measurement: Measurement = worker.ask(Measure(case), _TIMEOUT_S, compile_s=_COMPILE_S).measurement
    return measurement
