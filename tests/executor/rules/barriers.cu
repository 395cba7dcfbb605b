// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "barriers"
block = 128
count = 128

[barrier_number_in_register]
rule = "A named barrier's number may come from a register, another one in each warp."
verdict = "ok"
[barrier_count_in_register]
rule = "A barrier's count of threads may come from a register."
verdict = "ok"
[barrier_number_and_count_in_register]
rule = "Pairs of warps meet at barriers of their own, number and count from registers."
verdict = "ok"
[barrier_sync_two_branches]
rule = "barrier.sync, which is not aligned, may be reached from two branches of a warp."
verdict = "ok"
risky = true
[bar_sync_two_branches]
rule = "bar.sync must be reached by all lanes of a warp together: a branch within the warp breaks the rule."
risky = true
verdict = "undefined"
faults = ["barrier"]
[barrier_arrive]
rule = "Producers arrive and go on; consumers wait for them."
verdict = "ok"
defined = [[64, 128]]
[barrier_arrive_twice]
rule = "A barrier is used again for a second phase after it has completed."
verdict = "ok"
defined = [[64, 128]]
[bar_red_popc]
rule = "bar.red.popc counts the threads whose predicate is true."
verdict = "ok"
expected = [43]
[bar_red_and]
rule = "bar.red.and is true when all predicates are."
verdict = "ok"
expected = [1]
[bar_red_or]
rule = "bar.red.or is true when one predicate is."
verdict = "ok"
expected = [1]
[syncthreads_count]
rule = "__syncthreads_count, _and and _or."
verdict = "ok"
expected = [13001]
[bar_red_count_of_some]
rule = "bar.red over the threads of two of four warps."
verdict = "ok"
[barrier_red_in_branch]
rule = "barrier.red, which is not aligned, in two branches of a warp."
verdict = "ok"
risky = true
expected = [64]
[barrier_15]
rule = "Barrier 15 exists."
verdict = "ok"
[barrier_20_in_register]
rule = "Barrier 20 does not exist."
risky = true
verdict = "undefined"
faults = ["barrier"]
[barrier_count_not_of_warps]
rule = "A count that is no multiple of the warp size breaks the rule."
risky = true
verdict = "undefined"
faults = ["barrier"]
[barrier_count_above_block]
rule = "A count larger than the block waits for ever."
risky = true
verdict = "fault"
faults = ["barrier", "endless loop"]
[barrier_counts_disagree]
rule = "Warps that give one barrier different counts break the rule."
risky = true
verdict = "undefined"
faults = ["barrier"]
[barrier_partial_orders_nothing_else]
rule = "bar.sync 1, 64 orders nothing for the warps that do not take part: a race."
verdict = "undefined"
faults = ["shared-memory race"]
[syncthreads_in_divided_block]
rule = "Two barriers 0 in two branches of the block, by warp, are one barrier."
verdict = "ok"
risky = true
[syncthreads_missed_by_one_warp]
rule = "A warp that waits at another barrier than the rest blocks for ever."
risky = true
verdict = "fault"
faults = ["barrier", "endless loop"]
[syncthreads_after_some_lanes_exit]
rule = "__syncthreads by the lanes of a warp that have not exited."
defined = [[0, 20], [32, 52], [64, 84], [96, 116]]
[syncthreads_in_loop]
rule = "A barrier in a loop orders each turn."
verdict = "ok"
[barrier_whole_block_orders_shared]
rule = "__syncthreads orders shared memory between warps."
verdict = "ok"
[barrier_cta_sync_number_0_is_syncthreads]
rule = "A barrier with a count, though it is the block's size, and without one do not go together."
verdict = "undefined"
faults = ["barrier"]
risky = true
[cluster_barrier_of_one]
rule = "barrier.cluster in a cluster of one block."
verdict = "ok"
[named_barriers_cross]
rule = "Two pairs of warps use two barriers in opposite order with arrive: no deadlock."
verdict = "ok"
[partial_last_warp]
rule = "__syncthreads in a block of 100 threads counts whole warps."
block = 100
count = 100
verdict = "ok"
[bar_red_popc_partial_warp]
rule = "bar.red.popc in a block of 100 threads counts threads, not lanes."
block = 100
count = 100
verdict = "ok"
expected = [100]
[exited_warps_and_named_barrier]
rule = "A named barrier with a count does not wait less because warps exited."
block = 128
risky = true
defined = [[0, 32]]
*/

#define T threadIdx.x
#define WARP (threadIdx.x / 32)

