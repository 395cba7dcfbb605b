// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "special registers"

[warpid_in_block]
rule = "%warpid of the warps of one block: the card may number them otherwise than by thread."
kernel = "warpid"
block = 128
count = 128
[warpid_two_dimensions]
rule = "Threads are numbered x first, then y, then z, when they are put into warps."
kernel = "laneid"
block = [5, 7, 2]
count = 70
verdict = "ok"
expected = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 0, 1, 2, 3, 4, 5]
[ctaid_three_dimensions]
rule = "%ctaid and %nctaid have three dimensions."
grid = [2, 3, 2]
block = 1
count = 12
verdict = "ok"
expected = [0, 1, 256, 257, 512, 513, 65536, 65537, 65792, 65793, 66048, 66049]
[warp_size]
rule = "WARP_SZ is 32."
count = 1
block = 1
verdict = "ok"
expected = [32]
[clock_advances]
rule = "%clock64 of a thread never goes back, and advances between two reads with work between them."
count = 1
block = 1
verdict = "ok"
expected = [1]
[globaltimer_advances]
rule = "%globaltimer never goes back."
count = 1
block = 1
verdict = "ok"
expected = [1]
[smid_below_nsmid]
rule = "%smid is below %nsmid."
count = 1
block = 1
verdict = "ok"
expected = [1]
[activemask_of_partial_warp]
rule = "In a block of 40 threads the second warp has 8 active lanes."
kernel = "activemask"
block = 40
count = 40
[activemask_in_branch]
rule = "activemask in a branch gives lanes that run together: the card may give fewer, never others."
count = 32

[[family]]
name = "special_{register}_{threads}"
line = 'SPECIAL({name}, "{register}")'
rule = "%{register} of a block of {threads} threads."
block = 64
count = 64
threads = ["64"]
register = ["nwarpid", "lanemask_eq", "lanemask_lt", "lanemask_le", "lanemask_gt", "lanemask_ge", "clusterid.x",
    "nclusterid.x", "cluster_ctaid.x", "cluster_nctaid.x", "cluster_ctarank", "cluster_nctarank", "reserved_smem_offset_begin",
    "reserved_smem_offset_end", "reserved_smem_offset_cap"]
*/

#define SPECIAL(NAME, REGISTER)                                                                            \
    extern "C" __global__ void NAME(unsigned *out) {                                                       \
        unsigned value;                                                                                    \
        asm volatile("mov.b32 %0, %%" REGISTER ";" : "=r"(value));                        \
        out[threadIdx.x] = value;                                                                          \
    }

extern "C" __global__ void warpid(unsigned *out) {
    asm volatile("mov.u32 %0, %%warpid;" : "=r"(out[threadIdx.x]));
}

extern "C" __global__ void laneid(unsigned *out) {
    const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(out[thread]));
}

extern "C" __global__ void ctaid_three_dimensions(unsigned *out) {
    const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    out[block] = blockIdx.z << 16 | blockIdx.y << 8 | blockIdx.x;
}

extern "C" __global__ void warp_size(unsigned *out) {
    asm volatile("mov.u32 %0, WARP_SZ;" : "=r"(out[0]));
}

extern "C" __global__ void clock_advances(unsigned *out) {
    unsigned long long before, after;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(before)::"memory");
    out[0] = 5;
    __threadfence();
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(after)::"memory");
    out[0] = after > before;
}

extern "C" __global__ void globaltimer_advances(unsigned *out) {
    unsigned long long before, after;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(before)::"memory");
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(after)::"memory");
    out[0] = after >= before;
}

extern "C" __global__ void smid_below_nsmid(unsigned *out) {
    unsigned number, count;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
    asm volatile("mov.u32 %0, %%nsmid;" : "=r"(count));
    out[0] = number < count;
}

extern "C" __global__ void activemask(unsigned *out) {
    out[threadIdx.x] = __activemask();
}

extern "C" __global__ void activemask_in_branch(unsigned *out) {
    if (threadIdx.x % 3 == 0)
        out[threadIdx.x] = __activemask();
    else
        out[threadIdx.x] = __activemask();
}
