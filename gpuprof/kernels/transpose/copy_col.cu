// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Copy by columns"
problem = "transpose"
rung = 20
study = "E"
aliases = ["copyCol"]
idea = "Each thread copies one element; x walks down the columns of both matrices."
after = "copy_row"
change = "Same bytes, other order: the lanes of a warp are a whole row apart, so load and store efficiency fall to 25 % at 16x16."
bottleneck = "Sectors: of every 32-byte sector moved, a warp uses one element."
reference = "Study E, copyCol"
result = "copy"
dtypes = ["f32", "f64"]
arguments = ["nx", "ny", "in", "out"]

[moves]
global_load_efficiency_pct = "falls"
global_store_efficiency_pct = "falls"
global_load_requests = "stays"

[launch]
block = [16, 16]
any_block = true
grid = ["cdiv(ny, block_x)", "cdiv(nx, block_y)"]

[candidates]
block = [[8, 8], [8, 32], [16, 8], [16, 16], [32, 4], [32, 8], [32, 16], [64, 4]]

[[published]]
size = "2048"
note = "557.2 GB/s, 55.3 % of a 1008 GB/s peak, block 16x16"
*/

extern "C" __global__ void copy_col(int nx, int ny, const real *in, real *out)
{
    // Coordinates in both matrices: x walks a column.
    const int row = blockIdx.x * blockDim.x + threadIdx.x;    // 0 .. ny-1
    const int column = blockIdx.y * blockDim.y + threadIdx.y; // 0 .. nx-1
    if (row >= ny || column >= nx)
        return;

    // Write back: neighbouring lanes touch sectors nx elements apart.
    const size_t i = (size_t)row * nx + column;
    out[i] = in[i];
}
