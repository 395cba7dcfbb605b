# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a worker process does: open a backend, measure the cases it is sent, until a kernel kills its context.

Requests come on standard input, answers go to standard output.
"""

import errno
import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

from gpuprof import timeline
from gpuprof.backends.base import Backend, CompileOnlyBackend, ExplainedFailure, Findings, Functions
from gpuprof.backends.select import gpu_ahead, open_backend, open_executor
from gpuprof.errors import CaseFailure, CaseSkipped, GpuprofError
from gpuprof.kernels.shape import ConfiguredCase
from gpuprof.machine import (
    gib,
    held_memory_bytes,
    limit_memory,
    memory_left_bytes,
    most_memory_bytes,
)
from gpuprof.measure.case import Case, configured
from gpuprof.measure.execute import Compiler, measure_case
from gpuprof.measure.protocol import (
    OUT_OF_MEMORY,
    Build,
    Compiled,
    Count,
    Explain,
    Explained,
    Measure,
    Measured,
    Open,
    Opened,
    Prepare,
    Reach,
    Refused,
    Size,
    Sized,
    decode,
    encode,
)
from gpuprof.problems.given import look_in
from gpuprof.records import replace
from gpuprof.results import Measurement
from gpuprof.toolchain.nvrtc import software_versions

if TYPE_CHECKING:
    from gpuprof.backends.sim.backend import SimBackend

#: What may end well by luck.
_UNDEFINED = (
    *("illegal address", "barrier", "mbarrier", "race", "undefined value", "asynchronous copy"),
    "missing fence",
)
_RIGHT_BY_LUCK = "The results are right here, which CUDA does not promise: {}"


class WorkerSide:
    """Answers requests; `lost` says that the device context is gone."""

    def __init__(self, tell: Callable[[Any], None]) -> None:
        self.lost = False
        self._tell = tell
        self._backend: Backend
        self._compile: Compiler
        self._held_bytes = self._most_bytes = 0
        self._request = Open()
        self._executor: SimBackend | None = None

    def answer(self, request: Any) -> Any:
        match request:
            case Open():
                return self._open(request)
            case Size():
                environment = self._backend.foresee(request.problems)
                return Sized(tuple(map(self._backend.problem_bytes, request.problems)), environment)
            case Reach():
                return self._backend.measured_device()
            case Prepare():
                # All of them first: threads that compile contend for the interpreter.
                for found, name in [*self._found(request.cases)]:
                    self._compile.compile_ahead(found, name)
                return None
            case Measure():
                if request.memory_bytes:
                    self._limit_memory(request.memory_bytes)
                measurement, self.lost = measure_case(request.case, self._backend, self._compiled)
                measurement = self._with_compilers(request.case, measurement)
                return Measured(measurement, self.lost, self._compile.compiling)
            case Explain():
                from gpuprof.measure.explain import explain_case

                return Explained(*explain_case(request, self._sim, self._compile))
            case Count():
                return self._count(request.case)
            case Build():
                nothing = CompileOnlyBackend(self._backend.device, "only its resources were asked for")
                return Measured(*measure_case(request.case, nothing, self._compile))
        raise TypeError(f"no request: {request!r}")

    def _open(self, request: Open) -> Opened:
        self._request = request
        if request.given_arrays:
            look_in(request.given_arrays)
        with timeline.span("backend"):
            if request.executes is not None:
                self._backend, reason = open_executor(request.executes, request), None
            else:
                if (device := gpu_ahead(request.device, request.arch)) is not None:
                    self._tell(device)
                self._backend, reason = open_backend(request, request.libraries)
        self._held_bytes, self._most_bytes = held_memory_bytes(), most_memory_bytes()
        self._limit_memory(self._most_bytes)
        self._compile = Compiler(self._backend.device.arch, self._backend.expect, self._backend.assemble)
        # What stands beside a run's own worker has nothing to say of its environment, and begins sooner.
        versions = software_versions() if self._request.executes is None else {}
        return Opened(
            device=self._backend.device,
            backend=self._backend.name,
            backend_reason=reason,
            environment={**versions, **self._backend.environment},
            memory_budget_bytes=self._backend.memory_budget_bytes,
            bus_id=self._backend.bus_id,
            conditions=self._backend.conditions,
        )

    def _with_compilers(self, case: Case, measurement: Measurement) -> Measurement:
        """The measurement with what is said of the compilers, where that was asked for and can be told."""
        if not self._request.check_compiler or self.lost or case.is_reference:
            return measurement
        from gpuprof.backends.sim.backend import SimBackend
        from gpuprof.measure.compiler_check import compiler_remarks

        if self._executor is None:
            self._executor = SimBackend(self._backend.device, self._request)
        said, self.lost = compiler_remarks(case, self._backend, self._executor, self._compile)
        return replace(measurement, remarks=(*measurement.remarks, *said))

    def _limit_memory(self, most_bytes: int) -> None:
        """Let kernels and formulas take so much, and no more than the machine had at the start.

        The driver's own allocations are not to fail: with a GPU, only what formulas take is bounded.
        """
        if self._backend.name != "gpu":
            limit_memory(self._held_bytes + min(self._most_bytes, most_bytes))

    def _compiled(self, case: ConfiguredCase) -> Functions:
        """Compile, and say so when that is over: compiling and running have limits of their own."""
        try:
            with timeline.span("wait", case.kernel.id):
                return self._compile(case)
        finally:
            self._tell(Compiled())

    @property
    def _sim(self) -> "SimBackend":
        from gpuprof.backends.sim.backend import SimBackend

        if not isinstance(self._backend, SimBackend):
            raise TypeError("only the executor counts and explains")
        return self._backend

    def _count(self, case: Case) -> Findings:
        from gpuprof.backends.sim.executed import findings_of

        executor = self._sim
        if executor.problem_bytes(case.problem) > executor.memory_budget_bytes:
            why = "its arrays do not fit into this machine's memory a second time"
            return Findings("skipped", reason=why)
        try:
            found = configured(case, executor.device)
            executor.begin_inputs(found.problem)
            return findings_of(None, executor.count(found, self._compile(found)))
        except (CaseFailure, CaseSkipped) as error:
            undefined = isinstance(error, ExplainedFailure) and error.explanation.cause in _UNDEFINED
            said = (_RIGHT_BY_LUCK.format(error.what),) if undefined else ()
            return Findings("skipped", remarks=said, reason=error.what)

    def _found(self, cases: Iterable[Case]) -> Iterator[tuple[ConfiguredCase, str]]:
        """What can be compiled, with the case's name; what is wrong with others is told in their turn."""
        for case in cases:
            if not case.is_reference:
                with suppress(GpuprofError):
                    yield configured(case, self._backend.device), case.name


