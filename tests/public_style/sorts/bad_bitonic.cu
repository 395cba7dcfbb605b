// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A bitonic network that meets at every other step only"
arguments = ["x", "y"]

[launch]
block = [128]
grid = ["rows"]

[[require]]
condition = "columns == 128"
because = "a row is one block"
*/
// executor: failed: shared-memory race
// gpu: any: warps may run in step
__global__ void bad_bitonic(const int *x, int *y)
{
    __shared__ int s[128];
    const unsigned t = threadIdx.x;
    s[t] = x[blockIdx.x * 128 + t];
    for (unsigned k = 2; k <= 128; k *= 2) {
        __syncthreads();
        for (unsigned j = k / 2; j > 0; j /= 2) {
            const unsigned other = t ^ j;
            if (other > t) {
                const bool up = (t & k) == 0;
                const int a = s[t], b = s[other]; // <- here
                if ((a > b) == up)
                    s[t] = b, s[other] = a; // <- here
            }
        }
    }
    __syncthreads();
    y[blockIdx.x * 128 + t] = s[t];
}
