// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0

// Attention's float64 reference on the device, for any element type of which `value_of` tells the number; never timed.
// Each element's magnitude is that of operation.toml's formula.

#define QUERIES 32 // of a block; PARTS threads share one
#define KEYS 32
#define PARTS 8
#define DEPTH 32    // of a head at a time
#define COLUMNS 128 // of O at a time

// Scores are computed twice: for their maximum, then for the sums.
extern "C" __global__ void reference_attention(long long heads, long long sequence, long long head, long long causal,
                                               const real *Q, const real *K, const real *V, double *expected, double *magnitude)
{
    __shared__ double weights[QUERIES][KEYS + 1];
    __shared__ double Qs[QUERIES][DEPTH + 1];
    __shared__ double Ks[KEYS][DEPTH + 1];
    const int query = threadIdx.x / PARTS;
    const int part = threadIdx.x % PARTS;
    const long long first = (blockIdx.z * heads + blockIdx.y) * sequence; // row of Q, K, V and O
    const long long row0 = (long long)blockIdx.x * QUERIES;
    const long long row = row0 + query;
    const long long end = causal && row0 + QUERIES < sequence ? row0 + QUERIES : sequence; // of the block's keys
    const long long attended = causal && row < sequence ? row + 1 : sequence;              // keys of this query
    const double scale = 1 / sqrt((double)head);

    // Scores of the query with keys key0 + part, + 8, + 16 and + 24, for all threads at once.
    const auto find_scores = [&](long long key0, double (&scores)[KEYS / PARTS]) {
        for (int i = 0; i < KEYS / PARTS; ++i)
            scores[i] = 0;
        for (int k0 = 0; k0 < head; k0 += DEPTH) {
            __syncthreads();
            for (int i = threadIdx.x; i < QUERIES * DEPTH; i += QUERIES * PARTS) {
                const int k = k0 + i % DEPTH;
                const long long q_row = row0 + i / DEPTH, k_row = key0 + i / DEPTH;
                Qs[i / DEPTH][i % DEPTH] = k < head && q_row < sequence ? value_of(Q[(first + q_row) * head + k]) : 0;
                Ks[i / DEPTH][i % DEPTH] = k < head && k_row < sequence ? value_of(K[(first + k_row) * head + k]) : 0;
            }
            __syncthreads();
            for (int k = 0; k < DEPTH; ++k)
                for (int i = 0; i < KEYS / PARTS; ++i)
                    scores[i] += Qs[query][k] * Ks[part + i * PARTS][k];
        }
        for (int i = 0; i < KEYS / PARTS; ++i)
            scores[i] *= scale;
    };

    double scores[KEYS / PARTS];
    double top = -1e300;
    for (long long key0 = 0; key0 < end; key0 += KEYS) {
        find_scores(key0, scores);
        for (int i = 0; i < KEYS / PARTS; ++i)
            if (key0 + part + i * PARTS < attended)
                top = fmax(top, scores[i]);
    }
    for (int lane = 1; lane < PARTS; lane *= 2)
        top = fmax(top, __shfl_xor_sync(0xffffffff, top, lane));

    // A thread has columns part, part + 8 ... of its query's row.
    for (int column = 0; column < head; column += COLUMNS) {
        double total = 0, sum[COLUMNS / PARTS] = {}, squares[COLUMNS / PARTS] = {}, sizes[COLUMNS / PARTS] = {};
        for (long long key0 = 0; key0 < end; key0 += KEYS) {
            find_scores(key0, scores); // its barriers order what follows with the tile before
            for (int i = 0; i < KEYS / PARTS; ++i)
                weights[query][part + i * PARTS] = key0 + part + i * PARTS < attended ? exp(scores[i] - top) : 0;
            __syncwarp(); // the threads of a query are of one warp
            for (int i = 0; i < KEYS && key0 + i < attended; ++i) {
                const double weight = weights[query][i];
                total += weight;
                for (int j = 0; j < COLUMNS / PARTS; ++j) {
                    const int at = column + j * PARTS + part;
                    const double term = at < head ? weight * value_of(V[(first + key0 + i) * head + at]) : 0;
                    sum[j] += term;
                    squares[j] += term * term;
                    sizes[j] += fabs(term);
                }
            }
        }
        for (int j = 0; j < COLUMNS / PARTS; ++j) {
            const int at = column + j * PARTS + part;
            if (row < sequence && at < head) {
                expected[(first + row) * head + at] = sum[j] / total;
                magnitude[(first + row) * head + at] = (fabs(sum[j]) + sqrt(squares[j]) + sizes[j] / 32) / total;
            }
        }
    }
}
