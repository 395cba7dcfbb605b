// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*launches
[matvec_rows]
grid = [2]
block = [64]
arguments = ["i32 99", "i32 130", "f32[12870]", "f32[130]", "f32[99]"]

[matvec_warps]
grid = [25]
block = [32, 4]
arguments = ["i32 99", "i32 130", "f32[12870]", "f32[130]", "f32[99]"]

[transpose_naive]
grid = [4, 13]
block = [32, 8]
arguments = ["i32 101", "i32 99", "f32[9999]", "f32[9999]"]

[transpose_tile]
grid = [4, 4]
block = [32, 8]
arguments = ["i32 101", "i32 99", "f32[9999]", "f32[9999]"]

[transpose_padded]
grid = [4, 4]
block = [32, 8]
arguments = ["i32 101", "i32 99", "f32[9999]", "f32[9999]"]

[transpose_xor]
grid = [4, 4]
block = [32, 8]
arguments = ["i32 101", "i32 99", "f32[9999]", "f32[9999]"]

[gemm_one_each]
grid = [5, 5]
block = [16, 16]
arguments = ["i32 67", "i32 70", "i32 45", "f32[3015]", "f32[3150]", "f32[4690]"]

[gemm_tiles]
grid = [5, 5]
block = [16, 16]
arguments = ["i32 67", "i32 70", "i32 45", "f32[3015]", "f32[3150]", "f32[4690]"]

[gemm_registers]
grid = [3, 2]
block = [64]
arguments = ["i32 128", "i32 192", "i32 40", "f32[5120]", "f32[7680]", "f32[24576]"]

[gemm_float4]
grid = [2, 2]
block = [256]
arguments = ["i32 128", "i32 128", "i32 64", "f32[8192]", "f32[8192]", "f32[16384]"]

[gemm_xor_swizzle]
grid = [2, 2]
block = [16, 16]
arguments = ["i32 64", "i32 64", "i32 64", "f32[4096]", "f32[4096]", "f32[4096]"]

[gemm_double_buffer]
grid = [3, 3]
block = [16, 16]
arguments = ["i32 48", "i32 48", "i32 80", "f32[3840]", "f32[3840]", "f32[2304]"]

[gemm_async_4]
grid = [5, 5]
block = [16, 16]
arguments = ["i32 67", "i32 70", "i32 45", "f32[3015]", "f32[3150]", "f32[4690]"]

[gemm_async_8]
grid = [2, 2]
block = [16, 16]
arguments = ["i32 64", "i32 64", "i32 64", "f32[4096]", "f32[4096]", "f32[4096]"]

[gemm_async_16]
grid = [2, 2]
block = [256]
arguments = ["i32 128", "i32 128", "i32 64", "f32[8192]", "f32[8192]", "f32[16384]"]

[gemm_f64_tiles]
grid = [5, 5]
block = [16, 16]
arguments = ["i32 67", "i32 70", "i32 45", "f64[3015]", "f64[3150]", "f64[4690]"]

[gemm_int8_dp4a]
grid = [3, 3]
block = [16, 16]
arguments = ["i32 40", "i32 44", "i32 24", "i32[960] bits", "i32[1056] bits", "i32[1760]"]

[batched_4x4]
grid = [7]
block = [128]
arguments = ["i32 200", "f32[3200]", "f32[3200]", "f32[3200]"]

[gram_matrix]
grid = [3, 3]
block = [8, 8]
arguments = ["i32 21", "i32 200", "f32[4200]", "f32[441]"]

[lu_diagonal_tile]
grid = [3]
block = [16]
arguments = ["f32[768] uniform 1 2"]

[triangular_solve]
grid = [2]
block = [64]
arguments = ["i32 24", "i32 100", "f32[576] uniform 1 2", "f32[2400]"]

[outer_product_add]
grid = [4, 13]
block = [32, 8]
arguments = ["i32 99", "i32 101", "f32[99]", "f32[101]", "f32[9999]"]
*/

extern "C" __global__ void matvec_rows(int m, int n, const float *a, const float *x, float *y)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= m)
        return;
    float sum = 0;
    for (int c = 0; c < n; ++c)
        sum += a[r * n + c] * x[c];
    y[r] = sum;
}

