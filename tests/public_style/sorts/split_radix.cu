// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "One bit at a time: ballots, counts of lanes below, and a scan over warps"
arguments = ["columns", "x", "y"]

[launch]
block = [128]
grid = ["rows"]

[[require]]
condition = "columns == 128"
because = "a row is one block"
*/
__global__ void split_radix(int columns, const int *x, int *y)
{
    __shared__ unsigned s[128];
    __shared__ int zeros[4];
    const int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    s[t] = (unsigned)x[blockIdx.x * columns + t] + 1024u;
    __syncthreads();
    for (int bit = 0; bit < 11; ++bit) {
        const unsigned v = s[t];
        const unsigned ones = __ballot_sync(~0u, v >> bit & 1);
        if (lane == 0)
            zeros[warp] = __popc(~ones);
        __syncthreads();
        int before = 0, all = 0;
        for (int w = 0; w < 4; ++w) {
            before += w < warp ? zeros[w] : 0;
            all += zeros[w];
        }
        unsigned below;
        asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
        const int zeros_before = before + __popc(~ones & below);
        s[v >> bit & 1 ? all + t - zeros_before : zeros_before] = v;
        __syncthreads();
    }
    y[blockIdx.x * columns + t] = (int)(s[t] - 1024u);
}
