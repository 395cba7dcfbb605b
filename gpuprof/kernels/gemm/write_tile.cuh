// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0

// Write a thread's sums to C, at whose row m and column n its first one belongs: four neighbours at once where rows
// start at multiples of 16 bytes (VECTOR), else element by element.
template <bool VECTOR>
static __device__ __forceinline__ void write_tile(const float (&sum)[TM][TN], int m, int n, int M, int N, float alpha,
                                                  float beta, float *C)
{
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = m + i / 4 * 4 * LANES_M + i % 4;
        if (row >= M)
            break;
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int col = n + j * LANES_N;
            float *c = C + (size_t)row * N + col;
            if (VECTOR) {
                if (col >= N)
                    continue;
                float4 value = make_float4(alpha * sum[i][j], alpha * sum[i][j + 1], alpha * sum[i][j + 2],
                                           alpha * sum[i][j + 3]);
                if (beta != 0) {
                    const float4 old = *(const float4 *)c;
                    value = make_float4(value.x + beta * old.x, value.y + beta * old.y, value.z + beta * old.z,
                                        value.w + beta * old.w);
                }
                *(float4 *)c = value;
            } else {
#pragma unroll
                for (int q = 0; q < 4; ++q)
                    if (col + q < N)
                        c[q] = beta == 0 ? alpha * sum[i][j + q] : alpha * sum[i][j + q] + beta * c[q];
            }
        }
    }
}
