// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*launches
[dot]
grid = [8]
block = [128]
arguments = ["i32 3001", "f32[3001]", "f32[3001]", "f32[8]"]

[reduce_interleaved]
grid = [12]
block = [256]
arguments = ["i32 3001", "i32[3001]", "i32[12]"]

[reduce_sequential]
grid = [12]
block = [256]
arguments = ["i32 3001", "i32[3001]", "i32[12]"]

[reduce_unrolled_warp]
grid = [6]
block = [256]
arguments = ["i32 3001", "f32[3001]", "f32[6]"]

[reduce_shuffles]
grid = [6]
block = [224]
arguments = ["i32 3001", "f32[3001]", "f32[6]"]

[maximum_and_place]
grid = [4]
block = [128]
arguments = ["i32 1777", "f32[1777]", "f32[4]", "i32[4]"]

[scan_warp]
grid = [7]
block = [96]
arguments = ["i32 650", "i32[650]", "i32[650]"]

[scan_steps]
grid = [5]
block = [128]
arguments = ["i32 601", "i32[601]", "i32[601]"]

[scan_tree]
grid = [5]
block = [64]
arguments = ["i32[640]", "i32[640]"]

[scan_block_of_warps]
grid = [3]
block = [256]
arguments = ["i32 700", "f32[700]", "f32[700]"]

[histogram_global]
grid = [10]
block = [128]
arguments = ["i32 5003", "u8[5003] below 256", "u32[256] zeros"]

[histogram_shared]
grid = [5]
block = [256]
arguments = ["i32 5003", "u8[5003] below 256", "u32[256] zeros"]

[histogram_per_warp]
grid = [4]
block = [128]
arguments = ["i32 5003", "u8[5003] below 64", "u32[64] zeros"]

[compact_by_ballot]
grid = [6]
block = [128]
arguments = ["i32 700", "i32[700]", "i32[768]", "i32[24]"]

[row_sums]
grid = [37]
block = [64]
arguments = ["i32 301", "f32[11137]", "f32[37]"]

[column_sums]
grid = [3]
block = [128]
arguments = ["i32 37", "i32 301", "f32[11137]", "f32[301]"]

[mean_and_variance]
grid = [9]
block = [128]
arguments = ["i32 500", "f32[4500]", "f32[18]"]

[segmented_sums]
grid = [3]
block = [128]
arguments = ["i32 300", "i32[301] ramp 5", "f32[1505]", "f32[300]"]

[monte_carlo_pi]
grid = [4]
block = [128]
arguments = ["i32 40", "u32[1] zeros"]
*/

extern "C" __global__ void dot(int n, const float *a, const float *b, float *partial)
{
    __shared__ float cache[128];
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += a[i] * b[i];
    cache[threadIdx.x] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            cache[threadIdx.x] += cache[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        partial[blockIdx.x] = cache[0];
}

extern "C" __global__ void reduce_interleaved(int n, const int *in, int *out)
{
    __shared__ int data[256];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    data[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (int s = 1; s < blockDim.x; s *= 2) {
        if (t % (2 * s) == 0)
            data[t] += data[t + s];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = data[0];
}

extern "C" __global__ void reduce_sequential(int n, const int *in, int *out)
{
    __shared__ int data[256];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    data[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (t < s)
            data[t] += data[t + s];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = data[0];
}

extern "C" __global__ void reduce_unrolled_warp(int n, const float *in, float *out)
{
    __shared__ float data[256];
    int t = threadIdx.x, i = blockIdx.x * 512 + t;
    data[t] = (i < n ? in[i] : 0.0f) + (i + 256 < n ? in[i + 256] : 0.0f);
    __syncthreads();
    if (t < 128)
        data[t] += data[t + 128];
    __syncthreads();
    if (t < 64)
        data[t] += data[t + 64];
    __syncthreads();
    if (t < 32) {
        float v = data[t] + data[t + 32];
        for (int k = 16; k > 0; k >>= 1)
            v += __shfl_down_sync(0xffffffff, v, k);
        if (t == 0)
            out[blockIdx.x] = v;
    }
}

extern "C" __global__ void reduce_shuffles(int n, const float *in, float *out)
{
    __shared__ float warps[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        v += in[i];
    for (int k = 16; k > 0; k >>= 1)
        v += __shfl_xor_sync(0xffffffff, v, k);
    if (lane == 0)
        warps[warp] = v;
    __syncthreads();
    if (warp == 0) {
        v = lane < blockDim.x / 32 ? warps[lane] : 0.0f;
        for (int k = 16; k > 0; k >>= 1)
            v += __shfl_xor_sync(0xffffffff, v, k);
        if (lane == 0)
            out[blockIdx.x] = v;
    }
}

extern "C" __global__ void maximum_and_place(int n, const float *in, float *best, int *place)
{
    __shared__ float values[128];
    __shared__ int places[128];
    int t = threadIdx.x, where = -1;
    float value = -1e30f;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x)
        if (in[i] > value) {
            value = in[i];
            where = i;
        }
    values[t] = value;
    places[t] = where;
    __syncthreads();
    for (int s = 64; s > 0; s /= 2) {
        if (t < s && values[t + s] > values[t]) {
            values[t] = values[t + s];
            places[t] = places[t + s];
        }
        __syncthreads();
    }
    if (t == 0) {
        best[blockIdx.x] = values[0];
        place[blockIdx.x] = places[0];
    }
}

extern "C" __global__ void scan_warp(int n, const int *in, int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    int v = i < n ? in[i] : 0;
    for (int k = 1; k < 32; k *= 2) {
        int before = __shfl_up_sync(0xffffffff, v, k);
        if (lane >= k)
            v += before;
    }
    if (i < n)
        out[i] = v;
}

extern "C" __global__ void scan_steps(int n, const int *in, int *out)
{
    __shared__ int buffer[2][128];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, now = 0;
    buffer[0][t] = i < n ? in[i] : 0;
    __syncthreads();
    for (int k = 1; k < 128; k *= 2) {
        buffer[1 - now][t] = t >= k ? buffer[now][t] + buffer[now][t - k] : buffer[now][t];
        now = 1 - now;
        __syncthreads();
    }
    if (i < n)
        out[i] = buffer[now][t];
}

#define PADDED(i) ((i) + ((i) >> 5))

extern "C" __global__ void scan_tree(const int *in, int *out)
{
    __shared__ int data[PADDED(128)];
    int t = threadIdx.x, base = blockIdx.x * 128, offset = 1;
    data[PADDED(t)] = in[base + t];
    data[PADDED(t + 64)] = in[base + t + 64];
    for (int d = 64; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d)
            data[PADDED(offset * (2 * t + 2) - 1)] += data[PADDED(offset * (2 * t + 1) - 1)];
        offset *= 2;
    }
    if (t == 0)
        data[PADDED(127)] = 0;
    for (int d = 1; d < 128; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (t < d) {
            int left = PADDED(offset * (2 * t + 1) - 1), right = PADDED(offset * (2 * t + 2) - 1);
            int kept = data[left];
            data[left] = data[right];
            data[right] += kept;
        }
    }
    __syncthreads();
    out[base + t] = data[PADDED(t)];
    out[base + t + 64] = data[PADDED(t + 64)];
}

extern "C" __global__ void scan_block_of_warps(int n, const float *in, float *out)
{
    __shared__ float totals[8];
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    float v = i < n ? in[i] : 0.0f;
    for (int k = 1; k < 32; k *= 2) {
        float before = __shfl_up_sync(0xffffffff, v, k);
        v += lane >= k ? before : 0.0f;
    }
    if (lane == 31)
        totals[warp] = v;
    __syncthreads();
    for (int k = 0; k < warp; ++k)
        v += totals[k];
    if (i < n)
        out[i] = v;
}

extern "C" __global__ void histogram_global(int n, const unsigned char *data, unsigned *bins)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[data[i]], 1u);
}

extern "C" __global__ void histogram_shared(int n, const unsigned char *data, unsigned *bins)
{
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&own[data[i]], 1u);
    __syncthreads();
    if (own[threadIdx.x])
        atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

extern "C" __global__ void histogram_per_warp(int n, const unsigned char *data, unsigned *bins)
{
    __shared__ unsigned own[4][64];
    int warp = threadIdx.x / 32;
    for (int k = threadIdx.x; k < 4 * 64; k += blockDim.x)
        own[k / 64][k % 64] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&own[warp][data[i]], 1u);
    __syncthreads();
    if (threadIdx.x < 64) {
        int t = threadIdx.x;
        atomicAdd(&bins[t], own[0][t] + own[1][t] + own[2][t] + own[3][t]);
    }
}

