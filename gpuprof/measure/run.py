# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One invocation from request to results: open a worker, plan, measure, keep the file current."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime

from gpuprof import __version__, timeline
from gpuprof.devices.device import Device
from gpuprof.errors import OutputError
from gpuprof.measure.case import Case, on_host
from gpuprof.measure.counting import is_uncounted
from gpuprof.measure.request import Request
from gpuprof.measure.resume import asked, by_place
from gpuprof.measure.session import ended, run_cases
from gpuprof.measure.side_by_side import Cards, OpenCard
from gpuprof.operation import ReferenceDeclaration
from gpuprof.options import RunOptions
from gpuprof.records import replace
from gpuprof.results import SCHEMA_VERSION, KernelRecord, Measurement, Place, Run, Tool
from gpuprof.statistics import with_round
from gpuprof.store import ResultsFile

#: Opens the file in which a run is kept.
Keep = Callable[[Run], ResultsFile]


class Progress:
    """What a run tells its watcher, who need not listen."""

    def opened(self, run: Run, cases: int) -> None:
        """The devices of a run are open and that many cases follow."""

    def turn(self, name: str) -> None:
        """The cases of another request begin; a name tells it from the others."""

    def started(self, case: Case) -> None:
        """A case begins."""

    def finished(self, measurement: Measurement) -> None:
        """A case is done."""

    def profiling(self, case: Case) -> None:
        """Nsight Compute turns to a case."""

    def timed(self, run: Run) -> None:
        """All times are there, and the executor still counts: the answer by the times comes now."""

    def stage(self, title: str, steps: int, most_s: float | None = None) -> None:
        """A stage of a search begins, of so many steps, and of so many seconds at most."""

    def step(self) -> None:
        """One step of the stage is done."""


def measure(
    request: Request,
    options: RunOptions,
    progress: Progress,
    *,
    argv: tuple[str, ...] = (),
    keep: Keep | None = None,
    resumes: bool = False,
) -> Run:
    """Measure everything a request asks for.

    Every case is on disk as soon as it is measured: whatever ends the run early costs at most one case. What
    `keep` finds done already is not measured again, and there is some where the run `resumes`.

    Raises:
        InputError: A size does not fit in memory, or the results cannot be written.
        BackendUnavailable: The device cannot be used, or cannot be opened again after a kernel's fault.
        OutputError: There is no room for what is measured, wherever; it holds the run.
    """
    return measure_in_turns([request], options, progress, argv=argv, keep=[keep], resumes=resumes)[0]


def measure_in_turns(
    requests: Sequence[Request],
    options: RunOptions,
    progress: Progress,
    *,
    argv: tuple[str, ...] = (),
    keep: Sequence[Keep | None],
    resumes: bool = False,
    names: Sequence[str] = (),
) -> list[Run]:
    """Measure requests round by round, every other time backwards: first, second, second, first, and so on.

    Their cases are counted together.
    """
    at_once = len(requests) == 1 and not resumes
    with ExitStack() as opened:
        measured = [
            opened.enter_context(
                Measuring(request, options, progress, argv=argv, keep=place, counts_at_once=at_once)
            )
            for request, place in zip(requests, keep, strict=True)
        ]
        progress.opened(measured[0].empty, sum(one.left for one in measured))
        measured[0].alone = len(measured) == 1
        complete = True
        try:
            for number in range(measured[0].rounds):
                turns = list(zip(measured, names or [""] * len(measured), strict=True))
                for one, name in turns[:: -1 if number % 2 else 1]:
                    progress.turn(name)
                    one.round(number)
        except (KeyboardInterrupt, OutputError):  # at the end there may be room again
            complete = False
        return [one.finish(complete=complete) for one in measured]


