// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Inline PTX: loads through the read-only cache, fma, predicates, selects"
arguments = ["n", "x", "y"]

[launch]
block = [128]
grid = ["cdiv(n, block_x)"]
*/
__device__ __forceinline__ float load(const float *p)
{
    float v;
    asm volatile("ld.global.nc.L1::no_allocate.f32 %0, [%1];" : "=f"(v) : "l"(p));
    return v;
}

__device__ __forceinline__ float fma_(float a, float b, float c)
{
    float d;
    asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(a), "f"(b), "f"(c));
    return d;
}

__global__ void inline_ptx(int n, const float *x, float *y)
{
    unsigned lane, tid = threadIdx.x;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    int i;
    asm("mad.lo.s32 %0, %1, %2, %3;" : "=r"(i) : "r"(blockIdx.x), "r"(blockDim.x), "r"((tid & ~31u) | lane));
    if (i >= n)
        return;
    const float v = load(x + i);
    float out = fma_(v, fma_(v, fma_(v, 4, 3), 2), 1), chosen;
    asm("{\n\t.reg .pred p;\n\tsetp.gt.f32 p, %1, 0f00000000;\n\tselp.f32 %0, %2, %3, p;\n\t}"
        : "=f"(chosen)
        : "f"(v), "f"(out), "f"(out));
    asm volatile("st.global.wt.f32 [%0], %1;" ::"l"(y + i), "f"(chosen) : "memory");
}
