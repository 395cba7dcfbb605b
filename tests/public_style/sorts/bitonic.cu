// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A bitonic network in shared memory"
arguments = ["x", "y"]

[launch]
block = [128]
grid = ["rows"]

[[require]]
condition = "columns == 128"
because = "a row is one block"
*/
__global__ void bitonic(const int *x, int *y)
{
    __shared__ int s[128];
    const unsigned t = threadIdx.x;
    s[t] = x[blockIdx.x * 128 + t];
    for (unsigned k = 2; k <= 128; k *= 2)
        for (unsigned j = k / 2; j > 0; j /= 2) {
            __syncthreads();
            const unsigned other = t ^ j;
            if (other > t) {
                const bool up = (t & k) == 0;
                const int a = s[t], b = s[other];
                if ((a > b) == up)
                    s[t] = b, s[other] = a;
            }
        }
    __syncthreads();
    y[blockIdx.x * 128 + t] = s[t];
}
