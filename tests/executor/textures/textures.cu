// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
//
// Kernels that read textures and write surfaces. Each takes the output, then textures and surfaces, then arrays
// of coordinates, all as the case lists them.

typedef cudaTextureObject_t Texture;
typedef cudaSurfaceObject_t Surface;

__device__ int here() { return blockIdx.x * blockDim.x + threadIdx.x; }

extern "C" __global__ void fetch_float(float *out, Texture t, const int *x)
{
    out[here()] = tex1Dfetch<float>(t, x[here()]);
}

extern "C" __global__ void fetch_float4(float4 *out, Texture t, const int *x)
{
    out[here()] = tex1Dfetch<float4>(t, x[here()]);
}

extern "C" __global__ void fetch_short2(int2 *out, Texture t, const int *x)
{
    const short2 found = tex1Dfetch<short2>(t, x[here()]);
    out[here()] = make_int2(found.x, found.y);
}

extern "C" __global__ void line_float(float *out, Texture t, const float *x)
{
    out[here()] = tex1D<float>(t, x[here()]);
}

extern "C" __global__ void line_layers(float *out, Texture t, const float *x, const int *layer)
{
    out[here()] = tex1DLayered<float>(t, x[here()], layer[here()]);
}

extern "C" __global__ void plane_float(float *out, Texture t, const float *x, const float *y)
{
    out[here()] = tex2D<float>(t, x[here()], y[here()]);
}

extern "C" __global__ void plane_float4(float4 *out, Texture t, const float *x, const float *y)
{
    out[here()] = tex2D<float4>(t, x[here()], y[here()]);
}

extern "C" __global__ void plane_uchar4(uint4 *out, Texture t, const float *x, const float *y)
{
    const uchar4 found = tex2D<uchar4>(t, x[here()], y[here()]);
    out[here()] = make_uint4(found.x, found.y, found.z, found.w);
}

extern "C" __global__ void plane_int(int *out, Texture t, const float *x, const float *y)
{
    out[here()] = tex2D<int>(t, x[here()], y[here()]);
}

extern "C" __global__ void plane_level(float *out, Texture t, const float *x, const float *y)
{
    const float2 step = make_float2(0.25f, 0.25f);
    const int i = here();
    out[i] = i & 1 ? tex2DLod<float>(t, x[i], y[i], 2.0f) : tex2DGrad<float>(t, x[i], y[i], step, step);
}

extern "C" __global__ void plane_all_channels(float4 *out, Texture t, const float *x, const float *y)
{
    float4 found;
    asm volatile("tex.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6}];"
                 : "=f"(found.x), "=f"(found.y), "=f"(found.z), "=f"(found.w)
                 : "l"(t), "f"(x[here()]), "f"(y[here()]));
    out[here()] = found;
}

extern "C" __global__ void plane_by_integers(float *out, Texture t, const int *x, const int *y)
{
    float4 found;
    asm volatile("tex.2d.v4.f32.s32 {%0, %1, %2, %3}, [%4, {%5, %6}];"
                 : "=f"(found.x), "=f"(found.y), "=f"(found.z), "=f"(found.w)
                 : "l"(t), "r"(x[here()]), "r"(y[here()]));
    out[here()] = found.x;
}

extern "C" __global__ void plane_layers(float *out, Texture t, const float *x, const float *y, const int *layer)
{
    out[here()] = tex2DLayered<float>(t, x[here()], y[here()], layer[here()]);
}

extern "C" __global__ void volume_float(float *out, Texture t, const float *x, const float *y, const float *z)
{
    out[here()] = tex3D<float>(t, x[here()], y[here()], z[here()]);
}

extern "C" __global__ void cube_float(float *out, Texture t, const float *x, const float *y, const float *z)
{
    out[here()] = texCubemap<float>(t, x[here()], y[here()], z[here()]);
}

extern "C" __global__ void gather_float(float4 *out, Texture t, const float *x, const float *y)
{
    out[here()] = tex2Dgather<float4>(t, x[here()], y[here()], 0);
}

extern "C" __global__ void gather_second(float4 *out, Texture t, const float *x, const float *y)
{
    out[here()] = tex2Dgather<float4>(t, x[here()], y[here()], 1);
}

// Bilinear resize: the output has 32 x 24 pixels.
extern "C" __global__ void resize(float *out, Texture image)
{
    const int x = threadIdx.x, y = blockIdx.x;
    out[y * 32 + x] = tex2D<float>(image, (x + 0.5f) / 32.0f, (y + 0.5f) / 24.0f);
}

// A weighted mean of 3 x 3 pixels; what lies beyond the edges is the texture's business.
extern "C" __global__ void convolve(float *out, Texture image)
{
    const float weights[3] = {0.25f, 0.5f, 0.25f};
    const int x = threadIdx.x, y = blockIdx.x;
    float sum = 0.0f;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            sum = __fmaf_rn(weights[dx + 1] * weights[dy + 1], tex2D<float>(image, x + dx + 0.5f, y + dy + 0.5f), sum);
    out[y * 32 + x] = sum;
}

