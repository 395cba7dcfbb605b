// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0

// The sum of this thread's words of four elements and, in the first block, of the one to three elements behind them.
static __device__ real sum_own(int n, const real *in)
{
    const int t = threadIdx.x;
    const float4 *words = (const float4 *)in;
    const size_t count = n / 4;
    real sum = 0;
    for (size_t first = (size_t)blockIdx.x * LOADS * BLOCK + t; first < count;
         first += (size_t)gridDim.x * LOADS * BLOCK) {
        float4 v[LOADS];
#pragma unroll
        for (int k = 0; k < LOADS; ++k)
            v[k] = first + k * BLOCK < count ? __ldcs(words + first + k * BLOCK) : make_float4(0, 0, 0, 0);
#pragma unroll
        for (int k = 0; k < LOADS; ++k)
            sum += (v[k].x + v[k].y) + (v[k].z + v[k].w);
    }
    if (blockIdx.x == 0 && 4 * count + t < n)
        sum += in[4 * count + t];
    return sum;
}
