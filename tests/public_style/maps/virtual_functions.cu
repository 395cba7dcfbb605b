// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Virtual functions of objects that the thread makes"
arguments = ["n", "x", "y"]

[launch]
block = [128]
grid = ["cdiv(n, block_x)"]
*/
struct Curve {
    __device__ virtual float at(float x) const = 0;
    __device__ virtual ~Curve() {}
};

struct Power : Curve {
    float factor;
    int exponent;
    __device__ Power(float f, int e) : factor(f), exponent(e) {}
    __device__ float at(float x) const override
    {
        float value = factor;
        for (int i = 0; i < exponent; ++i)
            value *= x;
        return value;
    }
};

struct Line : Curve {
    __device__ float at(float x) const override { return 1 + 2 * x; }
};

__device__ __noinline__ float value_of(const Curve *curve, float x) { return curve->at(x); }

__global__ void virtual_functions(int n, const float *x, float *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const Power square(3, 2), cube(4, 3);
    const Line line;
    const Curve *curves[3] = {&square, &cube, &line};
    float sum = 0;
    for (int k = 0; k < 3; ++k)
        sum += value_of(curves[(k + i) % 3], x[i]);
    y[i] = sum;
}
