// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A tile with its halo in shared memory"
arguments = ["ny", "nx", "x", "y"]
entry = "shared_halo<16, 8, 1>"

[launch]
block = [16, 8]
grid = ["cdiv(nx, 16)", "cdiv(ny, 8)"]
*/
template <int W, int H, int R>
__global__ void shared_halo(int ny, int nx, const float *x, float *y)
{
    __shared__ float tile[H + 2 * R][W + 2 * R];
    const int x0 = blockIdx.x * W - R, y0 = blockIdx.y * H - R;
    for (int i = threadIdx.y * W + threadIdx.x; i < (W + 2 * R) * (H + 2 * R); i += W * H) {
        const int r = i / (W + 2 * R), c = i % (W + 2 * R);
        const bool inside = y0 + r >= 0 && y0 + r < ny && x0 + c >= 0 && x0 + c < nx;
        tile[r][c] = inside ? x[(y0 + r) * nx + x0 + c] : 0;
    }
    __syncthreads();
    const int col = blockIdx.x * W + threadIdx.x, row = blockIdx.y * H + threadIdx.y;
    if (col >= nx || row >= ny)
        return;
    float sum = 0;
#pragma unroll
    for (int dy = 0; dy <= 2 * R; ++dy)
#pragma unroll
        for (int dx = 0; dx <= 2 * R; ++dx)
            sum += tile[threadIdx.y + dy][threadIdx.x + dx];
    y[row * nx + col] = sum;
}