class Measuring:
    """A request on its way to a run, a round at a time: whoever measures two can take turns.

    A round is every case once, in a process of its own: arrays and code lie elsewhere each time. Cases take
    turns within a round, so that what drifts hits all of them, and every other round runs backwards.
    """

    def __init__(
        self,
        request: Request,
        options: RunOptions,
        progress: Progress,
        *,
        argv: tuple[str, ...] = (),
        keep: Keep | None = None,
        counts_at_once: bool = False,
    ) -> None:
        self._progress = progress
        self._options = options
        self._lock = threading.Lock()
        with timeline.span("open"):
            self._cards = cards = Cards(request, options, counts=options.lines and counts_at_once)
        request = cards.request
        try:
            wanted = asked(request, options) if keep else {}
            run = replace(empty_run_on(cards, options, argv), asked=wanted)
            cases = [case for card in cards.cards for case in card.cases.values()]
            self._keeper = _Keeper(run, tuple(_choosable(request)), cases, keep)
        except BaseException:
            cards.close()
            raise
        opened = cards.cards[0].opened
        # The executor counts the same every time.
        self.rounds = options.rounds if opened.backend == "gpu" else 1
        self._uncounted = self._keeper.uncounted() if options.lines and opened.backend == "gpu" else []
        self.empty, self.left = run, self._keeper.left(self.rounds)
        self.alone = False

    def __enter__(self) -> "Measuring":
        return self

    def __exit__(self, *_: object) -> None:
        """End the workers that no round took, and close the file."""
        self._cards.close()
        self._keeper.close()

    def round(self, number: int) -> None:
        """Measure every case once, or, after the first time, every case that was right so far."""
        uncounted = self._uncounted if number == 0 else []
        if len(self._cards.cards) == 1:
            card = self._cards.cards[0]
            self._measure(card, self._indices(card, number), number, uncounted)
        else:
            self._round_on_all(self._cards, number, uncounted)
        if self.rounds > 1:
            self._keeper.compact()

    def _round_on_all(self, cards: Cards, number: int, uncounted: list[int]) -> None:
        def measure_on(card: OpenCard) -> None:
            indices = [index for index in self._indices(card, number) if not on_host(card.cases[index])]
            self._measure(card, indices, number, [index for index in uncounted if index in card.cases])

        cards.together(measure_on)
        # The CPU's own: nothing else may run beside it.
        first = cards.cards[0]
        hosts = [index for index in self._indices(first, number) if on_host(first.cases[index])]
        self._measure(first, hosts, number, [])

    def _indices(self, card: OpenCard, number: int) -> list[int]:
        """Where the cases that a card takes in a round stand among those of the run, in their order."""
        wanted = set(self._keeper.right(number) if number else self._keeper.missing())
        indices = [index for index in card.cases if index in wanted]
        return indices[::-1] if number % 2 else indices

    def _measure(self, card: OpenCard, indices: list[int], number: int, uncounted: list[int]) -> None:
        """Measure some of a card's cases once; a card that is lost costs only its own."""
        if not indices and not uncounted:
            return
        cases = {index: card.cases[index] for index in indices}

        def counted(index: int, measurement: Measurement) -> None:
            self._keeper.add(index, replace(measurement, planned=index))

        def reached(device: Device) -> None:
            card.opened = replace(card.opened, device=device)
            self._keeper.reached(card.number, device)

        left = set(indices)

        def done(index: int, measurement: Measurement) -> None:
            measurement = replace(measurement, planned=index)
            with self._lock:
                left.discard(index)
                if number == 0:
                    self._keeper.add(index, measurement)
                else:
                    self._again(index, measurement)
                self._progress.finished(measurement)

        def started(index: int) -> None:
            with self._lock:
                self._progress.started(cases[index])

        if card.lost is None:
            worker, card.worker = card.worker, None
            counting, card.counting = card.counting, None
            # What a case counts and why it fails is known from the first round.
            with self._cards.losing(card):
                run_cases(
                    cases,
                    worker,
                    replace(card.request, explain=self._options.explain and number == 0),
                    done,
                    on_start=started,
                    transports=self._cards.transports(card),
                    memory_bytes=self._cards.memory_bytes(card),
                    counting=counting,
                    on_counted=counted if self._options.lines and number == 0 else None,
                    on_timed=self._timed,
                    on_reached=reached if number == 0 else None,
                    cards=self._cards.side_by_side,
                    uncounted=[(index, card.cases[index], self._keeper.case(index)) for index in uncounted],
                )
        if card.lost is not None and number == 0:
            for index in filter(left.__contains__, indices):
                reason = f"Its device was lost: {card.lost}."
                done(index, replace(ended(cases[index], card.opened.device, "failed", reason), lost=True))

    def _timed(self) -> None:
        """All of one card is measured; of several cards or requests, another one may still be at it."""
        if self.alone and self.rounds == len(self._cards.cards) == 1:
            self._progress.timed(self._keeper.so_far())

    def _again(self, index: int, measurement: Measurement) -> None:
        if not measurement.lost:  # nothing is known of that round: the others stand
            before = self._keeper.case(index)
            device = self._cards.cards[before.device].opened.device
            self._keeper.add(index, with_round(before, measurement, device))

    def finish(self, *, complete: bool) -> Run:
        return self._keeper.finish(self._cards.places(), complete=complete)


