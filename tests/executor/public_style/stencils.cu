// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*launches
[stencil_1d]
grid = [8]
block = [128]
arguments = ["i32 1003", "f32[1003]", "f32[1003]"]

[jacobi_2d]
grid = [4, 9]
block = [32, 8]
arguments = ["i32 101", "i32 67", "f32[6767]", "f32[6767]"]

[heat_2d_shared]
grid = [7, 5]
block = [16, 16]
arguments = ["i32 101", "i32 67", "f32[6767]", "f32[6767]"]

[laplace_3d]
grid = [3, 5, 11]
block = [8, 4, 2]
arguments = ["i32 21", "i32 19", "i32 22", "f32[8778]", "f32[8778]"]

[laplace_3d_planes]
grid = [2, 3]
block = [16, 8]
arguments = ["i32 21", "i32 19", "i32 22", "f32[8778]", "f32[8778]"]

[convolve_1d_constant]
grid = [7]
block = [128]
arguments = ["i32 801", "f32[801]", "f32[801]"]

[convolve_2d_shared]
grid = [6, 5]
block = [16, 16]
arguments = ["i32 83", "i32 71", "f32[5893]", "f32[5893]"]

[convolve_rows]
grid = [2, 71]
block = [64]
arguments = ["i32 83", "i32 71", "f32[5893]", "f32[5893]"]

[convolve_columns]
grid = [3, 3]
block = [32, 8]
arguments = ["i32 83", "i32 71", "f32[5893]", "f32[5893]"]

[sobel]
grid = [6, 5]
block = [16, 16]
arguments = ["i32 83", "i32 71", "u8[5893] below 256", "u8[5893]"]

[hotspot]
grid = [6, 5]
block = [16, 16]
arguments = ["i32 83", "i32 71", "f32[5893] uniform 60 90", "f32[5893] uniform 0 1", "f32[5893]"]

[srad_coefficients]
grid = [6, 5]
block = [16, 16]
arguments = ["i32 83", "i32 71", "f32 0.3", "f32[5893] uniform 1 2", "f32[5893]"]

[pathfinder]
grid = [4]
block = [128]
arguments = ["i32 400", "i32 5", "i32[2000] below 10", "i32[400]"]

[game_of_life]
grid = [3, 10]
block = [32, 8]
arguments = ["i32 83", "i32 71", "u8[5893] below 2", "u8[5893]"]

[fdtd_field]
grid = [3, 9]
block = [32, 8]
arguments = ["i32 83", "i32 71", "f32[5893]", "f32[5893]", "f32[5893]"]

[median_3x3]
grid = [6, 5]
block = [16, 16]
arguments = ["i32 83", "i32 71", "u8[5893] below 256", "u8[5893]"]

[bilateral]
grid = [6, 5]
block = [16, 16]
arguments = ["i32 83", "i32 71", "f32[5893] uniform 0 1", "f32[5893]"]

[resize_bilinear]
grid = [8, 6]
block = [16, 16]
arguments = ["i32 83", "i32 71", "i32 120", "i32 90", "f32[5893]", "f32[10800]"]

[integral_rows]
grid = [71]
block = [32]
arguments = ["i32 83", "u8[5893] below 256", "i32[5893]"]

[integral_columns]
grid = [3]
block = [32]
arguments = ["i32 83", "i32 71", "i32[5893]"]

[dct_8x8]
grid = [5, 4]
block = [8, 8]
arguments = ["i32 40", "f32[1280]", "f32[64]", "f32[1280]"]
*/

extern "C" __global__ void stencil_1d(int n, const float *in, float *out)
{
    const int radius = 3;
    __shared__ float tile[128 + 2 * radius];
    int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x + radius;
    tile[t] = i < n ? in[i] : 0.0f;
    if (threadIdx.x < radius) {
        tile[t - radius] = i >= radius ? in[i - radius] : 0.0f;
        tile[t + blockDim.x] = i + (int)blockDim.x < n ? in[i + blockDim.x] : 0.0f;
    }
    __syncthreads();
    if (i >= n)
        return;
    float sum = 0;
    for (int k = -radius; k <= radius; ++k)
        sum += tile[t + k];
    out[i] = sum / (2 * radius + 1);
}