extern "C" __global__ void matvec_warps(int m, int n, const float *a, const float *x, float *y)
{
    int r = blockIdx.x * blockDim.y + threadIdx.y;
    if (r >= m)
        return;
    float sum = 0;
    for (int c = threadIdx.x; c < n; c += 32)
        sum += a[r * n + c] * x[c];
    for (int s = 16; s > 0; s /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, s);
    if (threadIdx.x == 0)
        y[r] = sum;
}

extern "C" __global__ void transpose_naive(int nx, int ny, const float *in, float *out)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < nx && y < ny)
        out[x * ny + y] = in[y * nx + x];
}

template <int pitch> __device__ void transpose(int nx, int ny, const float *in, float *out, float (*tile)[pitch])
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (x < nx && y + k < ny)
            tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * nx + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (x < ny && y + k < nx)
            out[(y + k) * ny + x] = tile[threadIdx.x][threadIdx.y + k];
}

extern "C" __global__ void transpose_tile(int nx, int ny, const float *in, float *out)
{
    __shared__ float tile[32][32];
    transpose(nx, ny, in, out, tile);
}

extern "C" __global__ void transpose_padded(int nx, int ny, const float *in, float *out)
{
    __shared__ float tile[32][33];
    transpose(nx, ny, in, out, tile);
}

extern "C" __global__ void transpose_xor(int nx, int ny, const float *in, float *out)
{
    __shared__ float tile[32 * 32];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int k = threadIdx.y; k < 32; k += 8, y += 8)
        if (x < nx && y < ny)
            tile[k * 32 + (threadIdx.x ^ k)] = in[y * nx + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    for (int k = threadIdx.y; k < 32; k += 8) {
        y = blockIdx.x * 32 + k;
        if (x < ny && y < nx)
            out[y * ny + x] = tile[threadIdx.x * 32 + (k ^ threadIdx.x)];
    }
}

extern "C" __global__ void gemm_one_each(int m, int n, int k, const float *a, const float *b, float *c)
{
    int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    if (row >= m || col >= n)
        return;
    float sum = 0;
    for (int i = 0; i < k; ++i)
        sum += a[row * k + i] * b[i * n + col];
    c[row * n + col] = sum;
}

template <class T> __device__ void tiled(int m, int n, int k, const T *a, const T *b, T *c)
{
    __shared__ T as[16][16], bs[16][16];
    int tx = threadIdx.x, ty = threadIdx.y, col = blockIdx.x * 16 + tx, row = blockIdx.y * 16 + ty;
    T sum = 0;
    for (int k0 = 0; k0 < k; k0 += 16) {
        as[ty][tx] = row < m && k0 + tx < k ? a[row * k + k0 + tx] : T(0);
        bs[ty][tx] = col < n && k0 + ty < k ? b[(k0 + ty) * n + col] : T(0);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; ++i)
            sum += as[ty][i] * bs[i][tx];
        __syncthreads();
    }
    if (row < m && col < n)
        c[row * n + col] = sum;
}

extern "C" __global__ void gemm_tiles(int m, int n, int k, const float *a, const float *b, float *c)
{
    tiled(m, n, k, a, b, c);
}

extern "C" __global__ void gemm_f64_tiles(int m, int n, int k, const double *a, const double *b, double *c)
{
    tiled(m, n, k, a, b, c);
}

