# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One invocation from request to results: open a worker, plan, measure, keep the file current."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

from gpuprof import __version__, signals
from gpuprof.errors import BackendUnavailable
from gpuprof.measure.case import Case, on_host
from gpuprof.measure.counting import OnCounted
from gpuprof.measure.protocol import Open, Opened
from gpuprof.measure.request import Request, without_poison
from gpuprof.measure.session import SessionOptions, ended, run_cases
from gpuprof.measure.side_by_side import Card, Cards
from gpuprof.measure.sites import sites_of
from gpuprof.measure.transport import PlaceLost
from gpuprof.operation import ReferenceDeclaration
from gpuprof.results import SCHEMA_VERSION, KernelRecord, Measurement, Place, Run, Tool
from gpuprof.statistics import with_round
from gpuprof.store import ResultsFile

#: Opens the file in which a run is kept.
Keep = Callable[[Run], ResultsFile]
#: Most rounds of one run.
MOST_ROUNDS = 200
#: Kernel time of a case in each of many rounds: a median of some samples is what a round contributes.
_LEAST_SECONDS = 0.01


class Progress(Protocol):
    """What a run tells its watcher."""

    def opened(self, opened: Opened, cases: int) -> None:
        """The backend is open and that many cases follow."""
        ...

    def started(self, case: Case) -> None:
        """A case begins."""
        ...

    def finished(self, measurement: Measurement) -> None:
        """A case is done."""
        ...

    def profiling(self, case: Case) -> None:
        """Nsight Compute turns to a case."""
        ...


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to run, apart from what.

    Args:
        device: As `--device`.
        arch: As `--arch`.
        seed: Of random inputs.
        timeout_s: Longest one case may take.
        seconds_per_case: Kernel time spent on sampling one case.
        sim_blocks: Blocks that the executor runs of each grid; 0 for all, None to choose by size.
        lines: Whether the executor counts what a GPU runs, for bounds and for counts by source line.
        poison_inout: Whether kernels' own `poison_inout` holds; if not, it is off for all of them.
        given_arrays: Folder of the arrays that a program gave, for operations made of them.
        explain: Whether cases that fail, hang or are wrong are run again on the executor, to see where.
        rounds: How often a GPU measures every case, each time in a fresh process; they share
            `seconds_per_case`.
        cluster: As `--cluster`; None for processes of this machine.
    """

    device: str = "auto"
    arch: str | None = None
    seed: int = 0
    timeout_s: float = 60.0
    seconds_per_case: float = 0.25
    sim_blocks: int | None = None
    lines: bool = False
    poison_inout: bool = True
    given_arrays: str = ""
    explain: bool = True
    rounds: int = 1
    cluster: str | None = None


def measure(
    request: Request,
    options: RunOptions,
    progress: Progress,
    *,
    argv: tuple[str, ...] = (),
    keep: Keep | None = None,
) -> Run:
    """Measure everything a request asks for.

    Every case is on disk as soon as it is measured: whatever ends the run early costs at most one case.

    Args:
        request: What to measure.
        options: How.
        progress: Told about every step.
        argv: The command line, for the record.
        keep: Opens the results file, given the run before its first case; without, there is none.

    Returns:
        The run; its `complete` is False after Ctrl-C.

    Raises:
        InputError: A size does not fit in memory, or the results cannot be written.
        BackendUnavailable: The device cannot be used, or cannot be opened again after a kernel's fault.
    """
    with Measuring(request, options, progress, argv=argv, keep=keep) as measuring:
        try:
            for number in range(measuring.rounds):
                measuring.round(number)
        except KeyboardInterrupt:
            return measuring.finish(complete=False)
        return measuring.finish(complete=True)


class Measuring:
    """A request on its way to a run, a round at a time: whoever measures two can take turns.

    A round is every case once, in a process of its own: arrays and code lie elsewhere each time. Cases take
    turns within a round, so that what drifts hits all of them, and every other round runs backwards.

    Args:
        request: What to measure.
        options: How.
        progress: Told about every step.
        argv: The command line, for the record.
        keep: Opens the results file, given the run before its first case; without, there is none.

    Raises:
        InputError: A size does not fit in memory, or the results cannot be written.
        BackendUnavailable: The device cannot be used.
    """

    def __init__(
        self,
        request: Request,
        options: RunOptions,
        progress: Progress,
        *,
        argv: tuple[str, ...] = (),
        keep: Keep | None = None,
    ) -> None:
        if not options.poison_inout:
            request = without_poison(request)
        self._progress = progress
        self._options = options
        self._lock = threading.Lock()
        open_request = Open(
            device=options.device,
            arch=options.arch,
            seed=options.seed,
            seconds_per_case=max(options.seconds_per_case / options.rounds, _LEAST_SECONDS),
            sim_blocks=options.sim_blocks,
            libraries=tuple(dict.fromkeys(reference.library for reference in request.references)),
            given_arrays=options.given_arrays,
        )
        self._sites = sites_of(options.device, options.cluster)
        self._cards: Cards | None = None
        try:
            self._cards = cards = Cards(
                self._sites.sites, request, open_request, options.timeout_s, may_lack=self._sites.may_lack
            )
            run = _empty_run(request, options, cards, argv)
            planned = sum(len(card.cases) for card in cards.cards)
            self._keeper = _Keeper(run, tuple(_choosable(request)), planned, keep)
        except BaseException:
            self._close()
            raise
        opened = cards.cards[0].opened
        # The executor counts the same every time.
        self.rounds = options.rounds if opened.backend == "gpu" else 1
        labels = tuple(map(run.device_label, range(len(run.devices)))) if len(run.devices) > 1 else ()
        shown = replace(opened, labels=labels, backend_reason=run.backend_reason)
        progress.opened(shown, planned * self.rounds)

    def __enter__(self) -> "Measuring":
        return self

    def __exit__(self, *_: object) -> None:
        """End the workers that no round took, and close the file."""
        self._close()
        self._keeper.close()

    def _close(self) -> None:
        if self._cards is not None:
            self._cards.close()
        self._sites.close()

    def round(self, number: int) -> None:
        """Measure every case once, or, after the first time, every case that was right so far.

        Args:
            number: Which round it is, from 0.

        Raises:
            GpuprofError: A worker of the only device cannot be replaced.
            KeyboardInterrupt: The run was asked to end; what was measured is kept.
        """
        assert self._cards is not None
        if len(self._cards.cards) == 1:
            card = self._cards.cards[0]
            self._measure(card, self._indices(card, number), number)
            return

        def measure_on(card: Card) -> None:
            indices = self._indices(card, number)
            self._measure(card, [index for index in indices if not on_host(self._case(card, index))], number)

        self._cards.together(measure_on)
        # The CPU's own: nothing else may run beside it.
        first = self._cards.cards[0]
        hosts = [index for index in self._indices(first, number) if on_host(self._case(first, index))]
        if hosts:
            self._measure(first, hosts, number)

    def _indices(self, card: Card, number: int) -> list[int]:
        """Where the cases that a card takes in a round stand among those of the run, in their order."""
        every = range(card.first, card.first + len(card.cases))
        if number == 0:
            return list(every)
        right = self._keeper.right()
        indices = [index for index in every if index in right]
        return indices[::-1] if number % 2 else indices

    def _case(self, card: Card, index: int) -> Case:
        return card.cases[index - card.first]

    def _measure(self, card: Card, indices: list[int], number: int) -> None:
        """Measure some of a card's cases once; a card that is lost costs only its own."""
        assert self._cards is not None
        cases = [self._case(card, index) for index in indices]
        # What a case counts and why it fails is known from the first round.
        session = SessionOptions(
            card.request,
            self._options.timeout_s,
            self._cards.transports(card),
            self._options.explain and number == 0,
            self._count_of(card, indices) if self._options.lines and number == 0 else None,
            self._cards.side_by_side,
        )
        left = set(indices)

        def done(position: int, measurement: Measurement) -> None:
            with self._lock:
                left.discard(indices[position])
                if number == 0:
                    self._keeper.add(indices[position], measurement)
                else:
                    self._again(indices[position], measurement)
                self._progress.finished(measurement)

        def started(position: int) -> None:
            with self._lock:
                self._progress.started(cases[position])

        try:
            if card.lost is None:
                worker, card.worker = card.worker, None
                worker = worker or session.transports[0].open(card.request)
                run_cases(cases, worker, session, started, done)
        except (BackendUnavailable, PlaceLost) as error:
            if isinstance(error, BackendUnavailable) and len(self._cards.cards) == 1:
                raise
            signals.check()
            card.lost = str(error).rstrip(".")
        if card.lost is not None and number == 0:
            for position, index in enumerate(indices):
                if index in left:
                    reason = f"Its device was lost: {card.lost}."
                    done(position, ended(cases[position], card.opened.device, "failed", reason))

    def _count_of(self, card: Card, indices: list[int]) -> OnCounted:
        return lambda position, measurement: self._keeper.replace(indices[position], measurement)

    def _again(self, index: int, measurement: Measurement) -> None:
        assert self._cards is not None
        before = self._keeper.case(index)
        device = self._cards.cards[before.device].opened.device
        self._keeper.replace(index, with_round(before, measurement, device))

    def finish(self, *, complete: bool) -> Run:
        """The run, in its file too."""
        assert self._cards is not None
        return self._keeper.finish(self._cards.places(), complete=complete)


