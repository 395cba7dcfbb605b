// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
//
// The transpose's reference on the device, for any element type of which `value_of` tells the number; never timed.

// expected[x][y] = in[y][x]; with copy, expected = in. Any grid.
extern "C" __global__ void reference_transpose(long long nx, long long ny, long long copy, const real *in, double *expected)
{
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < nx * ny; i += stride)
        expected[i] = value_of(copy ? in[i] : in[i % ny * nx + i / ny]);
}