extern "C" __global__ void gemm_registers(int m, int n, int k, const float *a, const float *b, float *c)
{
    // 64 x 64 of C by 64 threads, 8 x 8 each.
    __shared__ float as[8][64], bs[8][64];
    int t = threadIdx.x, tx = t % 8, ty = t / 8, row0 = blockIdx.y * 64, col0 = blockIdx.x * 64;
    float sums[8][8] = {};
    for (int k0 = 0; k0 < k; k0 += 8) {
        for (int i = 0; i < 8; ++i) {
            as[i][t] = a[(row0 + t) * k + k0 + i];
            bs[i][t] = b[(k0 + i) * n + col0 + t];
        }
        __syncthreads();
        for (int i = 0; i < 8; ++i) {
            float x[8], y[8];
            for (int j = 0; j < 8; ++j) {
                x[j] = as[i][ty * 8 + j];
                y[j] = bs[i][tx * 8 + j];
            }
            for (int r = 0; r < 8; ++r)
                for (int s = 0; s < 8; ++s)
                    sums[r][s] += x[r] * y[s];
        }
        __syncthreads();
    }
    for (int r = 0; r < 8; ++r)
        for (int s = 0; s < 8; ++s)
            c[(row0 + ty * 8 + r) * n + col0 + tx * 8 + s] = sums[r][s];
}

extern "C" __global__ void __launch_bounds__(256) gemm_float4(int m, int n, int k, const float *a, const float *b, float *c)
{
    // 64 x 64 of C by 256 threads, 4 x 4 each; A is kept transposed.
    __shared__ __align__(16) float as[16][68], bs[16][64];
    int t = threadIdx.x, tx = t % 16, ty = t / 16, row0 = blockIdx.y * 64, col0 = blockIdx.x * 64;
    float4 sums[4] = {};
    for (int k0 = 0; k0 < k; k0 += 16) {
        float4 v = *(const float4 *)&a[(row0 + t / 4) * k + k0 + t % 4 * 4];
        as[t % 4 * 4][t / 4] = v.x;
        as[t % 4 * 4 + 1][t / 4] = v.y;
        as[t % 4 * 4 + 2][t / 4] = v.z;
        as[t % 4 * 4 + 3][t / 4] = v.w;
        *(float4 *)&bs[ty][tx * 4] = *(const float4 *)&b[(k0 + ty) * n + col0 + tx * 4];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            float4 x = *(const float4 *)&as[i][ty * 4], y = *(const float4 *)&bs[i][tx * 4];
            float xs[4] = {x.x, x.y, x.z, x.w};
            for (int r = 0; r < 4; ++r) {
                sums[r].x += xs[r] * y.x;
                sums[r].y += xs[r] * y.y;
                sums[r].z += xs[r] * y.z;
                sums[r].w += xs[r] * y.w;
            }
        }
        __syncthreads();
    }
    for (int r = 0; r < 4; ++r)
        *(float4 *)&c[(row0 + ty * 4 + r) * n + col0 + tx * 4] = sums[r];
}

extern "C" __global__ void gemm_xor_swizzle(int m, int n, int k, const float *a, const float *b, float *c)
{
    // 32 x 32 of C by 16 x 16 threads, 2 x 2 each; a row's elements are exchanged by an exclusive or.
    __shared__ float as[32 * 32], bs[32 * 32];
    int tx = threadIdx.x, ty = threadIdx.y, t = ty * 16 + tx;
    float sums[2][2] = {};
    for (int k0 = 0; k0 < k; k0 += 32) {
        for (int e = t; e < 1024; e += 256) {
            int r = e / 32, q = e % 32;
            as[q * 32 + (r ^ q)] = a[(blockIdx.y * 32 + r) * k + k0 + q];
            bs[r * 32 + (q ^ r)] = b[(k0 + r) * n + blockIdx.x * 32 + q];
        }
        __syncthreads();
        for (int i = 0; i < 32; ++i)
            for (int r = 0; r < 2; ++r)
                for (int s = 0; s < 2; ++s)
                    sums[r][s] += as[i * 32 + ((ty + 16 * r) ^ i)] * bs[i * 32 + ((tx + 16 * s) ^ i)];
        __syncthreads();
    }
    for (int r = 0; r < 2; ++r)
        for (int s = 0; s < 2; ++s)
            c[(blockIdx.y * 32 + ty + 16 * r) * n + blockIdx.x * 32 + tx + 16 * s] = sums[r][s];
}

