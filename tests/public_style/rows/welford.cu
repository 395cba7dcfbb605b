// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Mean and variance in one pass by Welford, joined by shuffles"
operation = "moments"
dimensions = ["rows", "columns"]
default_sizes = "5x129"
arguments = ["rows", "columns", "x", "mean_of", "variance"]

[arrays.x]
shape = ["rows", "columns"]

[arrays.mean_of]
shape = ["rows"]
role = "out"

[arrays.variance]
shape = ["rows"]
role = "out"

[inputs]
x = "normal(3, 2)"

[work]
flops = "5 * rows * columns"
bytes = "rows * columns * real_bytes"

[check.mean_of]
value = "mean(x, axis=1)"
relative = "64 * u"

[check.variance]
value = "var(x, axis=1)"
relative = "64 * u"

[launch]
block = [32, 2]
grid = ["cdiv(rows, 2)"]
*/
struct Moments {
    float mean, m2;
    int n;
};

__device__ Moments joined(Moments a, Moments b)
{
    const int n = a.n + b.n;
    if (n == 0)
        return a;
    const float delta = b.mean - a.mean;
    return {a.mean + delta * b.n / n, a.m2 + b.m2 + delta * delta * a.n * b.n / n, n};
}

__global__ void welford(int rows, int columns, const float *x, float *mean_of, float *variance)
{
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows)
        return;
    Moments own = {0, 0, 0};
    for (int i = threadIdx.x; i < columns; i += warpSize) {
        const float v = x[row * columns + i], delta = v - own.mean;
        own.mean += delta / ++own.n;
        own.m2 += delta * (v - own.mean);
    }
    for (int d = 16; d > 0; d /= 2) {
        const Moments other = {__shfl_down_sync(~0u, own.mean, d), __shfl_down_sync(~0u, own.m2, d),
            __shfl_down_sync(~0u, own.n, d)};
        own = joined(own, other);
    }
    if (threadIdx.x == 0)
        mean_of[row] = own.mean, variance[row] = own.m2 / own.n;
}
