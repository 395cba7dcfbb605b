// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Random numbers of a linear congruence, started by the thread's number"
operation = "random_numbers"
dimensions = ["n"]
default_sizes = "777"
arguments = ["n", "seed", "y"]

[arrays.seed]
shape = ["1"]
dtype = "u32"

[arrays.y]
shape = ["n"]
dtype = "u32"
role = "out"

[inputs]
seed = "integers(0, 1000000)"

[work]
bytes = "4 * n"

[check]
y = "(((arange(n) + seed) * 1664525 + 1013904223 & 4294967295) ^ ((arange(n) + seed) * 1664525 + 1013904223 & 4294967295) >> 16) * 73244475 & 4294967295"

[launch]
block = [128]
grid = ["2"]
*/
struct Generator {
    unsigned state;
    __device__ explicit Generator(unsigned seed) : state(seed) {}
    __device__ unsigned operator()()
    {
        state = state * 1664525u + 1013904223u;
        return (state ^ state >> 16) * 0x45d9f3bu;
    }
};

__global__ void linear_congruence(int n, const unsigned *seed, unsigned *y)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        Generator next(i + *seed);
        y[i] = next();
    }
}