extern "C" __global__ void gemm_double_buffer(int m, int n, int k, const float *a, const float *b, float *c)
{
    __shared__ float as[2][16][16], bs[2][16][16];
    int tx = threadIdx.x, ty = threadIdx.y, col = blockIdx.x * 16 + tx, row = blockIdx.y * 16 + ty, now = 0;
    as[0][ty][tx] = a[row * k + tx];
    bs[0][ty][tx] = b[ty * n + col];
    __syncthreads();
    float sum = 0;
    for (int k0 = 16; k0 <= k; k0 += 16) {
        float next_a = 0, next_b = 0;
        if (k0 < k) {
            next_a = a[row * k + k0 + tx];
            next_b = b[(k0 + ty) * n + col];
        }
#pragma unroll
        for (int i = 0; i < 16; ++i)
            sum += as[now][ty][i] * bs[now][i][tx];
        now ^= 1;
        as[now][ty][tx] = next_a;
        bs[now][ty][tx] = next_b;
        __syncthreads();
    }
    c[row * n + col] = sum;
}

template <int bytes> __device__ void copy_async(void *to, const void *from, int read = bytes)
{
    unsigned place = (unsigned)__cvta_generic_to_shared(to);
    if constexpr (bytes == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from), "r"(read));
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(place), "l"(from), "n"(bytes), "r"(read));
}

__device__ void copies_end()
{
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 0;" ::: "memory");
}

extern "C" __global__ void gemm_async_4(int m, int n, int k, const float *a, const float *b, float *c)
{
    __shared__ float as[16][16], bs[16][16];
    int tx = threadIdx.x, ty = threadIdx.y, col = blockIdx.x * 16 + tx, row = blockIdx.y * 16 + ty;
    float sum = 0;
    for (int k0 = 0; k0 < k; k0 += 16) {
        // What lies outside is filled with zeros: nothing is read of it.
        bool left = row < m && k0 + tx < k, right = col < n && k0 + ty < k;
        copy_async<4>(&as[ty][tx], left ? &a[row * k + k0 + tx] : a, left ? 4 : 0);
        copy_async<4>(&bs[ty][tx], right ? &b[(k0 + ty) * n + col] : b, right ? 4 : 0);
        copies_end();
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; ++i)
            sum += as[ty][i] * bs[i][tx];
        __syncthreads();
    }
    if (row < m && col < n)
        c[row * n + col] = sum;
}

extern "C" __global__ void gemm_async_8(int m, int n, int k, const float *a, const float *b, float *c)
{
    __shared__ __align__(16) float as[32][32], bs[16][32];
    int tx = threadIdx.x, ty = threadIdx.y, t = ty * 16 + tx;
    float sums[2][2] = {};
    for (int k0 = 0; k0 < k; k0 += 16) {
        copy_async<8>(&as[t / 8][t % 8 * 2], &a[(blockIdx.y * 32 + t / 8) * k + k0 + t % 8 * 2]);
        copy_async<8>(&bs[ty][tx * 2], &b[(k0 + ty) * n + blockIdx.x * 32 + tx * 2]);
        copies_end();
        __syncthreads();
        for (int i = 0; i < 16; ++i)
            for (int r = 0; r < 2; ++r)
                for (int s = 0; s < 2; ++s)
                    sums[r][s] += as[ty * 2 + r][i] * bs[i][tx * 2 + s];
        __syncthreads();
    }
    for (int r = 0; r < 2; ++r)
        for (int s = 0; s < 2; ++s)
            c[(blockIdx.y * 32 + ty * 2 + r) * n + blockIdx.x * 32 + tx * 2 + s] = sums[r][s];
}

