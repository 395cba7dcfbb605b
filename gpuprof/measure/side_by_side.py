# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The devices of one run: each is opened on its own and takes its own cases.

GPUs do not disturb each other, and take their cases at the same time. Cards that the executor stands for
share the machine's cores: as many are executed side by side as there are cores, each with its part of them.
A cluster offers a GPU with each worker that has one, or workers that execute.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import count
from threading import BoundedSemaphore
from typing import TYPE_CHECKING

from msgspec import Struct

from gpuprof import __version__, signals
from gpuprof.backends.select import named_devices
from gpuprof.devices.device import Device
from gpuprof.errors import BackendUnavailable, GpuprofError, InputError
from gpuprof.machine import usable_cores
from gpuprof.measure.case import Case, on_host
from gpuprof.measure.counting import Counting
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
from gpuprof.measure.request import Request, as_asked, check_memory, plan_cases, worth_starting
from gpuprof.options import RunOptions
from gpuprof.records import replace
from gpuprof.results import Place

if TYPE_CHECKING:
    from gpuprof.measure.cluster.connection import Connection, Member

#: What every worker with a GPU is started with.
OFFER_FIX = "Start its workers with --resources GPU=1, or execute on their CPUs: --device sim."
SAME_FIX = f"Install gpuprof {__version__} there, or run here what they have."


class CardSite(Struct, frozen=True):
    """A device to open, with a transport for each worker that may run at a time."""

    selector: str
    transports: tuple[Transport, ...]
    host: str = ""


#: The devices of a run before they are opened, and what lets go of them.
Sites = tuple[tuple[CardSite, ...], Callable[[], None]]


def sites_of(device: str, cluster: str | None) -> Sites:
    """The devices that `--device` names, on this machine or on a cluster."""
    if cluster is not None:
        return sites_in(cluster, device)
    names = named_devices(device)
    here = [(HERE,) if name.isdecimal() else (HERE,) * usable_cores() for name in names]
    return tuple(map(CardSite, names, here)), lambda: None


def sites_in(address: str, device: str) -> Sites:
    """The devices of a cluster.

    Raises:
        InputError: The two make no sense together, or a worker has another version of gpuprof.
        BackendUnavailable: Nobody answers there, or nobody offers a GPU.
        ToolError: Dask is not installed.
    """
    on_gpus = device.strip() in ("auto", "all")
    selectors = () if on_gpus else named_devices(device)
    if any(selector.isdecimal() for selector in selectors):
        raise InputError(
            f"--device {device} does not go with --cluster: workers offer their GPUs themselves.",
            fix="Leave --device out for all of them, or execute: --device sim.",
        )
    from gpuprof.measure.cluster.connection import connect

    connection = connect(address, gpus=on_gpus)
    try:
        members = sorted(connection.members(), key=lambda member: (member.host, member.name))
        if not members:
            raise BackendUnavailable(
                f"The cluster at {address} has no workers.", fix="Start some: dask worker ADDRESS."
            )
        software = checked_software(connection.software(), members)
        # The machine's own name says more than the address under which it is reached.
        members = [replace(member, host=software[member.address]["host"]) for member in members]
        sites = _gpus(connection, members) if on_gpus else _executors(connection, members, selectors)
    except BaseException:
        connection.close()
        raise
    return sites, connection.close


def checked_software(
    answers: Mapping[str, Mapping[str, str] | str], members: "list[Member]"
) -> dict[str, Mapping[str, str]]:
    """What each worker has, by address, where all have this gpuprof: unlike versions measure unlike.

    Other differences, such as of drivers, stand in the results beside the device.

    Raises:
        InputError: A worker has another gpuprof.
        BackendUnavailable: A worker cannot tell what it has: it has no gpuprof, or a broken one.
    """
    found: dict[str, Mapping[str, str]] = {}
    for member in members:
        answer = answers.get(member.address, "it does not answer")
        if isinstance(answer, str):
            raise BackendUnavailable(f"The worker {member.name} cannot use gpuprof: {answer}.", fix=SAME_FIX)
        found[member.address] = answer
    others = [member for member in members if found[member.address]["gpuprof"] != __version__]
    if others:
        name, version = others[0].name, found[others[0].address]["gpuprof"]
        more = f"; {len(others) - 1} more have another, too" if len(others) > 1 else ""
        raise InputError(
            f"The worker {name} has gpuprof {version}, and this is {__version__}{more}.", fix=SAME_FIX
        )
    return found


