// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
problem = "gemm"
rung = 610
title = "A few rows, B read as a stream"
idea = "A C of a few rows is a vector times a matrix, or nearly: each element of B is used once a row, and reading B is all the time there is. Each lane holds DEPTH reads of 16 bytes in flight, each warp takes its own k, and the blocks of a cluster, which share columns, send their sums to each other's shared memory."
after = "splitk"
change = "B goes from memory to registers, without a stop in shared memory: async_copy_sectors fall. No rows of a tile are empty: ffma_thread_instructions fall."
bottleneck = "DRAM: what it delivers for a stream of reads."
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[moves]
async_copy_sectors = "falls"
ffma_thread_instructions = "falls"

[launch]
block = [256]
grid = ["CLUSTER", "cdiv(N, 128)"]
dynamic_shared_bytes = "(ROWS * max(SLAB, 128 * (block_x // 32)) + cdiv(ROWS * 128, CLUSTER * block_x) * CLUSTER * block_x) * real_bytes"

[constants]
MOST_ROWS = 16
SLAB = 512 # k of A in shared memory at a time
ROWS = "M if M <= 2 else 4 if M <= 4 else 8 if M <= 8 else MOST_ROWS" # room for so many rows of C
VECTOR = "N % 4 == 0" # rows of B start at multiples of 16 bytes: a lane has four neighbours, else every 32nd column
CYCLES = "cdiv(cdiv(N, 128) * CLUSTER, sm_count) * K * ROWS // CLUSTER" # of products, for the SM that has most,
COPIES = "cdiv(cdiv(N, 128) * CLUSTER, sm_count) * K // (1 if VECTOR else 4) * 4 // CLUSTER" # and its reads of B

[parameters]
CLUSTER = 6 # blocks that share 128 columns: a cluster is within one group of SMs, which those of eight leave idle
DEPTH = 16  # reads of four elements that a lane has in flight, of B
SM_BLOCKS = 2

[candidates]
CLUSTER = [2, 4, 6, 8]
DEPTH = [8, 16]
SM_BLOCKS = [1, 2, 3]

[[require]]
condition = "M <= MOST_ROWS"
because = "{id} is for a C of 16 rows at most"

[[require]]
condition = "CLUSTER >= 1 and CLUSTER <= 8"
because = "{id} needs a CLUSTER of 1 to 8 blocks"

[[require]]
condition = "block_x % 32 == 0 and SLAB % (DEPTH * (block_x // 32)) == 0"
because = "{id} deals a slab out to its warps, DEPTH values of k at a time"

[[require]]
condition = "cdiv(N, 128) <= 65535"
because = "{id} has 65535 groups of columns at most"

[[require]]
condition = "arch >= 90"
because = "{id} uses clusters, which need compute capability 9.0"
*/

#define THREADS BLOCK_X
#define WARPS (THREADS / 32)
#define COLUMNS 128 // of C per block: four a lane

