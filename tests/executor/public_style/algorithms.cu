// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*launches
[bitonic_shared]
grid = [3]
block = [128]
arguments = ["i32[768] bits"]

[odd_even_sort]
grid = [2]
block = [64]
arguments = ["i32[256]"]

[radix_count]
grid = [4]
block = [128]
arguments = ["i32 1001", "i32 4", "u32[1001] bits", "u32[64] zeros"]

[rank_sort]
grid = [3]
block = [128]
arguments = ["i32 300", "i32[300] permutation", "i32[300]"]

[merge_by_ranks]
grid = [3]
block = [128]
arguments = ["i32 150", "i32 160", "i32[150] ramp 7", "i32[160] ramp 6", "i32[310]"]

[binary_search]
grid = [4]
block = [100]
arguments = ["i32 400", "i32 777", "i32[777] ramp 3", "i32[400] below 2400", "i32[400]"]

[needleman_tile]
grid = [4]
block = [16]
arguments = ["i32 3", "i32[1024] below 8", "i32[1156] below 30"]

[edit_distance_rows]
grid = [1]
block = [64]
arguments = ["i32 20", "u8[64] below 4", "u8[20] below 4", "i32[64]"]

[find_string]
grid = [8]
block = [128]
arguments = ["i32 1000", "u8[1000] below 3", "u8[4] below 3", "u32[1] zeros"]

[crc32]
grid = [2]
block = [64]
arguments = ["i32 100", "i32 17", "u8[1700] below 256", "u32[100]"]

[substitute_bytes]
grid = [4]
block = [64]
arguments = ["i32 200", "u8[256] bytes", "u32[800] bits", "u32[4] bits"]

[philox]
grid = [3]
block = [128]
arguments = ["u32 77", "u32[1536]"]

[sobol_points]
grid = [2, 3]
block = [64]
arguments = ["i32 500", "u32[96] bits", "f32[1500]"]

[walsh_shared]
grid = [3]
block = [128]
arguments = ["f32[768]"]

[fft_radix_2]
grid = [3]
block = [64]
arguments = ["f32[768]", "f32[128]"]

[mandelbrot]
grid = [5, 7]
block = [16, 8]
arguments = ["i32 70", "i32 50", "i32[3500]"]

[black_scholes]
grid = [4]
block = [128]
arguments = ["i32 500", "f32[500] uniform 5 30", "f32[500] uniform 1 100", "f32[500] uniform 0.25 10", "f32[500]", "f32[500]"]

[nbody_tiles]
grid = [3]
block = [64]
arguments = ["i32 192", "f32[768]", "f32[768]"]

[neighbour_boxes]
grid = [8]
block = [32]
arguments = ["f32[1024]", "i32[24] below 8", "f32[256]"]

[kmeans_assign]
grid = [5]
block = [128]
arguments = ["i32 600", "i32 5", "i32 4", "f32[2400]", "f32[20]", "i32[600]"]

[nearest_of_all]
grid = [3]
block = [96]
arguments = ["i32 250", "f32[500]", "f32[500]", "i32[250]"]

[softmax_row]
grid = [19]
block = [128]
arguments = ["i32 300", "f32[5700]", "f32[5700]"]

[layer_norm]
grid = [19]
block = [128]
arguments = ["i32 300", "f32[5700]", "f32[300]", "f32[300]", "f32[5700]"]

[rms_norm_warp]
grid = [5]
block = [32, 4]
arguments = ["i32 19", "i32 200", "f32[3800]", "f32[200]", "f32[3800]"]

[attention_row]
grid = [17]
block = [64]
arguments = ["i32 45", "i32 64", "f32[1088]", "f32[2880]", "f32[2880]", "f32[1088]"]

[gelu_tanh]
grid = [8]
block = [128]
arguments = ["i32 1000", "f32[1000]", "f32[1000]"]

[adam_step]
grid = [8]
block = [128]
arguments = ["i32 1000", "f32[1000]", "f32[1000]", "f32[1000]", "f32[1000] uniform 0.1 1"]

[quantize_rows]
grid = [21]
block = [64]
arguments = ["i32 200", "f32[4200]", "i8[4200]", "f32[21]"]

[embedding_rows]
grid = [30]
block = [48]
arguments = ["i32 30", "i32 100", "i32[30] below 50", "f32[5000]", "f32[3000]"]

[max_pool_2x2]
grid = [3, 4, 3]
block = [16, 8]
arguments = ["i32 81", "i32 61", "f32[14823]", "f32[3600]"]
*/

