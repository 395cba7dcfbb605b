// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Two passes over the data"
idea = "The first pass adds up each block's elements, one block scans these sums, and the second pass scans each block's elements on top of the sum before them."
change = "Three launches that hand each other an array of the kernel's own. The data is read twice."
dtypes = ["f32", "f64"]

[[launches]]
entry = "add_up"
arguments = ["n", "x", "sums"]
block = ["BLOCK"]
grid = ["cdiv(n, BLOCK * ITEMS)"]

[[launches]]
entry = "scan_sums"
arguments = ["cdiv(n, BLOCK * ITEMS)", "sums"]
block = ["BLOCK"]
grid = ["1"]

[[launches]]
entry = "scan_all"
arguments = ["n", "x", "sums", "y"]
block = ["BLOCK"]
grid = ["cdiv(n, BLOCK * ITEMS)"]

[workspace.sums] # of each block's elements, then of all before them
shape = ["cdiv(n, BLOCK * ITEMS)"]

[parameters]
BLOCK = 256 # threads per block
ITEMS = 8   # elements per thread

[[require]]
condition = "BLOCK >= 32 and BLOCK <= 1024 and BLOCK % 32 == 0 and ITEMS >= 1"
because = "{id} needs a BLOCK of whole warps, and at least one of ITEMS"
*/

#define WARPS (BLOCK / 32)

// Inclusive scan over the threads of a block. `total` is the sum of all.
static __device__ real scan_block(real value, real *total)
{
    __shared__ real warp_sums[WARPS];
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const real before = __shfl_up_sync(0xffffffff, value, distance);
        if (lane >= distance)
            value += before;
    }
    __syncthreads(); // the sums of an earlier call have been read
    if (lane == 31)
        warp_sums[warp] = value;
    __syncthreads();
    *total = 0;
    for (int w = 0; w < WARPS; ++w) {
        if (w == warp)
            value += *total;
        *total += warp_sums[w];
    }
    return value;
}

extern "C" __global__ void add_up(int n, const real *x, real *sums)
{
    const size_t begin = (size_t)blockIdx.x * BLOCK * ITEMS;
    real sum = 0;
    for (int k = 0; k < ITEMS; ++k) {
        const size_t i = begin + k * BLOCK + threadIdx.x;
        sum += i < n ? x[i] : 0;
    }
    real total;
    scan_block(sum, &total);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = total;
}

extern "C" __global__ void scan_sums(int count, real *sums)
{
    real before = 0; // sum of all sums so far
    for (int begin = 0; begin < count; begin += BLOCK) {
        const int i = begin + threadIdx.x;
        const real own = i < count ? sums[i] : 0;
        real total;
        const real through = scan_block(own, &total);
        if (i < count)
            sums[i] = before + (through - own);
        before += total;
    }
}

extern "C" __global__ void scan_all(int n, const real *x, const real *sums, real *y)
{
    real before = sums[blockIdx.x];
    for (int k = 0; k < ITEMS; ++k) {
        const size_t i = ((size_t)blockIdx.x * ITEMS + k) * BLOCK + threadIdx.x;
        const real own = i < n ? x[i] : 0;
        real total;
        const real through = scan_block(own, &total);
        if (i < n)
            y[i] = before + through;
        before += total;
    }
}
