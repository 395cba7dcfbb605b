# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The host's own answer to a problem, timed: what a user without a GPU would wait for."""

from time import perf_counter

from gpuprof.problems.behaviour import Array, HostCall
from gpuprof.statistics import fewest_samples

_MOST = 50


def time_on_host(compute: HostCall, seconds: float) -> tuple[Array, list[float]]:
    """Compute several times.

    Args:
        compute: Computes once.
        seconds: Time after which to stop, once there are as many calls as an interval needs.

    Returns:
        The flat result in storage order, and microseconds of each call.
    """
    result = compute()  # wakes the thread pool
    samples: list[float] = []
    while len(samples) < fewest_samples(max(samples, default=0.0)) or (
        sum(samples) < seconds * 1e6 and len(samples) < _MOST
    ):
        start = perf_counter()
        result = compute()
        samples.append(1e6 * (perf_counter() - start))
    return result, samples
