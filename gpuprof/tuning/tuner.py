# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A search from its plan to its run: rule out, compile, count, time, and let the closest meet in rounds.

Sizes go through every stage together, so that one process of the GPU serves them all; a point is timed
briefly first, at length when it is near the best, and in rounds when it is so close that only those tell.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from gpuprof.errors import BackendUnavailable
from gpuprof.machine import usable_cores
from gpuprof.measure.case import Case
from gpuprof.measure.plan import check_memory
from gpuprof.measure.process import WorkerDied, WorkerProcess, WorkerTimeout
from gpuprof.measure.protocol import Open, OpenExecutor, Size
from gpuprof.measure.request import without_poison
from gpuprof.measure.run import Keep, empty_run
from gpuprof.measure.session import SessionOptions, run_cases
from gpuprof.measure.transport import HERE
from gpuprof.results import Measurement, Run, Tuning
from gpuprof.statistics import with_round
from gpuprof.store import ResultsFile
from gpuprof.tuning.crew import Crew
from gpuprof.tuning.search_plan import Plan, Watcher
from gpuprof.tuning.size_search import SizeSearch
from gpuprof.tuning.space import Candidate, Point, point_of, point_of_case

#: Time after which nothing further is compiled; what was is kept for the next time.
COMPILE_SECONDS = 240.0
#: Time after which nothing further is counted before timing begins, and points counted at each size.
COUNT_SECONDS = 60.0
COUNTED = 24
#: Points in the first batch and in each that follows.
FIRST_BATCH, BATCH = 6, 2
#: The share of a case's time that its first, short measurement gets.
_SHORT = 0.2

OnCase = Callable[[int, Measurement], None]
_Place = tuple[SizeSearch, Point]


