# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One open GPU backend for the whole test session, with a small sampling budget."""

import pytest

from gpuprof.statistics import SamplingBudget


@pytest.fixture(scope="session")
def backend(gpu_count):
    from gpuprof.backends.gpu.backend import GpuBackend

    return GpuBackend(0, seed=7, budget=SamplingBudget(seconds=0.01, min_samples=6, max_samples=20))
