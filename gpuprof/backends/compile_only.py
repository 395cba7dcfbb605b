# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The backend that runs nothing: kernels are compiled, their resources and occupancy reported."""

from collections.abc import Mapping, Sequence

from gpuprof.backends.base import Findings, Functions
from gpuprof.devices.device import Device
from gpuprof.errors import CaseSkipped
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.shape import LaunchShape
from gpuprof.problems.problem import Problem
from gpuprof.results import BackendName, Condition


class CompileOnlyBackend:
    """Stands for a device that is not there."""

    def __init__(self, device: Device, reason: str) -> None:
        self.device = device
        self._reason = reason

    @property
    def name(self) -> BackendName:
        """Always `none`."""
        return "none"

    @property
    def compile_arch(self) -> str:
        """The device's architecture."""
        return self.device.arch

    @property
    def environment(self) -> Mapping[str, str]:
        """Nothing beyond what every run records."""
        return {}

    @property
    def bus_id(self) -> str:
        """Empty: the card is not there."""
        return ""

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """None: there is no driver to ask."""
        return ()

    @property
    def memory_budget_bytes(self) -> int:
        """The card's memory, so that a size that could never fit is refused here too."""
        return self.device.memory_bytes

    def problem_bytes(self, problem: Problem) -> int:
        """The problem's own arrays."""
        return problem.array_bytes

    def foresee(self, problems: Sequence[Problem]) -> None:
        """Nothing is begun."""

    def expect(self, compiled: Functions) -> None:
        """Nothing is made ready."""

    def run_reference(self, name: str, problem: Problem) -> Findings:
        """There are no references without a GPU."""
        raise CaseSkipped(f"Nothing runs here: {name} needs a GPU.")

    def run(self, kernel: Kernel, problem: Problem, shape: LaunchShape, compiled: Functions) -> Findings:
        """Say of every part why it is missing."""
        return Findings(
            "skipped",
            reason=f"Compiled, not run: {self._reason}.",
            verification_reason=self._reason,
            timing_reason=self._reason,
            event_floor_reason=self._reason,
            clocks_reason=self._reason,
            counters_reason=self._reason,
            lines_reason=self._reason,
        )
