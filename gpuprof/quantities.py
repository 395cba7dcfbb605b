# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Ranges of the numbers that a results file may hold, as types: what lies outside is no measurement.

They are wide, so that nothing real is ever refused, and still narrow enough that a reader may divide by any
one that is not 0, and multiply several, without leaving the range of a double.
"""

from typing import Annotated

from gpuprof.constraints import AtLeast, AtMost

#: Any integer of 64 bits.
Integer = Annotated[int, AtLeast(-(2**63)), AtMost(2**63 - 1)]
#: Events, bytes, samples, or a limit of a device.
Count = Annotated[int, AtLeast(0), AtMost(2**63 - 1)]
#: A side of a problem, a block or a grid, or what there is at least one of: up to CUDA's largest grid extent.
Extent = Annotated[int, AtLeast(1), AtMost(2**31 - 1)]
#: A time, a rate or a clock that others are divided by, in whatever unit its name ends with.
Positive = Annotated[float, AtLeast(1e-18), AtMost(1e18)]
#: The same where it may be 0, and a share in percent, which may exceed 100.
NonNegative = Annotated[float, AtLeast(1e-18, or_zero=True), AtMost(1e30)]
#: An error or its bound, which a wrong kernel may drive as far as a double goes.
Error = Annotated[float, AtLeast(0.0)]
#: What a counter counted, scaled up from a sample perhaps.
Tally = Annotated[float | int, AtLeast(1e-18, or_zero=True), AtMost(1e30)]
