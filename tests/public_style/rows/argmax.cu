// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "The place of each row's greatest element, by 64-bit atomicMax of value and place"
operation = "argmax_rows"
dimensions = ["rows", "columns"]
default_sizes = "7x200"
arguments = ["columns", "x", "place"]

[arrays.x]
shape = ["rows", "columns"]

[arrays.place]
shape = ["rows"]
dtype = "i32"
role = "out"

[inputs]
x = "permutation"

[work]
bytes = "rows * columns * real_bytes"

[check]
place = "argmax(x, axis=1)"

[launch]
block = [96]
grid = ["rows"]
*/
__global__ void argmax(int columns, const float *x, int *place)
{
    __shared__ unsigned long long best;
    if (threadIdx.x == 0)
        best = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        unsigned bits = __float_as_uint(x[blockIdx.x * columns + i]);
        bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
        atomicMax(&best, (unsigned long long)bits << 32 | (unsigned)(columns - i));
    }
    __syncthreads();
    if (threadIdx.x == 0)
        place[blockIdx.x] = columns - (int)(best & 0xffffffffull);
}