extern "C" __global__ void bitonic_shared(int *data)
{
    __shared__ int s[256];
    int t = threadIdx.x, base = blockIdx.x * 256;
    s[t] = data[base + t];
    s[t + 128] = data[base + t + 128];
    for (int size = 2; size <= 256; size *= 2)
        for (int step = size / 2; step > 0; step /= 2) {
            __syncthreads();
            int low = 2 * t - (t & (step - 1)), high = low + step;
            bool upward = (low & size) == 0;
            int a = s[low], b = s[high];
            if ((a > b) == upward) {
                s[low] = b;
                s[high] = a;
            }
        }
    __syncthreads();
    data[base + t] = s[t];
    data[base + t + 128] = s[t + 128];
}

extern "C" __global__ void odd_even_sort(int *data)
{
    __shared__ int s[128];
    int t = threadIdx.x, base = blockIdx.x * 128;
    s[t] = data[base + t];
    s[t + 64] = data[base + t + 64];
    __syncthreads();
    for (int round = 0; round < 128; ++round) {
        int i = 2 * t + (round & 1);
        if (i + 1 < 128 && s[i] > s[i + 1]) {
            int kept = s[i];
            s[i] = s[i + 1];
            s[i + 1] = kept;
        }
        __syncthreads();
    }
    data[base + t] = s[t];
    data[base + t + 64] = s[t + 64];
}

extern "C" __global__ void radix_count(int n, int shift, const unsigned *keys, unsigned *counts)
{
    __shared__ unsigned own[16];
    if (threadIdx.x < 16)
        own[threadIdx.x] = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&own[keys[i] >> shift & 15], 1u);
    __syncthreads();
    if (threadIdx.x < 16)
        counts[threadIdx.x * gridDim.x + blockIdx.x] = own[threadIdx.x];
}

extern "C" __global__ void rank_sort(int n, const int *in, int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int v = in[i], rank = 0;
    for (int j = 0; j < n; ++j)
        rank += in[j] < v;
    out[rank] = v;
}

__device__ int below(const int *sorted, int n, int v, bool or_equal)
{
    int low = 0, high = n;
    while (low < high) {
        int middle = (low + high) / 2;
        if (sorted[middle] < v || (or_equal && sorted[middle] == v))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

extern "C" __global__ void merge_by_ranks(int n, int m, const int *a, const int *b, int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i + below(b, m, a[i], false)] = a[i];
    else if (i < n + m)
        out[i - n + below(a, n, b[i - n], true)] = b[i - n];
}

extern "C" __global__ void binary_search(int queries, int n, const int *sorted, const int *wanted, int *places)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < queries)
        places[i] = below(sorted, n, wanted[i], false);
}

extern "C" __global__ void needleman_tile(int penalty, const int *similarity, int *score)
{
    // Each block has a tile of 16 x 16 with the row above and the column at its left.
    __shared__ int s[17][17], like[16][16];
    int t = threadIdx.x;
    int *mine = score + blockIdx.x * 289;
    for (int r = 0; r < 16; ++r)
        like[r][t] = similarity[blockIdx.x * 256 + r * 16 + t];
    s[0][t + 1] = mine[t + 1];
    s[t + 1][0] = mine[(t + 1) * 17];
    if (t == 0)
        s[0][0] = mine[0];
    __syncthreads();
    for (int d = 0; d < 31; ++d) {
        int x = t, y = d - t;
        if (y >= 0 && y < 16) {
            int best = s[y][x] + like[y][x];
            best = max(best, s[y][x + 1] - penalty);
            s[y + 1][x + 1] = max(best, s[y + 1][x] - penalty);
        }
        __syncthreads();
    }
    for (int r = 0; r < 16; ++r)
        mine[(r + 1) * 17 + t + 1] = s[r + 1][t + 1];
}

extern "C" __global__ void edit_distance_rows(int rows, const unsigned char *a, const unsigned char *b, int *last)
{
    // One anti-diagonal after the other; each thread owns a column.
    __shared__ int line[3][65];
    int t = threadIdx.x;
    for (int d = 0; d < rows + 63; ++d) {
        int r = d - t;
        if (r >= 0 && r < rows) {
            int left = t ? line[(d + 2) % 3][t - 1] : r + 1;
            int above = r ? line[(d + 2) % 3][t] : t + 1;
            int corner = t && r ? line[(d + 1) % 3][t - 1] : t + r;
            int here = min(min(left, above) + 1, corner + (a[t] != b[r]));
            line[d % 3][t] = here;
            if (r == rows - 1)
                last[t] = here;
        }
        __syncthreads();
    }
}

