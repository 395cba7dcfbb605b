# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Run a plan: hand its cases to workers, keep each result the moment it exists, survive what kernels do."""

import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from math import prod

from msgspec import Struct, field

from gpuprof import signals, timeline
from gpuprof.devices.device import Device
from gpuprof.errors import BackendUnavailable, CaseSkipped, GpuprofError
from gpuprof.kernels.smaller_sizes import expected_instructions, smaller_cases
from gpuprof.measure.case import Case, configured, credited, on_host, resolve, unmeasured
from gpuprof.measure.counting import Counting, OnCase
from gpuprof.measure.pool import Pool
from gpuprof.measure.process import HERE, ExecutorProcess, worth_another_try
from gpuprof.measure.protocol import (
    Explain,
    Explained,
    Measure,
    Open,
    Opened,
    PlaceLost,
    Prepare,
    Reach,
    Symptom,
    Transport,
    Worker,
    WorkerLost,
)
from gpuprof.problems.coded import GIVEN
from gpuprof.problems.formulas import ExpressionError
from gpuprof.records import replace
from gpuprof.results import BackendName, Measurement, Outcome

#: Cases a worker from which on each compiles and reads all code ahead: with few, only its own.
_WORTH_PREPARING = 8
#: Instructions of single lanes that the executor gets through in a second on the busiest of machines; a
#: twentieth of what an idle one does. A case of fewer that does not end is taken to run for ever.
_EXECUTED_PER_S = 1e6
#: What it usually does, and how long a size may take that is proposed instead of one that took too long.
_USUAL_PER_S, _SECONDS = 5e8, 5.0
#: The longest that one explanation may take, and how long before that its worker ends the search by itself.
_EXPLAINING_S, _MARGIN_S = 20.0, 2.0
#: How long a device is waited for that refuses a process which is to go on, each time, and how soon a wait
#: notices that the run has been asked to end.
_PAUSES_S, _POLL_S = (1.0, 3.0, 9.0), 0.1


def run_cases(
    cases: Mapping[int, Case],
    first: Worker | None,
    request: Open,
    on_done: OnCase,
    *,
    on_start: Callable[[int], None] = lambda index: None,
    transports: tuple[Transport, ...] = (HERE,),
    memory_bytes: int = 0,
    counting: Counting | None = None,
    on_counted: OnCase | None = None,
    on_timed: Callable[[], None] = lambda: None,
    on_reached: Callable[[Device], None] | None = None,
    cards: int = 1,
    uncounted: Sequence[tuple[int, Case, Measurement]] = (),
    more: Callable[[], Mapping[int, Case]] = dict,
) -> None:
    """Measure every case, each by its index: one after the other, or with several workers the largest first.

    Args:
        first: A worker that the first transport opened, and that was told of the cases; it is closed at the
            end. None for another one in the place of one that was closed.
        on_done: Called with a case's index and measurement when it is done, from one thread at a time.
        on_start: Called with a case's index when it begins.
        transports: Where workers can be had, one for each that runs side by side; more than one only where
            cases do not disturb each other.
        memory_bytes: What the executor may take for one case; 0 for what its machine has.
        counting: What counts these cases already; it is closed at the end.
        on_counted: Called with what a GPU measured when the executor has counted it too; None to leave that.
        on_timed: Called when all is measured and some of it is still to be counted.
        on_reached: Called with what a GPU reaches, which is measured behind the cases; None to leave that.
        uncounted: What was measured before and only has to be counted, with the index to give it.
        more: Asked for further cases, with indices of their own, whenever all are measured; none is the end.

    Raises:
        GpuprofError: A worker cannot be replaced.
        PlaceLost: No place is left where cases could run, and some have not.
        KeyboardInterrupt: The run was asked to end; no worker is left.
    """
    if first is None:
        first = reopened(transports[0], request)
        with suppress(WorkerLost):  # a worker that is gone already is replaced at its first case
            first.tell(Prepare.of(cases.values(), first.opened.device))
    if on_counted is not None and first.opened.backend == "gpu":
        expected = [*cases.values(), *(case for _, case, _ in uncounted)]
        counting = counting or Counting(request, first.opened.device, cards=cards, expected=expected)
        counting.on_counted = on_counted
        for index, case, measurement in uncounted:
            counting.add(index, case, measurement)
    own, *others = transports[: max(1, len(cases))]
    prepares = len(cases) >= _WORTH_PREPARING * len(transports)
    session = _Session(dict(cases), request, memory_bytes, on_start, on_done, prepares, counting)
    pool = Pool([_Slot(session, own, first), *(_Slot(session, each) for each in others)], ahead=True)
    try:
        while cases:
            for code, indices in _in_order(cases, first.opened.device, beside=bool(others)):
                pool.add(code, partial(_measure_each, indices))
            pool.settle()
            cases = more()
            session.cases.update(cases)
        if counting is not None and counting.left:
            on_timed()
        if on_reached is not None and first.opened.backend == "gpu":
            pool.add(None, lambda slot: slot.reach(on_reached))
            pool.settle()
        if counting is not None:
            counting.wait()
    finally:
        if counting is not None:
            counting.close()
        pool.close()


