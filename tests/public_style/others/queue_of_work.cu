// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Persistent blocks that take rows from a queue"
operation = "row_minima"
dimensions = ["rows", "columns"]
default_sizes = "17x70"

[arrays.x]
shape = ["rows", "columns"]

[arrays.least]
shape = ["rows"]
role = "out"

[workspace.next]
shape = ["1"]
dtype = "i32"

[work]
bytes = "rows * columns * real_bytes"

[check]
least = { value = "min(x, axis=1)", equal = true }

[[launches]]
entry = "reset"
arguments = ["next"]
block = [1]
grid = ["1"]

[[launches]]
entry = "work"
arguments = ["rows", "columns", "x", "next", "least"]
block = [32]
grid = ["4"]
*/
__global__ void reset(int *next) { *next = 0; }

__global__ void work(int rows, int columns, const float *x, int *next, float *least)
{
    for (;;) {
        int row = 0;
        if (threadIdx.x == 0)
            row = atomicAdd(next, 1);
        row = __shfl_sync(~0u, row, 0);
        if (row >= rows)
            return;
        float v = INFINITY;
        for (int i = threadIdx.x; i < columns; i += 32)
            v = fminf(v, x[row * columns + i]);
        for (int d = 16; d; d /= 2)
            v = fminf(v, __shfl_down_sync(~0u, v, d));
        if (threadIdx.x == 0)
            least[row] = v;
    }
}
