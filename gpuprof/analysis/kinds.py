# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a case is within its run (a rung, a reference, a ceiling), its name, and how it fills the device."""

from math import prod

from gpuprof.results import Measurement, Run
from gpuprof.text import format_extent


def is_reference(run: Run, case: Measurement) -> bool:
    """True for a case that is no rung but what rungs are compared with."""
    return case.is_reference or any(record.is_reference for record in run.kernels if record.id == case.kernel)


def on_host(run: Run, case: Measurement) -> bool:
    """True for a reference that ran on the CPU, whose times say nothing of the GPU's peaks."""
    if not is_reference(run, case):
        return False
    return any(record.on_host for record in run.kernels if record.id == case.kernel)


def is_ceiling(run: Run, case: Measurement) -> bool:
    """True for a case that does less than the operation, and so bounds what it can reach."""
    options = run.operations[case.problem.operation].options
    chosen = case.problem.options
    return any(option.ceiling and chosen.get(name) == option.ceiling for name, option in options.items())


def blocks_of(case: Measurement) -> int | None:
    """Blocks of the grid, None where the launch was never worked out."""
    return prod(case.grid) if case.grid else None


def waves(run: Run, case: Measurement) -> float | None:
    """How often the grid fills the device; below 1, some SMs never get a block."""
    blocks = blocks_of(case)
    if blocks is None or case.occupancy is None or case.occupancy.blocks_per_sm < 1:
        return None
    return blocks / (run.devices[case.device].sm_count * case.occupancy.blocks_per_sm)


def name_of_case(case: Measurement) -> str:
    """Kernel, size, block and parameters of a case on one line."""
    parts = [case.kernel, case.problem.label]
    if case.problem.dtype != "f32":
        parts.append(case.problem.dtype)
    if case.has_launch and not case.chosen:
        parts.append(format_extent(case.block))
        parts += [f"{name}={value}" for name, value in case.params.items()]
    return " ".join(parts)