class _Keeper:
    """The run so far, in memory in plan order and on disk in the order in which cases end.

    Args:
        run: The run before its first case.
        choosable: Records of kernels that another one may choose; on disk from the start, since a case that
            is appended cannot bring one along.
        cases: How many follow.
        keep: Opens the file, where there is to be one.
    """

    def __init__(self, run: Run, choosable: tuple[KernelRecord, ...], cases: int, keep: Keep | None) -> None:
        self._empty = run
        self._choosable = choosable
        self._done: list[Measurement | None] = [None] * cases
        self._file = keep(replace(run, kernels=(*run.kernels, *choosable))) if keep else None

    def add(self, index: int, measurement: Measurement) -> None:
        self._done[index] = measurement
        if self._file:
            self._file.append(measurement)

    def replace(self, index: int, measurement: Measurement) -> None:
        """Put a case that is known better in the place of what was added; the file gets it at the end."""
        self._done[index] = measurement

    def case(self, index: int) -> Measurement:
        """What is known of a case that was added."""
        found = self._done[index]
        assert found is not None
        return found

    def right(self) -> list[int]:
        """Which cases have ended well so far."""
        return [index for index, case in enumerate(self._done) if case is not None and case.outcome == "ok"]

    def finish(self, places: tuple[Place, ...], *, complete: bool) -> Run:
        """The run, in the file too: in plan order, with those of the choosable kernels that were chosen."""
        cases = tuple(case for case in self._done if case is not None)
        chosen = {case.chosen for case in cases}
        kernels = (*self._empty.kernels, *(record for record in self._choosable if record.id in chosen))
        run = replace(self._empty, kernels=kernels, places=places, cases=cases, complete=complete)
        if self._file:
            self._file.finish(run)
        return run

    def close(self) -> None:
        if self._file:
            self._file.close()


