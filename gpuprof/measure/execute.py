# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Measure one case inside a worker: configure, compile, then hand over to the backend."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from gpuprof.backends.base import Backend, ExplainedFailure, Findings, Functions
from gpuprof.backends.compiling import compile_kernel, occupancy_of
from gpuprof.bounds import with_bounds, without_impossible_time
from gpuprof.devices.device import Device
from gpuprof.errors import BackendUnavailable, CaseFailure, CaseSkipped, CompileError, GpuprofError
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.shape import ConfiguredCase, OneLaunch, configure
from gpuprof.kernels.symbols import left_unset
from gpuprof.machine import usable_cores
from gpuprof.measure.case import Case, credited, resolve, unmeasured
from gpuprof.problems.formulas import ExpressionError
from gpuprof.records import replace
from gpuprof.results import LaunchRecord, Measurement, Occupancy, Resources, Throughput
from gpuprof.toolchain.assembling import NO_PTXAS, Assembler
from gpuprof.toolchain.nvrtc import CompiledKernel

Compile = Callable[[ConfiguredCase], Functions]


class Compiler:
    """Compiles for one architecture, ahead of need in threads where asked."""

    def __init__(
        self,
        arch: str,
        on_ahead: Callable[[Functions], None] | None = None,
        assemble: Assembler | None = None,
    ) -> None:
        self._arch = arch
        self._assemble = assemble
        self._on_ahead = on_ahead
        self._pool = ThreadPoolExecutor(max_workers=min(8, usable_cores()))
        self._ahead: dict[Any, Future[Functions]] = {}
        self._awaited: list[tuple[str, Future[Functions]]] = []

    def compile_ahead(self, case: ConfiguredCase, name: str = "") -> None:
        """Begin to compile what a case of that name runs."""
        key = _key(case)
        if key not in self._ahead:
            self._ahead[key] = self._pool.submit(self._compiled_ahead, case)
        self._awaited.append((name, self._ahead[key]))

    @property
    def compiling(self) -> tuple[str, ...]:
        """Names of cases that are still being compiled ahead."""
        self._awaited = [each for each in self._awaited if not each[1].done()]
        return tuple(dict.fromkeys(name for name, _ in self._awaited))

    def __call__(self, case: ConfiguredCase) -> Functions:
        future = self._ahead.get(_key(case))
        return future.result() if future else self._compile(case)

    def _compiled_ahead(self, case: ConfiguredCase) -> Functions:
        compiled = self._compile(case)
        if self._on_ahead is not None:
            self._on_ahead(compiled)
        return compiled

    def _compile(self, case: ConfiguredCase) -> Functions:
        return compile_kernel(case, self._arch, self._assemble)


def _key(case: ConfiguredCase) -> tuple[object, ...]:
    return case.kernel.id, case.kernel.built, case.entries, case.defines


def measure_case(case: Case, backend: Backend, compile_kernel: Compile) -> tuple[Measurement, bool]:
    """Everything that can be learnt about a case.

    Returns:
        The measurement, and whether the device context is lost.
    """
    measurement, lost = _measure(case, backend, compile_kernel)
    return without_impossible_time(with_bounds(measurement, backend.device)), lost


def _measure(case: Case, backend: Backend, compile_kernel: Compile) -> tuple[Measurement, bool]:
    if case.is_reference:
        return _measure_reference(case, backend)
    try:
        resolved, kernel = resolve(case, backend.device)
    except CaseSkipped as error:
        return unmeasured(case, None, "skipped", str(error), "no kernel was chosen"), False
    measurement, lost = _measure_kernel(resolved, kernel, backend, compile_kernel)
    return credited(measurement, case), lost


def _measure_kernel(
    case: Case, kernel: Kernel, backend: Backend, compile_kernel: Compile
) -> tuple[Measurement, bool]:
    result = unmeasured(case, kernel, "skipped", None, "the case ended before")
    try:
        configured = configure(kernel, case.problem, case.block, case.params, backend.device)
        result = replace(result, block=configured.largest.block, grid=configured.largest.grid)
        compiled = compile_kernel(configured)
        result = _with_resources(result, backend, configured, compiled)
        findings = backend.run(configured, compiled)
        ptx_of = {function.entry: function.ptx for function in compiled.values()}
        if findings.outcome == "incorrect" and (unset := left_unset(kernel, ptx_of)):
            findings = replace(findings, reason=f"{findings.reason} {unset}")
    except CaseSkipped as error:
        return replace(result, reason=str(error)), False
    except CompileError as error:
        return replace(result, outcome="failed", reason=str(error), log=error.log), False
    except ExpressionError as error:
        return replace(result, outcome="failed", reason=f"The reference has no value: {error}."), False
    except CaseFailure as error:
        failed = replace(result, outcome="failed", reason=str(error), over_limit=error.over_limit)
        if isinstance(error, ExplainedFailure):
            failed = replace(failed, explanation=error.explanation, explanation_reason=None)
        return failed, error.fatal
    return _with_findings(result, backend, findings), False


def _measure_reference(case: Case, backend: Backend) -> tuple[Measurement, bool]:
    """A reference's measurement; a library that is not installed is a skipped row."""
    result = unmeasured(case, None, "skipped", None, "not known of a library")
    try:
        findings = backend.run_reference(case.name, case.problem)
    except (BackendUnavailable, CaseSkipped) as error:
        return replace(result, reason=str(error)), False
    except CaseFailure as error:
        return replace(result, outcome="failed", reason=str(error)), error.fatal
    return _with_findings(result, backend, findings), False


def _with_findings(result: Measurement, backend: Backend, findings: Findings) -> Measurement:
    result = replace(result, **{name: getattr(findings, name) for name in findings.__struct_fields__})
    if result.timing and result.timing.cold:
        rates = Throughput.of(result.problem, backend.device, result.timing.cold.median_us)
        result = replace(result, throughput=rates, throughput_reason=None)
    return result


def _with_resources(
    result: Measurement, backend: Backend, case: ConfiguredCase, compiled: Functions
) -> Measurement:
    """What the compiler says; of several launches the largest stands for the case."""
    first = compiled[case.launches[0].entry]
    if not first.registers_per_thread:
        return replace(
            result, resources_reason=NO_PTXAS, occupancy_reason=NO_PTXAS, compile_options=first.options
        )
    records = [_launch_record(launch, compiled[launch.entry], backend.device) for launch in case.launches]
    main = records[case.launches.index(case.largest)]
    return replace(
        result,
        resources=main.resources,
        resources_reason=None,
        occupancy=main.occupancy,
        occupancy_reason=main.occupancy_reason,
        launches=tuple(records) if len(records) > 1 else (),
        compile_options=first.options,
        log=first.log,
    )


def _launch_record(launch: OneLaunch, compiled: CompiledKernel, device: Device) -> LaunchRecord:
    record = LaunchRecord(
        entry=launch.entry,
        block=launch.block,
        grid=launch.grid,
        resources=Resources(
            registers_per_thread=compiled.registers_per_thread,
            static_shared_bytes=compiled.static_shared_bytes,
            dynamic_shared_bytes=launch.dynamic_shared_bytes,
            spill_bytes=compiled.spill_bytes,
        ),
    )
    try:
        held = occupancy_of(device, launch, compiled)
    except GpuprofError as error:
        return replace(record, occupancy_reason=str(error))
    return replace(record, occupancy=Occupancy(held.theoretical_pct, held.limiter, held.blocks_per_sm))
