# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A search from its plan to its run: rule out, compile, count, time, and let the closest meet in rounds.

Sizes go through every stage together, so that one process of the GPU serves them all; a point is timed
briefly first, at length when it is near the best, and in rounds when it is so close that only those tell.
Several devices go through a stage side by side, each with its own points.
"""

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from gpuprof.backends.base import Findings
from gpuprof.devices.device import Device
from gpuprof.errors import InputError
from gpuprof.machine import usable_cores
from gpuprof.measure.case import Case, unmeasured
from gpuprof.measure.counting import OnCase, findings_in, with_counts
from gpuprof.measure.pool import Pool
from gpuprof.measure.process import ExecutorProcess
from gpuprof.measure.protocol import (
    Build,
    Count,
    Measured,
    Open,
    Prepare,
)
from gpuprof.measure.resume import asked
from gpuprof.measure.run import Keep, Progress, empty_run_on
from gpuprof.measure.side_by_side import Cards
from gpuprof.records import grouped, replace
from gpuprof.results import Measurement, Run, Tuning
from gpuprof.store import ResultsFile
from gpuprof.tuning.card_search import CardSearch
from gpuprof.tuning.space import USUAL_POINTS, BuiltPoint, Plan, Point

#: Points whose launches take a second or more to work out, of which a user is told.
MANY = 4_000
#: The longest that compiling one case may take, and counting it.
_LONGEST_BUILD_S = 60.0
_LONGEST_COUNT_S = 20.0
#: Memory holds so many executors besides what else runs.
_MOST_WORKERS = 32
#: Cases that a worker takes at a time to count: their machine code is disassembled together, which takes
#: little longer than that of one.
_TOGETHER = 8
#: For each of them the time that must be left, so that none is begun late.
_PREPARED_S = 4.0


class WorkerPool:
    """Executors, one on each core."""

    def __init__(self, device: Device, run: Open, workers: int | None = None) -> None:
        self._device, request = device, replace(run, executes=device)
        self._count = min(_MOST_WORKERS, workers or usable_cores())
        self._pool = Pool([ExecutorProcess(request) for _ in range(self._count)], ahead=False)

    def __enter__(self) -> "WorkerPool":
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    def build(self, cases: Sequence[Case], on_done: OnCase, until: float) -> int:
        """Compile cases in order and tell what they occupy.

        `on_done` is called with a case's index and what is known of it, from one thread at a time; its reason
        says why one cannot run. After `until`, by the monotonic clock, no further one is begun.

        Returns:
            How many were begun.

        Raises:
            KeyboardInterrupt: The run was asked to end.
        """

        def done(index: int, answer: Measured | str) -> None:
            case = cases[index]
            if isinstance(answer, str):
                why = f"It could not be compiled: {answer}."
                on_done(index, unmeasured(case, case.kernel, "failed", why, "it was not compiled"))
            else:
                on_done(index, answer.measurement)

        return self._each(cases, Build, _LONGEST_BUILD_S, done, until)

    def count(self, built: Sequence[tuple[Case, Measurement]], on_done: OnCase, until: float) -> int:
        """Count cases that `build` told of, as it does: with bounds and model, or why there are none."""

        def done(index: int, answer: Findings | str) -> None:
            found = findings_in(answer)
            known = built[index][1] if found.reason else replace(built[index][1], outcome="ok", reason=None)
            on_done(index, with_counts(known, found, self._device))

        most = min(_TOGETHER, len(built) // (2 * self._count), int((until - time.monotonic()) / _PREPARED_S))
        together = max(1, most)
        return self._each([case for case, _ in built], Count, _LONGEST_COUNT_S, done, until, together)

    def _each(
        self,
        cases: Sequence[Case],
        request_of: Callable[[Case], Any],
        seconds: float,
        on_done: Callable[[int, Any], None],
        until: float,
        together: int = 1,
    ) -> int:
        """Ask about each case; the answer, or why there is none, goes to `on_done`.

        A process is given some at a time, to prepare them together.
        """
        lock = threading.Lock()
        begun = 0

        def is_over() -> bool:
            return self._pool.closed or time.monotonic() >= until

        def serve(indices: range, process: ExecutorProcess) -> None:
            nonlocal begun
            if len(indices) > 1 and not is_over():
                process.tell(Prepare.of((cases[index] for index in indices), self._device))
            for index in indices:
                if is_over():
                    break
                with lock:
                    begun += 1
                answer = process.answer(request_of(cases[index]), seconds)
                if not self._pool.closed:
                    with lock:
                        on_done(index, answer)

        for first in range(0, len(cases), together):
            indices = range(first, min(first + together, len(cases)))
            self._pool.add(cases[first].name, partial(serve, indices))
        self._pool.settle()
        return begun


#: Points of each size that are counted for each one that may be timed, and those that are counted at a time.
COUNTED, ROUND = 10, 24
#: The longest that compiling goes on for one kind of device, and that counting does: what a usual budget
#: allows, and a larger one too.
COMPILE_SECONDS, COUNT_SECONDS = 240.0, 120.0
#: The share of the time that is left which each of the two may take.
_SHARE = 0.4
#: What was asked for that may be otherwise when a search goes on; its kernels stand in the place of points.
_MAY_CHANGE = ("kernel", "sizes", "block", "reference", "seconds", "rounds", "sim-blocks", "lines", "arrays")


class Tuner:
    """A search under way.

    `keep` opens the results file, given the run before its first case; without it there is none. `earlier` is
    asked with the empty run what an earlier part of the same search measured.

    Raises:
        InputError: A size does not fit in memory, the device only compiles, or the results cannot be
            written.
        BackendUnavailable: A device cannot be used.
    """

    def __init__(
        self,
        plan: Plan,
        watcher: Progress,
        *,
        argv: tuple[str, ...] = (),
        keep: Keep | None = None,
        earlier: Callable[[Run], Sequence[Measurement]] = lambda run: (),
    ) -> None:
        options, self._plan, self._watcher = plan.options, plan, watcher
        self._kernels = {axes.kernel.id: axes.kernel for axes in plan.space.axes}
        self._begun_s = time.monotonic()
        self._lock = threading.Lock()
        self._file: ResultsFile | None = None
        self._cards = Cards(plan.request, options, reach=True)
        request = self._cards.request
        try:
            if self._cards.cards[0].opened.backend == "none":
                raise InputError(
                    "--device none only compiles, and a search needs times or counts.",
                    fix="Use --device sim where there is no GPU.",
                )
            points = plan.space.count * len(request.sizes) * len(self._cards.cards)
            if points > MANY:
                watcher.stage("Checking combinations", points)
            self._searches = [
                CardSearch(self._cards, card, plan, self._keep_measured, self._step)
                for card in self._cards.cards
            ]
            run = empty_run_on(self._cards, options, argv)
            records = tuple(one for one in run.kernels if one.id in self._kernels or one.is_reference)
            decides = {
                name: text for name, text in asked(request, options).items() if name not in _MAY_CHANGE
            }
            self._empty = replace(
                run,
                kernels=records,
                tuning=self._tuning(finished=False),
                asked={"kernel": " ".join(self._kernels), **decides},
            )
            watcher.opened(run, 0)
            for card in self._cards.cards:
                card.close()  # compiling comes first, and needs the memory of no device
            #: What was measured earlier and belongs to no point that is searched now: it is kept as it is.
            self._left_over = list(earlier(self._empty))
            # They are in the new file from its first moment: a kill right after it has lost nothing.
            self._file = keep(replace(self._empty, cases=tuple(self._left_over))) if keep else None
        except BaseException:
            self._cards.close()
            raise

    def __enter__(self) -> "Tuner":
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file, and give the devices back."""
        if self._file is not None:
            self._file.close()
        self._cards.close()

    def search(self) -> Run:
        """Go through every stage.

        Returns:
            The run; its `complete` is False after Ctrl-C, and it holds what was found until then.

        Raises:
            GpuprofError: A worker of the only device cannot be replaced.
        """
        try:
            for alike in self._kinds():
                self._compile_and_count(alike)
            self._left_over = [case for case in self._left_over if not self._is_recalled(case)]
            self._explore()
            if self._searches[0].timed:
                self._measure_survivors()
                self._measure_in_rounds()
        except KeyboardInterrupt:
            return self._finish(complete=False)
        return self._finish(complete=True)

    def _keep_measured(self, measurement: Measurement) -> None:
        """Keep a point that was measured for the first time."""
        with self._lock:
            if self._file is not None:
                self._file.append(measurement)
            self._watcher.step()

    def _step(self) -> None:
        with self._lock:
            self._watcher.step()

    def _kinds(self) -> list[list[CardSearch]]:
        """Searches on devices of one kind: what is compiled and counted for one holds for the others."""
        devices = [search.card.opened.device for search in self._searches]
        kinds = grouped(self._searches, lambda search: devices.index(search.card.opened.device))
        return [*kinds.values()]

    def _compile_and_count(self, alike: Sequence[CardSearch]) -> None:
        """Compile every candidate, and count what time allows."""
        lead = alike[0]
        places = _round_robin([len(size.candidates) for size in lead.sizes])
        with WorkerPool(lead.card.opened.device, lead.card.request) as pool:
            seconds = self._longest_s(COMPILE_SECONDS)
            self._watcher.stage("Compiling", len(places), seconds)

            def built(index: int, measurement: Measurement) -> None:
                number, place = places[index]
                for search in alike:
                    size = search.sizes[number]
                    size.built(size.candidates[place], measurement)
                self._step()

            cases = [lead.sizes[number].candidates[place].case for number, place in places]
            done = pool.build(cases, built, time.monotonic() + seconds)
            for search in alike:
                for number, size in enumerate(search.sizes):
                    size.begin(sum(1 for one, _ in places[done:] if one == number))
            self._count(pool, alike)

    def _count(self, pool: WorkerPool, alike: Sequence[CardSearch]) -> None:
        """Count points in rounds: in each those that are thought to be fastest by what the others told."""
        sizes, most = alike[0].sizes, COUNTED * self._plan.points
        seconds = self._longest_s(COUNT_SECONDS)
        self._watcher.stage("Counting", sum(min(most, len(size.points)) for size in sizes), seconds)
        until = time.monotonic() + seconds
        for begun in range(0, most, ROUND):
            points = [size.to_count(min(ROUND, most - begun)) for size in sizes]
            order = [(number, points[number][place]) for number, place in _round_robin([*map(len, points)])]
            if not order or time.monotonic() >= until:
                return

            def counted(
                index: int, measurement: Measurement, order: Sequence[tuple[int, BuiltPoint]] = order
            ) -> None:
                number, one = order[index]
                for search in alike:
                    search.sizes[number].counted(one.candidate.point, measurement)
                self._step()

            pool.count([(one.candidate.case, one.measurement) for _, one in order], counted, until)
            for search in alike:
                for size in search.sizes:
                    size.rank()

    def _is_recalled(self, case: Measurement) -> bool:
        """Take over what an earlier part of the same search measured; False where nothing searches it now."""
        kernel = self._kernels.get(case.kernel)
        return kernel is not None and any(
            size.recall(Point.of(kernel, case.params, case.block), case)
            for size in self._searches[case.device].sizes
            if case.problem.sizes == size.problem.record().sizes
        )

    def _explore(self) -> None:
        """Measure point after point on every device."""
        title = "Timing" if self._searches[0].timed else "Executing"
        self._watcher.stage(title, sum(search.left() for search in self._searches))
        seconds = self._left_s()
        self._together(lambda search: search.explore(seconds))

    def _longest_s(self, seconds: float) -> float:
        """What a stage may take that may take so long with a usual budget."""
        left, points = self._left_s(), self._plan.points
        seconds *= min(1.0, points / USUAL_POINTS)
        return seconds if left is None else min(seconds, left * _SHARE)

    def _left_s(self) -> float | None:
        seconds = self._plan.seconds
        return None if seconds is None else max(0.0, self._begun_s + seconds - time.monotonic())

    def _measure_survivors(self) -> None:
        """Measure the points near the best once more and for longer, and what they are compared with."""
        steps = sum(len(search.survivors()) + len(search.reference_cases) for search in self._searches)
        self._watcher.stage("Measuring the best", steps)
        self._together(CardSearch.measure_survivors)

    def _measure_in_rounds(self) -> None:
        meeting = sum(len(search.finalists()) for search in self._searches)
        self._watcher.stage("Rounds among the closest", (self._plan.options.rounds - 1) * meeting)
        self._together(CardSearch.measure_in_rounds)

    def _together(self, work: Callable[[CardSearch], None]) -> None:
        self._cards.together(lambda card: work(self._searches[card.number]))

    def _tuning(self, *, finished: bool) -> Tuning:
        axes = self._plan.space.axes
        found = [size.record() for search in self._searches for size in search.sizes] if finished else []
        return Tuning(
            values={each.kernel.id: each.searched for each in axes},
            blocks={each.kernel.id: each.blocks for each in axes if len(each.blocks) > 1},
            budget=self._plan.points,
            sizes=tuple(found),
        )

    def _finish(self, *, complete: bool) -> Run:
        """The run, in its file too: device by device, size by size, the best first, references last."""
        cases: list[Measurement] = []
        others = list(self._left_over)
        for search in self._searches:
            number = search.card.number
            for size in search.sizes:
                own = size.problem.record().sizes
                kept = [case for case in others if (case.device, case.problem.sizes) == (number, own)]
                others = [case for case in others if case not in kept]
                cases += size.cases()
                cases += [*kept, *(case for case in search.references if case.problem.sizes == own)]
        run = replace(
            self._empty,
            cases=(*cases, *others),
            complete=complete,
            places=self._cards.places(),
            tuning=self._tuning(finished=True),
        )
        if self._file is not None:
            self._file.finish(run)
        return run


def _round_robin(counts: Sequence[int]) -> list[tuple[int, int]]:
    """The first of each list, then the second of each, and so on: the list's number, and the place in it."""
    longest = max(counts, default=0)
    return [(number, place) for place in range(longest) for number, held in enumerate(counts) if place < held]
