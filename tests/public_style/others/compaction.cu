// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "How many pass a filter, and their sum: one atomic a warp for all that pass"
operation = "filtered"
dimensions = ["n"]
default_sizes = "2000"

[arrays.x]
shape = ["n"]
dtype = "i32"

[arrays.found]
shape = ["2"]
dtype = "i32"
role = "out"

[workspace.kept]
shape = ["n"]
dtype = "i32"

[inputs]
x = "integers(-100, 100)"

[work]
bytes = "4 * n"

[check]
found = "where(arange(2) == 0, sum(x > 30), sum(where(x > 30, x, 0)))"

[[launches]]
entry = "clear"
arguments = ["found"]
block = [2]
grid = ["1"]

[[launches]]
entry = "filter"
arguments = ["n", "x", "kept", "found"]
block = [128]
grid = ["3"]

[[launches]]
entry = "add"
arguments = ["kept", "found"]
block = [64]
grid = ["1"]
*/
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__device__ int atomicAggInc(int *counter)
{
    auto active = cg::coalesced_threads();
    int first;
    if (active.thread_rank() == 0)
        first = atomicAdd(counter, active.size());
    return active.shfl(first, 0) + active.thread_rank();
}

__global__ void clear(int *found) { found[threadIdx.x] = 0; }

__global__ void filter(int n, const int *x, int *kept, int *found)
{
    for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x)
        if (x[i] > 30)
            kept[atomicAggInc(found)] = x[i];
}

__global__ void add(const int *kept, int *found)
{
    int sum = 0;
    for (int i = threadIdx.x; i < found[0]; i += blockDim.x)
        sum += kept[i];
    atomicAdd(found + 1, sum);
}
