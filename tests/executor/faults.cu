// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Kernels with one bug each, in the `// planted` line: its kind, where it is told, words of it, how many
// arrays of floats the kernel gets, and how it is launched.

//:: a load behind the array
//: kind = "OUT_OF_BOUNDS"
//: place = { block = [1, 0, 0], thread = [31, 0, 0] }
//: words = "past the end of array 0: element 64 of 64"
//: arrays = 2
//: launch = { grid = [2, 1, 1] }
extern "C" __global__ void k(const float *in, float *out) {
    const int i = blockIdx.x * 32 + threadIdx.x;
    const float value = in[i + 1]; // planted
    out[i] = value;
}

//:: a null pointer's element
//: kind = "OUT_OF_BOUNDS"
//: place = { thread = [1, 0, 0], address = 4 }
//: words = "writes 4 bytes of global memory at 0x4, where nothing is allocated: a null pointer"
extern "C" __global__ void k(float *out) {
    float *none = out[0] == 12345.0f ? out : nullptr;
    if (threadIdx.x)
        none[threadIdx.x] = 1.0f; // planted
}

//:: numbers that are no address
//: kind = "OUT_OF_BOUNDS"
//: place = { thread = [0, 0, 0] }
//: words = "reads 4 bytes of global memory at 0xfffffffffffff000, where nothing is allocated"
extern "C" __global__ void k(float *out) {
    out[threadIdx.x] = *(volatile float *)0xfffffffffffff000ull; // planted
}

//:: a store before the array
//: kind = "OUT_OF_BOUNDS"
//: place = { thread = [0, 0, 0] }
extern "C" __global__ void k(float *out) {
    out[(int)threadIdx.x - 3] = 1.0f; // planted
}

//:: shared memory's end
//: kind = "OUT_OF_BOUNDS"
//: place = { thread = [40, 0, 0], address = 160 }
//: launch = { block = [64, 1, 1], shared = 160 }
extern "C" __global__ void k(float *out) {
    extern __shared__ float tile[];
    tile[threadIdx.x] = 1.0f; // planted
    __syncthreads();
    out[threadIdx.x] = tile[0];
}

//:: a misaligned vector
//: kind = "MISALIGNED"
//: place = { thread = [1, 0, 0] }
//: arrays = 2
extern "C" __global__ void k(const float *in, float *out) {
    const float4 v = *reinterpret_cast<const float4 *>(in + threadIdx.x); // planted
    out[threadIdx.x] = v.x + v.w;
}

//:: shared memory that nobody wrote
//: kind = "UNINITIALISED_SHARED"
//: place = { thread = [20, 0, 0] }
extern "C" __global__ void k(float *out) {
    __shared__ float tile[64];
    if (threadIdx.x < 20)
        tile[threadIdx.x] = 1.0f;
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x]; // planted
}

//:: a write of the next iteration
//: kind = "SHARED_RACE"
//: arrays = 2
//: launch = { scalars = [6], block = [64, 1, 1] }
extern "C" __global__ void k(const float *in, float *out, int steps) {
    __shared__ float tile[64];
    float sum = 0;
    for (int i = 0; i < steps; ++i) {
        tile[threadIdx.x] = in[threadIdx.x] + i; // planted
        __syncthreads();
        sum += tile[63 - threadIdx.x];
    }
    out[threadIdx.x] = sum;
}

//:: two stores to one place
//: kind = "SHARED_RACE"
//: launch = { block = [64, 1, 1] }
extern "C" __global__ void k(float *out) {
    __shared__ float tile[64];
    tile[threadIdx.x] = 1;
    tile[threadIdx.x ^ 32] = 2; // planted
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x];
}

//:: a barrier in divergent code
//: kind = "BARRIER"
//: place = { thread = [40, 0, 0] }
//: launch = { block = [64, 1, 1] }
extern "C" __global__ void k(float *out) {
    if (threadIdx.x < 40) {
        out[threadIdx.x] = 1;
        __syncthreads(); // planted
    }
    out[threadIdx.x] += 1;
}

//:: a barrier for part of a block
//: kind = "BARRIER"
//: place = { thread = [32, 0, 0] }
//: launch = { block = [64, 1, 1] }
extern "C" __global__ void k(float *out) {
    if (threadIdx.x < 32) {
        asm volatile("bar.sync 1;"); // planted
        out[threadIdx.x] = 1;
    }
    __syncthreads();
    out[threadIdx.x] += 1;
}

//:: a loop without an end
//: kind = "ENDLESS"
//: place = { block = [0, 0, 0] }
//: launch = { instruction_budget = 10000 }
extern "C" __global__ void k(volatile float *flag) {
    while (flag[0] == 0) { // planted
    }
    flag[1] = 1;
}

//:: a trap
//: kind = "TRAP"
//: place = { thread = [5, 0, 0] }
extern "C" __global__ void k(float *out) {
    if (threadIdx.x == 5)
        __trap(); // planted
    out[threadIdx.x] = 1;
}
