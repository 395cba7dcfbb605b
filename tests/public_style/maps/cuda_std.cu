// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cuda::std: array, tuple, optional, pair, span, complex and numeric_limits"
arguments = ["n", "x", "y"]

[launch]
block = [128]
grid = ["cdiv(n, block_x)"]
*/
#include <cuda/std/array>
#include <cuda/std/complex>
#include <cuda/std/limits>
#include <cuda/std/optional>
#include <cuda/std/span>
#include <cuda/std/tuple>
#include <cuda/std/utility>

__device__ cuda::std::optional<float> element(cuda::std::span<const float> x, int i)
{
    if (i < (int)x.size())
        return x[i];
    return cuda::std::nullopt;
}

__global__ void cuda_std(int n, const float *x, float *y)
{
    const auto found = element({x, (size_t)n}, blockIdx.x * blockDim.x + threadIdx.x);
    if (!found)
        return;
    const cuda::std::array<float, 4> c = {1, 2, 3, 4};
    cuda::std::complex<float> z(*found, 0), sum(0, 0);
    for (auto it = c.rbegin(); it != c.rend(); ++it)
        sum = sum * z + *it;
    const auto both = cuda::std::make_tuple(sum.real(), cuda::std::pair<int, float>(1, sum.imag()));
    const bool whole = cuda::std::get<1>(both).second < cuda::std::numeric_limits<float>::epsilon();
    y[blockIdx.x * blockDim.x + threadIdx.x] = whole ? cuda::std::get<0>(both) : -1;
}
