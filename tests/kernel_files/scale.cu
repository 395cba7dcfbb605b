// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Scales an array; `EACH` elements a thread. With EACH = 3 it is wrong.
/*gpuprof
operation = "scale"
dimensions = ["n"]
default_sizes = "4096"
arguments = ["n", "x", "y"]

[parameters]
EACH = 1     # elements of a thread
SKIP = 0

[candidates]
EACH = [1, 2, 4]
block = [[64], [128], [2048, 1]]

[arrays]
x = { shape = ["n"] }
y = { shape = ["n"], role = "out" }

[work]
bytes = "2 * n * real_bytes"

[check]
y = { value = "2 * x", equal = true }

[launch]
block = [64]
any_block = true
grid = ["cdiv(n, EACH * block_x)"]

[[require]]
condition = "EACH * block_x <= 256"
because = "{id} gives a block at most 256 elements"
*/
extern "C" __global__ void scale(int n, const real *x, real *y)
{
    for (int i = 0; i < EACH; ++i) {
        const int at = (blockIdx.x * EACH + i) * BLOCK_X + threadIdx.x;
        if (at < n && !(EACH == 3 && at == 5))
            y[at] = 2 * x[at] + SKIP;
    }
}