extern "C" __global__ void barrier_number_in_register(unsigned *out) {
    __shared__ unsigned words[128];
    words[T] = T;
    asm volatile("bar.sync %0, 64;" ::"r"(1 + WARP % 2) : "memory");
    out[T] = words[T ^ 64];
}

extern "C" __global__ void barrier_count_in_register(unsigned *out) {
    __shared__ unsigned words[128];
    words[T] = T;
    asm volatile("bar.sync 3, %0;" ::"r"(blockDim.x) : "memory");
    out[T] = words[127 - T];
}

extern "C" __global__ void barrier_number_and_count_in_register(unsigned *out) {
    __shared__ unsigned words[128];
    words[T] = T;
    asm volatile("bar.sync %0, %1;" ::"r"(5 + WARP / 2), "r"(blockDim.x / 2) : "memory");
    out[T] = words[T ^ 32];
}

extern "C" __global__ void barrier_sync_two_branches(unsigned *out) {
    __shared__ volatile unsigned words[128];
    if (T % 2) {
        words[T] = 1000 + T;
        asm volatile("barrier.sync 0;" ::: "memory");
        out[T] = words[127 - T];
    } else {
        words[T] = T;
        asm volatile("barrier.sync 0;" ::: "memory");
        out[T] = words[127 - T] + 5;
    }
}

extern "C" __global__ void bar_sync_two_branches(unsigned *out) {
    __shared__ volatile unsigned words[128];
    words[T] = T;
    if (T % 2) {
        words[T] += 7;
        asm volatile("bar.sync 0;" ::: "memory");
        out[T] = words[127 - T];
    } else {
        asm volatile("bar.sync 0;" ::: "memory");
        out[T] = words[127 - T] + 5;
    }
}

extern "C" __global__ void barrier_arrive(unsigned *out) {
    __shared__ unsigned words[64];
    if (T < 64) {
        words[T] = 3 * T;
        asm volatile("bar.arrive 1, 128;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 128;" ::: "memory");
        out[T] = words[127 - T];
    }
}

extern "C" __global__ void barrier_arrive_twice(unsigned *out) {
    __shared__ unsigned words[64];
    for (unsigned turn = 0; turn < 2; ++turn) {
        if (T < 64) {
            if (turn)
                asm volatile("bar.sync 2, 128;" ::: "memory");
            words[T] = 3 * T + turn;
            asm volatile("bar.arrive 1, 128;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 128;" ::: "memory");
            out[T] = words[127 - T];
            if (!turn)
                asm volatile("bar.arrive 2, 128;" ::: "memory");
        }
    }
}

extern "C" __global__ void bar_red_popc(unsigned *out) {
    asm volatile("{ .reg .pred p; .reg .b32 r; rem.u32 r, %1, 3; setp.eq.u32 p, r, 0; bar.red.popc.u32 %0, 0, p; }"
                 : "=r"(out[T]) : "r"(T) : "memory");
}

extern "C" __global__ void bar_red_and(unsigned *out) {
    asm volatile("{ .reg .pred p, q; setp.lt.u32 p, %1, 1000; bar.red.and.pred q, 0, p; selp.u32 %0, 1, 0, q; }"
                 : "=r"(out[T]) : "r"(T) : "memory");
}

extern "C" __global__ void bar_red_or(unsigned *out) {
    asm volatile("{ .reg .pred p, q; setp.eq.u32 p, %1, 77; bar.red.or.pred q, 0, p; selp.u32 %0, 1, 0, q; }"
                 : "=r"(out[T]) : "r"(T) : "memory");
}

extern "C" __global__ void syncthreads_count(unsigned *out) {
    const int count = __syncthreads_count(T % 10 == 0), all = __syncthreads_and(T < 100), any = __syncthreads_or(T == 100);
    out[T] = count * 1000 + (all != 0) * 100 + (any != 0);
}

extern "C" __global__ void bar_red_count_of_some(unsigned *out) {
    asm volatile("{ .reg .pred p; .reg .b32 r; and.b32 r, %1, 3; setp.eq.u32 p, r, 0; bar.red.popc.u32 %0, %2, 64, p; }"
                 : "=r"(out[T]) : "r"(T < 64 ? T : T * 2), "r"(1 + T / 64) : "memory");
}

extern "C" __global__ void barrier_red_in_branch(unsigned *out) {
    if (T % 2)
        asm volatile("{ .reg .pred p; setp.eq.u32 p, 0, 0; barrier.red.popc.u32 %0, 0, p; }" : "=r"(out[T])::"memory");
    else
        asm volatile("{ .reg .pred p; setp.ne.u32 p, 0, 0; barrier.red.popc.u32 %0, 0, p; }" : "=r"(out[T])::"memory");
}

