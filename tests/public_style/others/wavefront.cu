// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A wave over a table in shared memory, a barrier a diagonal"
operation = "ranks_so_far"
dimensions = ["n"]
default_sizes = "60"
arguments = ["n", "x", "y"]

[arrays.x]
shape = ["n"]
dtype = "i32"

[arrays.y]
shape = ["n"]
dtype = "i32"
role = "out"

[inputs]
x = "permutation"

[work]
bytes = "8 * n"

[check] # each element's number of those at or before it that are not greater
y = "sum((outer(ones(n), x) <= outer(x, ones(n))) * (outer(ones(n), arange(n)) <= outer(arange(n), ones(n))), axis=1)"

[launch]
block = [64]
grid = ["1"]
*/
__global__ void wavefront(int n, const int *x, int *y)
{
    __shared__ int row[2][65];
    const int t = threadIdx.x;
    int count = 0;
    row[0][t] = row[1][t] = 0;
    for (int diagonal = 0; diagonal < 2 * n; ++diagonal) {
        __syncthreads();
        const int j = diagonal - t; // thread t is at element j of the others
        if (t < n && j >= 0 && j <= t) {
            count = row[(diagonal + 1) & 1][t] + (x[j] <= x[t]);
            row[diagonal & 1][t] = count;
        }
    }
    if (t < n)
        y[t] = count;
}