def _in_order(
    cases: Mapping[int, Case], device: Device, *, beside: bool
) -> Iterator[tuple[Hashable, list[int]]]:
    """Yield indices of the cases that are measured together, with what decides their code.

    One worker takes all. Of several beside each other one takes all cases of the same code and problem, as
    it knows what they do after the first; and what takes long does not begin when others have nothing left.
    """
    if not beside:
        yield (), [*cases]
        return
    found: dict[object, tuple[Hashable, list[int]]] = {}
    for index, case in cases.items():
        if not case.is_reference:
            with suppress(CaseSkipped):  # it is told when the case's turn comes
                case, _ = resolve(case, device)
        code = case.name, case.block, tuple(sorted(case.params.items()))
        found.setdefault((code, case.problem), (code, []))[1].append(index)
    yield from sorted(found.values(), key=lambda one: -cases[one[1][0]].problem.array_bytes)


def reopened(transport: Transport, request: Open) -> Worker:
    """A worker in the place of an earlier one; a card that others crowd may have room for it in a while."""
    for pause_s in _PAUSES_S:
        with suppress(BackendUnavailable):
            return transport(request)
        end = time.monotonic() + pause_s
        while time.monotonic() < end:
            signals.check()
            time.sleep(_POLL_S)
    return transport(request)


class _Session(Struct, frozen=True, eq=False):
    """What all slots share."""

    cases: dict[int, Case]
    request: Open
    memory_bytes: int
    on_start: Callable[[int], None]
    on_done: OnCase
    prepares: bool
    counting: Counting | None
    #: Held while one of these is called.
    lock: threading.Lock = field(default_factory=threading.Lock)


def _measure_each(left: list[int], slot: "_Slot") -> None:
    """Measure cases one after the other; what is left when the slot loses its place is any other's.

    Those come first whose code is there: nothing is measured while the compiler is waited for.
    """
    while left and not slot.closed:
        index = next((one for one in left if slot.is_ready(one)), left[0])
        slot.take(index)
        left.remove(index)


