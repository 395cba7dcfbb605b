# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The contract of every backend: open one device, then run prepared cases on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from gpuprof.devices.device import Device
from gpuprof.errors import CaseFailure
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.shape import LaunchShape
from gpuprof.problems.problem import Problem
from gpuprof.results import (
    BackendName,
    Clocks,
    Condition,
    Counter,
    Explanation,
    Outcome,
    SourceLine,
    TimingPair,
    Verification,
)
from gpuprof.toolchain.nvrtc import CompiledKernel

#: Why a case that a GPU ran has no counts by line until the executor has counted it too.
NOT_COUNTED = "per-line counts come from the executor, which did not count it"
#: What NVRTC made of each of a kernel's functions, by its name.
Functions = Mapping[str, CompiledKernel]


@dataclass(frozen=True, slots=True)
class Findings:
    """What running one case taught; fields as in `results.Measurement`."""

    outcome: Outcome
    reason: str | None = None
    remarks: tuple[str, ...] = ()
    verification: Verification | None = None
    verification_reason: str | None = None
    timing: TimingPair | None = None
    timing_reason: str | None = None
    event_floor_us: float | None = None
    event_floor_reason: str | None = None
    event_pair_us: float | None = None
    clocks: Clocks | None = None
    clocks_reason: str | None = None
    counters: Mapping[str, Counter] = field(default_factory=dict)
    counters_reason: str | None = None
    executor_counters: Mapping[str, Counter] = field(default_factory=dict)
    lines: tuple[SourceLine, ...] | None = None
    lines_reason: str | None = None


class ExplainedFailure(CaseFailure):
    """A case that could not run to its end, and where it went wrong."""

    def __init__(self, what: str, explanation: Explanation) -> None:
        super().__init__(what)
        self.explanation = explanation


class Backend(Protocol):
    """Executes cases on one device."""

    @property
    def name(self) -> BackendName:
        """Which backend this is."""
        ...

    @property
    def device(self) -> Device:
        """The device it stands for."""
        ...

    @property
    def compile_arch(self) -> str:
        """Architecture that kernels are compiled for, for example `sm_90`."""
        ...

    @property
    def environment(self) -> Mapping[str, str]:
        """What a results file records of the backend's own software."""
        ...

    @property
    def bus_id(self) -> str:
        """Where a GPU sits in its machine; empty of anything else."""
        ...

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What a GPU's driver told of its state before anything ran."""
        ...

    @property
    def memory_budget_bytes(self) -> int:
        """Memory that a problem's arrays may take."""
        ...

    def problem_bytes(self, problem: Problem) -> int:
        """Memory that running a problem takes in all, verification included."""
        ...

    def foresee(self, problems: Sequence[Problem]) -> None:
        """Be told which problems come, in their order: what they take long for may begin."""
        ...

    def expect(self, compiled: Functions) -> None:
        """Be told, from any thread, of functions that are likely to run: what they need may be made ready."""
        ...

    def run(self, kernel: Kernel, problem: Problem, shape: LaunchShape, compiled: Functions) -> Findings:
        """Verify and measure one case: all of its launches, as one.

        Raises:
            CaseFailure: The case cannot run; `fatal` when the device context is lost.
            CaseSkipped: The backend cannot execute this kernel.
        """
        ...

    def run_reference(self, name: str, problem: Problem) -> Findings:
        """Verify and measure one of the references that the problem's operation declares.

        Raises:
            BackendUnavailable: What the reference needs is not installed.
            CaseFailure: It failed.
            CaseSkipped: The backend has no references.
        """
        ...
