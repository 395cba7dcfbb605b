// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Blelloch: up and down the tree, without bank conflicts"
arguments = ["columns", "x", "y"]

[launch]
block = [128]
grid = ["rows"]
dynamic_shared_bytes = "4 * 264"
*/
#define CONFLICT_FREE_OFFSET(n) ((n) >> 5)

__global__ void blelloch(int n, const float *g_idata, float *g_odata)
{
    extern __shared__ float temp[];
    const int tid = threadIdx.x, row = blockIdx.x * n;
    const int a = 2 * tid, b = 2 * tid + 1;
    const float va = a < n ? g_idata[row + a] : 0, vb = b < n ? g_idata[row + b] : 0;
    temp[a + CONFLICT_FREE_OFFSET(a)] = va;
    temp[b + CONFLICT_FREE_OFFSET(b)] = vb;
    int offset = 1;
    for (int d = 128; d > 0; d >>= 1) {
        __syncthreads();
        if (tid < d) {
            int ai = offset * (2 * tid + 1) - 1, bi = offset * (2 * tid + 2) - 1;
            temp[bi + CONFLICT_FREE_OFFSET(bi)] += temp[ai + CONFLICT_FREE_OFFSET(ai)];
        }
        offset *= 2;
    }
    if (tid == 0)
        temp[255 + CONFLICT_FREE_OFFSET(255)] = 0;
    for (int d = 1; d < 256; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (tid < d) {
            int ai = offset * (2 * tid + 1) - 1, bi = offset * (2 * tid + 2) - 1;
            ai += CONFLICT_FREE_OFFSET(ai), bi += CONFLICT_FREE_OFFSET(bi);
            const float t = temp[ai];
            temp[ai] = temp[bi];
            temp[bi] += t;
        }
    }
    __syncthreads();
    if (a < n)
        g_odata[row + a] = temp[a + CONFLICT_FREE_OFFSET(a)] + va;
    if (b < n)
        g_odata[row + b] = temp[b + CONFLICT_FREE_OFFSET(b)] + vb;
}
