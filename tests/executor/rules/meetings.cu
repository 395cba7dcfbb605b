// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
block = 64
count = 64
verdict = "ok"

[ping_pong_of_two_warps]
chapter = "barriers"
rule = "Two warps hand a word back and forth, each arriving at one barrier and waiting at the other."
expected = [20]
[barrier_with_another_count_later]
chapter = "barriers"
rule = "A named barrier may be used by 64 threads, and after everybody met by 96."
block = 96
count = 96
[barrier_number_chosen_by_data]
chapter = "barriers"
rule = "Warps that read their barrier's number from memory meet those that read the same."
block = 128
count = 128
inputs = [["u32", [3, 9, 9, 3]]]
[vote_until_nothing_changes]
chapter = "barriers"
rule = "__syncthreads_or ends a loop for all threads in the same turn."
expected = [0]
[count_after_some_exited]
chapter = "barriers"
rule = "bar.red.popc counts predicates of the threads that have not exited."
defined = [[0, 40]]
[arrives_and_waits_at_one_barrier]
chapter = "barriers"
rule = "A warp that arrives at a barrier and then waits at it counts twice: it waits for nobody else, and races."
verdict = "undefined"
faults = ["barrier"]
[barrier_missed_in_last_turn]
chapter = "barriers"
rule = "Warps that go round a loop with a barrier a different number of times, and then exit, leave nobody waiting."
block = 128
count = 128
[lane_waits_behind_its_setter]
chapter = "memory model and progress"
rule = "A flag that a lane sets only behind a __syncwarp of the whole warp is never set for a lane that polls it before."
block = 32
count = 32
verdict = "fault"
faults = ["endless loop", "barrier"]
[chain_of_lanes]
chapter = "memory model and progress"
rule = "Each lane of a warp waits for the flag of the one before it: 32 links within a warp."
block = 32
count = 32
[chain_of_lanes_backwards]
chapter = "memory model and progress"
rule = "Each lane of a warp waits for the flag of the one behind it."
block = 32
count = 32
[store_buffering_with_fence_sc]
chapter = "memory model and progress"
rule = "With fence.sc between its store and its load at least one of two threads sees the other's store."
grid = 2
block = 1
count = 1
expected = [0]
[neighbouring_bytes]
chapter = "memory model and progress"
rule = "Two warps that write different bytes of a word do not race, and lose nothing."
[bits_of_one_word]
chapter = "memory model and progress"
rule = "Two warps that write different bits of a word without atomics race."
verdict = "undefined"
faults = ["shared-memory race"]
[warp_sum_by_volatile]
chapter = "memory model and progress"
rule = "A sum within a warp by volatile shared memory without __syncwarp: nothing orders a lane's load behind another's store."
verdict = ""
block = 32
count = 1
defined = [[0, 0]]
[lock_by_ticket_in_shared]
chapter = "memory model and progress"
rule = "All 64 threads of a block take a ticket lock in shared memory, one after the other."
expected = [2080]
[double_checked_flag]
chapter = "memory model and progress"
rule = "A value that the first of four blocks makes, found by the others through an acquire load."
grid = 4
count = 256
expected = [77]
[aggregated_by_active_lanes]
chapter = "warp operations"
rule = "Lanes that happen to run together elect one that adds for them: the sum does not depend on who runs together."
count = 1
expected = [44]
[groups_by_value]
chapter = "warp operations"
rule = "match.any groups lanes; each group's lanes reduce among themselves with their own mask at once."
[tree_over_a_ballot]
chapter = "warp operations"
rule = "Lanes of a ballot's mask add up by shuffles, one step after the other in their order of rank."
[nested_masks]
chapter = "warp operations"
rule = "Four levels of branches, each with a __syncwarp of its own lanes, order shared memory among them."
[shuffle_of_mixed_segments]
chapter = "warp operations"
rule = "shfl.idx with segments of another width in each lane, as the fifth operand says."
[ballot_in_a_loop_with_two_exits]
chapter = "warp operations"
rule = "Lanes leave a loop by two ways; behind it a full vote holds all of them."
[vote_by_lanes_in_a_callee]
chapter = "warp operations"
rule = "A function called from two branches votes with the mask that each branch gives it."
[shuffle_64_bits_in_halves]
chapter = "warp operations"
rule = "A double goes through a shuffle as its two halves."
*/

#define T threadIdx.x
#define LANE (threadIdx.x & 31)
#define KERNEL(NAME) extern "C" __global__ void NAME(unsigned *out)
#define KERNEL_OF(NAME) extern "C" __global__ void NAME(unsigned *out, const unsigned *in)
#define BAR(WHAT, NUMBER, COUNT) asm volatile("bar." WHAT " %0, %1;" ::"r"(NUMBER), "r"(COUNT) : "memory")

KERNEL(ping_pong_of_two_warps) {
    __shared__ unsigned word;
    if (T == 0)
        word = 0;
    __syncthreads();
    for (unsigned turn = 0; turn < 10; ++turn)
        if (T < 32) {
            if (T == 0)
                word += 1;
            BAR("arrive", 1, 64);
            BAR("sync", 2, 64);
        } else {
            BAR("sync", 1, 64);
            if (T == 32)
                word += 1;
            BAR("arrive", 2, 64);
        }
    __syncthreads();
    out[T] = word;
}

