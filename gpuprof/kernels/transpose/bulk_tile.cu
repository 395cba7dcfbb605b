// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Tiles fetched by bulk copies"
problem = "transpose"
rung = 160
idea = "The copy engine brings each row of a tile to shared memory with one instruction, several tiles ahead of the threads that turn them."
after = "float4_down"
change = "No load instruction waits for device memory and no thread computes load addresses; a block stays and walks over many tiles. Several tiles in flight take more shared memory, and occupancy falls."
bottleneck = "A stage is waited for, turned and refilled in turn: few blocks fit on an SM, and float4_down keeps more bytes in flight."
arguments = ["nx", "ny", "in", "out"]

[moves]
shared_bytes = "rises"
registers_per_thread = "rises"
theoretical_occupancy_pct = "falls"

[launch]
block = [256]
grid = ["min(cdiv(nx, TILE) * cdiv(ny, TILE), BLOCKS_PER_SM * sm_count)"]
dynamic_shared_bytes = "STAGES * TILE * (TILE + 4) * real_bytes"

[constants]
TILE = 64

[parameters]
STAGES = 3
BLOCKS_PER_SM = 4

[candidates]
STAGES = [1, 2, 3, 4, 6]
BLOCKS_PER_SM = [1, 2, 3, 4, 6, 8]

[[require]]
condition = "nx % 4 == 0 and ny % 4 == 0"
because = "bulk_tile copies 16 bytes at a time: nx and ny must be multiples of 4"

[[require]]
condition = "STAGES >= 1 and STAGES <= 13 and BLOCKS_PER_SM >= 1"
because = "bulk_tile needs 1 to 13 STAGES, as many as shared memory holds, and at least one block per SM"

[[require]]
condition = "arch >= 90"
because = "bulk_tile uses bulk copies, which need compute capability 9.0"
*/

#define THREADS BLOCK_X
#define PATCHES (TILE / 4)  // 4x4 patches per tile edge, one per thread
#define PITCH (PATCHES + 1) // in 16-byte words; padded, so that neighbouring rows start in different banks

// Rows of a tile are kept in another order, 0 4 8 … 60 1 5 …: the threads of a warp read every fourth row at once.
static __device__ __forceinline__ int slot(int y)
{
    return y % 4 * PATCHES + y / 4;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    bulk_tile(int nx, int ny, const real *in, real *out)
{
    // Coordinates: this thread's patch in every tile. A warp's patches lie below each other, so that their rows, once
    // turned, lie side by side in the output.
    const int t = threadIdx.x;
    const int px = t / PATCHES;
    const int py = t % PATCHES;
    const int tiles_x = (nx + TILE - 1) / TILE;
    const int tiles_y = (ny + TILE - 1) / TILE;
    const int tiles = tiles_x * tiles_y; // numbered down the columns of the input

    // Shared memory: STAGES tiles, and for each a barrier that counts the bytes which have arrived.
    extern __shared__ __align__(128) float4 stages[]; // (stage, slot, patch column)
    __shared__ __align__(8) unsigned long long arrived[STAGES];
    const unsigned barriers = (unsigned)__cvta_generic_to_shared(arrived);
    if (t == 0) {
        for (int stage = 0; stage < STAGES; ++stage)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barriers + 8 * stage) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    // Load a tile; the first warp starts one copy for each row.
    const auto load = [&](int tile, int stage) {
        const int x0 = tile / tiles_y * TILE;
        const int y0 = tile % tiles_y * TILE;
        const int bytes = min(TILE, nx - x0) * (int)sizeof(real);
        const int rows = min(TILE, ny - y0);
        if (t == 0)
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barriers + 8 * stage),
                         "r"(rows * bytes)
                         : "memory");
        __syncwarp();
        for (int y = t; y < rows; y += 32) {
            const unsigned target = (unsigned)__cvta_generic_to_shared(stages + (stage * TILE + slot(y)) * PITCH);
            const real *source = in + (size_t)(y0 + y) * nx + x0;
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                         :
                         : "r"(target), "l"(source), "r"(bytes), "r"(barriers + 8 * stage)
                         : "memory");
        }
    };
    if (t < 32)
        for (int stage = 0; stage < STAGES; ++stage)
            if ((int)(blockIdx.x + stage * gridDim.x) < tiles)
                load(blockIdx.x + stage * gridDim.x, stage);

    int stage = 0;
    int phase = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += (int)gridDim.x) {
        // Sync: wait for this tile's bytes.
        asm volatile("{\n"
                     ".reg .pred done;\n"
                     "wait: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                     "@!done bra wait;\n"
                     "}" ::"r"(barriers + 8 * stage),
                     "r"(phase)
                     : "memory");

        // Write back: turn the patch and store its four columns as pieces of four output rows.
        const int x = tile / tiles_y * TILE + 4 * px;
        const int y = tile % tiles_y * TILE + 4 * py;
        float4 row[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            row[i] = stages[(stage * TILE + slot(4 * py + i)) * PITCH + px];
        if (x < nx && y < ny) {
            real *target = out + (size_t)x * ny + y;
            *(float4 *)target = make_float4(row[0].x, row[1].x, row[2].x, row[3].x);
            *(float4 *)(target + (size_t)ny) = make_float4(row[0].y, row[1].y, row[2].y, row[3].y);
            *(float4 *)(target + (size_t)ny * 2) = make_float4(row[0].z, row[1].z, row[2].z, row[3].z);
            *(float4 *)(target + (size_t)ny * 3) = make_float4(row[0].w, row[1].w, row[2].w, row[3].w);
        }

        // All threads have read the stage: fill it again.
        __syncthreads();
        if (t < 32 && tile + STAGES * (int)gridDim.x < tiles)
            load(tile + STAGES * gridDim.x, stage);
        if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
        }
    }
}
