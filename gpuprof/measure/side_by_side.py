# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The devices of one run: each is opened on its own and takes its own cases.

GPUs do not disturb each other, and take their cases at the same time. Cards that the executor stands for
share the machine's cores: as many are executed side by side as there are cores, each with its part of them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from threading import BoundedSemaphore

from gpuprof import signals
from gpuprof.errors import BackendUnavailable, GpuprofError, InputError
from gpuprof.machine import usable_cores
from gpuprof.measure.case import Case, on_host
from gpuprof.measure.plan import check_memory, plan_cases, worth_starting
from gpuprof.measure.process import HERE, OPEN_TIMEOUT_S
from gpuprof.measure.protocol import (
    Open,
    Opened,
    PlaceLost,
    Prepare,
    Reach,
    Size,
    Transport,
    Worker,
    WorkerLost,
)
from gpuprof.measure.request import Request, as_asked
from gpuprof.measure.sites import CardSite, sites_of
from gpuprof.options import RunOptions
from gpuprof.results import Place

_POLL_S = 0.1
#: What an executor needs at all, however many share the machine.
_LEAST_MEMORY = 1 << 30


@dataclass(slots=True)
class OpenCard:
    """One device of a run, with its cases by their places among those of all cards."""

    number: int
    site: CardSite
    request: Open
    opened: Opened
    cases: Mapping[int, Case]
    largest_case_bytes: int
    worker: Worker | None = None
    lost: str | None = None

    def place(self, environment: Mapping[str, str]) -> Place:
        own = self.opened.environment
        return Place(
            selector=self.site.selector,
            host=self.site.host,
            bus_id=self.opened.bus_id,
            environment={name: text for name, text in own.items() if environment.get(name) != text},
            conditions=self.opened.conditions,
            lost=self.lost,
        )

    def close(self) -> None:
        """End the worker that no round took."""
        if self.worker is not None:
            self.worker.close()
            self.worker = None