extern "C" __global__ void find_string(int n, const unsigned char *text, const unsigned char *wanted, unsigned *found)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool here = i + 4 <= n;
    for (int k = 0; here && k < 4; ++k)
        here = text[i + k] == wanted[k];
    unsigned count = __popc(__ballot_sync(0xffffffff, here));
    if (threadIdx.x % 32 == 0 && count)
        atomicAdd(found, count);
}

extern "C" __global__ void crc32(int messages, int length, const unsigned char *data, unsigned *sums)
{
    __shared__ unsigned table[256];
    for (int k = threadIdx.x; k < 256; k += blockDim.x) {
        unsigned v = k;
        for (int bit = 0; bit < 8; ++bit)
            v = v & 1 ? v >> 1 ^ 0xedb88320u : v >> 1;
        table[k] = v;
    }
    __syncthreads();
    int m = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= messages)
        return;
    unsigned sum = ~0u;
    for (int k = 0; k < length; ++k)
        sum = sum >> 8 ^ table[(sum ^ data[m * length + k]) & 255];
    sums[m] = ~sum;
}

extern "C" __global__ void substitute_bytes(int blocks, const unsigned char *box, uint4 *state, const unsigned *key)
{
    __shared__ unsigned char s[256];
    for (int k = threadIdx.x; k < 256; k += blockDim.x)
        s[k] = box[k];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= blocks)
        return;
    uint4 v = state[i];
    unsigned w[4] = {v.x, v.y, v.z, v.w};
    for (int round = 0; round < 4; ++round) {
        unsigned next[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            next[k] = s[w[k] & 255] | s[w[(k + 1) % 4] >> 8 & 255] << 8 | s[w[(k + 2) % 4] >> 16 & 255] << 16
                | (unsigned)s[w[(k + 3) % 4] >> 24] << 24;
            next[k] ^= key[k];
        }
#pragma unroll
        for (int k = 0; k < 4; ++k)
            w[k] = next[k] ^ next[k] << 1;
    }
    state[i] = make_uint4(w[0], w[1], w[2], w[3]);
}

extern "C" __global__ void philox(unsigned seed, uint4 *out)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, k0 = seed, k1 = 0xdecafbadu;
    uint4 c = make_uint4(i, 0, 0, 0);
    for (int round = 0; round < 10; ++round) {
        unsigned h0 = __umulhi(0xd2511f53u, c.x), l0 = 0xd2511f53u * c.x;
        unsigned h1 = __umulhi(0xcd9e8d57u, c.z), l1 = 0xcd9e8d57u * c.z;
        c = make_uint4(h1 ^ c.y ^ k0, l1, h0 ^ c.w ^ k1, l0);
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    out[i] = c;
}

extern "C" __global__ void sobol_points(int n, const unsigned *directions, float *points)
{
    __shared__ unsigned v[32];
    if (threadIdx.x < 32)
        v[threadIdx.x] = directions[blockIdx.y * 32 + threadIdx.x];
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned gray = i ^ i >> 1, sum = 0;
        for (int bit = 0; bit < 10; ++bit)
            if (gray >> bit & 1)
                sum ^= v[bit];
        points[blockIdx.y * n + i] = (sum >> 8) * (1.0f / 16777216.0f);
    }
}

extern "C" __global__ void walsh_shared(float *data)
{
    __shared__ float s[256];
    int t = threadIdx.x, base = blockIdx.x * 256;
    s[t] = data[base + t];
    s[t + 128] = data[base + t + 128];
    for (int step = 128; step > 0; step >>= 1) {
        __syncthreads();
        int i = 2 * t - (t & (step - 1));
        float a = s[i], b = s[i + step];
        s[i] = a + b;
        s[i + step] = a - b;
    }
    __syncthreads();
    data[base + t] = s[t];
    data[base + t + 128] = s[t + 128];
}

extern "C" __global__ void fft_radix_2(float2 *data, const float2 *roots)
{
    __shared__ float2 s[128];
    int t = threadIdx.x, base = blockIdx.x * 128;
    s[__brev(t) >> 25] = data[base + t];
    s[__brev(t + 64) >> 25] = data[base + t + 64];
    __syncthreads();
    for (int half = 1; half < 128; half *= 2) {
        int j = t & (half - 1), low = 2 * t - j;
        float2 w = roots[j * (64 / half)], a = s[low], b = s[low + half];
        float2 turned = make_float2(w.x * b.x - w.y * b.y, w.x * b.y + w.y * b.x);
        s[low] = make_float2(a.x + turned.x, a.y + turned.y);
        s[low + half] = make_float2(a.x - turned.x, a.y - turned.y);
        __syncthreads();
    }
    data[base + t] = s[t];
    data[base + t + 64] = s[t + 64];
}

