// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
problem = "gemm"
entry = "short_k"
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[[variants]]
id = "short_k_44x96"
rung = 623
title = "44x96 tiles, all of k at once, rows where they start"
idea = "For little k: a block asks for all that it will read at once, in vectors of 16 bytes although rows start anywhere. Rows of B lie in shared memory as far apart, modulo four, as in global memory, so that whole vectors stay whole; a warp's lanes are neighbours in a row of C, and its rows of A all start alike."
after = "splitk_44x64"
shape_of = "splitk_32x64"
change = "A quarter of the copies where rows start anywhere, no k beyond the last one, and two shares of it to add up where there were four; rows of C are written from registers. Larger tiles of fewer sums a thread: grid_blocks and registers_per_thread fall."
bottleneck = "Latency: the launch, one round trip to DRAM, and too few warps to hide each other's waits."
parameters = { PARTS = 2 }
launch = { block = [256] }

[variants.moves]
grid_blocks = "falls"
registers_per_thread = "falls"

[[variants]]
id = "short_k_52x96"
rung = 624
title = "52x96 tiles, all of k at once, rows where they start"
idea = "The same with thirteen rows a thread, for a C of which these tiles are one wave and those of 44x96 are not."
after = "short_k_44x96"
shape_of = "splitk_32x64"
change = "A sixth more rows a thread: grid_blocks fall."
bottleneck = "That of short_k_44x96."
parameters = { TM = 13 }
launch = { block = [256] }

[variants.moves]
grid_blocks = "falls"

[launch]
block = [256]
any_block = true
grid = ["cdiv(N, LANES * TN * WARPS_N)", "cdiv(M, TM * WARPS_M)"]
dynamic_shared_bytes = "(K * (TM * WARPS_M + LANES * TN * WARPS_N + 4 + N % 4) + 12 + (block_x // (LANES * WARPS_M * WARPS_N) - 1) * TM * WARPS_M * LANES * TN * WARPS_N) * real_bytes"

[constants]
LANES = 32 # all along a row of C

[parameters]
TM = 11      # rows of C per thread
TN = 3       # columns of C per thread
WARPS_M = 4  # warps along the columns of a tile
WARPS_N = 1  # and along its rows; the others share out k
PARTS = 1    # of B, one behind the other along k, each computed as soon as it is there

[candidates]
TM = [6, 7, 8, 9, 10, 11, 12, 13]
TN = [2, 3, 4]
WARPS_N = [1, 2]
PARTS = [1, 2, 4]
block = [[128], [256], [384], [512]]

[[require]]
condition = "arch >= 80"
because = "{id} copies with cp.async, which needs compute capability 8.0"

[[require]]
condition = "(K * (TM * WARPS_M + LANES * TN * WARPS_N + 4 + N % 4) + 12 + (block_x // (LANES * WARPS_M * WARPS_N) - 1) * TM * WARPS_M * LANES * TN * WARPS_N) * real_bytes <= 101376 + 65536 * (arch == 80 or arch == 87) + 131072 * (90 <= arch < 120)"
because = "{id} keeps all of its operands in more shared memory than a block has: 99 KiB, 163 with compute capability 8.0 and 8.7, 227 with 9 to 11"

[[require]]
condition = "K * N < 2147483648"
because = "{id} counts the elements of B in 32 bits"

[[require]]
condition = "K <= 256"
because = "{id} keeps all of its operands in shared memory: K must be at most 256"

[[require]]
condition = "block_x >= 128 and block_y == 1 and block_z == 1"
because = "{id} needs four warps in x"

[[require]]
condition = "WARPS_M > 0 and WARPS_M % 4 == 0 and WARPS_N > 0 and block_x % (32 * WARPS_M * WARPS_N) == 0"
because = "{id} gives a warp every fourth row of A, and has as many warps for each share of k"

[[require]]
condition = "TM > 0 and TN > 0 and PARTS > 0"
because = "{id} needs TM, TN and PARTS"
*/

#define THREADS BLOCK_X
#define WARPS_K (THREADS / LANES / (WARPS_M * WARPS_N)) // each takes its own k
#define BM (TM * WARPS_M)                               // rows of C per block
#define BN (LANES * TN * WARPS_N)                       // columns of C per block
#define VECTORS (BN / 4 + 1)                            // that a row of B's tile touches, wherever it starts
#define WARPS (THREADS / 32)
#define K_STEP (4 * WARPS_K)

