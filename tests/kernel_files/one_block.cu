// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// One block of BLOCKS works.
/*gpuprof
title = "One block works"
problem = "transpose"
arguments = ["nx", "ny", "in", "out"]

[launch]
block = [256, 1]
grid = ["BLOCKS"]
*/
extern "C" __global__ void one_block(int nx, int ny, const real *in, real *out)
{
    if (blockIdx.x > 0)
        return;
    for (int i = threadIdx.x; i < nx * ny; i += 256)
        out[(size_t)(i % nx) * ny + i / nx] = in[i];
}
