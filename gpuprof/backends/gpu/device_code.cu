// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
//
// Device code of the measuring side: float64 references, the elementwise comparison, a checksum of the inputs and
// the L2 flush. Compiled with -Dreal=float or double. None of it is ever timed.

#define TILE 64
#define STEP 16
#define MICRO 4

// C = alpha*A@B + beta*C0 in float64, and |alpha|*|A|@|B| + |beta|*|C0| as each element's magnitude.
// Element (i, k) of A is A[i*a_row + k*a_col], likewise for B and C, so that one kernel serves both layouts.
// Block 16x16; each thread computes 4x4 elements, 16 apart, of a 64x64 tile.
extern "C" __global__ void reference_gemm(int M, int N, int K, double alpha, const real *A, long long a_row,
                                          long long a_col, const real *B, long long b_row, long long b_col, double beta,
                                          const real *C0, long long c_row, long long c_col, double *expected,
                                          double *magnitude)
{
    __shared__ real As[TILE][STEP + 1];
    __shared__ real Bs[STEP][TILE + 1];
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int thread = ty * 16 + tx;
    const long long row0 = (long long)blockIdx.y * TILE;
    const long long col0 = (long long)blockIdx.x * TILE;

    double sum[MICRO][MICRO] = {};
    double size[MICRO][MICRO] = {};
    for (int k0 = 0; k0 < K; k0 += STEP) {
        for (int i = thread; i < TILE * STEP; i += 256) {
            const long long row = row0 + i / STEP;
            const int a_k = k0 + i % STEP;
            As[i / STEP][i % STEP] = row < M && a_k < K ? A[row * a_row + a_k * a_col] : real(0);
            const long long col = col0 + i % TILE;
            const int b_k = k0 + i / TILE;
            Bs[i / TILE][i % TILE] = col < N && b_k < K ? B[b_k * b_row + col * b_col] : real(0);
        }
        __syncthreads();
        for (int k = 0; k < STEP; ++k) {
#pragma unroll
            for (int i = 0; i < MICRO; ++i) {
#pragma unroll
                for (int j = 0; j < MICRO; ++j) {
                    const double product = (double)As[ty + 16 * i][k] * (double)Bs[k][tx + 16 * j];
                    sum[i][j] += product;
                    size[i][j] += fabs(product);
                }
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < MICRO; ++i) {
        for (int j = 0; j < MICRO; ++j) {
            const long long row = row0 + ty + 16 * i;
            const long long col = col0 + tx + 16 * j;
            if (row >= M || col >= N)
                continue;
            const long long at = row * c_row + col * c_col;
            const double old = beta == 0 ? 0.0 : (double)C0[at];
            expected[at] = alpha * sum[i][j] + beta * old;
            magnitude[at] = fabs(alpha) * size[i][j] + fabs(beta * old);
        }
    }
}

// expected[x][y] = in[y][x]; with copy, expected = in. Any grid.
extern "C" __global__ void reference_transpose(long long nx, long long ny, int copy, const real *in, double *expected)
{
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < nx * ny; i += stride)
        expected[i] = copy ? in[i] : in[i % ny * nx + i / ny];
}

struct Comparison {
    unsigned long long max_abs_bits; // the bits of a non-negative double order like the double itself
    unsigned long long max_rel_bits;
    unsigned long long wrong;
    unsigned long long first_wrong;
};

// The rule of gpuprof/problems/check.py: is `got` within `allowed` of `expected`, or an infinity where the element
// type, whose largest finite value is `largest`, may have overflowed? NaN never is.
static __device__ bool is_right(double got, double expected, double allowed, double largest)
{
    if (got == expected || fabs(got - expected) <= allowed)
        return true;
    return isinf(got) && (got > 0) == (expected > 0) && fabs(expected) + allowed >= largest;
}

// Largest absolute and relative error, and how many elements are not right. magnitude may be null: then every
// element's magnitude is 1. Any grid; *result starts as {0, 0, 0, ~0}.
extern "C" __global__ void compare(long long elements, const real *got, const double *expected,
                                   const double *magnitude, double relative, double absolute, double largest,
                                   Comparison *result)
{
    double max_abs = 0;
    double max_rel = 0;
    unsigned long long wrong = 0;
    unsigned long long first = ~0ull;
    const double infinity = __longlong_as_double(0x7ff0000000000000ll);
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += stride) {
        const double value = (double)got[i];
        const double scale = magnitude ? fmin(magnitude[i], 1.7976931348623157e308) : 1.0;
        const bool right = is_right(value, expected[i], relative * scale + absolute, largest);
        if (!right) {
            ++wrong;
            first = first < (unsigned long long)i ? first : (unsigned long long)i;
        }
        const double difference = fabs(value - expected[i]);
        const double error = right && !isfinite(difference) ? 0.0 : isnan(difference) ? infinity : difference;
        const double rel = error <= absolute ? 0.0 : (error - absolute) / scale;
        max_abs = error > max_abs ? error : max_abs;
        max_rel = rel > max_rel ? rel : max_rel;
    }
    atomicMax(&result->max_abs_bits, (unsigned long long)__double_as_longlong(max_abs));
    atomicMax(&result->max_rel_bits, (unsigned long long)__double_as_longlong(max_rel));
    if (wrong) {
        atomicAdd(&result->wrong, wrong);
        atomicMin(&result->first_wrong, first);
    }
}

// Order-independent checksum of a buffer's words, to notice a kernel that writes to its inputs. Any grid.
extern "C" __global__ void checksum(long long words, const unsigned *data, unsigned long long *result)
{
    unsigned long long sum = 0;
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += stride)
        sum += (unsigned long long)data[i] * (2 * (unsigned long long)i + 1);
    atomicAdd(result, sum);
}

// Reads a buffer larger than L2, so that the cache then holds clean lines of no use to anybody: a flush that
// writes would leave dirty lines, whose write-back the next kernel would pay for. Any grid.
extern "C" __global__ void flush_l2(long long quads, const uint4 *data, unsigned *sink)
{
    unsigned sum = 0;
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < quads; i += stride) {
        const uint4 quad = __ldcg(&data[i]);
        sum |= quad.x | quad.y | quad.z | quad.w;
    }
    if (sum) // the buffer holds zeros: never taken, but the compiler cannot know
        *sink = sum;
}