extern "C" __global__ void barrier_15(unsigned *out) {
    __shared__ unsigned words[128];
    words[T] = T;
    asm volatile("bar.sync 15;" ::: "memory");
    out[T] = words[127 - T];
}

extern "C" __global__ void barrier_20_in_register(unsigned *out) {
    asm volatile("bar.sync %0;" ::"r"(blockDim.x / 8 + 4) : "memory");
    out[T] = T;
}

extern "C" __global__ void barrier_count_not_of_warps(unsigned *out) {
    asm volatile("bar.sync 1, %0;" ::"r"(blockDim.x - 28) : "memory");
    out[T] = T;
}

extern "C" __global__ void barrier_count_above_block(unsigned *out) {
    asm volatile("bar.sync 1, %0;" ::"r"(blockDim.x + 32) : "memory");
    out[T] = T;
}

extern "C" __global__ void barrier_counts_disagree(unsigned *out) {
    asm volatile("bar.sync 1, %0;" ::"r"(WARP == 0 ? 64 : 128) : "memory");
    out[T] = T;
}

extern "C" __global__ void barrier_partial_orders_nothing_else(unsigned *out) {
    __shared__ unsigned words[128];
    words[T] = T;
    if (T < 64)
        asm volatile("bar.sync 1, 64;" ::: "memory");
    out[T] = words[127 - T];
}

extern "C" __global__ void syncthreads_in_divided_block(unsigned *out) {
    __shared__ volatile unsigned words[128];
    words[T] = T;
    if (WARP % 2) {
        __syncthreads();
        out[T] = words[127 - T];
    } else {
        __syncthreads();
        out[T] = words[127 - T] + 5;
    }
}

extern "C" __global__ void syncthreads_missed_by_one_warp(unsigned *out) {
    if (WARP == 2)
        asm volatile("bar.sync 1;" ::: "memory");
    else
        asm volatile("bar.sync 0;" ::: "memory");
    out[T] = T;
}

extern "C" __global__ void syncthreads_after_some_lanes_exit(unsigned *out) {
    if (T % 32 >= 20)
        return;
    __syncthreads();
    out[T] = T;
}

extern "C" __global__ void syncthreads_in_loop(unsigned *out) {
    __shared__ unsigned words[128];
    words[T] = T;
    for (unsigned step = 1; step < 128; step *= 2) {
        __syncthreads();
        const unsigned other = words[(T + step) % 128];
        __syncthreads();
        words[T] += other;
    }
    out[T] = words[T];
}

extern "C" __global__ void barrier_whole_block_orders_shared(unsigned *out) {
    __shared__ unsigned words[128];
    words[T] = T * T;
    __syncthreads();
    out[T] = words[(T + 37) % 128];
}

extern "C" __global__ void barrier_cta_sync_number_0_is_syncthreads(unsigned *out) {
    __shared__ volatile unsigned words[128];
    words[T] = T;
    if (WARP < 2)
        asm volatile("bar.sync 0;" ::: "memory");
    else
        asm volatile("barrier.cta.sync.aligned 0, 128;" ::: "memory");
    out[T] = words[127 - T];
}

extern "C" __global__ void cluster_barrier_of_one(unsigned *out) {
    __shared__ unsigned words[128];
    words[T] = T;
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
    out[T] = words[127 - T];
}

extern "C" __global__ void named_barriers_cross(unsigned *out) {
    __shared__ unsigned words[128];
    words[T] = T;
    if (T < 64) {
        asm volatile("bar.arrive 1, 128;" ::: "memory");
        asm volatile("bar.sync 2, 128;" ::: "memory");
    } else {
        asm volatile("bar.arrive 2, 128;" ::: "memory");
        asm volatile("bar.sync 1, 128;" ::: "memory");
    }
    out[T] = words[T ^ 64];
}

extern "C" __global__ void partial_last_warp(unsigned *out) {
    __shared__ unsigned words[100];
    words[T] = T;
    __syncthreads();
    out[T] = words[99 - T];
}

extern "C" __global__ void bar_red_popc_partial_warp(unsigned *out) {
    out[T] = __syncthreads_count(1);
}

extern "C" __global__ void exited_warps_and_named_barrier(unsigned *out) {
    if (T >= 32)
        return;
    asm volatile("bar.sync 1, 64;" ::: "memory");
    out[T] = T;
}
