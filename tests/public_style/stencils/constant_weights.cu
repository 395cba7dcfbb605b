// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Weights in constant memory, a loop over them, and a struct of the shape"
arguments = ["ny", "nx", "x", "y"]

[launch]
block = [64]
grid = ["cdiv(nx * ny, block_x)"]
*/
struct Shape {
    int ny, nx;
    __device__ bool holds(int2 p) const { return p.x >= 0 && p.x < nx && p.y >= 0 && p.y < ny; }
    __device__ int at(int2 p) const { return p.y * nx + p.x; }
};
__constant__ float weights[3][3] = {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}};
__constant__ int2 around[9] = {{-1, -1}, {0, -1}, {1, -1}, {-1, 0}, {0, 0}, {1, 0}, {-1, 1}, {0, 1}, {1, 1}};

__global__ void constant_weights(int ny, int nx, const float *x, float *y)
{
    const Shape shape = {ny, nx};
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int2 p = make_int2(i % nx, i / nx);
    if (!shape.holds(p))
        return;
    float sum = 0;
    for (int k = 0; k < 9; ++k) {
        const int2 q = make_int2(p.x + around[k].x, p.y + around[k].y);
        if (shape.holds(q))
            sum = fmaf(weights[k / 3][k % 3], x[shape.at(q)], sum);
    }
    y[i] = sum;
}
