// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Generic pointers that may be shared, global or local; isspacep, casts of address spaces"
arguments = ["n", "x", "y"]

[launch]
block = [96]
grid = ["cdiv(n, block_x)"]
*/
__device__ __noinline__ float at(const float *p, int i) { return p[i]; }

__global__ void shared_pointers(int n, const float *x, float *y)
{
    __shared__ float s[96];
    float own[3];
    const int t = threadIdx.x, i = blockIdx.x * 96 + t;
    s[t] = own[t % 3] = i < n ? x[i] : 0;
    __syncthreads();
    if (i >= n)
        return;
    const float *where[3] = {s, x + blockIdx.x * 96, own};
    const int place[3] = {t, t, t % 3};
    float v = 0;
    for (int k = 0; k < 3; ++k)
        v += at(where[(t + k) % 3], place[(t + k) % 3]);
    v /= 3;
    const bool sane = __isShared(s) && __isGlobal(x) && __isLocal(own);
    const unsigned address = (unsigned)__cvta_generic_to_shared(s + t);
    float again;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(again) : "r"(address));
    y[i] = sane && again == v ? 1 + v * (2 + v * (3 + v * 4)) : -1;
}
