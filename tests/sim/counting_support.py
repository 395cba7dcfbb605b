# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Counting a case that a GPU is said to have measured."""

from gpuprof.devices.device import Device
from gpuprof.measure.case import Case
from gpuprof.measure.counting import MOST_SECONDS, Counting
from gpuprof.measure.protocol import Open
from gpuprof.results import Measurement

PATIENCE_S = 6 * MOST_SECONDS


def counted(measurement: Measurement, case: Case, device: Device, seconds: float = PATIENCE_S) -> Measurement:
    """The measurement with what a process of its own counted."""
    found: list[Measurement] = []
    counting = Counting(
        Open(device="0", arch=None, seed=0, seconds_per_case=0.1),
        device,
        lambda _, item: found.append(item),
        seconds,
    )
    counting.add(0, case, measurement)
    counting.wait()
    counting.close()
    return found[0]