// What a block copies of a matrix: vectors of 16 bytes, and one by one the elements of those that do not lie wholly in it.
struct Matrix {
    const float *vectors; // the start of the vector that the matrix, or the tile, starts in
    int begin, end;       // the elements that exist, counted from there

    __device__ __forceinline__ bool has(int at) const
    {
        return at >= begin && at <= end - 4;
    }
    // Start copying the vector of elements `at` to `at + 3`, which exist.
    __device__ __forceinline__ void copy(float *target, int at) const
    {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(target)),
                     "l"(vectors + at)
                     : "memory");
    }
    // Start copying those of the elements that exist; the others become zero.
    __device__ __forceinline__ void copy_elements(float *target, int at) const
    {
#pragma unroll 1
        for (int i = 0; i < 4; ++i) {
            const bool exists = at + i >= begin && at + i < end;
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"((unsigned)__cvta_generic_to_shared(target + i)),
                         "l"(vectors + (exists ? at + i : begin)), "r"(exists ? 4 : 0)
                         : "memory");
        }
    }
};

// Computes a thread's sums. Its rows of A are a runtime distance apart, and so are its rows of B: each has an address in
// shared memory of its own, which moves on along k.
struct Sums {
    float sum[TM][TN];
    float a[2][TM][4]; // operands of four k and of the next four
    float b[2][4][TN];
    unsigned a_rows[TM];
    unsigned b_rows[4];
    unsigned b_step; // bytes of K_STEP rows of B

    __device__ __forceinline__ Sums() : sum{} {}

    // From a_first and b_first on, this thread's first row of A and first column of B, both at the first k.
    __device__ __forceinline__ void start(const float *a_first, int a_pitch, const float *b_first, int b_pitch)
    {
#pragma unroll
        for (int i = 0; i < TM; ++i) {
            a_rows[i] = (unsigned)__cvta_generic_to_shared(a_first + i * WARPS_M * a_pitch);
            asm volatile("" : "+r"(a_rows[i])); // else each would be computed anew from the first one
        }
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            b_rows[q] = (unsigned)__cvta_generic_to_shared(b_first + q * b_pitch);
            asm volatile("" : "+r"(b_rows[q]));
        }
        b_step = K_STEP * b_pitch * 4;
    }
    __device__ __forceinline__ void advance(bool moves)
    {
        const unsigned a_step = moves ? K_STEP * 4 : 0;
        const unsigned step = moves ? b_step : 0;
#pragma unroll
        for (int i = 0; i < TM; ++i)
            a_rows[i] += a_step;
#pragma unroll
        for (int q = 0; q < 4; ++q)
            b_rows[q] += step;
    }
    // The a_rows from the from-th to the one before the to-th.
    __device__ __forceinline__ void load_a(int set, int from, int to)
    {
#pragma unroll
        for (int i = 0; i < TM; ++i)
            if (i >= from && i < to)
                asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                             : "=f"(a[set][i][0]), "=f"(a[set][i][1]), "=f"(a[set][i][2]), "=f"(a[set][i][3])
                             : "r"(a_rows[i]));
    }
    __device__ __forceinline__ void load_b(int set, int q)
    {
#pragma unroll
        for (int j = 0; j < TN; ++j)
            asm volatile("ld.shared.f32 %0, [%1];" : "=f"(b[set][q][j]) : "r"(b_rows[q] + j * (LANES * 4)));
    }
    // Walk the products like a snake: two neighbours always share an operand, which the register file then need not
    // deliver twice.
    __device__ __forceinline__ void multiply(int set, int q)
    {
#pragma unroll
        for (int j = 0; j < TN; ++j)
#pragma unroll
            for (int i = 0; i < TM; ++i) {
                const int i_snake = (q * TN + j) % 2 ? TM - 1 - i : i;
                sum[i_snake][j] += a[set][i_snake][q] * b[set][q][j];
            }
    }
    // Multiply four k, and between them load the operands of those that follow.
    __device__ __forceinline__ void multiply_and_load(int set)
    {
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            load_a(set ^ 1, q * TM / 4, (q + 1) * TM / 4);
            load_b(set ^ 1, q);
            multiply(set, q);
        }
    }
    // Of the next four k only the from-th to the one before the to-th: a row does not start or end with its vectors.
    __device__ __forceinline__ void run_some(int from, int to)
    {
#pragma unroll
        for (int q = 0; q < 4; ++q)
            if (q >= from && q < to)
                load_b(0, q);
        load_a(0, 0, TM);
#pragma unroll
        for (int q = 0; q < 4; ++q)
            if (q >= from && q < to)
                multiply(0, q);
    }
    // Twice four k, from k on and from k + K_STEP on, as often as these end at `end` or before it. Returns the k that comes
    // next. Always two, so that the loop has no way out between them, behind which the loads would be put off.
    __device__ __forceinline__ int run(int k, int end)
    {
        if (k + K_STEP + 4 > end)
            return k;
        load_a(0, 0, TM);
#pragma unroll
        for (int q = 0; q < 4; ++q)
            load_b(0, q);
        bool more;
#pragma unroll 1
        do {
            advance(true);
            multiply_and_load(0);
            k += 2 * K_STEP;
            more = k + K_STEP + 4 <= end;
            advance(more); // after the last ones any operands will do
            multiply_and_load(1);
        } while (more);
        advance(true);
        return k;
    }
};