def _choosable(request: Request) -> Iterator[KernelRecord]:
    """Kernels that one of the request may choose and that are not in the request themselves."""
    named = {kernel.id for kernel in request.kernels}
    chosen = {choice.kernel for kernel in request.kernels for choice in kernel.choices}
    for kernel in request.ladder.kernels:
        if kernel.id in chosen - named:
            yield kernel.record()


def _empty_run(request: Request, options: RunOptions, cards: Cards, argv: tuple[str, ...]) -> Run:
    opened = cards.cards[0].opened
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
        operations={request.operation.name: request.operation},
        kernels=(
            *{kernel.id: kernel.record() for kernel in request.kernels}.values(),
            *(
                _reference_record(request.operation.name, reference)
                for reference in request.references
                if opened.backend == "gpu"
            ),
        ),
        places=cards.places(),
        cases=(),
    )


def _reference_record(operation: str, reference: ReferenceDeclaration) -> KernelRecord:
    """A reference as a results file keeps it: a kernel without source, behind all others."""
    return KernelRecord(
        id=reference.id,
        operation=operation,
        title=reference.title,
        rung=10_000.0,
        idea=reference.idea,
        change="",
        bottleneck="",
        study="",
        aliases=(),
        reference="",
        source="",
        source_hash="",
        file_name="",
        is_reference=True,
        on_host=reference.on_host,
    )
