# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The part of a search that one device takes: its sizes, timed there or counted for it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from gpuprof.measure.case import Case, on_host
from gpuprof.measure.counting import OnCase
from gpuprof.measure.session import run_cases
from gpuprof.measure.side_by_side import Cards, OpenCard
from gpuprof.results import Measurement
from gpuprof.statistics import with_round
from gpuprof.tuning.search_plan import Plan
from gpuprof.tuning.size_search import SizeSearch
from gpuprof.tuning.space import Point, point_of_case

#: Points in the first batch and in each that follows.
FIRST_BATCH, BATCH = 8, 1
#: The share of a case's time that its first, short measurement gets.
_SHORT = 0.2

_Place = tuple[SizeSearch, Point]


class CardSearch:
    """One device's part of a search; once the only device is lost, nothing is left to do.

    `measured` is called with each point that is measured for the first time, `step` after each other step,
    from the device's own thread.
    """

    def __init__(
        self,
        cards: Cards,
        card: OpenCard,
        plan: Plan,
        measured: Callable[[Measurement], None],
        step: Callable[[], None],
    ) -> None:
        self._cards, self.card = cards, card
        self._plan = plan
        self._measured = measured
        self._step = step
        request = cards.request
        self.timed = card.opened.backend == "gpu"
        problems = [request.problem(size, {}) for size in request.sizes]
        self.sizes = [
            SizeSearch(
                plan.space,
                problem,
                card.opened.device,
                plan.options.seed,
                timed=self.timed,
                number=card.number,
            )
            for problem in problems
        ]
        self._reference_cases = [
            Case(reference.id, problem.with_options(reference.options), (1, 1, 1), device=card.number)
            for problem in problems
            for reference in (request.references if self.timed else ())
        ]
        #: What came of the references.
        self.references: list[Measurement] = []

    def left(self) -> int:
        """Points that the budget still allows."""
        budget = self._plan.budget.points
        return sum(
            max(0, min(budget, len(size.candidates)) - len(size.measured))
            for size in self.sizes
            if self.card.lost is None
        )

    def explore(self, seconds: float | None) -> None:
        """Measure point after point, each where most is hoped for, and begin none after so many seconds."""
        until = None if seconds is None else time.monotonic() + seconds
        workers = len(self._cards.transports(self.card))
        batch = FIRST_BATCH if self.timed else max(FIRST_BATCH, workers)
        while self.card.lost is None and (until is None or time.monotonic() < until):
            cases = [
                (size, case)
                for size in self.sizes
                for case in size.next_cases(self._plan.budget.points, batch)
            ]
            if not cases:
                return

            def measured(
                index: int, measurement: Measurement, cases: Sequence[tuple[SizeSearch, Case]] = cases
            ) -> None:
                size, case = cases[index]
                size.tell(point_of_case(case), measurement)
                self._measured(measurement)

            self._run([case for _, case in cases], measured, self._plan.options.seconds_per_case * _SHORT)
            batch = BATCH if self.timed else max(BATCH, workers)

    def survivors(self) -> list[_Place]:
        """Points near the best, at all sizes."""
        return [(size, point) for size in self.sizes for point in size.survivors()]

    def finalists(self) -> list[_Place]:
        """Points that only rounds can tell apart, at all sizes."""
        return [(size, point) for size in self.sizes for point in size.finalists()]

    @property
    def own_references(self) -> list[Case]:
        """References that run on the device."""
        return [case for case in self._reference_cases if not on_host(case)]

    @property
    def host_references(self) -> list[Case]:
        """References that run on the host, the same beside every device; nothing else may run meanwhile."""
        return [case for case in self._reference_cases if on_host(case) and self.card.number == 0]

    def measure_survivors(self) -> None:
        """Measure the points near the best once more and for longer, and what they are compared with."""
        places = self.survivors()

        def measured(index: int, measurement: Measurement) -> None:
            if index < len(places):
                places[index][0].tell(places[index][1], measurement)
            else:
                self.references.append(measurement)
            self._step()

        def counted(index: int, measurement: Measurement) -> None:
            if index < len(places):
                places[index][0].tell(places[index][1], measurement)

        cases = [size.case_of(point) for size, point in places] + self.own_references
        self._run(cases, measured, self._plan.options.seconds_per_case, counted)

    def measure_host_references(self) -> None:

        def measured(_: int, measurement: Measurement) -> None:
            self.references.append(measurement)
            self._step()

        self._run(self.host_references, measured, self._plan.options.seconds_per_case)

    def measure_in_rounds(self) -> None:
        rounds = self._plan.options.rounds
        places = self.finalists()
        seconds = self._plan.options.seconds_per_case / max(1, rounds)
        for number in range(1, rounds):
            order = places[::-1] if number % 2 else places

            def measured(index: int, measurement: Measurement, order: list[_Place] = order) -> None:
                size, point = order[index]
                known = with_round(size.measured[point], measurement, self.card.opened.device)
                size.tell(point, known)
                self._step()

            self._run([size.case_of(point) for size, point in order], measured, seconds)

    def _run(
        self, cases: list[Case], on_done: OnCase, seconds: float, on_counted: OnCase | None = None
    ) -> None:
        """Measure cases; a device that is lost costs only its own."""
        if not cases or self.card.lost is not None:
            return
        request = replace(self.card.request, seconds_per_case=seconds)
        transports = self._cards.transports(self.card)
        with self._cards.losing(self.card):
            worker = transports[0](request)
            run_cases(cases, worker, request, on_done, transports=transports, on_counted=on_counted)