// A slice through a volume, along its diagonal.
extern "C" __global__ void slice(float *out, Texture volume)
{
    const int x = threadIdx.x, y = blockIdx.x;
    out[y * 32 + x] = tex3D<float>(volume, x * 0.25f + 0.5f, y * 0.5f + 0.5f, x * 0.125f + y * 0.125f + 0.5f);
}

// Colours looked up in a table of its own for each image.
extern "C" __global__ void look_up(float4 *out, Texture tables, const float *x, const int *layer)
{
    out[here()] = tex1DLayered<float4>(tables, x[here()], layer[here()]);
}

// Each thread's texture stands in memory.
extern "C" __global__ void by_handle(float *out, Texture first, Texture second, const int *which)
{
    const Texture both[2] = {first, second};
    out[here()] = tex2D<float>(both[which[here()]], threadIdx.x % 8 + 0.5f, 1.5f);
}

extern "C" __global__ void sizes(unsigned *out, Texture t, Surface s)
{
    unsigned found[6];
    asm volatile("txq.width.b32 %0, [%1];" : "=r"(found[0]) : "l"(t));
    asm volatile("txq.height.b32 %0, [%1];" : "=r"(found[1]) : "l"(t));
    asm volatile("txq.depth.b32 %0, [%1];" : "=r"(found[2]) : "l"(t));
    asm volatile("suq.width.b32 %0, [%1];" : "=r"(found[3]) : "l"(s));
    asm volatile("suq.height.b32 %0, [%1];" : "=r"(found[4]) : "l"(s));
    asm volatile("suq.depth.b32 %0, [%1];" : "=r"(found[5]) : "l"(s));
    if (here() < 6)
        out[here()] = found[here()];
}

extern "C" __global__ void surface_copy(float *out, Surface from, Surface to)
{
    float value;
    surf2Dread(&value, from, threadIdx.x * 4, blockIdx.x);
    surf2Dwrite(2.0f * value, to, (31 - threadIdx.x) * 4, blockIdx.x);
    out[here()] = value;
}

extern "C" __global__ void surface_colours(uint4 *out, Surface from, Surface to)
{
    const uchar4 found = surf2Dread<uchar4>(from, threadIdx.x * 4, blockIdx.x);
    surf2Dwrite(make_uchar4(found.w, found.z, found.y, found.x), to, threadIdx.x * 4, blockIdx.x);
    out[here()] = make_uint4(found.x, found.y, found.z, found.w);
}

extern "C" __global__ void surface_clamped(float *out, Surface from, const int *x, const int *y)
{
    out[here()] = surf2Dread<float>(from, 4 * x[here()], y[here()], cudaBoundaryModeClamp);
}

extern "C" __global__ void surface_zeros(float *out, Surface from, Surface to, const int *x, const int *y)
{
    const float value = surf2Dread<float>(from, 4 * x[here()], y[here()], cudaBoundaryModeZero);
    surf2Dwrite(value + 1.0f, to, 4 * x[here()], y[here()], cudaBoundaryModeZero);
    out[here()] = value;
}

extern "C" __global__ void surface_volume(float *out, Surface s)
{
    surf3Dwrite(1000.0f + here(), s, (threadIdx.x % 8) * 4, threadIdx.x / 8, blockIdx.x);
    out[here()] = surf3Dread<float>(s, (threadIdx.x % 8) * 4, threadIdx.x / 8, blockIdx.x);
}

extern "C" __global__ void surface_layers(float *out, Surface s)
{
    const float value = surf2DLayeredread<float>(s, (threadIdx.x % 8) * 4, threadIdx.x / 8, blockIdx.x);
    surf2DLayeredwrite(value * value, s, (threadIdx.x % 8) * 4, threadIdx.x / 8, blockIdx.x);
    out[here()] = value;
}

extern "C" __global__ void surface_line(float4 *out, Surface s)
{
    const float4 value = surf1Dread<float4>(s, here() * 16);
    surf1Dwrite(make_float4(value.w, value.x, value.y, value.z), s, here() * 16);
    out[here()] = value;
}

extern "C" __global__ void surface_pieces(unsigned *out, Surface s)
{
    // Halves of texels of 8 bytes.
    out[here()] = surf2Dread<unsigned>(s, here() % 16 * 4, here() / 16);
}

extern "C" __global__ void surface_sums(unsigned *out, Surface s, const int *x)
{
    asm volatile("sured.b.add.2d.u32.trap [%0, {%1, %2}], %3;"
                 :
                 : "l"(s), "r"(4 * x[here()]), "r"(0), "r"(here() + 1));
    out[here()] = x[here()];
}
