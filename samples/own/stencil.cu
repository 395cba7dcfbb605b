// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "One thread a point"
operation = "stencil"
operation_title = "Five-point stencil"
dimensions = ["ny", "nx"]
default_sizes = "2048"
idea = "Each thread averages its four neighbours. They are loaded from global memory, where the caches hold what other threads loaded already."
arguments = ["ny", "nx", "before", "after"]
dtypes = ["f32", "f64"]

[arrays.before]
shape = ["ny", "nx"]

[arrays.after]
shape = ["ny", "nx"]
role = "out"

[inputs]
before = "uniform(0, 1)"

[work]
flops = "4 * ny * nx"
bytes = "2 * ny * nx * real_bytes"

[check] # zeros lie beyond the edges
after = "(pad(before, 1)[:-2, 1:-1] + pad(before, 1)[2:, 1:-1] + pad(before, 1)[1:-1, :-2] + pad(before, 1)[1:-1, 2:]) / 4"
relative = "4 * u"

[launch]
block = [32, 8]
any_block = true
grid = ["cdiv(nx, block_x)", "cdiv(ny, block_y)"]
*/

extern "C" __global__ void stencil(int ny, int nx, const real *before, real *after)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= nx || y >= ny)
        return;
    const size_t i = (size_t)y * nx + x;
    const real above = y > 0 ? before[i - nx] : 0;
    const real below = y < ny - 1 ? before[i + nx] : 0;
    const real left = x > 0 ? before[i - 1] : 0;
    const real right = x < nx - 1 ? before[i + 1] : 0;
    after[i] = (above + below + left + right) / 4;
}