class _Keeper:
    """The run so far, in memory in plan order and on disk in the order in which cases end."""

    def __init__(
        self, run: Run, choosable: tuple[KernelRecord, ...], cases: list[Case], keep: Keep | None
    ) -> None:
        self._empty = run
        self._choosable = choosable
        self._done: list[Measurement | None] = [None] * len(cases)
        self._lock = threading.Lock()
        self._file = keep(replace(run, kernels=(*run.kernels, *choosable))) if keep else None
        if self._file is not None and self._file.continues is not None:
            before = self._file.continues
            self._empty = replace(before, kernels=run.kernels, cases=())
            for index, measurement in by_place(before.cases, cases, self._file.path).items():
                self._done[index] = measurement

    def add(self, index: int, measurement: Measurement) -> None:
        """Keep a case, or what is known better of one."""
        with self._lock:
            self._done[index] = measurement
            if self._file:
                self._file.append(measurement)

    def reached(self, number: int, device: Device) -> None:
        """Keep what was measured of a device, unless a run that goes on here knew it."""
        with self._lock:
            devices = list(self._empty.devices)
            if devices[number].measured_copy_bandwidth_gbps is None:
                devices[number] = device
            self._empty = replace(self._empty, devices=tuple(devices))

    def case(self, index: int) -> Measurement:
        found = self._done[index]
        assert found is not None
        return found

    def missing(self) -> list[int]:
        return [index for index, case in enumerate(self._done) if case is None]

    def uncounted(self) -> list[int]:
        """Which cases were measured well, and not counted before the run was stopped."""
        return [
            index
            for index, case in enumerate(self._done)
            if case is not None and case.outcome == "ok" and case.source_hash and is_uncounted(case)
        ]

    def right(self, rounds: int) -> list[int]:
        """Which cases have ended well so far, and in no more rounds than that."""
        return [
            index
            for index, case in enumerate(self._done)
            if case is not None and case.outcome == "ok" and _rounds_of(case) <= rounds
        ]

    def left(self, rounds: int) -> int:
        """How many measurements follow, if all goes well."""
        return sum(
            rounds if case is None else max(0, rounds - _rounds_of(case))
            for case in self._done
            if case is None or case.outcome == "ok"
        )

    def so_far(self) -> Run:
        with self._lock:
            return self._run(complete=False, every_kernel=False)

    def compact(self) -> None:
        """Let the file hold each case once, as it is known now."""
        if self._file:
            self._file.compact(self._run(complete=False, every_kernel=True))

    def finish(self, places: tuple[Place, ...], *, complete: bool) -> Run:
        """The run, in the file too: in plan order, with those of the choosable kernels that were chosen."""
        run = replace(self._run(complete=complete, every_kernel=False), places=places)
        if self._file:
            try:
                with timeline.span("results file"):
                    self._file.finish(run)
            except OutputError as error:
                error.run = run
                raise
        return run

    def _run(self, *, complete: bool, every_kernel: bool) -> Run:
        cases = tuple(case for case in self._done if case is not None)
        chosen = {case.chosen for case in cases}
        kernels = (
            *self._empty.kernels,
            *(record for record in self._choosable if every_kernel or record.id in chosen),
        )
        return replace(self._empty, kernels=kernels, cases=cases, complete=complete)

    def close(self) -> None:
        if self._file:
            self._file.close()


def _rounds_of(case: Measurement) -> int:
    """How many rounds a case has been through, as far as it tells."""
    return len(case.timing.cold.rounds_us) if case.timing and case.timing.cold else 1


def _choosable(request: Request) -> Iterator[KernelRecord]:
    """Kernels that one of the request may choose and that are not in the request themselves."""
    named = {kernel.id for kernel in request.kernels}
    chosen = {choice.kernel for kernel in request.kernels for choice in kernel.choices}
    for kernel in request.ladder.kernels:
        if kernel.id in chosen - named:
            yield kernel.record()


def empty_run_on(cards: Cards, options: RunOptions, argv: tuple[str, ...]) -> Run:
    """A run on all devices that are open, before its first case."""
    opened, request = cards.cards[0].opened, cards.request
    return Run(
        schema_version=SCHEMA_VERSION,
        tool=Tool("gpuprof", __version__),
        created_utc=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        argv=argv,
        environment=opened.environment,
        devices=tuple(card.opened.device for card in cards.cards),
        backend=opened.backend,
        backend_reason=" ".join(filter(None, (opened.backend_reason, *cards.left_out))) or None,
        complete=False,
        seed=options.seed,
        labels=options.labels or {},
        operations={request.operation.name: request.operation},
        kernels=(
            # Of the configurations of one function the first stands for all.
            *reversed({kernel.id: kernel.record() for kernel in reversed(request.kernels)}.values()),
            *(
                _reference_record(request.operation.name, reference)
                for reference in request.references
                if opened.backend == "gpu"
            ),
        ),
        cases=(),
        places=cards.places(),
    )


def _reference_record(operation: str, reference: ReferenceDeclaration) -> KernelRecord:
    """A reference as a results file keeps it: a kernel without source, behind all others."""
    record = KernelRecord.without_source(reference.id, operation, 10_000.0, reference.title, reference.idea)
    return replace(record, is_reference=True, on_host=reference.on_host)
