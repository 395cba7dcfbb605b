// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A warp turns 32 x 32 elements in its registers"
arguments = ["ny", "nx", "x", "y"]
entry = "turn_in_registers"

[launch]
block = [32]
grid = ["cdiv(nx, 32)", "cdiv(ny, 32)"]
*/
__global__ void turn_in_registers(int ny, int nx, const float *x, float *y)
{
    const int lane = threadIdx.x, x0 = blockIdx.x * 32, y0 = blockIdx.y * 32;
    float v[32];
#pragma unroll
    for (int r = 0; r < 32; ++r)
        v[r] = x0 + lane < nx && y0 + r < ny ? x[(y0 + r) * nx + x0 + lane] : 0;
#pragma unroll
    for (int bit = 16; bit; bit /= 2)
#pragma unroll
        for (int r = 0; r < 32; ++r)
            if (!(r & bit)) {
                const bool upper = lane & bit;
                const float other = __shfl_xor_sync(~0u, upper ? v[r] : v[r | bit], bit);
                (upper ? v[r] : v[r | bit]) = other;
            }
#pragma unroll
    for (int r = 0; r < 32; ++r)
        if (y0 + lane < ny && x0 + r < nx)
            y[(x0 + r) * ny + y0 + lane] = v[r];
}