KERNEL(barrier_with_another_count_later) {
    __shared__ unsigned words[96];
    words[T] = 5 * T;
    if (T < 64)
        BAR("sync", 3, 64);
    const unsigned first = T < 64 ? words[63 - T] : 0;
    __syncthreads();
    words[T] += 1;
    BAR("sync", 3, 96);
    out[T] = first + words[95 - T];
}

KERNEL_OF(barrier_number_chosen_by_data) {
    __shared__ unsigned words[128];
    words[T] = T + 1;
    const unsigned number = in[T / 32];
    BAR("sync", number, 64);
    out[T] = words[number == 3 ? (T + 96) % 192 : 127 - T];
}

KERNEL(vote_until_nothing_changes) {
    // Distances from element 0 along a ring, relaxed until no thread changes one; 0 where all are right.
    __shared__ unsigned far[64];
    far[T] = T ? 1000 : 0;
    bool changed;
    do {
        __syncthreads();
        const unsigned least = min(far[(T + 1) % 64], far[(T + 63) % 64]) + 1;
        changed = least < far[T];
        __syncthreads();
        if (changed)
            far[T] = least;
    } while (__syncthreads_or(changed));
    out[T] = far[T] - min(T, 64 - T);
}

KERNEL(count_after_some_exited) {
    if (T >= 40)
        return;
    out[T] = __syncthreads_count(T % 3 == 0);
}

KERNEL(arrives_and_waits_at_one_barrier) {
    __shared__ unsigned words[64];
    BAR("arrive", 4, 64);
    words[T] = T;
    BAR("sync", 4, 64);
    out[T] = words[T ^ 32];
}

KERNEL(barrier_missed_in_last_turn) {
    __shared__ unsigned arrived;
    if (T == 0)
        arrived = 0;
    __syncthreads();
    for (unsigned turn = 0; turn <= T / 32; ++turn) {
        if (LANE == 0)
            atomicAdd(&arrived, 1);
        __syncthreads();
        out[T] = turn;
    }
}

KERNEL(lane_waits_behind_its_setter) {
    __shared__ volatile unsigned flag;
    if (T == 0)
        flag = 0;
    __syncwarp();
    if (T == 7)
        while (flag == 0)
            ;
    __syncwarp();
    if (T == 3)
        flag = 1;
    out[T] = T;
}

KERNEL(chain_of_lanes) {
    __shared__ volatile unsigned flags[33];
    flags[T + 1] = 0;
    if (T == 0)
        flags[0] = 100;
    __syncwarp();
    unsigned found;
    while ((found = flags[T]) == 0)
        ;
    flags[T + 1] = found + T;
    out[T] = found;
}

KERNEL(chain_of_lanes_backwards) {
    __shared__ volatile unsigned flags[33];
    flags[T] = 0;
    if (T == 31)
        flags[32] = 100;
    __syncwarp();
    unsigned found;
    while ((found = flags[T + 1]) == 0)
        ;
    flags[T] = found + T;
    out[T] = found;
}

__device__ unsigned stored[2];
__device__ unsigned seen[2];
__device__ unsigned done;

KERNEL(store_buffering_with_fence_sc) {
    const unsigned me = blockIdx.x;
    unsigned other;
    asm volatile("st.relaxed.gpu.global.u32 [%0], 1;" ::"l"(stored + me) : "memory");
    asm volatile("fence.sc.gpu;" ::: "memory");
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(other) : "l"(stored + (me ^ 1)) : "memory");
    atomicExch(seen + me, other);
    __threadfence();
    if (atomicAdd(&done, 1) == 1) {
        __threadfence();
        out[0] = atomicAdd(seen, 0) == 0 && atomicAdd(seen + 1, 0) == 0;
        atomicExch(stored, 0);
        atomicExch(stored + 1, 0);
        atomicExch(&done, 0);
    }
}

KERNEL(neighbouring_bytes) {
    __shared__ unsigned words[32];
    reinterpret_cast<unsigned char *>(words)[2 * LANE + (T / 32)] = T;
    if (T < 32)
        reinterpret_cast<unsigned short *>(words)[32 + T] = T;
    __syncthreads();
    out[T] = words[LANE];
}

KERNEL(bits_of_one_word) {
    __shared__ struct Bits { unsigned low : 4, high : 4; } words[32];
    words[LANE] = {0, 0};
    __syncthreads();
    if (T < 32)
        words[LANE].low = T;
    else
        words[LANE].high = T;
    __syncthreads();
    out[T] = words[LANE].low + 16 * words[LANE].high;
}

KERNEL(warp_sum_by_volatile) {
    __shared__ volatile unsigned words[64];
    words[T] = T;
    words[T + 32] = 0;
    for (unsigned step = 16; step > 0; step /= 2)
        words[T] = words[T] + words[T + step];
    if (T == 0)
        out[0] = words[0];
}

