# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One case of a run: a kernel, a problem and a launch shape, as it travels to a worker."""

from collections.abc import Mapping
from dataclasses import dataclass, field

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


def unmeasured(
    case: Case, kernel: Kernel | None, outcome: Outcome, reason: str | None, why: str
) -> Measurement:
    """A measurement in which every part is still missing.

    Args:
        case: The case.
        kernel: Its kernel; None for a reference.
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
