// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "80x64 tiles, rows shifted on their way"
problem = "gemm"
rung = 628
idea = "Rows that start anywhere, without packing them first and without a copy for each element: vectors of 16 bytes are read where they start, and their elements stored in shared memory as far to the left as the row starts behind them. Ten rows a thread fit a C of about 770x770 in one wave of tiles, one to an SM."
after = "splitk_64x64"
shape_of = "splitk_32x64"
change = "A row's vectors pass through registers, a quarter as many reads as there are elements: async_copy_sectors fall. A is turned on its way, so that a thread's rows are neighbours, too."
bottleneck = "Latency: the eight warps of an SM read, compute and store at about the same time."
entry = "shifted"
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[moves]
async_copy_sectors = "falls"
grid_blocks = "falls"

[launch]
block = [256]
any_block = true
grid = ["cdiv(N, LANES_N * TN)", "cdiv(M, LANES_M * TM * WARPS_M)"]
dynamic_shared_bytes = "max(2 * ((BK + 3) * (16 * cdiv(TM, 4) * WARPS_M + 4) + BK * (LANES_N * TN + 4) + 4), block_x // 32 * LANES_M * TM * (LANES_N * TN + 4)) * real_bytes"

[constants] # a warp's lanes: 4 along M by 8 along N
LANES_M = 4
LANES_N = 8

[parameters]
TM = 10       # rows of C per thread
TN = 8        # columns of C per thread
WARPS_M = 2   # warps along the rows of a tile; the others share out k
BK = 64       # k per tile

[candidates]
TM = [8, 9, 10, 11, 12]
WARPS_M = [2, 4]
BK = [32, 64]

[[require]]
condition = "arch >= 80"
because = "{id} copies with cp.async, which needs compute capability 8.0"

[[require]]
condition = "arch == 80 or arch == 87 or 90 <= arch < 120 or block_x // 32 * LANES_M * TM * (LANES_N * TN + 4) * real_bytes <= 101376"
because = "{id} adds up its shares of k in more shared memory than the 99 KiB per block of compute capability 8.6, 8.9 and 12"

[[require]]
condition = "K * LANES_M * TM * WARPS_M < 8589934592 and N * BK < 8589934592"
because = "{id} counts vectors from a tile's first row in 32 bits"

[[require]]
condition = "block_x >= 32 and block_x % 32 == 0 and block_y == 1 and block_z == 1"
because = "{id} gives each warp its own k: the block must be whole warps in x"

[[require]]
condition = "WARPS_M > 0 and block_x % (32 * WARPS_M) == 0"
because = "{id} has as many warps for each share of k"

[[require]]
condition = "TM > 0 and TN > 0 and TN % 4 == 0 and BK > 0 and BK % 16 == 0 and BK * 8 * WARPS_M % block_x == 0"
because = "{id} needs TN a multiple of 4, and BK a multiple of 16 and of 4 per warp"
*/

#define THREADS BLOCK_X
#define WARPS (THREADS / 32)
#define WARPS_K (WARPS / WARPS_M)   // each takes its own k
#define BM (LANES_M * TM * WARPS_M) // rows of C per block
#define BN (LANES_N * TN)           // columns of C per block
#define WARP_K (BK / WARPS_K)       // k of a tile that one warp takes
#define FOURS ((TM + 3) / 4)        // a thread's rows, in groups of four neighbours; the last one may have fewer
#define A_PITCH (16 * FOURS * WARPS_M + 4)
#define A_STAGE ((BK + 3) * A_PITCH) // with three rows before the first, for what is shifted out of it
#define B_PITCH (BN + 4)
#define B_STAGE (BK * B_PITCH + 4)
#define STAGE (A_STAGE + B_STAGE)
#define SUM_PITCH (BN + 4)

// Where a row of C's tile stands in A's tile, whose rows are k: a group of four of each lane of a warp, then the next.
static __device__ __forceinline__ int place_of(int row)
{
    constexpr int REST = TM % 4 ? TM % 4 : 4; // rows of the last group
    const int of_warp = row % (LANES_M * TM);
    const int of_rest = of_warp - (FOURS - 1) * 16;
    return row / (LANES_M * TM) * (16 * FOURS) +
           (of_rest < 0 ? of_warp : (FOURS - 1) * 16 + of_rest / REST * 4 + of_rest % REST);
}
// The i-th row of a lane in its warp's tile.
static __device__ __forceinline__ int row_of(int lane_m, int i)
{
    return i < (FOURS - 1) * 4 ? i / 4 * 16 + lane_m * 4 + i % 4 : (FOURS - 1) * 16 + lane_m * (TM - (FOURS - 1) * 4) + i % 4;
}

