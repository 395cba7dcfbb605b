// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Conway's game: a copy, grid.sync and a generation in one cooperative launch"
operation = "life"
dimensions = ["n"]
default_sizes = "40"
arguments = ["n", "x", "other", "y"]

[arrays.x]
shape = ["n", "n"]
dtype = "u8"

[arrays.y]
shape = ["n", "n"]
dtype = "u8"
role = "out"

[workspace.other]
shape = ["n", "n"]
dtype = "u8"

[inputs]
x = "integers(0, 2)"

[work]
bytes = "2 * n * n"

[check]
y = "where(roll(x, 1, 0) + roll(x, -1, 0) + roll(x, 1, 1) + roll(x, -1, 1) + roll(roll(x, 1, 0), 1, 1) + roll(roll(x, 1, 0), -1, 1) + roll(roll(x, -1, 0), 1, 1) + roll(roll(x, -1, 0), -1, 1) == 3, 1, where(roll(x, 1, 0) + roll(x, -1, 0) + roll(x, 1, 1) + roll(x, -1, 1) + roll(roll(x, 1, 0), 1, 1) + roll(roll(x, 1, 0), -1, 1) + roll(roll(x, -1, 0), 1, 1) + roll(roll(x, -1, 0), -1, 1) == 2, x, 0))"

[launch]
block = [16, 16]
grid = ["cdiv(n, 16)", "cdiv(n, 16)"]
cooperative = true
*/
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void life(int n, const unsigned char *x, unsigned char *other, unsigned char *y)
{
    auto grid = cg::this_grid();
    const int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
    const bool inside = c < n && r < n;
    if (inside)
        other[r * n + c] = x[r * n + c];
    grid.sync();
    int around = 0;
    for (int dy = n - 1; dy <= n + 1; ++dy)
        for (int dx = n - 1; dx <= n + 1; ++dx)
            if (inside && (dx != n || dy != n))
                around += other[(r + dy) % n * n + (c + dx) % n];
    if (inside)
        y[r * n + c] = around == 3 || (around == 2 && other[r * n + c]);
}