extern "C" __global__ void jacobi_2d(int nx, int ny, const float *in, float *out)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x > 0 && x < nx - 1 && y > 0 && y < ny - 1) {
        int i = y * nx + x;
        out[i] = 0.2f * (in[i] + in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx]);
    }
}

extern "C" __global__ void heat_2d_shared(int nx, int ny, const float *in, float *out)
{
    __shared__ float tile[18][18];
    int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    int cx = min(x, nx - 1), cy = min(y, ny - 1);
    tile[ty][tx] = in[cy * nx + cx];
    if (threadIdx.x == 0)
        tile[ty][0] = in[cy * nx + max(cx - 1, 0)];
    if (threadIdx.x == 15)
        tile[ty][17] = in[cy * nx + min(x + 1, nx - 1)];
    if (threadIdx.y == 0)
        tile[0][tx] = in[max(cy - 1, 0) * nx + cx];
    if (threadIdx.y == 15)
        tile[17][tx] = in[min(y + 1, ny - 1) * nx + cx];
    __syncthreads();
    if (x < nx && y < ny) {
        float around = tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx] + tile[ty + 1][tx];
        out[y * nx + x] = tile[ty][tx] + 0.1f * (around - 4.0f * tile[ty][tx]);
    }
}

extern "C" __global__ void laplace_3d(int nx, int ny, int nz, const float *in, float *out)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x < 1 || y < 1 || z < 1 || x >= nx - 1 || y >= ny - 1 || z >= nz - 1)
        return;
    int i = (z * ny + y) * nx + x, plane = nx * ny;
    out[i] = in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] + in[i - plane] + in[i + plane] - 6.0f * in[i];
}

extern "C" __global__ void laplace_3d_planes(int nx, int ny, int nz, const float *in, float *out)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1)
        return;
    int i = y * nx + x, plane = nx * ny;
    float below = in[i], here = in[i + plane];
    for (int z = 1; z < nz - 1; ++z) {
        i += plane;
        float above = in[i + plane];
        out[i] = in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] + below + above - 6.0f * here;
        below = here;
        here = above;
    }
}

__constant__ float taps[9] = {0.01f, 0.05f, 0.12f, 0.2f, 0.24f, 0.2f, 0.12f, 0.05f, 0.01f};

extern "C" __global__ void convolve_1d_constant(int n, const float *in, float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0;
    for (int k = 0; k < 9; ++k) {
        int j = i + k - 4;
        if (j >= 0 && j < n)
            sum += in[j] * taps[k];
    }
    out[i] = sum;
}

extern "C" __global__ void convolve_2d_shared(int nx, int ny, const float *in, float *out)
{
    __shared__ float tile[20][21];
    int t = threadIdx.y * 16 + threadIdx.x, x0 = blockIdx.x * 16 - 2, y0 = blockIdx.y * 16 - 2;
    for (int k = t; k < 400; k += 256) {
        int x = x0 + k % 20, y = y0 + k / 20;
        tile[k / 20][k % 20] = x >= 0 && x < nx && y >= 0 && y < ny ? in[y * nx + x] : 0.0f;
    }
    __syncthreads();
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x >= nx || y >= ny)
        return;
    float sum = 0;
#pragma unroll
    for (int j = 0; j < 5; ++j)
#pragma unroll
        for (int i = 0; i < 5; ++i)
            sum += tile[threadIdx.y + j][threadIdx.x + i] * taps[2 + i] * taps[2 + j];
    out[y * nx + x] = sum;
}

extern "C" __global__ void convolve_rows(int nx, int ny, const float *in, float *out)
{
    __shared__ float row[64 + 8];
    int x = blockIdx.x * 64 + threadIdx.x, y = blockIdx.y;
    for (int k = threadIdx.x; k < 72; k += 64) {
        int from = blockIdx.x * 64 + k - 4;
        row[k] = from >= 0 && from < nx ? in[y * nx + from] : 0.0f;
    }
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 9; ++k)
        sum += taps[k] * row[threadIdx.x + k];
    if (x < nx)
        out[y * nx + x] = sum;
}

