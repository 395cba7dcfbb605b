// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "cooperative groups"
verdict = "ok"

[grid_workspace_of_a_plain_launch]
rule = "Without a cooperative launch the grid has no workspace."
expected = [1]
[grid_workspace_of_a_cooperative_launch]
rule = "A cooperative launch gives the grid a workspace."
cooperative = true
expected = [0]
[grid_barrier]
rule = "Blocks meet at a barrier of the grid, counted in its workspace."
cooperative = true
grid = 4
block = 64
count = 256
[grid_barrier_three_times]
rule = "The barrier of the grid may be used again."
cooperative = true
grid = 3
count = 96
[grid_barrier_of_two_dimensions]
rule = "Blocks of a grid of two dimensions meet too."
cooperative = true
grid = [2, 2, 1]
block = [8, 8, 1]
count = 256
[tile_of_four]
rule = "Tiles of four lanes add their values, each with a mask of its own."
[tile_of_sixteen_in_a_branch]
rule = "Half of a warp adds its values while the other half is elsewhere."
[coalesced_rank]
rule = "Lanes that take a branch together count themselves."
expected = [0, 99, 1, 99, 2, 99, 3, 99, 4, 99, 5, 99, 6, 99, 7, 99, 8, 99, 9, 99, 10, 99, 11, 99, 12, 99, 13, 99, 14, 99, 15, 99]
[coalesced_atomic]
rule = "One lane of those that take a branch adds for all of them."
[labeled_partition]
rule = "Lanes of the same label find each other."
[coalesced_shuffle]
rule = "A lane reads the one that comes before it among those of the branch."
*/

#define SELF threadIdx.x

__device__ __forceinline__ unsigned *workspace() {
    unsigned high, low;
    asm volatile("mov.u32 %0, %%envreg1; mov.u32 %1, %%envreg2;" : "=r"(high), "=r"(low));
    return (unsigned *)((unsigned long long)high << 32 | low);
}

__device__ __forceinline__ void meet_grid() {
    unsigned *arrived = workspace() + 1;
    asm volatile("barrier.sync 0;" ::: "memory");
    if (threadIdx.x + threadIdx.y + threadIdx.z == 0) {
        const unsigned blocks = gridDim.x * gridDim.y * gridDim.z;
        const bool first = blockIdx.x + blockIdx.y + blockIdx.z == 0;
        const unsigned mine = first ? 0x80000000u - (blocks - 1) : 1;
        unsigned before, now;
        asm volatile("atom.add.release.gpu.u32 %0, [%1], %2;" : "=r"(before) : "l"(arrived), "r"(mine) : "memory");
        do {
            asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(arrived) : "memory");
        } while (((before ^ now) & 0x80000000u) == 0);
    }
    asm volatile("barrier.sync 0;" ::: "memory");
}

extern "C" __global__ void grid_workspace_of_a_plain_launch(unsigned *out) { out[SELF] = workspace() == 0; }
extern "C" __global__ void grid_workspace_of_a_cooperative_launch(unsigned *out) { out[SELF] = workspace() == 0; }

__device__ unsigned passed_on[256];
extern "C" __global__ void grid_barrier(unsigned *out) {
    const unsigned n = gridDim.x * blockDim.x, me = blockIdx.x * blockDim.x + SELF;
    passed_on[me] = me * 7;
    meet_grid();
    out[me] = passed_on[(me + blockDim.x) % n];
}
extern "C" __global__ void grid_barrier_three_times(unsigned *out) {
    const unsigned n = gridDim.x * blockDim.x, me = blockIdx.x * blockDim.x + SELF;
    unsigned value = me;
    for (unsigned round = 0; round < 3; ++round) {
        passed_on[me] = value;
        meet_grid();
        value = value * 3 + passed_on[(me + 33) % n];
        meet_grid();
    }
    out[me] = value;
}
extern "C" __global__ void grid_barrier_of_two_dimensions(unsigned *out) {
    const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
    const unsigned me = block * 64 + threadIdx.y * 8 + threadIdx.x;
    passed_on[me] = me + 1000;
    meet_grid();
    out[me] = passed_on[255 - me];
}

extern "C" __global__ void tile_of_four(unsigned *out) {
    const unsigned mask = 0xFu << (SELF & ~3u & 31);
    unsigned sum = SELF * SELF;
    for (unsigned away = 2; away; away /= 2) sum += __shfl_down_sync(mask, sum, away, 4);
    out[SELF] = __shfl_sync(mask, sum, 0, 4);
}
extern "C" __global__ void tile_of_sixteen_in_a_branch(unsigned *out) {
    unsigned sum = SELF;
    if (SELF < 16) {
        for (unsigned away = 8; away; away /= 2) sum += __shfl_xor_sync(0xFFFFu, sum, away, 16);
    } else {
        sum = sum * 5;
    }
    out[SELF] = sum;
}
extern "C" __global__ void coalesced_rank(unsigned *out) {
    unsigned rank = 99;
    if (SELF % 2 == 0) {
        unsigned before;
        asm("mov.u32 %0, %%lanemask_lt;" : "=r"(before));
        rank = __popc(__activemask() & before);
    }
    out[SELF] = rank;
}
extern "C" __global__ void coalesced_atomic(unsigned *out) {
    __shared__ unsigned counter;
    if (SELF == 0) counter = 50;
    __syncwarp();
    unsigned place = 0;
    if (SELF % 3 == 1) {
        const unsigned active = __activemask(), leader = __ffs(active) - 1;
        unsigned start = 0;
        if (SELF == leader) start = atomicAdd(&counter, __popc(active));
        start = __shfl_sync(active, start, leader);
        place = start + __popc(active & ((1u << SELF) - 1));
    }
    __syncwarp();
    out[SELF] = place * 100 + counter;
}
extern "C" __global__ void labeled_partition(unsigned *out) {
    const unsigned same = __match_any_sync(0xFFFFFFFFu, SELF * SELF % 5);
    out[SELF] = same;
}
extern "C" __global__ void coalesced_shuffle(unsigned *out) {
    unsigned value = SELF * 3;
    if (SELF % 5 != 2) {
        const unsigned active = __activemask(), before = active & ((1u << SELF) - 1);
        const unsigned source = before ? 31 - __clz(before) : SELF;
        value = __shfl_sync(active, value, source);
    }
    out[SELF] = value;
}