extern "C" __global__ void compact_by_ballot(int n, const int *in, int *out, int *counts)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    bool wanted = i < n && in[i] % 3 == 0;
    unsigned who = __ballot_sync(0xffffffff, wanted);
    if (wanted)
        out[i - lane + __popc(who & ((1u << lane) - 1))] = in[i];
    if (lane == 0)
        counts[i / 32] = __popc(who);
}

extern "C" __global__ void row_sums(int columns, const float *x, float *sums)
{
    __shared__ float data[64];
    float sum = 0;
    for (int c = threadIdx.x; c < columns; c += 64)
        sum += x[blockIdx.x * columns + c];
    data[threadIdx.x] = sum;
    __syncthreads();
    for (int s = 32; s > 0; s >>= 1) {
        if (threadIdx.x < s)
            data[threadIdx.x] += data[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        sums[blockIdx.x] = data[0];
}

extern "C" __global__ void column_sums(int rows, int columns, const float *x, float *sums)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= columns)
        return;
    float sum = 0;
    for (int r = 0; r < rows; ++r)
        sum += x[r * columns + c];
    sums[c] = sum;
}

extern "C" __global__ void mean_and_variance(int n, const float *x, float *out)
{
    __shared__ float2 warps[4];
    float2 sum = make_float2(0, 0);
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        float v = x[blockIdx.x * n + i];
        sum.x += v;
        sum.y += v * v;
    }
    for (int k = 16; k > 0; k >>= 1) {
        sum.x += __shfl_down_sync(0xffffffff, sum.x, k);
        sum.y += __shfl_down_sync(0xffffffff, sum.y, k);
    }
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 4; ++w) {
            sum.x += warps[w].x;
            sum.y += warps[w].y;
        }
        float mean = sum.x / n;
        out[2 * blockIdx.x] = mean;
        out[2 * blockIdx.x + 1] = sum.y / n - mean * mean;
    }
}

extern "C" __global__ void segmented_sums(int segments, const int *starts, const float *x, float *sums)
{
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= segments)
        return;
    float sum = 0;
    for (int i = starts[s]; i < starts[s + 1]; ++i)
        sum += x[i];
    sums[s] = sum;
}

extern "C" __global__ void monte_carlo_pi(int samples, unsigned *hits)
{
    unsigned state = 2463534242u + 977u * (blockIdx.x * blockDim.x + threadIdx.x), inside = 0;
    for (int k = 0; k < samples; ++k) {
        float place[2];
        for (int j = 0; j < 2; ++j) {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            place[j] = (state >> 8) * (1.0f / 16777216.0f);
        }
        inside += place[0] * place[0] + place[1] * place[1] <= 1.0f;
    }
    atomicAdd(hits, inside);
}
