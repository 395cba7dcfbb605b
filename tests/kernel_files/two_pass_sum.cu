// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// A sum in two launches: each block leaves one partial sum, and one block adds those up.
/*gpuprof
title = "Sum, then the sum of the sums"
operation = "total"
dimensions = ["n"]
default_sizes = "1000"
[arrays]
x = { shape = ["n"] }
y = { shape = ["1"], role = "out" }
[work]
flops = "n"
bytes = "n * real_bytes"
[check]
y = { value = "sum(x)", magnitude = "sum(abs(x))", relative = "8 * sqrt(n) * u" }

[parameters]
THREADS = 128

[workspace.partial]
shape = ["cdiv(n, 2 * THREADS)"]

[[launches]]
entry = "block_sums"
arguments = ["n", "x", "partial"]
block = ["THREADS"]
grid = ["cdiv(n, 2 * block_x)"]
dynamic_shared_bytes = "THREADS * real_bytes"

[[launches]]
entry = "block_sums"
arguments = ["cdiv(n, 2 * THREADS)", "partial", "y"]
block = ["THREADS"]
grid = ["1"]
dynamic_shared_bytes = "THREADS * real_bytes"

[[require]]
condition = "n <= 4 * THREADS * THREADS"
because = "the second launch has one block"
*/
extern "C" __global__ void block_sums(int n, const real *in, real *out)
{
    extern __shared__ real tile[];
    const int first = blockIdx.x * 2 * THREADS + threadIdx.x;
    real sum = first < n ? in[first] : 0;
    if (first + THREADS < n)
        sum += in[first + THREADS];
    tile[threadIdx.x] = sum;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            tile[threadIdx.x] += tile[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = tile[0];
}
