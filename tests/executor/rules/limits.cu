// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "launch limits"
count = 1
risky = false

[block_of_1024]
kernel = "plain"
rule = "A block of 1,024 threads can be launched."
block = 1024
verdict = "ok"
[block_of_1025]
kernel = "plain"
rule = "A block of 1,025 threads cannot."
block = 1025
verdict = "refused"
[block_z_64]
kernel = "plain"
rule = "64 threads along z can be launched."
block = [1, 1, 64]
verdict = "ok"
[block_z_65]
kernel = "plain"
rule = "65 threads along z cannot."
block = [1, 1, 65]
verdict = "refused"
[block_z_128]
kernel = "plain"
rule = "128 threads along z cannot."
block = [2, 1, 128]
verdict = "refused"
[block_of_none]
kernel = "plain"
rule = "A block of no threads cannot be launched."
block = [32, 0, 1]
verdict = "refused"
[grid_of_none]
kernel = "plain"
rule = "A grid of no blocks cannot be launched."
grid = [0, 1, 1]
verdict = "refused"
[grid_y_65536]
kernel = "plain"
rule = "65,536 blocks along y cannot be launched."
grid = [1, 65536, 1]
verdict = "refused"
[grid_z_65536]
kernel = "plain"
rule = "65,536 blocks along z cannot be launched."
grid = [1, 1, 65536]
verdict = "refused"
[grid_x_100000]
kernel = "plain"
rule = "100,000 blocks along x can be launched."
grid = 100000
block = 1
verdict = "ok"
[launch_bounds_kept]
kernel = "bounded"
rule = "A block of as many threads as __launch_bounds__ allow can be launched."
block = 128
verdict = "ok"
[launch_bounds_exceeded]
kernel = "bounded"
rule = "A block of more threads than __launch_bounds__ allow cannot be launched."
block = 160
verdict = "refused"
[launch_bounds_smaller_block]
kernel = "bounded"
rule = "A block of fewer threads than __launch_bounds__ allow can be launched."
block = 33
verdict = "ok"
[registers_times_threads]
kernel = "many_registers"
rule = "Registers of a block beyond the SM's 65,536 are refused."
block = 1024
verdict = "refused"
[registers_times_threads_fit]
kernel = "many_registers"
rule = "The same kernel fits with fewer threads."
block = 128
[cluster_divides_grid]
kernel = "cluster_of_two"
rule = "A grid of whole clusters can be launched."
grid = 4
verdict = "ok"
[cluster_does_not_divide_grid]
kernel = "cluster_of_two"
rule = "A grid that is not of whole clusters is refused."
grid = 3
verdict = "refused"
[cluster_of_eight]
rule = "Eight blocks are the largest portable cluster."
grid = 8
verdict = "ok"
[cluster_of_sixteen]
rule = "Sixteen blocks in a cluster need the kernel's consent (a non-portable size)."
grid = 16
verdict = "refused"
[cluster_rank]
rule = "%cluster_ctarank of the blocks of two clusters of two."
grid = 4
count = 4
verdict = "ok"
expected = [0, 1, 0, 1]
[cluster_shared_window]
rule = "mapa gives another block's shared memory, which ld.shared::cluster reads."
grid = 2
count = 2
verdict = "ok"
expected = [101, 100]
[cooperative_small]
kernel = "plain"
rule = "A cooperative grid that is resident at once can be launched."
cooperative = true
grid = 64
verdict = "ok"
[cooperative_too_large]
kernel = "plain"
rule = "A cooperative grid larger than the card holds is refused."
cooperative = true
grid = 100000
verdict = "refused"
[dynamic_shared_48k]
kernel = "plain"
rule = "48 KB of dynamic shared memory need no consent."
shared = 49152
verdict = "ok"
[dynamic_shared_most]
kernel = "plain"
rule = "227 KB of dynamic shared memory can be launched with the kernel's consent."
shared = 232448
verdict = "ok"
[dynamic_shared_too_much]
kernel = "plain"
rule = "More than 227 KB cannot be launched."
shared = 232449
verdict = "refused"
[dynamic_and_static_too_much]
kernel = "static_32k"
rule = "Static and dynamic shared memory together are bounded."
shared = 200000
verdict = "refused"
[dynamic_and_static_fit]
kernel = "static_32k"
rule = "Static and dynamic shared memory together fit in 227 KB."
shared = 199680
verdict = "ok"
[stack_500_kb]
rule = "A stack of 500 KB for each thread is below the limit of 512 KB."
block = 1
[maxnreg_kept]
kernel = "few_registers"
rule = "A kernel that __maxnreg__ holds to 32 registers can be launched with 1,024 threads."
block = 1024
verdict = "ok"
*/

#define WRITES_FIRST if (threadIdx.x + threadIdx.y + threadIdx.z + blockIdx.x == 0) out[0] = 1

extern "C" __global__ void plain(unsigned *out) {
    WRITES_FIRST;
}

extern "C" __global__ void __launch_bounds__(128) bounded(unsigned *out) {
    WRITES_FIRST;
}

extern "C" __global__ void many_registers(unsigned *out) {
    unsigned values[150];
#pragma unroll
    for (int i = 0; i < 150; ++i)
        asm volatile("mov.u32 %0, %1;" : "=r"(values[i]) : "r"(threadIdx.x + i));
#pragma unroll
    for (int turn = 0; turn < 2; ++turn)
#pragma unroll
        for (int i = 0; i < 150; ++i)
            asm volatile("mad.lo.u32 %0, %0, %1, 5;" : "+r"(values[i]) : "r"(values[(i * 7 + 1) % 150]));
    unsigned sum = 0;
#pragma unroll
    for (int i = 0; i < 150; ++i)
        sum ^= values[i];
    if (threadIdx.x == 0)
        out[0] = sum;
}

extern "C" __global__ void __maxnreg__(32) few_registers(unsigned *out) {
    WRITES_FIRST;
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_of_two(unsigned *out) {
    WRITES_FIRST;
}

extern "C" __global__ void __cluster_dims__(8, 1, 1) cluster_of_eight(unsigned *out) {
    WRITES_FIRST;
}

extern "C" __global__ void __cluster_dims__(16, 1, 1) cluster_of_sixteen(unsigned *out) {
    WRITES_FIRST;
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_rank(unsigned *out) {
    if (threadIdx.x == 0)
        asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(out[blockIdx.x]));
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_shared_window(unsigned *out) {
    __shared__ unsigned word;
    if (threadIdx.x == 0)
        word = 100 + blockIdx.x;
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    if (threadIdx.x == 0) {
        unsigned value;
        asm volatile("{ .reg .b32 a; mapa.shared::cluster.u32 a, %1, %2; ld.shared::cluster.u32 %0, [a]; }"
                     : "=r"(value) : "r"(static_cast<unsigned>(__cvta_generic_to_shared(&word))), "r"(1 - blockIdx.x) : "memory");
        out[blockIdx.x] = value;
    }
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}

extern "C" __global__ void static_32k(unsigned *out) {
    __shared__ volatile unsigned words[8192];
    words[threadIdx.x] = 1;
    if (threadIdx.x == 0)
        out[0] = words[0];
}

extern "C" __global__ void stack_500_kb(unsigned *out) {
    volatile char stack[500 * 1024];
    for (unsigned i = 0; i < 4; ++i)
        stack[i * 1000 * (out[0] % 100)] = i;
    out[0] = stack[0];
}
