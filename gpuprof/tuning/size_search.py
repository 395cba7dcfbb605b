# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The search at one size: its candidates, what is known of each, and what is asked of them next."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpuprof.devices.device import Device
from gpuprof.measure.case import Case
from gpuprof.problems.problem import Problem
from gpuprof.results import Measurement, Tuned
from gpuprof.tuning.built import Built
from gpuprof.tuning.features import bounded, estimated, features_of, sketch, with_work
from gpuprof.tuning.search import PROMISING, Search
from gpuprof.tuning.space import Candidate, Point, Space, rule_out
from gpuprof.tuning.ties import bound_of, tied_by_bound, tied_by_time, value_of

#: Spilled bytes of a thread, stores and loads, from which a point is not worth a launch.
MOST_SPILL_BYTES = 128
_SPILLS = f"It spills more than {MOST_SPILL_BYTES} bytes of registers per thread."
#: Points that the model ranks and a results file keeps.
_MOST_RANKED = 200
#: Of points within this share of the best, so many are measured at length, and so many in rounds.
_NEAR, _SURVIVORS = 0.12, 6
CLOSE, _FINALISTS = 0.04, 4
#: Points that may turn out wrong, for each one that may be timed.
_PATIENCE = 2


class SizeSearch:
    """One size of a search.

    Args:
        space: Among what.
        problem: What is computed.
        device: Where.
        seed: Of the order in which candidates are compiled, and of choices among equals.
        timed: Whether times decide, not bounds.
        number: Which of the run's devices it is.
    """

    def __init__(
        self, space: Space, problem: Problem, device: Device, seed: int, *, timed: bool, number: int = 0
    ) -> None:
        self.problem = problem
        self._device = device
        self._seed = seed
        self._timed = timed
        self._number = number
        self._combinations = space.count
        self._defaults = [axes.default for axes in space.axes]
        found, self._ruled_out = space.allowed(problem, device)
        found = [replace(one, case=replace(one.case, device=number)) for one in found]
        self.candidates: list[Candidate] = self._in_order(found)
        self._built: dict[Point, Built] = {}
        self._uncompiled = 0
        self._points: list[Point] = []
        self._search: Search | None = None
        self._begun: set[Point] = set()
        #: What came of each point that was begun.
        self.measured: dict[Point, Measurement] = {}
        self._finals: dict[Point, Measurement] = {}

    def _in_order(self, found: list[Candidate]) -> list[Candidate]:
        """The defaults first, the others in an order that favours nothing: time may not suffice for all."""
        defaults = [one for one in found if one.point in self._defaults]
        others = [one for one in found if one.point not in self._defaults]
        random.Random(self._seed).shuffle(others)
        return defaults + others

    def built(self, candidate: Candidate, measurement: Measurement) -> None:
        """Take what the compiler made of a candidate; it is ruled out where it cannot run, or spills much."""
        resources = measurement.resources
        if resources is None:
            rule_out(self._ruled_out, measurement.reason or "It could not be compiled.")
        elif measurement.occupancy is None:
            lacking = _lacking(measurement.occupancy_reason)
            rule_out(self._ruled_out, f"No block fits on an SM: too little {lacking}.")
        elif resources.spill_bytes > MOST_SPILL_BYTES and candidate.point not in self._defaults:
            rule_out(self._ruled_out, _SPILLS)
        else:
            self._built[candidate.point] = Built(candidate, measurement)

    def begin(self, uncompiled: int) -> None:
        """All that is to be compiled was; the search can begin.

        Args:
            uncompiled: How many candidates were left for want of time.
        """
        self._uncompiled = uncompiled
        # In the order of the candidates: compilers on several cores end in any order.
        self._points = [one.point for one in self.candidates if one.point in self._built]
        self._rank()

    def to_count(self, most: int) -> list[Built]:
        """Points whose counts tell most of the others: promising ones that lie apart."""
        return [self._built[point] for point in self._proposed(most)]

    def rest_to_count(self) -> list[Built]:
        """All points whose bounds are not known, those first that are thought to be fastest."""
        expected = self._search.expected() if self._search else np.zeros(0)
        order = (self._built[self._points[index]] for index in np.argsort(expected, kind="stable"))
        return [one for one in order if one.bound_us is None]

    def counted(self, point: Point, measurement: Measurement) -> None:
        """Take a point's bounds; a point that could not be counted is ranked without."""
        self._built[point] = Built(self._built[point].candidate, measurement)

    def rank_by_bounds(self) -> None:
        """From here on guesses follow from the bounds that are known."""
        self._rank()

    def _rank(self) -> None:
        if not self._points:
            return
        built = [self._built[point] for point in self._points]
        features, guess = features_of(built, self._device), sketch(built, self._device)
        first = [index for index, point in enumerate(self._points) if point in self._defaults]
        promising = PROMISING if any(one.bound_us for one in built) else 1.0
        # What is asked for is a time where times decide, else a bound.
        prior = (
            estimated(built, self._device, features, guess)
            if self._timed
            else bounded(built, features, guess)
        )
        self._search = Search(with_work(built, features), prior, first, self._seed, promising)
        for point, measurement in self.measured.items():
            self._tell(point, measurement)

    def _proposed(self, count: int) -> list[Point]:
        return [self._points[index] for index in self._search.propose(count)] if self._search else []

    def next_cases(self, budget: int, batch: int) -> list[Case]:
        """The cases to measure next, none where the search at this size is done.

        Args:
            budget: Points that may end well.
            batch: Most at once.
        """
        used = sum(1 for case in self.measured.values() if self._value(case) is not None)
        count = min(batch, budget - used, _PATIENCE * budget - len(self.measured))
        points = self._proposed(count) if count > 0 else []
        self._begun |= set(points)
        return [self.case_of(point) for point in points]

    def case_of(self, point: Point) -> Case:
        """What measures a point."""
        return self._built[point].candidate.case

    def tell(self, point: Point, measurement: Measurement) -> None:
        """Take what came of a point."""
        self.measured[point] = measurement
        self._tell(point, measurement)

    def _tell(self, point: Point, measurement: Measurement) -> None:
        if self._search is not None and point in self._built:
            self._search.tell(self._points.index(point), self._value(measurement))

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
        values = {point: value for point, case in self._known().items() if (value := self._value(case))}
        order = sorted(values, key=lambda point: values[point])
        return [point for point in order if values[point] <= values[order[0]] * (1 + share)][:most]

    def _value(self, case: Measurement) -> float | None:
        return value_of(case, timed=self._timed)

    def cases(self) -> list[Measurement]:
        """What was measured: the best first, those without a figure last."""
        return sorted(self._known().values(), key=lambda case: self._value(case) or float("inf"))

    def _known(self) -> dict[Point, Measurement]:
        """What was measured, in the order of the candidates: several cards and cores end in any order."""
        order = (one.point for one in self.candidates)
        return {point: self.measured[point] for point in order if point in self.measured}

    def record(self) -> Tuned:
        """What was found so far."""
        expected = [] if self._search is None else self._search.expected().tolist()
        order = sorted(range(len(self._points)), key=lambda index: expected[index])
        if self._timed:
            finalists = self.finalists() or self._nearest(0.0, 1)
            ties = tied_by_time({point: self.measured[point] for point in finalists})
        else:
            bounds = {point: bound for point, case in self._known().items() if (bound := bound_of(case))}
            ties = tied_by_bound(bounds)
        known = bool(self.measured)
        return Tuned(
            problem=self.problem.record(),
            combinations=self._combinations,
            ruled_out=dict(self._ruled_out.most_common()),
            uncompiled=self._uncompiled,
            by="time" if self._timed else "bound",
            evaluated=len(self.measured),
            ties=tuple(point.record(self._expected(point, expected)) for point in ties),
            ranked=tuple(
                self._points[index].record(float(expected[index]) if known else None)
                for index in order[:_MOST_RANKED]
            ),
            device=self._number,
        )

    def _expected(self, point: Point, expected: Sequence[float]) -> float | None:
        return float(expected[self._points.index(point)]) if point in self._built else None

    @property
    def ruled_out(self) -> Counter[str]:
        """How many points cannot run, by the reason."""
        return self._ruled_out


def _lacking(reason: str | None) -> str:
    """What a block needs too much of, without what is true of one point only."""
    text = (reason or "").lower()
    return next((word for word in ("shared memory", "registers", "threads") if word in text), "room")
