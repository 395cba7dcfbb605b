// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0

// Rows of C that start anywhere: the elements that vectors would cover pass through shared memory, so that the lanes of
// a warp write neighbours, one each.

#define STAGED_COLUMNS (LANES_N * TN)        // of C, one warp's
#define STAGED_PITCH (STAGED_COLUMNS + 16)   // padded: neighbouring rows start half of all banks apart

// Add to an element in global memory, without waiting for it, if it exists.
static __device__ __forceinline__ void add(float *target, float value, bool exists)
{
    asm volatile("{\n"
                 ".reg .pred exists;\n"
                 "setp.ne.s32 exists, %2, 0;\n"
                 "@exists red.global.add.f32 [%0], %1;\n"
                 "}" ::"l"(target),
                 "f"(value), "r"((int)exists)
                 : "memory");
}

// Call write(target, value, exists) for each element of C that this warp has a sum of; (m, n) is the place of the lane's
// first. `staging` has room for LANES_M rows of STAGED_PITCH elements for each warp of the block.
template <typename Write>
static __device__ __forceinline__ void each_element(const float (&sum)[TM][TN], int m, int n, int M, int N, float alpha,
                                                    float *C, void *staging, Write write)
{
    const int lane = threadIdx.x % 32;
    const int lane_n = lane / 2 % LANES_N;
    const int lane_m = lane % 2 + lane / 8 * 2;
    const int m_warp = m - lane_m * 4;
    const int n_warp = n - lane_n * 4;
    const float *staged = (const float *)staging + threadIdx.x / 32 * (LANES_M * STAGED_PITCH);
    const unsigned staged_here = (unsigned)__cvta_generic_to_shared(staged + lane_m * STAGED_PITCH + lane_n * 4);
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        // The i-th rows of all lanes: LANES_M rows of C, 4 apart.
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            // Times alpha here: a sum stored as it is must lie in a row of registers, which the loop pays for.
            asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(staged_here + j * LANES_N * 4),
                         "f"(alpha * sum[i][j]), "f"(alpha * sum[i][j + 1]), "f"(alpha * sum[i][j + 2]),
                         "f"(alpha * sum[i][j + 3])
                         : "memory");
        __syncwarp();
        float values[LANES_M][STAGED_COLUMNS / 32];
#pragma unroll
        for (int r = 0; r < LANES_M; ++r)
#pragma unroll
            for (int c = 0; c < STAGED_COLUMNS / 32; ++c)
                values[r][c] = staged[r * STAGED_PITCH + c * 32 + lane];
        const int first = m_warp + i / 4 * 4 * LANES_M + i % 4;
        float *target = C + (size_t)first * N + n_warp + lane;
#pragma unroll
        for (int r = 0; r < LANES_M; ++r, target += 4 * N)
#pragma unroll
            for (int c = 0; c < STAGED_COLUMNS / 32; ++c)
                write(target + c * 32, values[r][c], first + 4 * r < M && n_warp + lane + c * 32 < N);
        __syncwarp();
    }
}
