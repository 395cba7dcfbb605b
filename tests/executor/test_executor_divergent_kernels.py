# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Random kernels full of divergence, against the same program run by Python one thread at a time."""

import numpy as np
import pytest
from divergent_functions import Generator, indented
from executor_harness import run_cuda

pytestmark = pytest.mark.deep


@pytest.mark.parametrize("seed", range(40))
def test_random_kernels(seed):
    text, lines = Generator(seed).block(3)
    source = f"""extern "C" __global__ void k(const unsigned *x, unsigned *out) {{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x, a = x[t & 63], b = x[(t * 7) & 63], c = t;
    {text}
    out[t] = a ^ b ^ c;
}}"""
    head = ["def alone(t, x):", "  a, b, c = x[t & 63], x[(t * 7) & 63], t"]
    namespace = {}
    exec("\n".join([*head, *indented(lines), "  return a ^ b ^ c"]), namespace)
    numbers = np.random.default_rng(1).integers(0, 2**32, 64, dtype=np.uint32)
    (_, out), _ = run_cuda(source, numbers, np.zeros(210, np.uint32), grid=(3, 1, 1), block=(70, 1, 1))
    assert out.array().tolist() == [namespace["alone"](t, numbers.tolist()) for t in range(210)]