extern "C" __global__ void mandelbrot(int nx, int ny, int *steps)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= nx || y >= ny)
        return;
    float cr = x * (3.0f / 70) - 2.0f, ci = y * (2.0f / 50) - 1.0f, zr = 0, zi = 0;
    int k = 0;
    for (; k < 50 && zr * zr + zi * zi < 4.0f; ++k) {
        float next = zr * zr - zi * zi + cr;
        zi = 2.0f * zr * zi + ci;
        zr = next;
    }
    steps[y * nx + x] = k;
}

__device__ float normal_share(float d)
{
    float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    float poly = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    float tail = 0.39894228f * __expf(-0.5f * d * d) * poly;
    return d > 0 ? 1.0f - tail : tail;
}

extern "C" __global__ void black_scholes(int n, const float *price, const float *strike, const float *years, float *call,
                                         float *put)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float s = price[i], x = strike[i], t = years[i], root = sqrtf(t);
    float d1 = (__logf(s / x) + (0.02f + 0.5f * 0.3f * 0.3f) * t) / (0.3f * root), d2 = d1 - 0.3f * root;
    float share = normal_share(d1), other = normal_share(d2), discounted = x * __expf(-0.02f * t);
    call[i] = s * share - discounted * other;
    put[i] = discounted * (1.0f - other) - s * (1.0f - share);
}

extern "C" __global__ void nbody_tiles(int n, const float4 *bodies, float4 *forces)
{
    __shared__ float4 tile[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = bodies[i];
    float ax = 0, ay = 0, az = 0;
    for (int start = 0; start < n; start += 64) {
        tile[threadIdx.x] = bodies[start + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < 64; ++k) {
            float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            float pull = tile[k].w * inverse * inverse * inverse;
            ax += dx * pull;
            ay += dy * pull;
            az += dz * pull;
        }
        __syncthreads();
    }
    forces[i] = make_float4(ax, ay, az, 0);
}

extern "C" __global__ void neighbour_boxes(const float4 *particles, const int *neighbours, float *energy)
{
    // A block is a box of 32 particles, which meet those of three other boxes.
    __shared__ float4 others[32];
    int t = threadIdx.x;
    float4 me = particles[blockIdx.x * 32 + t];
    float sum = 0;
    for (int k = 0; k < 3; ++k) {
        others[t] = particles[neighbours[blockIdx.x * 3 + k] * 32 + t];
        __syncthreads();
        for (int j = 0; j < 32; ++j) {
            float dx = me.x - others[j].x, dy = me.y - others[j].y, dz = me.z - others[j].z;
            float r2 = dx * dx + dy * dy + dz * dz;
            if (r2 < 1.0f)
                sum += others[j].w * (1.0f - r2) * (1.0f - r2);
        }
        __syncthreads();
    }
    energy[blockIdx.x * 32 + t] = sum;
}

extern "C" __global__ void kmeans_assign(int n, int clusters, int features, const float *x, const float *centres, int *cluster)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float least = 1e30f;
    int best = 0;
    for (int c = 0; c < clusters; ++c) {
        float sum = 0;
        for (int f = 0; f < features; ++f) {
            float d = x[f * n + i] - centres[c * features + f];
            sum += d * d;
        }
        if (sum < least) {
            least = sum;
            best = c;
        }
    }
    cluster[i] = best;
}

extern "C" __global__ void nearest_of_all(int n, const float2 *queries, const float2 *points, int *nearest)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float2 q = queries[i];
    float least = 1e30f;
    int best = -1;
    for (int j = 0; j < n; ++j) {
        float2 p = points[j];
        float d = (p.x - q.x) * (p.x - q.x) + (p.y - q.y) * (p.y - q.y);
        if (d < least) {
            least = d;
            best = j;
        }
    }
    nearest[i] = best;
}

template <class Combine> __device__ float over_block(float v, Combine combine)
{
    __shared__ float warps[32];
    for (int k = 16; k > 0; k >>= 1)
        v = combine(v, __shfl_xor_sync(0xffffffff, v, k));
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = v;
    __syncthreads();
    v = warps[0];
    for (int w = 1; w < blockDim.x / 32; ++w)
        v = combine(v, warps[w]);
    return v;
}

