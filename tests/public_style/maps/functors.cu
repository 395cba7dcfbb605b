// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A template of a functor and a type, named by its instance"

[parameters]
BLOCK = 128

[[launches]]
entry = "ops::transform<ops::Horner<1, 2, 3, 4>, real, BLOCK>"
arguments = ["n", "x", "y"]
block = ["BLOCK"]
grid = ["cdiv(n, BLOCK)"]
*/
namespace ops {
template <int... C>
struct Horner;

template <int First, int... Rest>
struct Horner<First, Rest...> {
    template <typename T>
    __device__ T operator()(T x) const
    {
        if constexpr (sizeof...(Rest) == 0)
            return T(First);
        else
            return T(First) + x * Horner<Rest...>()(x);
    }
};

template <typename Op, typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK) transform(int n, const T *__restrict__ x, T *__restrict__ y)
{
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        y[i] = Op()(x[i]);
}
} // namespace ops