extern "C" __global__ void convolve_columns(int nx, int ny, const float *in, float *out)
{
    __shared__ float tile[40][33];
    int x = blockIdx.x * 32 + threadIdx.x, y0 = blockIdx.y * 32 - 4;
    for (int k = threadIdx.y; k < 40; k += 8)
        tile[k][threadIdx.x] = x < nx && y0 + k >= 0 && y0 + k < ny ? in[(y0 + k) * nx + x] : 0.0f;
    __syncthreads();
    for (int r = threadIdx.y; r < 32; r += 8) {
        int y = blockIdx.y * 32 + r;
        if (x >= nx || y >= ny)
            break;
        float sum = 0;
        for (int k = 0; k < 9; ++k)
            sum += taps[k] * tile[r + k][threadIdx.x];
        out[y * nx + x] = sum;
    }
}

extern "C" __global__ void sobel(int nx, int ny, const unsigned char *in, unsigned char *out)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1)
        return;
    const unsigned char *p = in + y * nx + x;
    int gx = p[1 - nx] + 2 * p[1] + p[1 + nx] - p[-1 - nx] - 2 * p[-1] - p[nx - 1];
    int gy = p[nx - 1] + 2 * p[nx] + p[nx + 1] - p[-nx - 1] - 2 * p[-nx] - p[1 - nx];
    out[y * nx + x] = min(abs(gx) + abs(gy), 255);
}

extern "C" __global__ void hotspot(int nx, int ny, const float *temperature, const float *power, float *out)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= nx || y >= ny)
        return;
    int i = y * nx + x;
    float here = temperature[i];
    float north = y > 0 ? temperature[i - nx] : here, south = y < ny - 1 ? temperature[i + nx] : here;
    float west = x > 0 ? temperature[i - 1] : here, east = x < nx - 1 ? temperature[i + 1] : here;
    out[i] = here + 0.05f * (power[i] + 0.5f * (north + south - 2.0f * here) + 0.4f * (east + west - 2.0f * here)
                             + 0.01f * (80.0f - here));
}

extern "C" __global__ void srad_coefficients(int nx, int ny, float q0, const float *image, float *c)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= nx || y >= ny)
        return;
    int i = y * nx + x;
    float v = image[i];
    float dn = image[max(y - 1, 0) * nx + x] - v, ds = image[min(y + 1, ny - 1) * nx + x] - v;
    float dw = image[y * nx + max(x - 1, 0)] - v, de = image[y * nx + min(x + 1, nx - 1)] - v;
    float g2 = (dn * dn + ds * ds + dw * dw + de * de) / (v * v), l = (dn + ds + dw + de) / v;
    float num = 0.5f * g2 - 0.0625f * l * l, den = 1.0f + 0.25f * l;
    float q = num / (den * den);
    float result = 1.0f / (1.0f + (q - q0) / (q0 * (1.0f + q0)));
    c[i] = result < 0.0f ? 0.0f : result > 1.0f ? 1.0f : result;
}

extern "C" __global__ void pathfinder(int columns, int rows, const int *wall, int *result)
{
    // Each block computes its columns and as many more at either side as there are rows.
    __shared__ int before[128], after[128];
    int t = threadIdx.x, border = rows, own = 128 - 2 * border;
    int c = blockIdx.x * own - border + t;
    bool inside = c >= 0 && c < columns;
    before[t] = inside ? wall[c] : 1 << 20;
    __syncthreads();
    for (int r = 1; r < rows; ++r) {
        if (t >= r && t < 128 - r) {
            int least = min(before[t - 1], min(before[t], before[t + 1]));
            after[t] = inside ? least + wall[r * columns + c] : 1 << 20;
        }
        __syncthreads();
        if (t >= r && t < 128 - r)
            before[t] = after[t];
        __syncthreads();
    }
    if (t >= border && t < border + own && inside)
        result[c] = before[t];
}

extern "C" __global__ void game_of_life(int nx, int ny, const unsigned char *in, unsigned char *out)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= nx || y >= ny)
        return;
    int left = (x + nx - 1) % nx, right = (x + 1) % nx, up = (y + ny - 1) % ny, down = (y + 1) % ny;
    int alive = in[up * nx + left] + in[up * nx + x] + in[up * nx + right] + in[y * nx + left]
        + in[y * nx + right] + in[down * nx + left] + in[down * nx + x] + in[down * nx + right];
    out[y * nx + x] = alive == 3 || (alive == 2 && in[y * nx + x]);
}

