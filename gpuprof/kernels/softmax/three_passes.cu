// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "One thread a row, three passes"
operation = "softmax"
rung = 20
study = "G"
idea = "Each thread has a row to itself and walks along it three times: for the maximum, for the sum of the exponentials, and for the quotients."
change = "The first rung: the definition, written down. Subtracting the maximum keeps every exponential at 1 or below."
bottleneck = "Sectors: the lanes of a warp are a whole row apart, so that each of its loads and stores touches 32 sectors for 4 bytes of each; and as many threads as rows fill no GPU."
reference = "Study G, the algorithm that it calls safe softmax"
dtypes = ["f32", "f64"]
arguments = ["rows", "columns", "x", "y"]

[launch]
block = [128]
any_block = true
grid = ["cdiv(rows, block_x)"]

[candidates]
block = [[32], [64], [128], [256]]

[[require]]
condition = "block_y == 1 and block_z == 1"
because = "{id} gives each row to a thread of a one-dimensional block"
*/

extern "C" __global__ void three_passes(int rows, int columns, const real *x, real *y)
{
    // Coordinates: this thread's row.
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    const real *in = x + (size_t)row * columns;
    real *out = y + (size_t)row * columns;

    // The maximum.
    real top = in[0];
    for (int i = 1; i < columns; ++i)
        top = max(top, in[i]);

    // The sum.
    real sum = 0;
    for (int i = 0; i < columns; ++i)
        sum += exp(in[i] - top);

    // Write back.
    for (int i = 0; i < columns; ++i)
        out[i] = exp(in[i] - top) / sum;
}
