# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One case of a run: a kernel, a problem and a launch shape. It travels by value, its source included."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod

from gpuprof.bounds.parts import WARP_LANES
from gpuprof.devices.device import Device
from gpuprof.errors import CaseSkipped
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.shape import LaunchShape, choose
from gpuprof.problems.coded import GIVEN
from gpuprof.problems.problem import Problem
from gpuprof.results import Measurement, Outcome
from gpuprof.text import Extent

#: Tiles by which the remainders stay, and how many full ones remain, from the cheapest on.
_STEPS = ((32, 1), (64, 1), (128, 1), (256, 1), (256, 2), (256, 4), (256, 16), (256, 64), (256, 256))
#: What a thread that has nothing to do takes, and a floating-point operation with what belongs to it.
_PER_LANE, _PER_FLOP = 20, 3


@dataclass(frozen=True, slots=True)
class Case:
    """What to measure: a kernel, or a reference of the operation.

    Args:
        kernel: The kernel; None for a reference, which has no source and chooses its launch.
        params: Parameters that replace the header's defaults.
    """

    name: str
    problem: Problem
    block: Extent
    kernel: Kernel | None = None
    params: Mapping[str, int] = field(default_factory=dict)
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
        return cls(kernel.id, problem, block or kernel.launch.block, kernel, params or {}, alternatives)

    @property
    def is_reference(self) -> bool:
        """Whether it is of something to compare kernels with."""
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
    return replace(case, name=chosen.id, kernel=chosen, block=chosen.launch.block, alternatives=()), chosen


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
        verification_reason=why,
        timing_reason=why,
        event_floor_reason=why,
        throughput_reason="no time was measured",
        resources_reason=why,
        occupancy_reason=why,
        clocks_reason=why,
        counters_reason=why,
        bounds_reason=why,
        model_reason="there is no model yet",
        lines_reason=why,
        explanation_reason="there is nothing to explain",
    )


def expected_instructions(problem: Problem, shape: LaunchShape) -> float:
    """What executing every block of a case takes, in instructions of single lanes, very roughly."""
    lanes = sum(prod(one.grid) * -(-prod(one.block) // WARP_LANES) * WARP_LANES for one in shape.launches)
    return _PER_LANE * lanes + _PER_FLOP * problem.flops


def smaller_problems(problem: Problem) -> Iterator[Problem]:
    """The same operation at smaller sizes; none where its arrays were given and have the size they have.

    What a size does to a kernel is decided by what is left over behind its last full tile, and by whether
    there is more than one block. So each extent keeps its remainder by a power of two, and the smaller ones
    come first.
    """
    if problem.operation.coded == GIVEN:
        return
    seen = {problem.sizes}
    for tile, count in _STEPS:
        sizes = tuple(min(extent, tile * count + extent % tile) for extent in problem.sizes)
        if sizes not in seen:
            seen.add(sizes)
            yield replace(problem, sizes=sizes)