// The parts from PART on: as each arrives, compute what it completes. Returns the k that comes next.
template <int PART> static __device__ __forceinline__ int run_parts(Sums &sums, int k, int K)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PARTS - 1 - PART) : "memory");
    __syncthreads();
    k = sums.run(k, K * (PART + 1) / PARTS);
    if constexpr (PART + 1 < PARTS)
        k = run_parts<PART + 1>(sums, k, K);
    return k;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    short_k(int M, int N, int K, real alpha, const real *A, const real *B, real beta, real *C)
{
    // Coordinates. A warp has every WARPS_M-th row of A's tile: as these are whole vectors apart, they all start equally far
    // behind the start of one.
    const int t = threadIdx.x;
    const int lane = t % LANES;
    const int warp_m = t / LANES % WARPS_M;
    const int warp_n = t / LANES / WARPS_M % WARPS_N;
    const int warp_k = t / LANES / (WARPS_M * WARPS_N);
    const int m0 = blockIdx.y * BM;
    const int n0 = blockIdx.x * BN;
    const int n_thread = warp_n * LANES * TN + lane; // + LANES per column

    // Shared memory. What is whole vectors apart in global memory is so here, too: rows of A lie as they do there, and rows
    // of B are as far apart modulo 4.
    extern __shared__ __align__(16) float shared[];
    const float *a_tile = A + (size_t)m0 * K;
    const int a_shift = (size_t)a_tile / 4 % 4; // of the tile's first element behind the start of a vector
    const int b_shift = (size_t)B / 4 % 4;
    const int b_pitch = BN + 4 + N % 4;
    float *As = shared;
    float *Bs = As + BM * K + 4;

    // Load: ask for everything. What lies beyond the last row or column is replaced by what exists: it counts for nothing
    // that is stored. A's tile is in one piece.
    {
        Matrix a = {a_tile - a_shift, m0 == 0 ? a_shift : 0, min(M - m0, BM + 1) * K + a_shift};
        asm volatile("" : "+l"(a.vectors)); // else each address would be computed anew from A
        bool others = false;
#pragma unroll 1
        for (int start = t * 4; start < BM * K + 4; start += 4 * THREADS * 4)
#pragma unroll
            for (int i = start; i < start + 4 * THREADS * 4; i += THREADS * 4) {
                const int at = i < a.end ? i : 0;
                if (a.has(at) && i < BM * K + 4)
                    a.copy(As + i, at);
                others |= !a.has(at);
            }
        if (others) // once or twice in a matrix
#pragma unroll 1
            for (int i = t * 4; i < BM * K + 4; i += THREADS * 4)
                if (const int at = i < a.end ? i : 0; !a.has(at))
                    a.copy_elements(As + i, at);
    }
    // A warp reads every WARPS-th row of B's tile: these, too, all start alike.
    {
        Matrix b = {B - b_shift, b_shift, K * N + b_shift};
        asm volatile("" : "+l"(b.vectors));
        const int warp = t / 32;
        const int shift = (b_shift + warp * N) % 4;
#pragma unroll 1
        for (int part = 0; part < PARTS; ++part) {
            const int before = (K * part / PARTS + WARPS - 1 - warp) / WARPS; // of this warp's rows
            const int last = K * (part + 1) / PARTS;
#pragma unroll
            for (int piece = 0; piece < VECTORS; piece += 32) {
                const int v = (piece + lane) * 4;
                if (v - shift >= BN) // its first column in the tile
                    continue;
                const int k0 = warp + before * WARPS;
                const int at0 = b_shift + k0 * N - shift + n0 + (v - shift < N - n0 ? v : 0);
                float *target0 = Bs + b_shift + k0 * b_pitch - shift + v;
                bool others = false;
                int at = at0;
                float *target = target0;
#pragma unroll 1
                for (int start = k0; start < last; start += 4 * WARPS)
#pragma unroll
                    for (int k = start; k < start + 4 * WARPS; k += WARPS, at += WARPS * N, target += WARPS * b_pitch) {
                        if (b.has(at) && k < last)
                            b.copy(target, at);
                        others |= !b.has(at) && k < last;
                    }
                if (others) {
                    at = at0;
                    target = target0;
#pragma unroll 1
                    for (int k = k0; k < last; k += WARPS, at += WARPS * N, target += WARPS * b_pitch)
                        if (!b.has(at))
                            b.copy_elements(target, at);
                }
            }
            asm volatile("cp.async.commit_group;" ::: "memory");
        }
    }

    // Compute. Vectors along this warp's rows of A start at k = -shift, 4 - shift, …; the warps that share out k take turns.
    // What is left of them comes last, and the vector that the rows start in.
    const int shift = (a_shift + warp_m * K) % 4;
    const float *a_first = As + a_shift + warp_m * K;
    const float *b_first = Bs + b_shift + n_thread;
    const bool has_first = shift > 0 && warp_k == 0;
    int k = 4 * warp_k - shift + (has_first ? K_STEP : 0);
    Sums sums;
    sums.start(a_first + k, K, b_first + k * b_pitch, b_pitch);
    k = run_parts<0>(sums, k, K);
    int end = K;
#pragma unroll 1
    for (int left = has_first ? 2 : 1; left > 0; --left) {
#pragma unroll 1
        for (; k < end; k += K_STEP) {
            sums.run_some(max(-k, 0), K - k);
            sums.advance(true);
        }
        k = -shift;
        end = 0;
        if (left > 1)
            sums.start(a_first + k, K, b_first + k * b_pitch, b_pitch);
    }
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j)
            sums.sum[i][j] *= alpha;

    // Sync: each share of k hands over its sums of those rows that another share adds up.
    int mine = BM * K + 4 + K * b_pitch + 4 + warp_m * BN + n_thread; // in shared memory, behind B: (share, row, column)
    asm volatile("" : "+r"(mine)); // else each address would be computed anew from K
    if constexpr (WARPS_K > 1) {
#pragma unroll
        for (int i = 0; i < TM; ++i) {
            const int owner = i * WARPS_K / TM;
            const int share = WARPS_K == 2 ? 0 : warp_k < owner ? warp_k : warp_k - 1;
            if (warp_k != owner)
#pragma unroll
                for (int j = 0; j < TN; ++j)
                    shared[mine + (share * BM + i * WARPS_M) * BN + j * LANES] = sums.sum[i][j];
        }
        __syncthreads();
    }

    // Write back, a warp 32 neighbours at a time.
    long long pitch = (long long)WARPS_M * N;
    asm volatile("" : "+l"(pitch)); // else each address would be computed anew from C
