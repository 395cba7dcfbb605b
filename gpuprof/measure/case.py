# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One case of a run: a kernel, a problem and a launch shape. It travels by value, its source included."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from gpuprof.devices.device import Device
from gpuprof.errors import CaseSkipped
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.shape import ConfiguredCase, choose, configure
from gpuprof.problems.problem import Problem
from gpuprof.records import replace
from gpuprof.results import Measurement, Outcome
from gpuprof.text import Extent


class Case(Struct, frozen=True):
    """What to measure: a kernel, or without one a reference of the operation, which chooses its launch."""

    name: str
    problem: Problem
    block: Extent
    kernel: Kernel | None = None
    params: Mapping[str, int] = {}
    alternatives: tuple[Kernel, ...] = ()
    device: int = 0

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        problem: Problem,
        block: Extent | None = None,
        params: Mapping[str, int] | None = None,
        alternatives: tuple[Kernel, ...] = (),
    ) -> "Case":
        """The case of a kernel, with its own block unless another is given."""
        return cls(kernel.id, problem, block or kernel.block, kernel, params or {}, alternatives)

    @property
    def is_reference(self) -> bool:
        return self.kernel is None


def on_host(case: Case) -> bool:
    """Whether a case is of a reference that runs on the CPU."""
    if not case.is_reference:
        return False
    declared = case.problem.operation.references
    return any(reference.id == case.name and reference.on_host for reference in declared)


def resolve(case: Case, device: Device) -> tuple[Case, Kernel]:
    """What runs for a case: the case itself, or that of the kernel which its own chooses, and the kernel.

    Raises:
        CaseSkipped: The kernel chooses among others, and none fits; or it was given parameters.
    """
    assert case.kernel is not None
    chosen = choose(case.kernel, case.alternatives, case.problem, device)
    if chosen is case.kernel:
        return case, chosen
    if case.params:
        raise CaseSkipped(f"{case.name} takes no parameters: what it chooses, here {chosen.id}, has its own.")
    return replace(case, name=chosen.id, kernel=chosen, block=chosen.block, alternatives=()), chosen


def configured(case: Case, device: Device) -> ConfiguredCase:
    """What runs for a case, with its launches; raises as `resolve` and `configure` do."""
    case, kernel = resolve(case, device)
    return configure(kernel, case.problem, case.block, case.params, device)


def credited(measurement: Measurement, case: Case) -> Measurement:
    """What was measured for a case, under the id of its own kernel where that one chose another to run."""
    ran = measurement.kernel
    if ran == case.name:
        return measurement
    credited = replace(measurement, kernel=case.name, chosen=ran)
    return credited if measurement.lines is None else lines_of_another(credited, ran)


def lines_of_another(measurement: Measurement, ran: str) -> Measurement:
    """A measurement without its lines, which are those of the kernel that its own chose."""
    why = f"the counted lines are those of {ran}: add --kernel {ran} to see them"
    return replace(measurement, lines=None, lines_reason=why)


def unmeasured(
    case: Case, kernel: Kernel | None, outcome: Outcome, reason: str | None, why: str
) -> Measurement:
    """A measurement in which every part is still missing."""
    reasons: dict[str, Any] = {
        name: why for name in Measurement.__struct_fields__ if name.endswith("_reason")
    }
    reasons["throughput_reason"] = "no time was measured"
    reasons["explanation_reason"] = "there is nothing to explain"
    return Measurement(
        kernel=case.name,
        problem=case.problem.record(),
        block=case.block,
        grid=None,
        params={**(kernel.parameters if kernel else {}), **case.params},
        outcome=outcome,
        source_hash=kernel.source_hash if kernel else "",
        is_reference=case.is_reference,
        device=case.device,
        reason=reason,
        **reasons,
    )