KERNEL(lock_by_ticket_in_shared) {
    __shared__ unsigned next, turn, sum;
    if (T == 0)
        next = turn = sum = 0;
    __syncthreads();
    const unsigned ticket = atomicAdd(&next, 1);
    while (*static_cast<volatile unsigned *>(&turn) != ticket)
        ;
    __threadfence_block();
    sum += T + 1;
    __threadfence_block();
    *static_cast<volatile unsigned *>(&turn) = ticket + 1;
    __syncthreads();
    out[T] = sum;
}

__device__ unsigned made;
__device__ unsigned value_made;
__device__ unsigned left;

KERNEL(double_checked_flag) {
    __shared__ unsigned found;
    if (T == 0) {
        unsigned state;
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(state) : "l"(&made) : "memory");
        if (state != 2) {
            if (atomicCAS(&made, 0, 1) == 0) {
                value_made = 77;
                asm volatile("st.release.gpu.global.u32 [%0], 2;" ::"l"(&made) : "memory");
            } else {
                do
                    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(state) : "l"(&made) : "memory");
                while (state != 2);
            }
        }
        found = value_made;
        __threadfence();
        if (atomicAdd(&left, 1) == gridDim.x - 1) {
            atomicExch(&left, 0);
            atomicExch(&made, 0);
        }
    }
    __syncthreads();
    out[blockIdx.x * 64 + T] = found;
}

KERNEL(aggregated_by_active_lanes) {
    __shared__ unsigned sum;
    if (T == 0)
        sum = 0;
    __syncthreads();
    if (T % 3 != 1)
        for (unsigned turn = 0; turn < 1 + (T == 5); ++turn) {
            const unsigned lanes = __activemask();
            if (LANE == __ffs(lanes) - 1)
                atomicAdd(&sum, __popc(lanes));
        }
    __syncthreads();
    if (T == 0)
        out[0] = sum;
}

KERNEL(groups_by_value) {
    const unsigned key = T * T % 7, mask = __match_any_sync(~0u, key);
    out[T] = __reduce_add_sync(mask, T) * 1000 + __reduce_max_sync(mask, T) + 100 * __popc(mask);
}

KERNEL(tree_over_a_ballot) {
    const unsigned mask = __ballot_sync(~0u, (T * 7 + T / 32) % 5 < 3);
    unsigned value = T + 1;
    if (mask >> LANE & 1) {
        const unsigned rank = __popc(mask & (1u << LANE) - 1), all = __popc(mask);
        for (unsigned step = 1; step < all; step *= 2) {
            const unsigned from = rank + step < all ? __fns(mask, 0, rank + step + 1) : LANE;
            const unsigned other = __shfl_sync(mask, value, from);
            if (rank + step < all && rank % (2 * step) == 0)
                value += other;
        }
    }
    out[T] = value;
}

KERNEL(nested_masks) {
    __shared__ unsigned words[64];
    unsigned *const mine = words + (T & 32), mask_1 = 0xffff, mask_2 = 0xff, mask_3 = 0xf;
    mine[LANE] = T;
    __syncwarp();
    if (LANE < 16) {
        const unsigned a = mine[15 - LANE];
        __syncwarp(mask_1);
        mine[LANE] = a + 1;
        __syncwarp(mask_1);
        if (LANE < 8) {
            const unsigned b = mine[7 - LANE];
            __syncwarp(mask_2);
            mine[LANE] = 3 * b;
            __syncwarp(mask_2);
            if (LANE < 4) {
                const unsigned c = mine[LANE ^ 3];
                __syncwarp(mask_3);
                mine[LANE] = c ^ 5;
                __syncwarp(mask_3);
                out[T] = mine[LANE ^ 1];
            } else
                out[T] = mine[LANE];
        } else
            out[T] = mine[LANE] + 10;
    } else
        out[T] = mine[LANE ^ 1];
}

KERNEL(shuffle_of_mixed_segments) {
    const unsigned width = 4u << T % 4, clamp = (32 - width) << 8 | 31;
    unsigned value;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, %3, 0xffffffff;"
                 : "=r"(value) : "r"(T * 3), "r"(T / 2 + 1), "r"(clamp));
    out[T] = value;
}

KERNEL(ballot_in_a_loop_with_two_exits) {
    unsigned turns = 0;
    for (; turns < 6; ++turns) {
        if (turns == T % 5)
            break;
        if (T % 7 == 3 && turns == 2) {
            turns += 50;
            break;
        }
    }
    const unsigned lanes = __ballot_sync(~0u, turns & 1);
    out[T] = lanes + turns;
}

__device__ __noinline__ unsigned vote(unsigned mask, unsigned value) {
    return __ballot_sync(mask, value & 2);
}

KERNEL(vote_by_lanes_in_a_callee) {
    if (T % 4 == 1)
        out[T] = vote(0x22222222, T) + 1;
    else
        out[T] = vote(0xdddddddd, T + 1);
}

KERNEL(shuffle_64_bits_in_halves) {
    const double value = __shfl_xor_sync(~0u, 1.0 / (T + 1), 5);
    out[T] = __double2hiint(value) ^ __double2loint(value);
}
