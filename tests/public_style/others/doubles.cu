// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Doubles: atomicAdd of a double, by hand and by hardware"
operation = "dot_product"
dimensions = ["n"]
default_sizes = "900"

[arrays.a]
shape = ["n"]
dtype = "f64"

[arrays.b]
shape = ["n"]
dtype = "f64"

[arrays.dot]
shape = ["2"]
dtype = "f64"
role = "out"

[inputs]
a = "integers(-8, 9)"
b = "integers(-8, 9)"

[work]
flops = "2 * n"
bytes = "16 * n"

[check]
dot = { value = "sum(a * b) * ones(2)", equal = true }

[[launches]]
entry = "clear"
arguments = ["dot"]
block = [2]
grid = ["1"]

[[launches]]
entry = "multiply"
arguments = ["n", "a", "b", "dot"]
block = [64]
grid = ["4"]
*/
__device__ double atomicAddByHand(double *address, double val)
{
    unsigned long long int *address_as_ull = (unsigned long long int *)address;
    unsigned long long int old = *address_as_ull, assumed;
    do {
        assumed = old;
        old = atomicCAS(address_as_ull, assumed, __double_as_longlong(val + __longlong_as_double(assumed)));
    } while (assumed != old);
    return __longlong_as_double(old);
}

__global__ void clear(double *dot) { dot[threadIdx.x] = 0; }

__global__ void multiply(int n, const double *a, const double *b, double *dot)
{
    double sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum = fma(a[i], b[i], sum);
    for (int offset = 16; offset; offset /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (threadIdx.x % 32 == 0) {
        atomicAdd(dot, sum);
        atomicAddByHand(dot + 1, sum);
    }
}