// Start a copy of an element to shared memory; without `exists` it writes a zero and reads nothing.
static __device__ __forceinline__ void copy(float *target, const float *source, bool exists)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"((unsigned)__cvta_generic_to_shared(target)),
                 "l"(source), "r"(exists ? 4 : 0)
                 : "memory");
}

// What a thread carries from global to shared memory of a tile of ROWS rows of COLUMNS elements, of A, whose k goes along
// the rows, or of B. Vectors of 16 bytes are read where they start, which is up to three elements before the row's part
// that the tile has, and their elements stored that far to the left, so that each row comes to lie in its place; what is
// missing on the right is read one by one. Rows four apart are shifted alike.
template <bool OF_A, int ROWS, int COLUMNS> struct Carried {
    static constexpr int LANE_VECTORS = OF_A || COLUMNS % 32 ? 4 : 8; // a warp reads so many vectors of a row at once,
    static constexpr int LANE_ROWS = 32 / LANE_VECTORS;               // of so many rows
    static constexpr int ACROSS = COLUMNS / 4 / LANE_VECTORS;         // such pieces of a row
    static constexpr int COUNT = ((ROWS + LANE_ROWS - 1) / LANE_ROWS * ACROSS + WARPS - 1) / WARPS;
    static constexpr int ENDS = (ROWS * 4 + THREADS - 1) / THREADS;
    static constexpr int STEPS = COUNT + 1; // to store them

    const float4 *source; // the first vector of the tile's first row
    int length;           // of a row
    int offsets[COUNT];   // of this thread's vectors from there, in vectors
    int end_offsets[ENDS];
    float4 vectors[COUNT];
    float ends[ENDS];

    static __device__ __forceinline__ int row_of(int i)
    {
        const int first = threadIdx.x % 32 / LANE_VECTORS;
        if constexpr (WARPS % ACROSS == 0)
            return threadIdx.x / 32 / ACROSS * LANE_ROWS + first + i * (WARPS / ACROSS * LANE_ROWS);
        return (threadIdx.x / 32 + i * WARPS) / ACROSS * LANE_ROWS + first;
    }
    static __device__ __forceinline__ int end_row_of(int i)
    {
        return threadIdx.x / 4 + i * (THREADS / 4);
    }
    // Elements that a row starts behind a vector's start.
    __device__ __forceinline__ int shift(int row) const
    {
        return (row % 4) * (length % 4) % 4;
    }
    // The first column of this thread's i-th vector, in the tile.
    __device__ __forceinline__ int column_of(int i) const
    {
        int piece = threadIdx.x / 32 % ACROSS;
        if constexpr (WARPS % ACROSS != 0)
            piece = (threadIdx.x / 32 + i * WARPS) % ACROSS;
        return (piece * LANE_VECTORS + threadIdx.x % LANE_VECTORS) * 4 - shift(threadIdx.x % 32 / LANE_VECTORS);
    }
    static __device__ __forceinline__ float *place(float *tile, int row, int column)
    {
        return OF_A ? tile + (3 + column) * A_PITCH + place_of(row) : tile + 4 + row * B_PITCH + column;
    }
    // `rows` exist from the tile's first one on; others are replaced by ones that are shifted alike.
    __device__ __forceinline__ Carried(const float *first, int length, int rows) : source((const float4 *)first), length(length)
    {
        const auto existing = [&](int row) { return row < rows ? row : row - (row - rows + 4) / 4 * 4; };
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            offsets[i] = (int)(((long long)existing(row_of(i)) * length + column_of(i)) >> 2);
#pragma unroll
        for (int i = 0; i < ENDS; ++i)
            end_offsets[i] = (int)(((long long)existing(end_row_of(i)) * length + COLUMNS) >> 2);
    }
    __device__ __forceinline__ void read()
    {
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            vectors[i] = source[offsets[i]];
        if (threadIdx.x % 4 < shift(threadIdx.x / 4))
#pragma unroll
            for (int i = 0; i < ENDS; ++i)
                ends[i] = ((const float *)(source + end_offsets[i]))[threadIdx.x % 4];
    }
    __device__ __forceinline__ void store(float *tile, int step) const
    {
        if (step < COUNT) {
            if (ROWS % (COUNT * WARPS * LANE_ROWS / ACROSS) != 0 && row_of(step) >= ROWS)
                return;
            float *target = place(tile, row_of(step), column_of(step));
            if (!OF_A && length % 4 == 0)
                *(float4 *)target = vectors[step];
            else {
                target[0] = vectors[step].x;
                target[1 * (OF_A ? A_PITCH : 1)] = vectors[step].y;
                target[2 * (OF_A ? A_PITCH : 1)] = vectors[step].z;
                target[3 * (OF_A ? A_PITCH : 1)] = vectors[step].w;
            }
        } else if (threadIdx.x % 4 < shift(threadIdx.x / 4))
#pragma unroll
            for (int i = 0; i < ENDS; ++i)
                if (ROWS * 4 % THREADS == 0 || end_row_of(i) < ROWS)
                    *place(tile, end_row_of(i), COLUMNS - shift(threadIdx.x / 4) + threadIdx.x % 4) = ends[i];
    }
    // Start copying the tile, element by element, of which only these rows and columns exist.
    static __device__ __forceinline__ void copy_elements(float *tile, const float *first, int length, int rows, int columns)
    {
#pragma unroll 4
        for (int i = threadIdx.x; i < ROWS * COLUMNS; i += THREADS) {
            const int row = i / COLUMNS;
            const int column = i % COLUMNS;
            copy(place(tile, row, column), first + (size_t)row * length + column, row < rows && column < columns);
        }
    }
};

