// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "__shfl_up_sync in warps, then over warps"
arguments = ["columns", "x", "y"]

[launch]
block = [224]
grid = ["rows"]
*/
__device__ float scan_warp(float v, unsigned lane)
{
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
        const float left = __shfl_up_sync(0xffffffff, v, d);
        if (lane >= d)
            v += left;
    }
    return v;
}

__global__ void shuffle_scan(int columns, const float *x, float *y)
{
    __shared__ float sums[7];
    const int i = threadIdx.x, lane = i & 31, warp = i >> 5;
    float v = scan_warp(i < columns ? x[blockIdx.x * columns + i] : 0, lane);
    if (lane == 31)
        sums[warp] = v;
    __syncthreads();
    if (warp == 0) {
        const float s = scan_warp(lane < 7 ? sums[lane] : 0, lane);
        if (lane < 7)
            sums[lane] = s;
    }
    __syncthreads();
    if (warp > 0)
        v += sums[warp - 1];
    if (i < columns)
        y[blockIdx.x * columns + i] = v;
}