extern "C" __global__ void __launch_bounds__(256) gemm_async_16(int m, int n, int k, const float *a, const float *b, float *c)
{
    // Two stages: the copies of the next tile fly while this one is multiplied.
    __shared__ __align__(16) float as[2][64][20], bs[2][16][64];
    int t = threadIdx.x, tx = t % 16, ty = t / 16, row0 = blockIdx.y * 64, col0 = blockIdx.x * 64;
    float sums[4][4] = {};
    auto start = [&](int stage, int k0) {
        copy_async<16>(&as[stage][t / 4][t % 4 * 4], &a[(row0 + t / 4) * k + k0 + t % 4 * 4]);
        copy_async<16>(&bs[stage][ty][tx * 4], &b[(k0 + ty) * n + col0 + tx * 4]);
        asm volatile("cp.async.commit_group;");
    };
    start(0, 0);
    for (int k0 = 0, stage = 0; k0 < k; k0 += 16, stage ^= 1) {
        if (k0 + 16 < k) {
            start(stage ^ 1, k0 + 16);
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        } else {
            asm volatile("cp.async.wait_group 0;" ::: "memory");
        }
        __syncthreads();
        for (int i = 0; i < 16; ++i) {
            float x[4], y[4];
            for (int j = 0; j < 4; ++j) {
                x[j] = as[stage][ty * 4 + j][i];
                y[j] = bs[stage][i][tx * 4 + j];
            }
            for (int r = 0; r < 4; ++r)
                for (int s = 0; s < 4; ++s)
                    sums[r][s] += x[r] * y[s];
        }
        __syncthreads();
    }
    for (int r = 0; r < 4; ++r)
        for (int s = 0; s < 4; ++s)
            c[(row0 + ty * 4 + r) * n + col0 + tx * 4 + s] = sums[r][s];
}

extern "C" __global__ void gemm_int8_dp4a(int m, int n, int k, const int *a, const int *b, int *c)
{
    // Four bytes of a row of A, and of a column of B, to a word.
    int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    if (row >= m || col >= n)
        return;
    int sum = 0;
    for (int i = 0; i < k; ++i)
        sum = __dp4a(a[row * k + i], b[i * n + col], sum);
    c[row * n + col] = sum;
}

extern "C" __global__ void batched_4x4(int count, const float *a, const float *b, float *c)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, which = i / 4, row = i % 4;
    if (which >= count)
        return;
    float4 x = reinterpret_cast<const float4 *>(a)[which * 4 + row], sum = make_float4(0, 0, 0, 0);
    float parts[4] = {x.x, x.y, x.z, x.w};
    for (int k = 0; k < 4; ++k) {
        float4 y = reinterpret_cast<const float4 *>(b)[which * 4 + k];
        sum.x += parts[k] * y.x;
        sum.y += parts[k] * y.y;
        sum.z += parts[k] * y.z;
        sum.w += parts[k] * y.w;
    }
    reinterpret_cast<float4 *>(c)[which * 4 + row] = sum;
}

extern "C" __global__ void gram_matrix(int n, int length, const float *x, float *g)
{
    int i = blockIdx.y * 8 + threadIdx.y, j = blockIdx.x * 8 + threadIdx.x;
    if (i >= n || j >= n || j > i)
        return;
    float sum = 0;
    for (int k = 0; k < length; ++k)
        sum += x[i * length + k] * x[j * length + k];
    g[i * n + j] = sum;
    if (i != j)
        g[j * n + i] = sum;
}

extern "C" __global__ void lu_diagonal_tile(float *tiles)
{
    __shared__ float s[16][16];
    float *tile = tiles + blockIdx.x * 256;
    int t = threadIdx.x;
    for (int r = 0; r < 16; ++r)
        s[r][t] = tile[r * 16 + t] + (r == t ? 20.0f : 0.0f);
    __syncthreads();
    for (int k = 0; k < 15; ++k) {
        if (t > k) {
            float factor = s[t][k] / s[k][k];
            s[t][k] = factor;
            for (int j = k + 1; j < 16; ++j)
                s[t][j] -= factor * s[k][j];
        }
        __syncthreads();
    }
    for (int r = 0; r < 16; ++r)
        tile[r * 16 + t] = s[r][t];
}

extern "C" __global__ void triangular_solve(int n, int columns, const float *l, float *x)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= columns)
        return;
    for (int r = 0; r < n; ++r) {
        float v = x[r * columns + c];
        for (int k = 0; k < r; ++k)
            v -= l[r * n + k] * 0.05f * x[k * columns + c];
        x[r * columns + c] = v / l[r * n + r];
    }
}

extern "C" __global__ void outer_product_add(int m, int n, const float *x, const float *y, float *a)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r < m && c < n)
        a[r * n + c] += x[r] * y[c];
}
