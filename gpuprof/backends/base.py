# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The contract of every backend: open one device, then run prepared cases on it; and the one without any."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from gpuprof.devices.device import Device
from gpuprof.errors import CaseFailure, CaseSkipped
from gpuprof.kernels.shape import ConfiguredCase
from gpuprof.problems.problem import Problem
from gpuprof.results import (
    BackendName,
    Clocks,
    Condition,
    Counter,
    Explanation,
    Model,
    Outcome,
    SourceLine,
    TimingPair,
    Verification,
)
from gpuprof.toolchain.assembling import Assembler
from gpuprof.toolchain.nvrtc import CompiledKernel

#: Why a case that a GPU ran has no counts by line until the executor has counted it too.
NOT_COUNTED = "per-line counts come from the executor, which did not count it"
#: What NVRTC made of each of a kernel's functions, by its name.
Functions = Mapping[str, CompiledKernel]


class Findings(Struct, frozen=True):
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
    counters: Mapping[str, Counter] = {}
    counters_reason: str | None = None
    lines: tuple[SourceLine, ...] | None = None
    lines_reason: str | None = None
    model: Model | None = None
    model_reason: str | None = "modelled times follow from counts, and the executor did not count it"


class ExplainedFailure(CaseFailure):
    """A case that could not run to its end, and where it went wrong."""

    def __init__(self, what: str, explanation: Explanation) -> None:
        super().__init__(what)
        self.explanation = explanation


class Backend(ABC):
    """Executes cases on one device. What is said here holds where a backend says nothing of it."""

    name: BackendName
    #: What it runs on, or stands for.
    device: Device
    #: Where a GPU sits in its machine; empty of anything else.
    bus_id: str = ""
    #: What a GPU's driver told of its state before anything ran.
    conditions: tuple[Condition, ...] = ()

    def measured_device(self) -> Device:
        """What it runs on, with what a GPU reaches."""
        return self.device

    #: Makes machine code of PTX where no ptxas can; None where the backend cannot either.
    assemble: Assembler | None = None

    @property
    def environment(self) -> Mapping[str, str]:
        """What a results file records of the backend's own software."""
        return {}

    @property
    @abstractmethod
    def memory_budget_bytes(self) -> int:
        """Memory that a problem's arrays may take."""

    def problem_bytes(self, problem: Problem) -> int:
        """Memory that running a problem takes in all, verification included."""
        return problem.array_bytes

    def foresee(self, problems: Sequence[Problem]) -> Mapping[str, str]:
        """Begin what problems take long for, which come in this order, and get ready to measure beside it.

        Returns what of the environment shows only then.
        """
        return {}

    def expect(self, compiled: Functions) -> None:  # noqa: B027
        """Be told, from any thread, of functions that are likely to run: what they need may be made ready."""

    @abstractmethod
    def run(self, case: ConfiguredCase, compiled: Functions) -> Findings:
        """Verify and measure one case: all of its launches, as one.

        Raises:
            CaseFailure: The case cannot run; `fatal` when the device context is lost.
            CaseSkipped: The backend cannot execute this kernel.
        """

    def outputs(self, case: ConfiguredCase, compiled: Functions) -> Mapping[str, Any]:
        """What one launch of a case leaves in its outputs, flat, whether that is right or not.

        Raises:
            CaseFailure: It cannot run.
            CaseSkipped: There is no GPU.
        """
        raise CaseSkipped("there is no GPU that runs what compilers make")

    def run_reference(self, name: str, problem: Problem) -> Findings:
        """Verify and measure one of the references that the problem's operation declares.

        Raises:
            BackendUnavailable: What the reference needs is not installed.
            CaseFailure: It failed.
            CaseSkipped: The backend has no references.
        """
        raise CaseSkipped(f"Nothing runs here: {name} needs a GPU.")


class CompileOnlyBackend(Backend):
    """Stands for a card that is not there: kernels are compiled, their resources and occupancy reported.

    Why nothing runs is one clause.
    """

    name: BackendName = "none"

    def __init__(self, device: Device, reason: str) -> None:
        self.device = device
        self._reason = reason

    @property
    def memory_budget_bytes(self) -> int:
        """The card's memory, so that a size that could never fit is refused here too."""
        return self.device.memory_bytes

    def run(self, case: ConfiguredCase, compiled: Functions) -> Findings:
        """Say of every part why it is missing."""
        names = (name for name in Findings.__struct_fields__ if name.endswith("_reason"))
        reasons: dict[str, Any] = dict.fromkeys(names, self._reason)
        return Findings("skipped", f"Compiled, not run: {self._reason}.", **reasons)
