# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The smaller and the larger of floating-point numbers."""

import functools

import numpy as np

from gpuprof.executor.arithmetic.mnemonic import Compute
from gpuprof.executor.lanes.scalars import Lanes


def extreme(choose: Compute) -> Compute:
    """Return min or max of two or three floats, with -0 less than +0, which NumPy does not promise.

    Args:
        choose: NumPy's `fmin` or `fmax`, or `minimum` or `maximum`, of which NaN is.
    """
    picks_larger = choose in (np.fmax, np.maximum)

    def pair(a: Lanes, b: Lanes) -> Lanes:
        picked: Lanes = choose(a, b)
        zeros = (a == 0) & (b == 0)
        if zeros.any():
            negative = np.signbit(a) & np.signbit(b) if picks_larger else np.signbit(a) | np.signbit(b)
            sign = np.where(negative, -1, 1).astype(picked.dtype)
            picked = np.where(zeros, np.copysign(picked, sign), picked)
        return picked

    return lambda *operands: functools.reduce(pair, operands)


def of_sizes(compute: Compute) -> Compute:
    """Return min or max with `.xorsign.abs`: of the sizes, with the product of the signs."""

    def signed(a: Lanes, b: Lanes) -> Lanes:
        size: Lanes = compute(np.abs(a), np.abs(b))
        signed_size: Lanes = np.where(np.signbit(a) != np.signbit(b), -size, size)
        return signed_size

    return signed