def serve(requests: Iterable[str], answers: TextIO) -> None:
    """Answer requests until the input ends or the device context is lost."""

    def tell(message: Any) -> None:
        answers.write(encode(message))
        answers.flush()

    worker = WorkerSide(tell)
    for line in requests:
        try:
            answer = worker.answer(decode(line))
        except GpuprofError as error:
            answer = Refused.by(error)
        except (MemoryError, OSError) as error:
            if isinstance(error, OSError) and error.errno != errno.ENOMEM:
                raise
            _end_out_of_memory(error)
        if answer is not None:
            tell(answer)
        if worker.lost:
            break


def _end_out_of_memory(error: Exception) -> None:
    """End the process: what it holds on to goes with it, and the next one starts with all the memory."""
    what = " ".join(str(error).split()) or "an allocation failed"
    sys.stderr.write(f"{what}; {gib(memory_left_bytes())} are left for it\n")
    sys.stderr.flush()
    os._exit(OUT_OF_MEMORY)


def main(requests: Iterable[str]) -> None:
    """Answer requests on the process's own standard output."""
    gc.freeze()  # what is loaded stays
    # A kernel's printf and a library's chatter go to standard output too: keep them off the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(requests, answers)
    answers.flush()
    # A lost context, or threads still compiling, must not delay the end.
    os._exit(0)
