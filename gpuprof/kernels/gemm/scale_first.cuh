// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0

// Multiply C by beta before anything else, all blocks of a cooperative grid a slice each, so that whoever has computed
// a piece of a tile adds it to C and need not wait for another block to have written that tile.

// How many blocks have scaled their slices, and how many have waited for that.
static __device__ unsigned scaled;
static __device__ unsigned waited;

static __device__ __forceinline__ void scale_slice(int M, int N, float beta, float *C)
{
    const size_t elements = (size_t)M * N;
    const size_t vectors = (size_t)C % 16 == 0 ? elements / 4 : 0;
    const size_t mine = blockIdx.x * blockDim.x + threadIdx.x;
    const size_t threads = gridDim.x * blockDim.x;
    for (size_t i = mine; i < vectors; i += threads) {
        float4 *c = (float4 *)C + i;
        const float4 old = beta == 0 ? make_float4(0, 0, 0, 0) : *c; // times zero NaN would stay
        *c = make_float4(beta * old.x, beta * old.y, beta * old.z, beta * old.w);
    }
    for (size_t i = vectors * 4 + mine; i < elements; i += threads)
        C[i] = beta == 0 ? 0 : beta * C[i];
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(&scaled, 1);
    }
}
// Wait until all of C is scaled: once in each block.
static __device__ __forceinline__ void wait_until_scaled()
{
    if (threadIdx.x == 0) {
        while (*(volatile unsigned *)&scaled < gridDim.x)
            ;
        __threadfence();
        if (atomicAdd(&waited, 1) == gridDim.x - 1) { // the last one leaves both ready for the next launch
            waited = 0;
            scaled = 0;
        }
    }
    __syncthreads();
}