class Cards:
    """All devices of a run, open; with what they reach where that is wanted before the first case."""

    def __init__(self, request: Request, options: RunOptions, *, reach: bool = False) -> None:
        #: What is measured on each of them.
        self.request = as_asked(request, options)
        self._timeout_s, self._reach = options.timeout_s, reach
        first = Open.of(options, request.references)
        sites, self._let_go = sites_of(options.device, options.cluster)
        # A worker process ends with the thread that started it: these live as long as the cards.
        self._threads = ThreadPoolExecutor(max(1, len(sites)), thread_name_prefix="card")
        self.cards: list[OpenCard] = []
        #: Devices that could not be opened, each with why.
        self.left_out: list[str] = []
        try:
            outcomes = self._each(
                [(self._open, site, replace(first, device=site.selector)) for site in sites]
            )
            self.cards = [card for card in outcomes if isinstance(card, OpenCard)]
            # Nobody named one that cannot be opened.
            may_lack = options.cluster is not None or options.device.strip() == "all"
            self._judge(sites, outcomes, may_lack=may_lack)
        except BaseException:
            self.close()
            raise
        places = count()
        for number, card in enumerate(self.cards):
            card.number = number
            card.cases = {
                next(places): replace(case, device=number)
                for case in card.cases.values()
                # The host is the same beside every GPU.
                if number == 0 or not on_host(case)
            }
        self._room = BoundedSemaphore(self.side_by_side)

    @property
    def side_by_side(self) -> int:
        """How many of them take cases at a time."""
        if self.cards[0].opened.backend == "gpu":
            return len(self.cards)
        offered = {one for card in self.cards for one in card.site.transports if one is not HERE}
        return min(len(self.cards), len(offered) or usable_cores())

    def transports(self, card: OpenCard) -> tuple[Transport, ...]:
        """Those that a card may use at a time: as cores and memory allow beside the other cards.

        Executed cases do not disturb each other; measured ones would.
        """
        offered = card.site.transports
        if card.opened.backend != "sim":
            return offered[:1]
        if any(transport is not HERE for transport in offered):
            return offered  # a cluster's machines have memory of their own
        fitting = card.opened.memory_budget_bytes // max(1, card.largest_case_bytes)
        share = min(usable_cores(), fitting) // self.side_by_side
        return offered[: max(1, min(share, worth_starting(len(card.cases))))]

    def memory_bytes(self, card: OpenCard) -> int:
        """What each of a card's executors may take: they share this machine's memory, all alike."""
        if card.opened.backend != "sim" or any(one is not HERE for one in card.site.transports):
            return 0
        sharing = len(self.transports(card)) * self.side_by_side
        return max(_LEAST_MEMORY, card.opened.memory_budget_bytes // sharing) if sharing > 1 else 0

    def places(self) -> tuple[Place, ...]:
        """Where each card is, and why it was lost where it was."""
        return tuple(card.place(self.cards[0].opened.environment) for card in self.cards)

    def together(self, work: Callable[[OpenCard], None]) -> None:
        """Do something for every card, for as many at a time as do not disturb each other."""
        if len(self.cards) == 1:
            work(self.cards[0])
            return

        def with_room(card: OpenCard) -> None:
            with self._room:
                work(card)

        for outcome in self._each([(with_room, card) for card in self.cards]):
            if isinstance(outcome, BaseException):
                raise outcome

    @contextmanager
    def losing(self, card: OpenCard) -> Iterator[None]:
        """Whatever is done with a card within the block: should it be lost, only its own cases are.

        Raises:
            BackendUnavailable: It cannot be used any more, and is the only one.
        """
        try:
            yield
        except (BackendUnavailable, PlaceLost) as error:
            if isinstance(error, BackendUnavailable) and len(self.cards) == 1:
                raise
            signals.check()
            card.lost = str(error).rstrip(".")

    def close(self) -> None:
        """End all workers that no round took, and the threads."""
        for card in self.cards:
            card.close()
        self._threads.shutdown()
        self._let_go()

    def _each(self, calls: Sequence[tuple[object, ...]]) -> list[object]:
        """What came of each call, all of them made at the same time: its result, or its error."""
        futures: list[Future[object]] = [self._threads.submit(*call) for call in calls]  # type: ignore[arg-type]
        while wait(futures, timeout=_POLL_S).not_done:  # a timed wait keeps signals deliverable
            continue
        return [future.exception() or future.result() for future in futures]

    def _open(self, site: CardSite, request: Open) -> OpenCard:
        worker = site.transports[0](request)
        try:
            cases = plan_cases(self.request, references=worker.opened.backend == "gpu")
            problems = list(dict.fromkeys(case.problem for case in cases))
            worker.tell(Prepare(tuple(cases)))
            sized = worker.ask(Size(tuple(problems)), OPEN_TIMEOUT_S)
            opened = worker.opened
            check_memory(problems, sized.bytes_needed, opened.memory_budget_bytes)
            opened = replace(opened, environment={**opened.environment, **sized.environment})
            if self._reach:
                opened = replace(opened, device=worker.ask(Reach(), self._timeout_s))
        except WorkerLost as error:
            worker.close()
            raise BackendUnavailable(
                f"The worker process was lost before the first case: {error}."
            ) from error
        except BaseException:
            worker.close()
            raise
        if site.selector == "auto":  # from now on what was found
            site = replace(site, selector="0" if opened.backend == "gpu" else "sim")
            request = replace(request, device=site.selector)
        most = max(sized.bytes_needed, default=0)
        return OpenCard(0, site, request, opened, dict(enumerate(cases)), most, worker)

    def _judge(self, sites: Sequence[CardSite], outcomes: Sequence[object], *, may_lack: bool) -> None:
        """Raise what keeps the run from beginning, and note what it begins without."""
        for site, outcome in zip(sites, outcomes, strict=True):
            if isinstance(outcome, OpenCard):
                continue
            assert isinstance(outcome, BaseException)
            where = Place(site.selector, site.host).title
            if isinstance(outcome, (BackendUnavailable, PlaceLost)) and may_lack and self.cards:
                told = outcome.what if isinstance(outcome, GpuprofError) else f"{outcome}."
                self.left_out.append(f"{where} was left out: {told}")
            elif isinstance(outcome, PlaceLost):
                raise BackendUnavailable(f"{where} cannot be used: {outcome}.") from outcome
            elif isinstance(outcome, GpuprofError) and len(sites) > 1:
                kind = InputError if isinstance(outcome, InputError) else BackendUnavailable
                raise kind(f"{where}: {outcome.what}", fix=outcome.fix) from outcome
            else:
                raise outcome