#pragma unroll
    for (int owner = 0; owner < WARPS_K; ++owner)
        if (warp_k == owner) {
            const int i0 = (owner * TM + WARPS_K - 1) / WARPS_K; // its rows
            const int i1 = ((owner + 1) * TM + WARPS_K - 1) / WARPS_K;
            const int rows = M - m0 - warp_m;
            const int columns = N - n0 - n_thread;
            real *first = C + (size_t)(m0 + warp_m + i0 * WARPS_M) * N + n0 + n_thread;
            // Add up all shares of k.
#pragma unroll
            for (int w = 0; w < WARPS_K - 1; ++w)
#pragma unroll
                for (int i = i0; i < i1; ++i)
#pragma unroll
                    for (int j = 0; j < TN; ++j)
                        sums.sum[i][j] += shared[mine + (w * BM + i * WARPS_M) * BN + j * LANES];
            if (beta != 0) {
                const real *c = first;
#pragma unroll
                for (int i = i0; i < i1; ++i, c += pitch)
#pragma unroll
                    for (int j = 0; j < TN; ++j)
                        if (i * WARPS_M < rows && j * LANES < columns)
                            sums.sum[i][j] += beta * c[j * LANES];
            }
            real *c = first;
#pragma unroll
            for (int i = i0; i < i1; ++i, c += pitch)
#pragma unroll
                for (int j = 0; j < TN; ++j)
                    if (i * WARPS_M < rows && j * LANES < columns)
                        c[j * LANES] = sums.sum[i][j];
        }
}
