// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*launches
[saxpy]
grid = [40]
block = [256]
arguments = ["i32 10001", "f32 2.5", "f32[10001]", "f32[10001]"]

[saxpy_grid_stride]
grid = [6]
block = [192]
arguments = ["i32 10001", "f32 2.5", "f32[10001]", "f32[10001]"]

[vector_add_float4]
grid = [10]
block = [128]
arguments = ["i32 4999", "f32[5000]", "f32[5000]", "f32[5000]"]

[triad_f64]
grid = [16]
block = [128]
arguments = ["i32 2003", "f64 0.75", "f64[2003]", "f64[2003]", "f64[2003]"]

[invert_bytes]
grid = [20]
block = [160]
arguments = ["i32 3177", "u8[3177]", "u8[3177]"]

[gather]
grid = [20]
block = [128]
arguments = ["i32 2500", "i32[2500] permutation", "f32[2500]", "f32[2500]"]

[scatter]
grid = [20]
block = [128]
arguments = ["i32 2500", "i32[2500] permutation", "f32[2500]", "f32[2500]"]

[array_of_structs]
grid = [12]
block = [128]
arguments = ["i32 1500", "f32[10500]", "f32[1500]"]

[struct_of_arrays]
grid = [12]
block = [128]
arguments = ["i32 1500", "f32[10500]", "f32[1500]"]

[rgb_to_gray]
grid = [7, 9]
block = [16, 16]
arguments = ["i32 101", "i32 133", "u8[40299]", "u8[13433]"]

[rgba_to_gray]
grid = [4, 17]
block = [32, 8]
arguments = ["i32 101", "i32 133", "u8[53732]", "f32[13433]"]

[strided_copy]
grid = [9]
block = [128]
arguments = ["i32 1111", "i32 7", "f32[7777]", "f32[1111]"]

[offset_copy]
grid = [9]
block = [128]
arguments = ["i32 1111", "i32 11", "f32[1200]", "f32[1200]"]

[horner]
grid = [8]
block = [128]
arguments = ["i32 1000", "f32[1000]", "f32[1000]"]

[clip_int2]
grid = [5]
block = [96]
arguments = ["i32 450", "i32[900]", "i32[900]"]

[widen_short]
grid = [10]
block = [128]
arguments = ["i32 1201", "i16[1201]", "i32[1201]"]

[collatz]
grid = [8]
block = [100]
arguments = ["i32 777", "i32[777] zeros"]

[count_bits]
grid = [6]
block = [128]
arguments = ["i32 1999", "u32[1999] bits", "u32[1] zeros"]
*/

extern "C" __global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" __global__ void saxpy_grid_stride(int n, float a, const float *x, float *y)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        y[i] = a * x[i] + y[i];
}

extern "C" __global__ void vector_add_float4(int n, const float *a, const float *b, float *c)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * i + 3 < n) {
        float4 u = reinterpret_cast<const float4 *>(a)[i];
        float4 v = reinterpret_cast<const float4 *>(b)[i];
        reinterpret_cast<float4 *>(c)[i] = make_float4(u.x + v.x, u.y + v.y, u.z + v.z, u.w + v.w);
    } else {
        for (int k = 4 * i; k < n; ++k)
            c[k] = a[k] + b[k];
    }
}

extern "C" __global__ void triad_f64(int n, double s, const double *b, const double *c, double *a)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        a[i] = b[i] + s * c[i];
}

extern "C" __global__ void invert_bytes(int n, const unsigned char *in, unsigned char *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = 255 - in[i];
}

extern "C" __global__ void gather(int n, const int *index, const float *from, float *to)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = from[index[i]];
}

extern "C" __global__ void scatter(int n, const int *index, const float *from, float *to)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[index[i]] = from[i];
}

struct Particle {
    float x, y, z, vx, vy, vz, mass;
};

extern "C" __global__ void array_of_structs(int n, const Particle *particles, float *energy)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    Particle p = particles[i];
    energy[i] = 0.5f * p.mass * (p.vx * p.vx + p.vy * p.vy + p.vz * p.vz) + p.mass * p.z;
}

extern "C" __global__ void struct_of_arrays(int n, const float *all, float *energy)
{
    const float *z = all + 2 * n, *vx = all + 3 * n, *vy = all + 4 * n, *vz = all + 5 * n, *mass = all + 6 * n;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    energy[i] = 0.5f * mass[i] * (vx[i] * vx[i] + vy[i] * vy[i] + vz[i] * vz[i]) + mass[i] * z[i];
}

extern "C" __global__ void rgb_to_gray(int width, int height, const unsigned char *rgb, unsigned char *gray)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    const unsigned char *p = rgb + 3 * (y * width + x);
    gray[y * width + x] = (77 * p[0] + 151 * p[1] + 28 * p[2]) >> 8;
}

extern "C" __global__ void rgba_to_gray(int width, int height, const uchar4 *rgba, float *gray)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        uchar4 p = rgba[y * width + x];
        gray[y * width + x] = 0.299f * p.x + 0.587f * p.y + 0.114f * p.z;
    }
}

extern "C" __global__ void strided_copy(int n, int stride, const float *in, float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i * stride];
}

extern "C" __global__ void offset_copy(int n, int offset, const float *in, float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i + offset] = in[i + offset];
}

extern "C" __global__ void horner(int n, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i], sum = 0.0f;
#pragma unroll
    for (int k = 12; k > 0; --k)
        sum = sum * v + k;
    y[i] = sum;
}

extern "C" __global__ void clip_int2(int n, const int2 *in, int2 *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int2 v = in[i];
        out[i] = make_int2(min(max(v.x, 20), 70), min(max(v.y, 20), 70));
    }
}

extern "C" __global__ void widen_short(int n, const short *in, int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i] * 1000 - 7;
}

extern "C" __global__ void collatz(int n, int *steps)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int count = 0;
    for (unsigned v = i + 1; v != 1; ++count)
        v = v & 1 ? 3 * v + 1 : v / 2;
    steps[i] = count;
}

extern "C" __global__ void count_bits(int n, const unsigned *words, unsigned *total)
{
    unsigned count = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        count += __popc(words[i]);
    for (int step = 16; step > 0; step /= 2)
        count += __shfl_down_sync(0xffffffff, count, step);
    if ((threadIdx.x & 31) == 0)
        atomicAdd(total, count);
}