struct Sum {
    __device__ float operator()(float a, float b) const { return a + b; }
};
struct Largest {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

extern "C" __global__ void softmax_row(int columns, const float *in, float *out)
{
    const float *x = in + blockIdx.x * columns;
    float top = -1e30f, sum = 0;
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        top = fmaxf(top, x[c]);
    top = over_block(top, Largest());
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        sum += __expf(x[c] - top);
    sum = over_block(sum, Sum());
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        out[blockIdx.x * columns + c] = __expf(x[c] - top) / sum;
}

extern "C" __global__ void layer_norm(int columns, const float *in, const float *gain, const float *shift, float *out)
{
    const float *x = in + blockIdx.x * columns;
    float sum = 0, squares = 0;
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        sum += x[c];
    float mean = over_block(sum, Sum()) / columns;
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        squares += (x[c] - mean) * (x[c] - mean);
    float scale = rsqrtf(over_block(squares, Sum()) / columns + 1e-5f);
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        out[blockIdx.x * columns + c] = (x[c] - mean) * scale * gain[c] + shift[c];
}

extern "C" __global__ void rms_norm_warp(int rows, int columns, const float *in, const float *gain, float *out)
{
    int r = blockIdx.x * 4 + threadIdx.y;
    if (r >= rows)
        return;
    float squares = 0;
    for (int c = threadIdx.x * 2; c < columns; c += 64) {
        float2 v = *(const float2 *)&in[r * columns + c];
        squares += v.x * v.x + v.y * v.y;
    }
    for (int k = 16; k > 0; k >>= 1)
        squares += __shfl_xor_sync(0xffffffff, squares, k);
    float scale = rsqrtf(squares / columns + 1e-5f);
    for (int c = threadIdx.x * 2; c < columns; c += 64) {
        float2 v = *(const float2 *)&in[r * columns + c], g = *(const float2 *)&gain[c];
        *(float2 *)&out[r * columns + c] = make_float2(v.x * scale * g.x, v.y * scale * g.y);
    }
}

extern "C" __global__ void attention_row(int keys, int width, const float *q, const float *k, const float *v, float *out)
{
    // A block is one query; the scores of all keys stand in shared memory.
    __shared__ float scores[64], query[64];
    int t = threadIdx.x;
    query[t] = q[blockIdx.x * width + t];
    __syncthreads();
    float score = -1e30f;
    if (t < keys) {
        score = 0;
        for (int d = 0; d < width; ++d)
            score += query[d] * k[t * width + d];
        score *= 0.125f;
    }
    float top = over_block(score, Largest());
    float part = t < keys ? __expf(score - top) : 0.0f;
    scores[t] = part;
    float sum = over_block(part, Sum()), result = 0;
    for (int j = 0; j < keys; ++j)
        result += scores[j] * v[j * width + t];
    out[blockIdx.x * width + t] = result / sum;
}

extern "C" __global__ void gelu_tanh(int n, const float *in, float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float x = in[i];
    out[i] = 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}

extern "C" __global__ void adam_step(int n, const float *gradient, float *weights, float *first, float *second)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float g = gradient[i];
    float m = 0.9f * first[i] + 0.1f * g, v = 0.999f * second[i] + 0.001f * g * g;
    first[i] = m;
    second[i] = v;
    weights[i] -= 0.001f * m / (sqrtf(v) + 1e-8f);
}

extern "C" __global__ void quantize_rows(int columns, const float *in, signed char *out, float *scales)
{
    const float *x = in + blockIdx.x * columns;
    float top = 0;
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        top = fmaxf(top, fabsf(x[c]));
    top = over_block(top, Largest());
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        out[blockIdx.x * columns + c] = (signed char)__float2int_rn(x[c] * (127.0f / top));
    if (threadIdx.x == 0)
        scales[blockIdx.x] = top / 127.0f;
}

extern "C" __global__ void embedding_rows(int tokens, int width, const int *ids, const float *table, float *out)
{
    for (int c = threadIdx.x; c < width; c += blockDim.x)
        out[blockIdx.x * width + c] = table[ids[blockIdx.x] * width + c];
}

extern "C" __global__ void max_pool_2x2(int nx, int ny, const float *in, float *out)
{
    int wide = nx / 2, high = ny / 2;
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
    if (x >= wide || y >= high)
        return;
    const float *p = in + (z * ny + 2 * y) * nx + 2 * x;
    out[(z * high + y) * wide + x] = fmaxf(fmaxf(p[0], p[1]), fmaxf(p[nx], p[nx + 1]));
}