class _Slot:
    """One worker at a time, for the thread that feeds it."""

    def __init__(self, session: _Session, transport: Transport, worker: Worker | None = None) -> None:
        self._session, self._transport, self._worker = session, transport, worker
        self._open = partial(reopened, transport) if worker else transport
        self._cases, self._request = session.cases, session.request
        self._beside: ExecutorProcess | None = None
        self.closed = False
        self._attempts: dict[int, str] = {}
        self._compiling: tuple[str, ...] = ()

    def is_ready(self, index: int) -> bool:
        """Whether a case's code is there, as far as is known."""
        return self._cases[index].name not in self._compiling

    def open(self) -> None:
        """Have a worker there, and let it compile ahead."""
        if self._worker is None:
            worker = self._present()
            if self._session.prepares:
                with suppress(WorkerLost):
                    worker.tell(Prepare.of(self._cases.values(), worker.opened.device))

    def _present(self) -> Worker:
        """The worker, or another one in the place of one that was lost."""
        if self._worker is None:
            self._worker = self._open(self._request)
            self._open = partial(reopened, self._transport)
        return self._worker

    def take(self, index: int) -> None:
        """Measure a case, and tell what came of it."""
        session = self._session
        with session.lock:
            session.on_start(index)
        with self._undisturbed(index):
            measurement, request, opened = self._measure(index)
        if request is not None and not self.closed:
            measurement = self._explained(measurement, request, opened)
        if self.closed:
            return
        with session.lock:
            session.on_done(index, measurement)
        if session.counting is not None and measurement.outcome == "ok" and measurement.source_hash:
            session.counting.add(index, self._cases[index], measurement)

    def reach(self, on_reached: Callable[[Device], None]) -> None:
        """Have measured what the device reaches; where that fails it has not been measured.

        That was the worker's last: its driver takes a while to let go of the device.
        """
        with suppress(WorkerLost, PlaceLost, GpuprofError):
            on_reached(self._present().ask(Reach(), self._request.timeout_s))
        self._discard()

    def close(self) -> None:
        """End the worker, and the thread after its present case."""
        self.closed = True
        if self._beside is not None:
            self._beside.close()
        self._discard()

    def _undisturbed(self, index: int) -> AbstractContextManager[None]:
        """While the CPU itself is timed, nothing else may run on it."""
        if self._session.counting is not None and on_host(self._cases[index]):
            return self._session.counting.paused()
        return nullcontext()

    def _measure(self, index: int, tries: int = 1) -> tuple[Measurement, Explain | None, Opened]:
        """What came of a case, what there is to explain of it, and what ran it."""
        case = self._cases[index]
        fresh = self._worker is None
        worker = self._present()
        opened, died = worker.opened, True
        request = Measure(case, self._session.memory_bytes)
        compile_s = None if case.is_reference else self._request.compile_timeout_s
        try:
            with timeline.span("case", f"{case.name} {case.problem.label}"):
                answer = worker.ask(request, self._request.timeout_s, compile_s=compile_s)
        except WorkerLost as lost:
            self._discard()
            vanished = lost.how == "vanished" and index not in self._attempts
            again = lost.how != "timeout" and (vanished or not fresh or worth_another_try(lost, tries))
            if again and not self.closed:
                # An earlier case, the compilation of a later one, the machine or somebody else may be to
                # blame: once more.
                if vanished:
                    self._attempts[index] = str(lost)
                return self._measure(index, tries + fresh)
            if lost.how == "timeout":
                measurement = self._out_of_time(case, opened, compiling=lost.compiling)
            elif lost.out_of_memory:
                measurement = _without_memory(case, opened.device, lost)
            else:
                measurement = ended(case, opened.device, "failed", f"It crashed its process: {lost}.")
            if lost.taken or lost.compiling:  # of what did not compile the executor has nothing to run either
                return replace(measurement, lost=lost.taken), None, opened
        else:
            measurement, died = answer.measurement, answer.context_lost
            self._compiling = answer.compiling
            if died:
                self._discard()
        if index in self._attempts:
            told = f"This is the second attempt: in the first {self._attempts[index]}."
            measurement = replace(measurement, remarks=(*measurement.remarks, told))
        return measurement, explain_request(case, measurement, opened.backend, died=died), opened

    def _out_of_time(self, case: Case, opened: Opened, *, compiling: bool) -> Measurement:
        limit, of = self._request.timeout_s, " of CPU time" if opened.backend == "sim" else ""
        if not compiling and opened.backend == "sim" and _is_much(case, opened.device, limit):
            reason = (
                f"Not counted: the executor did not finish within {limit:g} s{of}, which says nothing"
                f" about the kernel. Allow more with --timeout{_smaller_size(case, opened.device, limit)}."
            )
            return ended(case, opened.device, "skipped", reason, "the executor had no time for it")
        did, option = "end", "--timeout"
        if compiling:
            did, limit, of, option = "compile", self._request.compile_timeout_s, "", "--compile-timeout"
        reason = f"The case did not {did} within {limit:g} s{of} and was stopped. Allow more with {option}"
        if opened.backend == "gpu" and not (compiling or case.is_reference):
            reason += _smaller_size(case, opened.device, limit)
        reason += "."
        return ended(case, opened.device, "timeout", reason)

    def _explained(self, measurement: Measurement, request: Explain, opened: Opened) -> Measurement:
        """A case that went wrong, with what explains it; as it was measured where the run is to end.

        What a GPU ran is explained by a process of its own, what the executor ran by the worker that ran it.
        Either is killed when its time is over.
        """
        if not self._request.explain:
            return replace(measurement, explanation_reason="explaining was turned off")
        worker = self._worker if request.as_run else None
        try:
            answer = (worker or self._executor(opened.device)).ask(request, _EXPLAINING_S)
        except KeyboardInterrupt:
            return replace(measurement, explanation_reason="the run was ended before")
        except (WorkerLost, GpuprofError) as error:
            if worker is not None:
                self._discard()
            lost = f"the process that was to explain it was lost: {error}"
            return replace(measurement, explanation_reason=lost)
        return _with_explanation(measurement, answer, as_run=request.as_run)

    def _executor(self, device: Device) -> ExecutorProcess:
        """The process that explains what a GPU ran."""
        if self._beside is None:
            self._beside = ExecutorProcess(replace(self._request, executes=device))
        if self.closed:
            self._beside.close()
        return self._beside

    def _discard(self) -> None:
        if self._worker is not None:
            self._worker.close()
            self._worker = None


