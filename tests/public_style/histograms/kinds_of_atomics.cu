// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "atomicInc, atomicSub, atomicCAS, atomicExch, atomicOr, atomicXor, atomicAnd, atomicMax and atomicMin"
arguments = ["n", "data", "counts"]

[launch]
block = [64]
grid = ["1"]
*/
__device__ void add_by_cas(int *address, int value)
{
    int old = *(volatile int *)address, assumed;
    do {
        assumed = old;
        old = atomicCAS(address, assumed, assumed + value);
    } while (assumed != old);
}

__global__ void kinds_of_atomics(int n, const int *data, int *counts)
{
    __shared__ int bins[64];
    __shared__ unsigned up[64], even, all, least, most, lock;
    const int t = threadIdx.x;
    bins[t] = 0, up[t] = 0;
    if (t == 0)
        even = 0, all = ~0u, least = ~0u, most = 0, lock = 0;
    __syncthreads();
    for (int i = t; i < n; i += blockDim.x) {
        const int v = data[i];
        if (v % 4 == 0)
            atomicInc(&up[v], 0xffffffff);
        else if (v % 4 == 1)
            atomicSub(&bins[v], -1);
        else if (v % 4 == 2)
            add_by_cas(&bins[v], 1);
        else
            atomicAdd(&bins[v], 1);
        atomicXor(&even, 1u << (v & 31));
        atomicXor(&even, 1u << (v & 31));
        atomicAnd(&all, 0xffff0000u | v);
        atomicMin(&least, (unsigned)v);
        atomicMax(&most, (unsigned)v);
        atomicOr(&lock, 0u);
    }
    __syncthreads();
    const bool sane = even == 0 && all >> 16 == 0xffff && least <= most && most < 64 && lock == 0;
    counts[t] = sane ? atomicExch(t % 4 ? &bins[t] : (int *)&up[t], -1) : -1;
}
