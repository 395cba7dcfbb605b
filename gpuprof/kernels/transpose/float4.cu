// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
operation = "transpose"
define = { DOWN = 0 } # whether blocks are numbered down the input's columns
arguments = ["nx", "ny", "in", "out"]

[[variants]]
id = "float4_tile"
rung = 140
title = "4x4 elements per thread, 16-byte accesses"
idea = "Each thread turns a 4x4 patch in its registers; device and shared memory are only ever touched 16 bytes at a time."
after = "smem_unrolled"
change = "A quarter of the load and store instructions of smem_unrolled: global_load_requests, global_store_requests and shared_load_requests fall, for the same sectors and wavefronts."
bottleneck = "Device-memory bandwidth; the order of the blocks decides how well pages of device memory are used."

[variants.moves]
global_load_requests = "falls"
global_store_requests = "falls"
shared_load_requests = "falls"
shared_load_wavefronts = "stays"

[[variants]]
id = "float4_down"
rung = 150
title = "Blocks in the output's order"
idea = "float4_tile with its blocks numbered down the input's columns, so that blocks which run together write neighbouring pieces of the same rows."
after = "float4_tile"
change = "The same instructions and sectors, so that no counter moves; scattered reads replace scattered writes, and device memory bears them better."
bottleneck = "Device-memory bandwidth: within a few percent of a plain copy."
launch = { grid = ["cdiv(ny, TILE)", "cdiv(nx, TILE)"] }
define = { DOWN = 1 }

[variants.moves]
global_load_sectors = "stays"
global_store_sectors = "stays"

[launch]
block = [16, 16]
grid = ["cdiv(nx, TILE)", "cdiv(ny, TILE)"]

[constants]
TILE = 64
*/

#define PATCHES (TILE / 4) // per tile edge

// Four neighbours in a row, of which the first `count` exist.
static __device__ __forceinline__ float4 load4(const real *source, int count, bool vector)
{
    if (vector)
        return count > 0 ? *(const float4 *)source : make_float4(0, 0, 0, 0);
    return make_float4(count > 0 ? source[0] : 0, count > 1 ? source[1] : 0, count > 2 ? source[2] : 0,
                       count > 3 ? source[3] : 0);
}

extern "C" __global__ void __launch_bounds__(256) float4_patches(int nx, int ny, const real *in, real *out)
{
    // Coordinates of the tile in the input, and of this thread's patch in the tile.
    const int px = threadIdx.x;       // 0 .. 15, columns 4 px .. 4 px + 3
    const int py = threadIdx.y;       // 0 .. 15, rows 4 py .. 4 py + 3
    const int x0 = (DOWN ? blockIdx.y : blockIdx.x) * TILE; // first column of the input, first row of the output
    const int y0 = (DOWN ? blockIdx.x : blockIdx.y) * TILE; // first row of the input, first column of the output

    // Shared memory: row x of the transposed tile, whose patch p is kept at p ^ (x / 4). The eight lanes that access
    // shared memory together then always touch all 32 banks, when storing down a column of patches and when loading.
    __shared__ float4 tile[TILE][PATCHES];

    // Load four rows of the patch. Rows must start at multiples of 16 bytes to be loaded or stored so.
    const bool vector = nx % 4 == 0 && ny % 4 == 0 && ((size_t)in | (size_t)out) % 16 == 0;
    const int x = x0 + 4 * px;
    const int y = y0 + 4 * py;
    float4 row[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
        row[i] = load4(in + (size_t)(y + i) * nx + x, y + i < ny ? nx - x : 0, vector);

    // Turn the patch while storing it.
    tile[4 * px + 0][py ^ px] = make_float4(row[0].x, row[1].x, row[2].x, row[3].x);
    tile[4 * px + 1][py ^ px] = make_float4(row[0].y, row[1].y, row[2].y, row[3].y);
    tile[4 * px + 2][py ^ px] = make_float4(row[0].z, row[1].z, row[2].z, row[3].z);
    tile[4 * px + 3][py ^ px] = make_float4(row[0].w, row[1].w, row[2].w, row[3].w);
    __syncthreads();

    // Write back rows py, py + 16, … of the output tile.
#pragma unroll
    for (int i = py; i < TILE; i += PATCHES) {
        const float4 value = tile[i][px ^ (i / 4)];
        const int column = y0 + 4 * px;
        if (x0 + i >= nx)
            break;
        real *target = out + (size_t)(x0 + i) * ny + column;
        if (vector) {
            if (column < ny)
                *(float4 *)target = value;
        } else {
            if (column + 0 < ny)
                target[0] = value.x;
            if (column + 1 < ny)
                target[1] = value.y;
            if (column + 2 < ny)
                target[2] = value.z;
            if (column + 3 < ny)
                target[3] = value.w;
        }
    }
}