extern "C" __global__ void fdtd_field(int nx, int ny, const float *ex, const float *ey, float *hz)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < nx - 1 && y < ny - 1) {
        int i = y * nx + x;
        hz[i] = hz[i] - 0.7f * (ex[i + 1] - ex[i] + ey[i + nx] - ey[i]);
    }
}

__device__ void order(unsigned char &a, unsigned char &b)
{
    unsigned char low = min(a, b), high = max(a, b);
    a = low;
    b = high;
}

extern "C" __global__ void median_3x3(int nx, int ny, const unsigned char *in, unsigned char *out)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= nx || y >= ny)
        return;
    unsigned char v[9];
#pragma unroll
    for (int k = 0; k < 9; ++k)
        v[k] = in[min(max(y + k / 3 - 1, 0), ny - 1) * nx + min(max(x + k % 3 - 1, 0), nx - 1)];
#pragma unroll
    for (int i = 0; i < 5; ++i)
#pragma unroll
        for (int j = 8; j > i; --j)
            order(v[j - 1], v[j]);
    out[y * nx + x] = v[4];
}

extern "C" __global__ void bilateral(int nx, int ny, const float *in, float *out)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= nx || y >= ny)
        return;
    float here = in[y * nx + x], sum = 0, weight = 0;
    for (int j = -2; j <= 2; ++j)
        for (int i = -2; i <= 2; ++i) {
            float v = in[min(max(y + j, 0), ny - 1) * nx + min(max(x + i, 0), nx - 1)], d = v - here;
            float w = __expf(-0.1f * (i * i + j * j) - 8.0f * d * d);
            sum += w * v;
            weight += w;
        }
    out[y * nx + x] = sum / weight;
}

extern "C" __global__ void resize_bilinear(int nx, int ny, int wide, int high, const float *in, float *out)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= wide || y >= high)
        return;
    float fx = (x + 0.5f) * nx / wide - 0.5f, fy = (y + 0.5f) * ny / high - 0.5f;
    int x0 = max((int)floorf(fx), 0), y0 = max((int)floorf(fy), 0);
    int x1 = min(x0 + 1, nx - 1), y1 = min(y0 + 1, ny - 1);
    float ax = fminf(fmaxf(fx - x0, 0.0f), 1.0f), ay = fminf(fmaxf(fy - y0, 0.0f), 1.0f);
    float top = in[y0 * nx + x0] + ax * (in[y0 * nx + x1] - in[y0 * nx + x0]);
    float bottom = in[y1 * nx + x0] + ax * (in[y1 * nx + x1] - in[y1 * nx + x0]);
    out[y * wide + x] = top + ay * (bottom - top);
}

extern "C" __global__ void integral_rows(int nx, const unsigned char *in, int *out)
{
    int lane = threadIdx.x, carried = 0, row = blockIdx.x * nx;
    for (int start = 0; start < nx; start += 32) {
        int x = start + lane, v = x < nx ? in[row + x] : 0;
        for (int k = 1; k < 32; k *= 2) {
            int before = __shfl_up_sync(0xffffffff, v, k);
            if (lane >= k)
                v += before;
        }
        v += carried;
        if (x < nx)
            out[row + x] = v;
        carried = __shfl_sync(0xffffffff, v, 31);
    }
}

extern "C" __global__ void integral_columns(int nx, int ny, int *sums)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= nx)
        return;
    int sum = 0;
    for (int y = 0; y < ny; ++y) {
        sum += sums[y * nx + x];
        sums[y * nx + x] = sum;
    }
}

extern "C" __global__ void dct_8x8(int nx, const float *in, const float *basis, float *out)
{
    __shared__ float block[8][8], half[8][9], table[8][8];
    int tx = threadIdx.x, ty = threadIdx.y;
    int i = (blockIdx.y * 8 + ty) * nx + blockIdx.x * 8 + tx;
    block[ty][tx] = in[i];
    table[ty][tx] = basis[ty * 8 + tx];
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k)
        sum += block[ty][k] * table[tx][k];
    half[ty][tx] = sum;
    __syncthreads();
    sum = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k)
        sum += table[ty][k] * half[k][tx];
    out[i] = sum;
}
