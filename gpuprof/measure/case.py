# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One case of a run: a kernel, a problem and a launch shape, as it travels to a worker."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from gpuprof.devices.device import Device
from gpuprof.errors import CaseSkipped
from gpuprof.kernels.catalog import load_kernel
from gpuprof.kernels.choose import choose
from gpuprof.kernels.header import Kernel
from gpuprof.kernels.launch import Extent
from gpuprof.results import Measurement, Outcome, Problem


@dataclass(frozen=True, slots=True)
class Case:
    """What to measure.

    Args:
        kernel: The kernel's id.
        kernel_path: The kernel's file.
        problem: What it computes.
        block: Threads in x, y, z.
        params: Tile parameters that replace the header's defaults.
        is_reference: True for a reference of `measure.references`, which has no file and chooses its launch.
    """

    kernel: str
    kernel_path: str
    problem: Problem
    block: Extent
    params: Mapping[str, int] = field(default_factory=dict)
    is_reference: bool = False


def resolve(case: Case, device: Device) -> tuple[Case, Kernel]:
    """What runs for a case: the case itself, or that of the kernel which its own chooses, and the kernel.

    Args:
        case: The case of a kernel, not of a reference.
        device: What it runs on.

    Raises:
        CaseSkipped: The kernel chooses among others, and none fits; or it was given parameters.
        HeaderError: The kernel's file cannot be read.
    """
    kernel = load_kernel(Path(case.kernel_path))
    chosen = choose(kernel, case.problem, device)
    if chosen is kernel:
        return case, kernel
    if case.params:
        raise CaseSkipped(f"{kernel.id} takes no parameters: what it chooses, here {chosen.id}, has its own.")
    path = str(chosen.path.resolve())
    return replace(case, kernel=chosen.id, kernel_path=path, block=chosen.launch.block), chosen


def credited(measurement: Measurement, case: Case) -> Measurement:
    """What was measured for a case, under the id of its own kernel where that one chose another to run."""
    ran = measurement.kernel
    if ran == case.kernel:
        return measurement
    credited = replace(measurement, kernel=case.kernel, chosen=ran)
    if measurement.lines is None:
        return credited
    why = f"the counted lines are those of {ran}: add --kernel {ran} to see them"
    return replace(credited, lines=None, lines_reason=why)


def unmeasured(
    case: Case, kernel: Kernel | None, outcome: Outcome, reason: str | None, why: str
) -> Measurement:
    """A measurement in which every part is still missing.

    Args:
        case: The case.
        kernel: Its kernel; None for a reference, and where its kernel could choose none.
        outcome: How it ended, or will be taken to have ended if nothing follows.
        reason: The sentence of its row.
        why: The reason given for each missing part.
    """
    return Measurement(
        kernel=case.kernel,
        problem=case.problem,
        block=case.block,
        grid=None,
        params={**(kernel.parameters if kernel else {}), **case.params},
        outcome=outcome,
        source_hash=kernel.source_hash if kernel else "",
        is_reference=case.is_reference,
        reason=reason,
        verification_reason=why,
        timing_reason=why,
        throughput_reason="no time was measured",
        resources_reason=why,
        occupancy_reason=why,
        clocks_reason=why,
        counters_reason=why,
        lines_reason=why,
    )