static __device__ __forceinline__ void arrive_at_cluster()
{
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
}
static __device__ __forceinline__ void wait_for_cluster()
{
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}
// Store to the place in another block's shared memory that is `mine` in this block's.
static __device__ __forceinline__ void store_to_block(float *mine, unsigned rank, float value)
{
    unsigned address;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(address)
                 : "r"((unsigned)__cvta_generic_to_shared(mine)), "r"(rank));
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(address), "f"(value) : "memory");
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, SM_BLOCKS)
    few_rows(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    if (ROWS <= 2) // exactly so many, which the compiler need not ask for each of
        M = ROWS;
    constexpr int HELD = ROWS > 8 ? 4 : ROWS > 4 ? DEPTH / 2 : DEPTH; // many rows' sums leave room for fewer reads
    constexpr int TURNS = (ROWS * COLUMNS + CLUSTER * THREADS - 1) / (CLUSTER * THREADS); // to add up what a block gets
    const int t = threadIdx.x;
    const int lane = t % 32;
    const int warp = t / 32;
    const int n0 = blockIdx.y * COLUMNS;
    const int n_lane = VECTOR ? lane * 4 : lane; // + 32 per column, if they are no neighbours
    const int columns = N - n0 - n_lane;         // that exist from this lane's first on

    // This block's k, of which each warp takes HELD in turn.
    const int share = (K + CLUSTER * HELD - 1) / (CLUSTER * HELD) * HELD;
    const int k_begin = min(K, (int)blockIdx.x * share);
    const int k_end = min(K, k_begin + share);

    extern __shared__ __align__(16) float shared[]; // (row, k), later (warp, row, column)
    float *received = shared + ROWS * (SLAB > WARPS * COLUMNS ? SLAB : WARPS * COLUMNS); // (rank, element)
    arrive_at_cluster();

    float b[HELD][4];
    const auto load = [&](int k) {
        const float *source = B + (size_t)k * N + n0 + n_lane;
#pragma unroll
        for (int i = 0; i < HELD; ++i, source += N) {
            if (VECTOR) {
                const bool exists = columns > 0 && k + i < k_end;
                *(float4 *)b[i] = exists ? __ldcs((const float4 *)source) : make_float4(0, 0, 0, 0);
            } else {
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    b[i][j] = j * 32 < columns && k + i < k_end ? __ldcs(source + j * 32) : 0;
            }
        }
    };

    float sum[ROWS][4] = {};
#pragma unroll 1
    for (int slab = k_begin; slab < k_end; slab += SLAB) {
        // B's first reads are under way while A's slab goes to shared memory.
        int k = slab + warp * HELD;
        load(k);
        const int depth = min(SLAB, k_end - slab);
#pragma unroll
        for (int m = 0; m < ROWS; ++m)
            for (int i = t; i < SLAB; i += THREADS)
                shared[m * SLAB + i] = m < M && i < depth ? A[(size_t)m * K + slab + i] : 0;
        __syncthreads();
#pragma unroll 1
        while (k < slab + depth) {
            const float *a = shared + k - slab;
#pragma unroll
            for (int i = 0; i < HELD; i += 4)
#pragma unroll
                for (int m = 0; m < ROWS; ++m) {
                    float a4[4];
                    *(float4 *)a4 = *(const float4 *)&a[m * SLAB + i];
#pragma unroll
                    for (int q = 0; q < 4; ++q)
#pragma unroll
                        for (int j = 0; j < 4; ++j)
                            sum[m][j] += a4[q] * b[i + q][j];
                }
            k += WARPS * HELD;
            if (k < slab + depth)
                load(k);
        }
        __syncthreads();
    }

    // Sum over the warps: first within each block, then over the cluster.
#pragma unroll
    for (int m = 0; m < ROWS; ++m)
#pragma unroll
        for (int j = 0; j < 4; ++j)
            shared[(warp * ROWS + m) * COLUMNS + n_lane + (VECTOR ? j : j * 32)] = sum[m][j];
    __syncthreads();
    wait_for_cluster(); // until all blocks have begun: their memory is there
#pragma unroll
    for (int i = 0; i < ROWS * COLUMNS; i += THREADS)
        if (ROWS * COLUMNS % THREADS == 0 || i + t < ROWS * COLUMNS) {
            float total = shared[i + t];
#pragma unroll
            for (int w = 1; w < WARPS; ++w)
                total += shared[w * ROWS * COLUMNS + i + t];
            store_to_block(received + (blockIdx.x * TURNS + i / THREADS / CLUSTER) * THREADS + t, i / THREADS % CLUSTER,
                           total);
        }
    arrive_at_cluster();
    wait_for_cluster();
#pragma unroll
    for (int turn = 0; turn < TURNS; ++turn) {
        const int i = (turn * CLUSTER + blockIdx.x) * THREADS + t;
        const int n = n0 + i % COLUMNS;
        if (i >= M * COLUMNS || n >= N)
            continue;
        float total = 0;
#pragma unroll
        for (int rank = 0; rank < CLUSTER; ++rank)
            total += received[(rank * TURNS + turn) * THREADS + t];
        float *c = C + (size_t)(i / COLUMNS) * N + n;
        *c = beta == 0 ? alpha * total : alpha * total + beta * *c;
    }
}
