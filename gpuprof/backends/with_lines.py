# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A GPU backend whose findings the executor annotates, line by line of the source."""

from collections.abc import Mapping
from dataclasses import replace

from gpuprof.backends.base import Backend, Findings, Functions
from gpuprof.backends.sim.backend import SimBackend
from gpuprof.devices.device import Device
from gpuprof.errors import CaseFailure, CaseSkipped
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.shape import LaunchShape
from gpuprof.problems.problem import Problem
from gpuprof.results import BackendName


class WithLines:
    """Measures on a GPU, then executes the same case to attribute its counts to source lines.

    Args:
        backend: The GPU.
        executor: The executor, standing for the same device.
    """

    def __init__(self, backend: Backend, executor: SimBackend) -> None:
        self._backend = backend
        self._executor = executor

    @property
    def name(self) -> BackendName:
        """The GPU's."""
        return self._backend.name

    @property
    def device(self) -> Device:
        """The GPU's."""
        return self._backend.device

    @property
    def compile_arch(self) -> str:
        """The GPU's."""
        return self._backend.compile_arch

    @property
    def environment(self) -> Mapping[str, str]:
        """Both backends'."""
        return {**self._executor.environment, **self._backend.environment}

    @property
    def memory_budget_bytes(self) -> int:
        """The GPU's."""
        return self._backend.memory_budget_bytes

    def problem_bytes(self, problem: Problem) -> int:
        """The GPU's."""
        return self._backend.problem_bytes(problem)

    def run_reference(self, name: str, problem: Problem) -> Findings:
        """The GPU's; a library has no source lines."""
        return self._backend.run_reference(name, problem)

    def run(self, kernel: Kernel, problem: Problem, shape: LaunchShape, compiled: Functions) -> Findings:
        """Measure, then annotate; what the executor cannot do costs the annotation only.

        Raises:
            CaseFailure: The GPU could not run the case.
        """
        findings = self._backend.run(kernel, problem, shape, compiled)
        if findings.outcome != "ok":
            return findings
        try:
            executed = self._executor.count(kernel, problem, shape, compiled)
        except (CaseFailure, CaseSkipped) as error:
            return replace(findings, lines_reason=error.what)
        return replace(
            findings,
            remarks=findings.remarks + executed.remarks,
            lines=executed.lines,
            lines_reason=executed.lines_reason,
            executor_counters=executed.counters,
        )
