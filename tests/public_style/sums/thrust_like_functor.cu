// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A variadic template and a functor fold the row"
arguments = ["columns", "x", "y"]

[launch]
block = [64]
grid = ["rows"]
*/
struct plus_op {
    template <typename A, typename B>
    __device__ auto operator()(A a, B b) const
    {
        return a + b;
    }
};

template <typename... T>
__device__ auto add_all(T... v)
{
    return (v + ... + 0.f);
}

template <int N, typename Op>
__device__ float fold(const float *row, int columns, Op op)
{
    float v[N] = {};
#pragma unroll
    for (int j = 0; j < N; ++j)
        for (int i = threadIdx.x + j * blockDim.x; i < columns; i += N * blockDim.x)
            v[j] = op(v[j], row[i]);
    return add_all(v[0], v[1], v[2]);
}

__global__ void thrust_like_functor(int columns, const float *x, float *y)
{
    __shared__ float s[64];
    const plus_op plus;
    s[threadIdx.x] = fold<3>(x + blockIdx.x * columns, columns, plus);
    __syncthreads();
    for (int half = 32; half; half /= 2) {
        if (threadIdx.x < half)
            s[threadIdx.x] = plus(s[threadIdx.x], s[threadIdx.x + half]);
        __syncthreads();
    }
    if (threadIdx.x == 0)
        y[blockIdx.x] = s[0];
}