class Tuner:
    """A search under way.

    Args:
        plan: What is asked for.
        watcher: Told how far it is.
        argv: The command line, for the record.
        keep: Opens the results file, given the run before its first case; without, there is none.
        earlier: Called with the empty run: what an earlier part of the same search measured.

    Raises:
        InputError: A size does not fit in memory, or the results cannot be written.
        BackendUnavailable: The device cannot be used.
    """

    def __init__(
        self,
        plan: Plan,
        watcher: Watcher,
        *,
        argv: tuple[str, ...] = (),
        keep: Keep | None = None,
        earlier: Callable[[Run], Sequence[Measurement]] = lambda run: (),
    ) -> None:
        options, self._plan, self._watcher = plan.options, plan, watcher
        self._request = request = plan.request if options.poison_inout else without_poison(plan.request)
        self._kernels = {axes.kernel.id: axes.kernel for axes in plan.space.axes}
        self._begun_s = time.monotonic()
        self._open = Open(
            device=options.device,
            arch=options.arch,
            seed=options.seed,
            seconds_per_case=options.seconds_per_case,
            sim_blocks=options.sim_blocks,
            libraries=tuple(dict.fromkeys(reference.library for reference in request.references)),
        )
        problems = [request.problem(size, {}) for size in request.sizes]
        worker = WorkerProcess(self._open)
        try:
            self.opened = worker.opened
            sized = worker.ask(Size(tuple(problems)), options.timeout_s)
            check_memory(problems, sized.bytes_needed, self.opened.memory_budget_bytes)
        except (WorkerDied, WorkerTimeout) as error:
            raise BackendUnavailable(f"The worker process was lost at the start: {error}.") from error
        finally:
            worker.close()
        self._timed = self.opened.backend == "gpu"
        watcher.opened(self.opened)
        fitting = self.opened.memory_budget_bytes // max(1, *sized.bytes_needed)
        self._workers = 1 if self._timed else max(1, min(usable_cores(), fitting))
        self._sizes = [
            SizeSearch(plan.space, problem, self.opened.device, options.seed, timed=self._timed)
            for problem in problems
        ]
        self._references: list[Measurement] = []
        run = empty_run(request, options, self.opened, argv)
        kernels = tuple(record for record in run.kernels if record.id in self._kernels or record.is_reference)
        self._empty = replace(run, kernels=kernels, tuning=self._tuning(finished=False))
        #: What was measured earlier and belongs to no point that is searched now: it is kept as it is.
        self._left_over = list(earlier(self._empty))
        self._file: ResultsFile | None = keep(self._empty) if keep else None
        if self._file is not None:
            for case in self._left_over:
                self._file.append(case)

    def __enter__(self) -> "Tuner":
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def search(self) -> Run:
        """Go through every stage.

        Returns:
            The run; its `complete` is False after Ctrl-C, and it holds what was found until then.

        Raises:
            GpuprofError: A worker cannot be replaced.
        """
        try:
            self._compile_and_count()
            self._recall()
            self._explore()
            if self._timed:
                self._measure_survivors()
                self._measure_in_rounds()
        except KeyboardInterrupt:
            return self._finish(complete=False)
        return self._finish(complete=True)

    def _compile_and_count(self) -> None:
        """Compile every candidate, and count some of them where times will decide."""
        places = [
            (size, candidate)
            for row in _in_turns([size.candidates for size in self._sizes])
            for size, candidate in ((self._sizes[number], one) for number, one in row)
        ]
        options = self._plan.options
        request = OpenExecutor(self.opened.device, options.seed, sim_blocks=options.sim_blocks)
        with Crew(request) as crew:
            self._watcher.stage("Compiling", len(places))

            def built(index: int, measurement: Measurement) -> None:
                size, candidate = places[index]
                size.built(candidate, measurement)
                self._watcher.step()

            until = time.monotonic() + COMPILE_SECONDS
            done = crew.build([candidate.case for _, candidate in places], built, until)
            for size in self._sizes:
                size.begin(sum(1 for place in places[done:] if place[0] is size))
            if self._timed:
                self._count(crew)

    def _count(self, crew: Crew) -> None:
        points = [(size, built) for size in self._sizes for built in size.to_count(COUNTED)]
        self._watcher.stage("Counting", len(points))

        def counted(index: int, measurement: Measurement) -> None:
            size, built = points[index]
            size.counted(built, measurement)
            self._watcher.step()

        cases = [(built.candidate.case, built.measurement) for _, built in points]
        crew.count(cases, counted, time.monotonic() + COUNT_SECONDS)
        for size in self._sizes:
            size.rank_by_bounds()

    def _recall(self) -> None:
        """Take over what an earlier part of the same search measured."""
        self._left_over = [case for case in self._left_over if not self._is_recalled(case)]

    def _is_recalled(self, case: Measurement) -> bool:
        kernel = self._kernels.get(case.kernel)
        return kernel is not None and any(
            size.recall(point_of(case, kernel), case)
            for size in self._sizes
            if case.problem.sizes == size.problem.record().sizes
        )

    def _explore(self) -> None:
        """Measure point after point, each where the model hopes for most."""
        budget, batch = self._plan.budget, FIRST_BATCH
        self._watcher.stage(
            "Timing" if self._timed else "Counting", sum(self._left(size) for size in self._sizes)
        )
        if not self._timed:
            batch = max(FIRST_BATCH, self._workers)
        while not self._is_late():
            cases = [(size, case) for size in self._sizes for case in size.next_cases(budget.points, batch)]
            if not cases:
                return

            def measured(
                index: int, measurement: Measurement, cases: Sequence[tuple[SizeSearch, Case]] = cases
            ) -> None:
                size, case = cases[index]
                size.tell(point_of_case(case), measurement)
                if self._file is not None:
                    self._file.append(measurement)
                self._watcher.step(f"{measurement.problem.label} {measurement.outcome}")

            self._run([case for _, case in cases], measured, self._plan.options.seconds_per_case * _SHORT)
            batch = BATCH if self._timed else max(BATCH, self._workers)

    def _left(self, size: SizeSearch) -> int:
        return max(0, min(self._plan.budget.points, len(size.candidates)) - len(size.measured))

    def _measure_survivors(self) -> None:
        """Measure the points near the best once more and for longer, and what they are compared with."""
        places = [(size, point) for size in self._sizes for point in size.survivors()]
        references = [
            Case(reference.id, size.problem.with_options(reference.options), (1, 1, 1))
            for size in self._sizes
            for reference in self._request.references
        ]
        self._watcher.stage("Measuring the best", len(places) + len(references))

        def measured(index: int, measurement: Measurement) -> None:
            if index < len(places):
                places[index][0].tell(places[index][1], measurement)
            else:
                self._references.append(measurement)
            self._watcher.step()

        def counted(index: int, measurement: Measurement) -> None:
            if index < len(places):
                places[index][0].tell(places[index][1], measurement)

        cases = [size.case_of(point) for size, point in places] + references
        self._run(cases, measured, self._plan.options.seconds_per_case, counted)

    def _measure_in_rounds(self) -> None:
        """Let the closest meet in turns, each round in a process of its own."""
        rounds = self._plan.options.rounds
        places = [(size, point) for size in self._sizes for point in size.finalists()]
        self._watcher.stage("Rounds among the closest", rounds * len(places))
        seconds = self._plan.options.seconds_per_case / max(1, rounds)
        for number in range(1, rounds):
            if not places:
                return
            order = places[::-1] if number % 2 else places

            def measured(index: int, measurement: Measurement, order: list[_Place] = order) -> None:
                size, point = order[index]
                size.tell(point, with_round(size.measured[point], measurement, self.opened.device))
                self._watcher.step()

            self._run([size.case_of(point) for size, point in order], measured, seconds)

    def _run(
        self, cases: list[Case], on_done: OnCase, seconds: float, on_counted: OnCase | None = None
    ) -> None:
        request = replace(self._open, seconds_per_case=seconds)
        options = self._plan.options
        run_cases(
            cases,
            WorkerProcess(request),
            SessionOptions(
                request,
                options.timeout_s,
                options.compile_timeout_s,
                (HERE,) * self._workers,
                options.explain,
                on_counted,
            ),
            lambda index: None,
            on_done,
        )

    def _is_late(self) -> bool:
        seconds = self._plan.budget.seconds
        return seconds is not None and time.monotonic() - self._begun_s > seconds

    def _tuning(self, *, finished: bool) -> Tuning:
        axes = self._plan.space.axes
        return Tuning(
            values={each.kernel.id: each.searched for each in axes},
            blocks={each.kernel.id: each.blocks for each in axes if len(each.blocks) > 1},
            budget=self._plan.budget.points,
            sizes=tuple(size.record() for size in self._sizes) if finished else (),
        )

    def _finish(self, *, complete: bool) -> Run:
        """The run, in its file too: size by size, the best first, references last."""
        cases: list[Measurement] = []
        for size in self._sizes:
            own = size.problem.record().sizes
            cases += size.cases()
            cases += [case for case in (*self._left_over, *self._references) if case.problem.sizes == own]
        searched = [size.problem.record().sizes for size in self._sizes]
        cases += [case for case in self._left_over if case.problem.sizes not in searched]
        run = replace(self._empty, cases=tuple(cases), complete=complete, tuning=self._tuning(finished=True))
        if self._file is not None:
            self._file.finish(run)
        return run


def _in_turns(lists: Sequence[Sequence[Candidate]]) -> list[list[tuple[int, Candidate]]]:
    """The first of each list, then the second of each, and so on, with the number of the list."""
    longest = max(map(len, lists), default=0)
    return [
        [(number, held[place]) for number, held in enumerate(lists) if place < len(held)]
        for place in range(longest)
    ]
