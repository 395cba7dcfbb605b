# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Look for what made a case fail, hang or come out wrong, by running it on the executor.

A small case is run as it is. Of a large one smaller sizes of the same character are run, from the cheapest
on, until one shows it; then the blocks of the case itself that are most likely to, and at last all of them,
for as long as there is time.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from types import FrameType

from gpuprof.backends.base import ExplainedFailure
from gpuprof.backends.sim.backend import SimBackend
from gpuprof.backends.sim.launching import Samples
from gpuprof.backends.sim.sampled import blocks_at_the_ends, blocks_near
from gpuprof.backends.sim.traced import REPETITIONS, TracedCase
from gpuprof.errors import CaseFailure, CaseSkipped, CompileError
from gpuprof.kernels.shape import ConfiguredCase
from gpuprof.kernels.smaller_sizes import expected_instructions, smaller_cases
from gpuprof.measure.case import configured
from gpuprof.measure.execute import Compile
from gpuprof.measure.protocol import Explain, Symptom
from gpuprof.problems.formulas import ExpressionError
from gpuprof.records import replace
from gpuprof.results import Cause, Explanation
from gpuprof.text import listed


class OutOfTime(BaseException):
    """The time is spent: raised wherever the work is, past all that handles errors of the work itself."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """End the block with `OutOfTime` unless it ends by itself; only in the main thread of a process.

    What the block was changing when its time ran out must not be used again.
    """

    def end(_number: int, _frame: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


#: Work up to which a size is run whole without looking further: instructions of single lanes, very roughly.
#: It takes a second or two.
_AFFORDABLE = 5e7
#: Bytes of arrays that are made for an explanation.
_MOST_BYTES = 4 << 30
#: Where the device hung: instructions of one batch after which a loop may be taken for endless, and seconds
#: that are spent on being surer, with as many more instructions as they allow.
_FEW_INSTRUCTIONS, _MANY_INSTRUCTIONS = 2_000, 1_000_000
_SURER_S = 3.0

#: What the executor may find for a symptom to be explained; anything else is another fault.
_CAUSES: dict[Symptom, frozenset[Cause]] = {
    "fault": frozenset({"illegal address", "misaligned address", "trap", "barrier", "mbarrier"}),
    "hang": frozenset({"endless loop", "barrier", "mbarrier", "race"}),
    "wrong": frozenset(
        {
            *("illegal address", "misaligned address", "write to an input", "race", "undefined value"),
            *("barrier", "mbarrier", "asynchronous copy", "missing fence", "wrong store", "never written"),
        }
    ),
}


def explain_case(
    request: Explain, backend: SimBackend, compile_kernel: Compile
) -> tuple[Explanation | None, str]:
    """What made a case go wrong.

    Returns:
        The explanation and an empty text, or None and why there is none.
    """
    search = _Search(request, backend, compile_kernel)
    try:
        with time_limit(request.seconds):
            search.run()
    except OutOfTime:
        search.ran_out = True
    except CaseSkipped as skipped:
        search.obstacle = skipped.what
    found = search.found or search.other
    return found, "" if found else search.why_not()


class _Search:
    def __init__(self, request: Explain, backend: SimBackend, compile_kernel: Compile) -> None:
        self._request = request
        self._backend = backend
        self._compile = compile_kernel
        self.found: Explanation | None = None
        #: A fault of another kind, which comes first in the executor.
        self.other: Explanation | None = None
        self.ran_out = False
        self.obstacle = ""
        self._right: list[str] = []

    def run(self) -> None:
        """Look until something is found."""
        device, request = self._backend.device, self._request
        case = configured(request.case, device)
        whole: Samples = [None] * len(case.launches)
        as_run: Samples | None = None
        if request.as_run:
            with suppress(CaseSkipped):  # blocks that wait for each other are looked at where they are few
                as_run = self._backend.samples(case)
        if as_run is not None:
            # Where its sample left doubts, the whole grid was run; it may be right in its first launch.
            if not self._look(case, as_run, REPETITIONS) and as_run != whole:
                self._look(case, whole, REPETITIONS)
            return
        room = min(_MOST_BYTES, self._backend.memory_budget_bytes)
        fits = self._backend.problem_bytes(case.problem) <= room
        # A loop that does not end costs least with few threads.
        if fits and expected_instructions(case) <= _AFFORDABLE and request.symptom != "hang":
            self._look(case, whole, REPETITIONS)
            return
        repetitions = REPETITIONS
        for smaller in smaller_cases(case, device, _AFFORDABLE):
            if self._look(smaller, whole, repetitions):
                return
            repetitions = 1
        if not fits:
            return
        for samples in self._suspects(case):
            if self._look(case, samples):
                return
        self._look(case, whole)

    def why_not(self) -> str:
        at = f" {listed(self._right)}" if self._right else ""
        if self.ran_out:
            right = f"; it found nothing wrong{at}" if at else ""
            return f"The executor did not finish in the time for explanations{right}"
        if not self._right:
            why = self.obstacle.rstrip(".") or "no size that fits its memory and time behaves like this one"
            return f"The executor cannot tell why: {why}"
        elsewhere = f"; elsewhere it cannot tell: {self.obstacle.rstrip('.')}" if self.obstacle else ""
        slow = ", which may only be slow," if self._request.symptom == "hang" else ""
        return (
            f"The executor finds nothing wrong with it{slow}{at}: what differs between runs, like some races,"
            f" or what it does not model does not show there{elsewhere}"
        )

    def _look(self, case: ConfiguredCase, samples: Samples, repetitions: int = 1) -> bool:
        """Run one size, or some of its blocks; True when that shows what the device showed."""
        try:
            traced = TracedCase(self._backend, case, self._compile(case))
            if self._request.symptom == "hang":
                explanation = _hanging(traced, samples)
            else:
                explanation = traced.explain(samples, repetitions=repetitions)
                whole = all(sample is None for sample in samples)
                if explanation is None and whole and self._request.symptom == "wrong":
                    explanation = self._in_another_order(case)
        except (CaseFailure, CaseSkipped, CompileError, ExpressionError) as error:
            self.obstacle = str(error)
            return False
        if explanation is None:
            some = "" if all(sample is None for sample in samples) else "in part "
            self._right.append(f"{some}at size {case.problem.label}")
        elif explanation.cause in _CAUSES[self._request.symptom]:
            self.found = explanation
        elif self.other is None:
            self.other = replace(explanation, is_another=True)
        return self.found is not None

    def _in_another_order(self, case: ConfiguredCase) -> Explanation | None:
        """What is wrong where warps and blocks come in another order than the first."""
        try:
            self._backend.run(case, self._compile(case))
        except ExplainedFailure as failure:
            return failure.explanation
        return None

    def _suspects(self, case: ConfiguredCase) -> Iterator[Samples]:
        """Some blocks of a grid; what builds on other launches or waits for blocks runs whole or not."""
        if len(case.launches) > 1 or case.largest.cooperative:
            return
        if self._request.output:
            spec = case.problem.array(self._request.output)
            yield [blocks_near(case.largest, spec, self._request.element)]
        yield [blocks_at_the_ends(case.largest)]


def _hanging(traced: TracedCase, samples: Samples) -> Explanation | None:
    start = monotonic()
    explanation = traced.explain(samples, budget=_FEW_INSTRUCTIONS)
    if explanation is None or explanation.cause != "endless loop":
        return explanation
    more = min(_MANY_INSTRUCTIONS, int(_FEW_INSTRUCTIONS * _SURER_S / (monotonic() - start)))
    return explanation if more < 2 * _FEW_INSTRUCTIONS else traced.explain(samples, budget=more)
