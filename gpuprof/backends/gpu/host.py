# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The host's own answer to a GEMM, timed: what a user without a GPU would get from NumPy."""

from time import perf_counter

import numpy as np

from gpuprof.errors import CaseSkipped
from gpuprof.problems.base import Array, numpy_dtype
from gpuprof.problems.gemm import Gemm
from gpuprof.results import Problem

_FEWEST = 3
_MOST = 50


def time_on_host(problem: Problem, seed: int, seconds: float) -> tuple[Array, list[float]]:
    """Multiply with `numpy.matmul`, several times.

    Args:
        problem: A GEMM.
        seed: Of its random inputs.
        seconds: Time after which to stop, after at least three calls.

    Returns:
        The flat result in storage order, and microseconds of each call.

    Raises:
        CaseSkipped: The problem is no GEMM.
    """
    if not isinstance(problem, Gemm):
        raise CaseSkipped("NumPy is a reference for GEMM only.")
    order = problem.storage_order
    dtype = numpy_dtype(problem.dtype)
    inputs = problem.inputs(seed)
    a = inputs["A"].reshape((problem.m, problem.k), order=order)
    b = inputs["B"].reshape((problem.k, problem.n), order=order)
    alpha, beta = dtype.type(problem.alpha), dtype.type(problem.beta)
    old = inputs["C"].reshape((problem.m, problem.n), order=order) if problem.beta else None
    samples: list[float] = []
    np.matmul(a, b)  # wakes the thread pool
    while len(samples) < _FEWEST or (sum(samples) < seconds * 1e6 and len(samples) < _MOST):
        start = perf_counter()
        result = np.matmul(a, b)
        if alpha != 1:
            result *= alpha
        if old is not None:
            result += beta * old
        samples.append(1e6 * (perf_counter() - start))
    return result.ravel(order=order), samples
