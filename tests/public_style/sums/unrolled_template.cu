// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A tree over dynamic shared memory, unrolled by a template"
[parameters]
BLOCK = 128

[[launches]]
entry = "reduce6<real, BLOCK, true>"
arguments = ["columns", "x", "y"]
block = ["BLOCK"]
grid = ["rows"]
dynamic_shared_bytes = "BLOCK * real_bytes"
*/
template <class T>
struct SharedMemory {
    __device__ inline operator T *()
    {
        extern __shared__ int __smem[];
        return (T *)__smem;
    }
};

template <class T, unsigned int blockSize>
__device__ void warpReduce(T *sdata, unsigned int tid)
{
    T sum = sdata[tid];
    if (blockSize >= 64)
        sum += sdata[tid + 32];
    for (int offset = 16; offset; offset /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (tid == 0)
        sdata[0] = sum;
}

template <class T, unsigned int blockSize, bool strided>
__global__ void reduce6(int n, const T *g_idata, T *g_odata)
{
    T *sdata = SharedMemory<T>();
    unsigned int tid = threadIdx.x;
    T mySum = 0;
    if (strided)
        for (unsigned int i = tid; i < n; i += blockSize)
            mySum += g_idata[blockIdx.x * n + i];
    sdata[tid] = mySum;
    __syncthreads();
    if (blockSize >= 256) {
        if (tid < 128)
            sdata[tid] += sdata[tid + 128];
        __syncthreads();
    }
    if (blockSize >= 128) {
        if (tid < 64)
            sdata[tid] += sdata[tid + 64];
        __syncthreads();
    }
    if (tid < 32)
        warpReduce<T, blockSize>(sdata, tid);
    if (tid == 0)
        g_odata[blockIdx.x] = sdata[0];
}
