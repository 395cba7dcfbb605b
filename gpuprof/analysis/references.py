# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a ladder is held against: libraries and copies, on the GPU or on the host."""

from gpuprof.results import Measurement, Run

#: References that run on the CPU, whose times say nothing of the GPU's peaks.
_ON_HOST = frozenset({"numpy"})


def is_reference(run: Run, case: Measurement) -> bool:
    """True for a case that is no rung but what rungs are compared with."""
    return case.is_reference or any(record.is_reference for record in run.kernels if record.id == case.kernel)


def on_host(run: Run, case: Measurement) -> bool:
    """True for a reference that ran on the CPU."""
    return case.kernel in _ON_HOST and is_reference(run, case)