def explain_request(
    case: Case, measurement: Measurement, backend: BackendName, *, died: bool
) -> Explain | None:
    """What to ask of a case; None where there is nothing to explain. One that died took its context along."""
    symptom: Symptom
    if measurement.is_reference or measurement.explanation is not None:
        return None
    if measurement.outcome == "incorrect":
        symptom = "wrong"
    elif measurement.outcome == "timeout":
        symptom = "hang"
    elif measurement.outcome == "failed" and died and backend == "gpu":
        symptom = "fault"
    else:
        return None
    request = Explain(
        case, symptom, _EXPLAINING_S - _MARGIN_S, as_run=backend == "sim" and symptom == "wrong"
    )
    found = measurement.verification
    if found is None or found.first_wrong is None:
        return request
    return replace(request, output=found.array, element=found.first_wrong)


def _with_explanation(measurement: Measurement, answer: Explained, *, as_run: bool) -> Measurement:
    """A case that went wrong, with what explains it, or why that is not known."""
    if answer.explanation is None:
        sentence = f"{answer.reason}."
    else:
        sentence = answer.explanation.sentence(None if as_run else measurement.problem)
    return replace(
        measurement,
        reason=" ".join(filter(None, (measurement.reason, sentence))),
        explanation=answer.explanation,
        explanation_reason=answer.reason or None,
    )


def _without_memory(case: Case, device: Device, death: WorkerLost) -> Measurement:
    reason = (
        f"Did not finish, which says nothing about the kernel: {death}. Choose a smaller --sizes, free"
        " memory, or run it where there is more."
    )
    return ended(case, device, "skipped", reason, "there was not enough memory")


def _is_much(case: Case, device: Device, seconds: float) -> bool:
    """Whether a case may take the executor so long though its kernel does come to an end."""
    try:
        instructions = expected_instructions(configured(case, device))
    except GpuprofError:
        return False
    return instructions > seconds * _EXECUTED_PER_S


def _smaller_size(case: Case, device: Device, limit: float) -> str:
    """What else helps: the largest size of the same kind that likely takes the executor seconds, if any.

    The case's own took it longer than the limit.
    """
    if case.problem.operation.coded == GIVEN:
        return ", or give smaller arrays"
    try:
        found = configured(case, device)
        per_s = min(_USUAL_PER_S, expected_instructions(found) / limit)
        most = _SECONDS * per_s
        smaller = [one.problem for one in smaller_cases(found, device, most)]
        sizes = max((prod(problem.sizes), problem.label) for problem in smaller)[1]
    except (GpuprofError, ExpressionError, ValueError):
        return ": no smaller size suits this kernel"
    return f", or choose a smaller size: --sizes {sizes}"


def ended(
    case: Case, device: Device, outcome: Outcome, reason: str, why: str = "the case did not end"
) -> Measurement:
    """A case that brought nothing home."""
    if case.is_reference:
        return unmeasured(case, None, outcome, reason, why)
    try:
        resolved, kernel = resolve(case, device)
    except CaseSkipped:
        return unmeasured(case, None, outcome, reason, why)
    return credited(unmeasured(resolved, kernel, outcome, reason, why), case)
