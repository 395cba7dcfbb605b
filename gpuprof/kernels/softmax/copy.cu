// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Copy of the matrix"
operation = "softmax"
rung = 10
idea = "Each thread copies sixteen bytes, marked as not to be kept in the caches: what any softmax has to move, without computing anything."
change = "No softmax: the ceiling of a kernel that reads every element once and writes every element once."
bottleneck = "Device-memory bandwidth."
result = "copy"
arguments = ["rows", "columns", "x", "y"]

[launch]
block = [256]
any_block = true
grid = ["cdiv(rows * columns, 4 * VECTORS * threads)"]

[parameters]
VECTORS = 1 # 16-byte words per thread

[candidates]
VECTORS = [1, 2, 4]
block = [[64], [128], [256], [512], [1024]]

[[require]]
condition = "block_y == 1 and block_z == 1 and VECTORS >= 1"
because = "{id} needs a block of one row of threads, and VECTORS of at least 1"
*/

extern "C" __global__ void copy(int rows, int columns, const real *x, real *y)
{
    // Coordinates: neighbouring threads copy neighbouring words; a thread's own are a block apart.
    const size_t elements = (size_t)rows * columns;
    const size_t first = ((size_t)blockIdx.x * VECTORS * blockDim.x + threadIdx.x) * 4;
    const size_t step = (size_t)blockDim.x * 4;

    // Load all, so that they are in flight together.
    float4 words[VECTORS];
#pragma unroll
    for (int i = 0; i < VECTORS; ++i)
        if (first + i * step + 4 <= elements)
            words[i] = __ldcs((const float4 *)(x + first + i * step));

    // Write back.
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
        const size_t at = first + i * step;
        if (at + 4 <= elements)
            __stcs((float4 *)(y + at), words[i]);
        else
            for (size_t k = at; k < elements; ++k)
                y[k] = x[k];
    }
}
