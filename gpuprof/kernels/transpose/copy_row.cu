// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Copy by rows"
problem = "transpose"
rung = 10
study = "E"
aliases = ["copyRow"]
idea = "Each thread copies one element; x walks along the rows of both matrices."
change = "The first rung: no transpose, the ceiling of a kernel this simple."
bottleneck = "Device-memory bandwidth."
reference = "Study E, copyRow"
result = "copy"
dtypes = ["f32", "f64"]
arguments = ["nx", "ny", "in", "out"]

[launch]
block = [16, 16]
any_block = true
grid = ["cdiv(nx, block_x)", "cdiv(ny, block_y)"]

[candidates]
block = [[8, 8], [8, 32], [16, 8], [16, 16], [32, 4], [32, 8], [32, 16], [64, 4]]

[[published]]
size = "2048"
note = "682.2 GB/s, 67.7 % of a 1008 GB/s peak, block 16x16"
*/

extern "C" __global__ void copy_row(int nx, int ny, const real *in, real *out)
{
    // Coordinates in both matrices: x walks a row.
    const int column = blockIdx.x * blockDim.x + threadIdx.x; // 0 .. nx-1
    const int row = blockIdx.y * blockDim.y + threadIdx.y;    // 0 .. ny-1
    if (column >= nx || row >= ny)
        return;

    // Write back: a warp reads and writes whole sectors.
    const size_t i = (size_t)row * nx + column;
    out[i] = in[i];
}
