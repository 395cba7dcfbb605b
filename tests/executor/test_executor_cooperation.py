# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Blocks that wait for each other through global memory, and adding several elements at once."""

import numpy as np
import pytest
from executor_harness import run_cuda


@pytest.mark.parametrize("polling", [0, 1])
def test_lanes_of_a_warp_find_what_they_poll_for_at_different_times(polling):
    source = """extern "C" __global__ void k(volatile int *flag, int *out, int polling) {
    const int t = threadIdx.x;
    if (blockIdx.x == polling) {
        while (flag[t] == 0)
            ;
        out[t] = 2 * flag[t];
    } else if (t % 3)
        flag[t] = t + 100;
}"""
    flags = np.where(np.arange(32) % 3, 0, 7).astype(np.int32)
    (_, out), _ = run_cuda(source, flags, np.zeros(32, np.int32), scalars=(polling,), grid=(2, 1, 1))
    assert out.array().tolist() == [2 * (t + 100) if t % 3 else 14 for t in range(32)]


@pytest.mark.parametrize("width", [2, 4])
def test_vector_red_adds_to_each_element(width):
    names = ", ".join(f"%{i + 1}" for i in range(width))
    values = ", ".join(f'"f"(in[{width} * t + {i}])' for i in range(width))
    source = f"""extern "C" __global__ void k(float *out, const float *in) {{
    const int t = threadIdx.x;
    asm volatile("red.global.add.v{width}.f32 [%0], {{{names}}};" ::"l"(out + {width} * (t % 8)), {values});
}}"""
    given = np.arange(32 * width, dtype=np.float32)
    buffers, result = run_cuda(source, np.full(8 * width, 0.5, dtype=np.float32), given)
    np.testing.assert_array_equal(buffers[0].array(), 0.5 + given.reshape(4, -1).sum(axis=0))
    assert result.counters["global_atomic_requests"] == 1
    assert result.counters["global_atomic_sectors"] == 4 * width  # four lanes at each address
