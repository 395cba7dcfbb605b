// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0

// write_back for rows of C that start anywhere: the elements that vectors would cover pass through shared memory, so
// that the lanes of a warp write neighbours, one each.

#define STAGED_COLUMNS (LANES_N * TN)        // of C, one warp's
#define STAGED_PITCH (STAGED_COLUMNS + 16)   // padded: neighbouring rows start half of all banks apart
#define STAGED_BYTES (LANES_M * STAGED_PITCH * 4)

static __device__ __forceinline__ void write_back(const float (&sum)[TM][TN], int m, int n, int M, int N, float alpha,
                                                  float beta, bool is_head, float *C)
{
    extern __shared__ __align__(1024) char shared[];
    const int lane = threadIdx.x % 32;
    const int lane_n = lane / 2 % LANES_N;
    const int lane_m = lane % 2 + lane / 8 * 2;
    const int m_warp = m - lane_m * 4;
    const int n_warp = n - lane_n * 4;
    float *staged = (float *)(shared + STAGES * STAGE_BYTES + threadIdx.x / 32 * STAGED_BYTES);
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
        const int first = m_warp + i / 4 * 4 * LANES_M + i % 4;
#pragma unroll 4
        for (int r = 0; r < LANES_M; ++r) {
            const int row = first + 4 * r;
            if (row >= M)
                break;
#pragma unroll
            for (int c = lane; c < STAGED_COLUMNS; c += 32) {
                const int col = n_warp + c;
                if (col >= N)
                    break;
                float *target = C + (size_t)row * N + col;
                const float value = staged[r * STAGED_PITCH + c];
                if (is_head)
                    *target = beta == 0 ? value : value + beta * *target;
                else
                    atomicAdd(target, value);
            }
        }
        __syncwarp();
    }
}