def _gpus(connection: "Connection", members: "list[Member]") -> tuple[CardSite, ...]:
    """A site for each GPU that a worker offers, by the number that the worker's own driver gives it."""
    from gpuprof.measure.cluster.workers import WorkerSlot

    sites = tuple(
        CardSite(str(number), (WorkerSlot(connection, member, uses_gpu=True),), _where(member, members))
        for member in members
        for number in range(member.gpus)
    )
    if not sites:
        raise BackendUnavailable(
            f"No worker of the cluster at {connection.shown} offers a GPU.", fix=OFFER_FIX
        )
    return sites


def _where(member: "Member", members: "list[Member]") -> str:
    """A worker's machine, and its name where others share the machine."""
    host = member.host or member.name
    shared = sum(other.host == member.host for other in members) > 1
    return f"{host}, {member.name}" if shared and member.name != host else host


def _executors(
    connection: "Connection", members: "list[Member]", selectors: tuple[str, ...]
) -> tuple[CardSite, ...]:
    """A site for each simulated card, with its share of what the workers take at a time."""
    from gpuprof.measure.cluster.workers import WorkerSlot

    slots = [
        WorkerSlot(connection, member, uses_gpu=False)
        # One of each worker first: the first slot of a card opens before the others.
        for turn in range(max(member.threads for member in members))
        for member in members
        if turn < member.threads
    ]
    count = len(selectors)
    return tuple(
        CardSite(selector, tuple(slots[number::count]) or (slots[number % len(slots)],))
        for number, selector in enumerate(selectors)
    )


_POLL_S = 0.1
#: What an executor needs at all, however many share the machine.
_LEAST_MEMORY = 1 << 30


class OpenCard(Struct):
    """One device of a run, with its cases by their places among those of all cards."""

    number: int
    site: CardSite
    request: Open
    opened: Opened
    cases: Mapping[int, Case]
    largest_case_bytes: int
    worker: Worker | None = None
    counting: Counting | None = None
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
        """End the worker that no round took, and those that count for it."""
        for begun in (self.worker, self.counting):
            if begun is not None:
                begun.close()
        self.worker = self.counting = None


class Cards:
    """All devices of a run, open.

    Args:
        reach: Whether what they reach is wanted before the first case.
        counts: Whether all cases are counted: that begins when it is known which device it is, before all of
            it is ready to measure.
    """

    def __init__(
        self, request: Request, options: RunOptions, *, reach: bool = False, counts: bool = False
    ) -> None:
        #: What is measured on each of them.
        self.request = as_asked(request, options)
        self._timeout_s, self._reach, self._counts = options.timeout_s, reach, counts
        first = Open.of(options, request.references)
        self._sites, self._let_go = sites_of(options.device, options.cluster)
        sites = self._sites
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
        worker: Worker | None = None
        counting: Counting | None = None

        def begin_counting(device: Device) -> None:
            """Begin to count, which needs no device that is ready."""
            nonlocal counting
            if self._counts and counting is None:
                expected = plan_cases(self.request, references=True)
                counting = Counting(request, device, cards=len(self._sites), expected=expected)

        try:
            transport = site.transports[0]
            worker = HERE(request, on_device=begin_counting) if transport is HERE else transport(request)
            on_gpu = worker.opened.backend == "gpu"
            cases = plan_cases(self.request, references=on_gpu)
            if on_gpu:
                begin_counting(worker.opened.device)
            elif counting is not None:  # of a GPU that could not be opened
                counting.close()
                counting = None
            problems = list(dict.fromkeys(case.problem for case in cases))
            sized = worker.ask(Size(tuple(problems)), OPEN_TIMEOUT_S)
            opened = worker.opened
            check_memory(problems, sized.bytes_needed, opened.memory_budget_bytes)
            worker.tell(Prepare.of(cases, opened.device))
            opened = replace(opened, environment={**opened.environment, **sized.environment})
            if self._reach:
                opened = replace(opened, device=worker.ask(Reach(), self._timeout_s))
        except BaseException as error:
            if worker is not None:
                worker.close()
            if counting is not None:
                counting.close()
            if isinstance(error, WorkerLost):
                why = f"The worker process was lost before the first case: {error}."
                raise BackendUnavailable(why) from error
            raise
        if site.selector == "auto":  # from now on what was found
            site = replace(site, selector="0" if opened.backend == "gpu" else "sim")
            request = replace(request, device=site.selector)
        most = max(sized.bytes_needed, default=0)
        return OpenCard(0, site, request, opened, dict(enumerate(cases)), most, worker, counting)

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
