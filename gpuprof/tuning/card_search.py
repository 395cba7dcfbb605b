# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The part of a search that one device takes: its sizes, timed there or counted for it.

At each size it knows the candidates, what is known of each, and what is asked of them next. What a point may
take is guessed, and the guess corrected by the points that are known, linearly in what is known of a point
before it runs: its values, its launch, and what the compiler made of it. A. E. Hoerl and R. W. Kennard,
"Ridge regression: biased estimation for nonorthogonal problems" (Technometrics 12, 1970).
"""

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from gpuprof.comparison.tuned import basis_of, tied, value_of
from gpuprof.devices.device import Device
from gpuprof.measure.case import Case
from gpuprof.measure.counting import OnCase, counted_as
from gpuprof.measure.session import run_cases
from gpuprof.measure.side_by_side import Cards, OpenCard
from gpuprof.problems.problem import Problem
from gpuprof.records import replace
from gpuprof.results import By, Measurement, Tuned
from gpuprof.statistics import with_round
from gpuprof.tuning.space import BuiltPoint, Candidate, Plan, Point, SearchSpace, rule_out

Vector = NDArray[np.float64]

#: Values of a parameter that span this factor are told apart by their logarithm.
_WIDE = 3.0
#: Penalty of the regression for each feature.
_RIDGE = 0.1


def corrected(features: Vector, guesses: Vector, times_us: Sequence[float | None]) -> Vector:
    """Logarithms of what every point takes: of a known one its own, of the others the corrected guess.

    Guesses are logarithms up to a constant, all alike where nothing is known; an unknown time is None.
    """
    known = np.flatnonzero([bool(us) for us in times_us])
    if not len(known):
        return guesses
    values = np.log([us for us in times_us if us])
    off, some = values - guesses[known], features[known]
    middle = some.mean(axis=0)
    some = some - middle
    penalty = _RIDGE * features.shape[1] * np.eye(features.shape[1])
    slopes = np.linalg.solve(some.T @ some + penalty, some.T @ (off - off.mean()))
    found: Vector = guesses + off.mean() + (features - middle) @ slopes
    found[known] = values
    return found


def features_of(points: Sequence[BuiltPoint], device: Device) -> Vector:
    """A row of numbers for each point of a search; columns have mean 0 and deviation 1."""
    names = dict.fromkeys(name for one in points for name, _ in one.candidate.point.params)
    columns = [_column(points, name) for name in names]
    kernels = list(dict.fromkeys(one.candidate.point.kernel for one in points))
    columns += [[float(one.candidate.point.kernel == kernel) for one in points] for kernel in kernels]
    columns += map(list, zip(*(_of_launch(one, device) for one in points), strict=True))
    rows = np.array(columns, dtype=np.float64).T.reshape(len(points), len(columns))
    # Columns in which all points are alike tell nothing.
    rows = rows[:, np.ptp(rows, axis=0) > 0] if len(points) else rows
    found: Vector = (rows - rows.mean(axis=0)) / rows.std(axis=0) if rows.size else rows
    return found


def _column(points: Sequence[BuiltPoint], name: str) -> list[float]:
    values = [dict(one.candidate.point.params).get(name) for one in points]
    had = [value for value in values if value is not None]
    wide = min(had) > 0 and max(had) >= _WIDE * min(had)
    return [0.0 if value is None else math.log2(value) if wide else float(value) for value in values]


def _of_launch(one: BuiltPoint, device: Device) -> tuple[float, ...]:
    launch, case = one.candidate.configured.largest, one.measurement
    resources, occupancy = case.resources, case.occupancy
    assert resources is not None
    assert occupancy is not None
    blocks, resident = math.prod(launch.grid), max(1, occupancy.blocks_per_sm)
    return (
        *(math.log2(extent) for extent in launch.block),
        resources.registers_per_thread / 32,
        math.log2(resident),
        _unevenness(blocks, device.sm_count),
        _unevenness(blocks, device.sm_count * resident),
    )


def _unevenness(blocks: int, slots: int) -> float:
    """Logarithm of what the busiest slot has to do over the mean."""
    return math.log(math.ceil(blocks / slots) * slots / blocks)


#: Spilled bytes of a thread, stores and loads, from which a point is not worth a launch.
MOST_SPILL_BYTES = 128
_SPILLS = f"It spills more than {MOST_SPILL_BYTES} bytes of registers per thread."
_COOPERATIVE = "Its blocks wait for each other, and the device cannot hold all of them at once."
#: Points that the model ranks and a results file keeps.
_MOST_RANKED = 200
#: Of points within this share of the best, so many are measured at length, and so many in rounds.
_NEAR, _SURVIVORS = 0.12, 6
CLOSE, _FINALISTS = 0.04, 4
#: Points that may turn out wrong, for each one that may be timed.
_PATIENCE = 2


class SizeSearch:
    """One size of a search; the seed orders its candidates."""

    def __init__(
        self,
        space: SearchSpace,
        problem: Problem,
        device: Device,
        seed: int,
        *,
        timed: bool,
        number: int = 0,
        step: Callable[[], None] = lambda: None,
    ) -> None:
        self.problem = problem
        self._device = device
        self._seed = seed
        self._timed = timed
        self._number = number
        self._combinations = space.count
        self._defaults = [Point.of(axes.kernel) for axes in space.axes]
        found, self._ruled_out = space.allowed(problem, device, step)
        found = [replace(one, case=replace(one.case, device=number)) for one in found]
        self.candidates: list[Candidate] = self._in_order(found)
        self._built: dict[Point, BuiltPoint] = {}
        self._uncompiled = 0
        #: Those that can run, in the order of the candidates: compilers on several cores end in any order.
        self.points: list[Point] = []
        self._asked: set[Point] = set()
        self._counted: set[Point] = set()
        self._features = self._guesses = np.zeros(0)
        #: What came of each point that was begun.
        self.measured: dict[Point, Measurement] = {}

    def _in_order(self, found: list[Candidate]) -> list[Candidate]:
        """The defaults first, the others in an order that favours nothing: time may not suffice for all."""
        defaults = [one for one in found if one.point in self._defaults]
        others = [one for one in found if one.point not in self._defaults]
        random.Random(self._seed).shuffle(others)
        return defaults + others

    def built(self, candidate: Candidate, measurement: Measurement) -> None:
        """Take what the compiler made of a candidate; it is ruled out where it cannot run, or spills much."""
        resources, occupancy = measurement.resources, measurement.occupancy
        if resources is None:
            rule_out(self._ruled_out, measurement.reason or "It could not be compiled.")
        elif occupancy is None:
            # Without what is true of one point only.
            text, words = measurement.occupancy_reason or "", ("shared memory", "registers", "threads")
            lacking = next((word for word in words if word in text.lower()), "room")
            rule_out(self._ruled_out, f"No block fits on an SM: too little {lacking}.")
        elif (largest := candidate.configured.largest).cooperative and (
            math.prod(largest.grid) > occupancy.blocks_per_sm * self._device.sm_count
        ):
            rule_out(self._ruled_out, _COOPERATIVE)
        elif (resources.spill_bytes or 0) > MOST_SPILL_BYTES and candidate.point not in self._defaults:
            rule_out(self._ruled_out, _SPILLS)
        else:
            self._built[candidate.point] = BuiltPoint(candidate, measurement)

    def begin(self, uncompiled: int) -> None:
        """All was compiled but for so many candidates, for want of time: the search can begin."""
        self._uncompiled = uncompiled
        self.points = [one.point for one in self.candidates if one.point in self._built]
        self._features = features_of([self._built[point] for point in self.points], self._device)
        self.rank()

    def rank(self) -> None:
        """Guess what each point takes: as modelled, carried on to the points that were not counted."""
        cases = [self._built[point].measurement for point in self.points]
        by = basis_of(cases)
        guesses = [_guess(case, by) for case in cases]
        self._guesses = corrected(self._features, np.zeros(len(cases)), guesses)

    def to_count(self, most: int) -> list[BuiltPoint]:
        """The points to count next, each once; first in the order of the candidates, which favours none.

        Later a quarter of them are neighbours of the fastest: sums do not tell what two values do together.
        """
        order = self._ranked() if self._asked else self.points
        left = [point for point in order if point not in self._asked]
        near: list[Point] = []
        for fast in (point for point in order if point in self._asked):
            if len(near) >= most // 4:
                break
            near += [point for point in left if point.is_near(fast) and point not in near]
        found = [*dict.fromkeys((*near[: most // 4], *left))][:most]
        self._asked.update(found)
        return [self._built[point] for point in found]

    def counted(self, point: Point, measurement: Measurement) -> None:
        """Take a point's bounds and model; a point that could not be counted is ranked without."""
        self._built[point] = BuiltPoint(self._built[point].candidate, measurement)
        self._counted.add(point)

    def is_counted(self, point: Point) -> bool:
        return point in self._counted

    def with_counts(self, point: Point, measurement: Measurement) -> Measurement:
        """What was measured of a point, with what was counted of it before, or why nothing was."""
        known = self._built[point].measurement
        if measurement.outcome != "ok" or point not in self._counted:
            return measurement
        return counted_as(measurement, known, self._device)

    def _expected(self) -> Vector:
        """What each point takes in microseconds, as far as is known."""
        by = self._by
        known = {point: value_of(case, by) for point, case in self.measured.items()}
        times = [known.get(point) for point in self.points]
        found: Vector = np.exp(corrected(self._features, self._guesses, times))
        return found

    def _ranked(self) -> list[Point]:
        """All points, the fastest first; of equals the first among the candidates."""
        return [self.points[index] for index in np.argsort(self._expected(), kind="stable")]

    def next_cases(self, budget: int, batch: int) -> list[Case]:
        """The cases to measure next, none where the search at this size is done; `budget` may end well."""
        by = self._by
        used = sum(1 for case in self.measured.values() if value_of(case, by) is not None)
        count = min(batch, budget - used, _PATIENCE * budget - len(self.measured))
        ranked = self._ranked() if count > 0 else []
        # Of many kernels' defaults those that are thought to be fastest: others are worth the budget too.
        tried = sum(1 for point in self._defaults if point in self.measured)
        own = [point for point in ranked if point in self._defaults and point not in self.measured]
        order = dict.fromkeys((*own[: max(0, max(1, budget // 2) - tried)], *ranked))
        return [self.case_of(point) for point in order if point not in self.measured][: max(0, count)]

    def case_of(self, point: Point) -> Case:
        return self._built[point].candidate.case

    def tell(self, point: Point, measurement: Measurement) -> None:
        """Take what came of a point; its modelled time stands beside a measured one."""
        counted = self._built[point].measurement
        if measurement.model is None and measurement.outcome == "ok" and counted.model is not None:
            measurement = replace(measurement, model=counted.model, model_reason=None)
        self.measured[point] = measurement

    def recall(self, point: Point, measurement: Measurement) -> bool:
        """Take what an earlier part of the search measured; False for a point that is not searched now."""
        if point in self._built:
            self.tell(point, measurement)
        return point in self._built

    def survivors(self) -> list[Point]:
        """Points near the best, to be measured at length."""
        return self._nearest(_NEAR, _SURVIVORS)

    def finalists(self) -> list[Point]:
        """Points so close to the best that rounds must tell; none where one is in front alone."""
        found = self._nearest(CLOSE, _FINALISTS)
        return found if len(found) > 1 else []

    def _nearest(self, share: float, most: int) -> list[Point]:
        by = self._by
        values = {point: value for point, case in self._known().items() if (value := value_of(case, by))}
        order = sorted(values, key=lambda point: values[point])
        return [point for point in order if values[point] <= values[order[0]] * (1 + share)][:most]

    @property
    def _by(self) -> By:
        return "time" if self._timed else basis_of(self.measured.values())

    def cases(self) -> list[Measurement]:
        """What was measured: the best first, those without a figure last."""
        by = self._by
        return sorted(self._known().values(), key=lambda case: value_of(case, by) or float("inf"))

    def _known(self) -> dict[Point, Measurement]:
        """What was measured, in the order of the candidates: several cards and cores end in any order."""
        order = (one.point for one in self.candidates)
        return {point: self.measured[point] for point in order if point in self.measured}

    def record(self) -> Tuned:
        expected = dict(zip(self.points, self._expected().tolist(), strict=True))
        by, judged = self._by, self._known()
        if by == "time":
            finalists = self.finalists() or self._nearest(0.0, 1)
            judged = {point: self.measured[point] for point in finalists}
        return Tuned(
            problem=self.problem.record(),
            combinations=self._combinations,
            ruled_out=dict(self._ruled_out.most_common()),
            uncompiled=self._uncompiled,
            by=by,
            evaluated=len(self.measured),
            ties=tuple(point.record(expected.get(point)) for point in tied(judged, by)),
            ranked=tuple(
                point.record(expected[point] if self.measured else None)
                for point in self._ranked()[:_MOST_RANKED]
            ),
            device=self._number,
        )


def _guess(case: Measurement, by: By) -> float | None:
    """What a point may take, to be compared with others and not with a clock; None if that is not known.

    A part at its limit makes many modelled times alike: what the other parts have to do tells them apart.
    """
    us = value_of(case, by)
    others = sorted(bound.least_us for bound in case.bounds.values())[:-1]
    return math.hypot(us, *others) if us is not None else None


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
                step=step,
            )
            for problem in problems
        ]
        #: References; those that run on the host are the same beside every device.
        self.reference_cases = [
            Case(reference.id, problem.with_options(reference.options), (1, 1, 1), device=card.number)
            for problem in problems
            for reference in (request.references if self.timed else ())
            if card.number == 0 or not reference.on_host
        ]
        #: What came of the references.
        self.references: list[Measurement] = []

    def left(self) -> int:
        """Points that the budget still allows."""
        budget = self._plan.points
        return sum(
            max(0, min(budget, len(size.candidates)) - len(size.measured))
            for size in self.sizes
            if self.card.lost is None
        )

    def explore(self, seconds: float | None) -> None:
        """Measure point after point, each where most is hoped for.

        After so many seconds none is begun but the first, for there to be an answer.
        """
        until = math.inf if seconds is None else time.monotonic() + seconds
        workers = len(self._cards.transports(self.card))
        # As few at a time as can be, where time may end.
        batch = workers if seconds is not None else max(FIRST_BATCH, 0 if self.timed else workers)
        begun: list[tuple[SizeSearch, Case]] = []

        def more() -> dict[int, Case]:
            nonlocal batch
            first = len(begun)
            if time.monotonic() < until or not self.sizes[-1].measured:
                begun.extend(
                    (size, case) for size in self.sizes for case in size.next_cases(self._plan.points, batch)
                )
            batch = BATCH if self.timed else workers
            return {index: begun[index][1] for index in range(first, len(begun))}

        def measured(index: int, measurement: Measurement) -> None:
            size, case = begun[index]
            assert case.kernel is not None
            size.tell(Point.of(case.kernel, case.params, case.block), measurement)
            self._measured(measurement)

        self._run(more(), measured, self._plan.options.seconds_per_case * _SHORT, more=more)

    def survivors(self) -> list[_Place]:
        """Points near the best, at all sizes."""
        return [(size, point) for size in self.sizes for point in size.survivors()]

    def finalists(self) -> list[_Place]:
        """Points that only rounds can tell apart, at all sizes."""
        return [(size, point) for size in self.sizes for point in size.finalists()]

    def measure_survivors(self) -> None:
        """Measure the points near the best once more and for longer, and what they are compared with."""
        places = sorted(self.survivors(), key=lambda place: not place[0].is_counted(place[1]))
        known = sum(size.is_counted(point) for size, point in places)

        def measured(index: int, measurement: Measurement) -> None:
            if index < len(places):
                size, point = places[index]
                size.tell(point, size.with_counts(point, measurement))
            else:
                self.references.append(measurement)
            self._step()

        def counted(index: int, measurement: Measurement) -> None:
            places[index][0].tell(places[index][1], measurement)

        cases = dict(enumerate([size.case_of(point) for size, point in places] + self.reference_cases))
        uncounted = {index: cases.pop(index) for index in range(known, len(places))}
        self._run(cases, measured, self._plan.options.seconds_per_case)
        self._run(uncounted, measured, self._plan.options.seconds_per_case, counted)

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

            cases = [size.case_of(point) for size, point in order]
            self._run(dict(enumerate(cases)), measured, seconds)

    def _run(
        self,
        cases: Mapping[int, Case],
        on_done: OnCase,
        seconds: float,
        on_counted: OnCase | None = None,
        more: Callable[[], Mapping[int, Case]] = dict,
    ) -> None:
        """Measure cases in processes that no other stage uses; a device that is lost costs only its own."""
        if not cases or self.card.lost is not None:
            return
        request = replace(self.card.request, seconds_per_case=seconds)
        transports = self._cards.transports(self.card)
        with self._cards.losing(self.card):
            run_cases(cases, None, request, on_done, transports=transports, on_counted=on_counted, more=more)