// Add up all warps' sums of a tile of C, of four neighbours at once where rows of C are whole vectors, and write them.
template <typename Vector>
static __device__ __forceinline__ void write_back(const float *sums, int rows, int columns, int pitch, float alpha,
                                                  float beta, float *C)
{
    constexpr int WIDTH = sizeof(Vector) / sizeof(float);
#pragma unroll 4
    for (int start = 0; start < BM * BN / WIDTH; start += THREADS) {
        const int m = (start + threadIdx.x) / (BN / WIDTH);
        const int n = (start + threadIdx.x) % (BN / WIDTH) * WIDTH;
        if (m >= min(rows, BM))
            break;
        if (n >= columns)
            continue;
        float total[WIDTH] = {};
#pragma unroll
        for (int w = 0; w < WARPS_K; ++w) {
            float part[WIDTH];
            *(Vector *)part = *(const Vector *)&sums[(w * BM + m) * SUM_PITCH + n];
#pragma unroll
            for (int q = 0; q < WIDTH; ++q)
                total[q] += part[q];
        }
        float *c = C + (size_t)m * pitch + n;
        float old[WIDTH] = {};
        if (beta != 0)
            *(Vector *)old = *(const Vector *)c;
#pragma unroll
        for (int q = 0; q < WIDTH; ++q)
            total[q] = beta == 0 ? alpha * total[q] : alpha * total[q] + beta * old[q];
        *(Vector *)c = *(Vector *)total;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    shifted(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    // Coordinates. A lane's rows and columns come in groups of four neighbours; the groups of a warp interleave.
    const int t = threadIdx.x;
    const int lane = t % 32;
    const int lane_n = lane % 2 + lane / 8 * 2;
    const int lane_m = lane / 2 % LANES_M;
    const int warp_m = t / 32 % WARPS_M;
    const int warp_k = t / 32 / WARPS_M;
    const int m0 = blockIdx.y * BM;
    const int n0 = blockIdx.x * BN;

    // Shared memory: two stages, one is computed from while the other fills; later the warps' partial sums.
    extern __shared__ __align__(16) float shared[];

    // A tile may be carried as vectors if all of it exists, and all that vectors read: of A they end where its tile does,
    // of B up to three elements later. Of other tiles, at the ends of the matrices, each element is copied by itself.
    const float *a_first = A + (size_t)m0 * K;
    const float *b_first = B + n0;
    Carried<true, BM, BK> a_tile(a_first, K, M - m0);
    Carried<false, BK, BN> b_tile(b_first, N, BK);
    const bool aligned = M >= 4 && ((size_t)A | (size_t)B) % 16 == 0;
    const auto is_whole = [&](int k0) {
        return aligned && k0 + BK <= K && (k0 + BK - 1LL) * N + n0 + BN + 3 <= (long long)K * N;
    };
    const auto read = [&]() {
        a_tile.read();
        b_tile.read();
    };
    const auto store = [&](float *stage, int step) {
        if (step < a_tile.STEPS)
            a_tile.store(stage, step);
        else
            b_tile.store(stage + A_STAGE, step - a_tile.STEPS);
    };
    const auto copy_elements = [&](float *stage, int k0) {
        a_tile.copy_elements(stage, a_first + k0, K, M - m0, K - k0);
        b_tile.copy_elements(stage + A_STAGE, b_first + (size_t)k0 * N, N, K - k0, N - n0);
    };
    constexpr int STEPS = a_tile.STEPS + b_tile.STEPS;

    // Load the first tile, then the operands of its first k.
    if (is_whole(0)) {
        read();
#pragma unroll
        for (int step = 0; step < STEPS; ++step)
            store(shared, step);
    } else
        copy_elements(shared, 0);
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();

    float sum[TM][TN] = {};
    float a[2][FOURS * 4]; // operands of this k and of the next
    float b[2][TN];
    const auto load = [&](int set, const float *a_row, const float *b_row) {
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            *(float4 *)&b[set][j] = *(const float4 *)&b_row[j * LANES_N];
#pragma unroll
        for (int i = 0; i + 4 <= TM; i += 4)
            *(float4 *)&a[set][i] = *(const float4 *)&a_row[i * LANES_M];
        if constexpr (TM % 4 >= 2)
            *(float2 *)&a[set][TM / 4 * 4] = *(const float2 *)&a_row[TM / 4 * 4 * LANES_M];
        if constexpr (TM % 2 == 1)
            a[set][TM - 1] = a_row[TM / 4 * 4 * LANES_M + TM % 4 - 1];
    };
    const int a_thread = (3 + warp_k * WARP_K) * A_PITCH + warp_m * 16 * FOURS + lane_m * 4;
    const int b_thread = A_STAGE + 4 + warp_k * WARP_K * B_PITCH + lane_n * 4;
    load(0, shared + a_thread, shared + b_thread);

    float *now = shared;
    float *next = shared + STAGE;
#pragma unroll 1
    for (int k0 = 0; k0 < K; k0 += BK) {
        // Read the next tile; it has most of this one's time to arrive.
        const bool more = k0 + BK < K;
        const bool carries = is_whole(k0 + BK);
        if (carries) {
            a_tile.source += BK / 4;
            b_tile.source += (size_t)(BK / 4) * N;
            read();
        } else if (more)
            copy_elements(next, k0 + BK);

        // Compute this warp's k.
#pragma unroll
        for (int k = 0; k < WARP_K; ++k) {
            if (k < WARP_K - 1)
                load((k + 1) % 2, now + a_thread + (k + 1) * A_PITCH, now + b_thread + (k + 1) * B_PITCH);
            else {
                // Sync before the last k, whose operands are in registers: the next tile is complete, and nobody reads
                // this one any more.
                asm volatile("cp.async.wait_all;" ::: "memory");
                __syncthreads();
                if (more) { // after the last tile any operands will do
                    float *filled = next;
                    next = now;
                    now = filled;
                }
                load((k + 1) % 2, now + a_thread, now + b_thread);
            }
            // Walk the products like a snake: two neighbours always share an operand, which the register file then need
            // not deliver twice.
#pragma unroll
            for (int j = 0; j < TN; ++j)
#pragma unroll
                for (int i = 0; i < TM; ++i) {
                    const int i_snake = j % 2 ? TM - 1 - i : i;
                    sum[i_snake][j] += a[k % 2][i_snake] * b[k % 2][j];
                }
            // Store what was read, some of it behind each k of the second half.
            constexpr int FIRST = WARP_K / 2 - 1;
            if (carries && k >= FIRST && k < WARP_K - 1)
#pragma unroll
                for (int step = (k - FIRST) * STEPS / (WARP_K - 1 - FIRST); step < (k + 1 - FIRST) * STEPS / (WARP_K - 1 - FIRST);
                     ++step)
                    store(next, step);
        }
    }

    // Sync, then put the partial sums where the tiles were: (share of k, row, column).
    const float one = M > 0 ? 1 : 2; // which the compiler does not know
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            // Times one: a sum stored as it is must lie in a row of registers, which the loop pays for.
            *(float4 *)&shared[(warp_k * BM + warp_m * LANES_M * TM + row_of(lane_m, i)) * SUM_PITCH + lane_n * 4 + j * LANES_N] =
                make_float4(one * sum[i][j], one * sum[i][j + 1], one * sum[i][j + 2], one * sum[i][j + 3]);
    __syncthreads();
    if (N % 4 == 0 && (size_t)C % 16 == 0)
        write_back<float4>(shared, M - m0, N - n0, N, alpha, beta, C + (size_t)m0 * N + n0);
    else
        write_back<float>(shared, M - m0, N - n0, N, alpha, beta, C + (size_t)m0 * N + n0);
}
