// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "mbarriers"
count = 8
block = 1

[mbarrier_state_after_init]
rule = "test_wait of the phase that runs is false; of the one before it by parity true."
verdict = "ok"
defined = [[0, 2]]
expected = [0, 1, 0, 0, 0, 0, 0, 0]
[mbarrier_phase_completes]
rule = "The last arrival completes the phase, and the counter starts again."
verdict = "ok"
defined = [[0, 4]]
expected = [0, 1, 0, 1, 0, 0, 0, 0]
[mbarrier_arrive_count]
rule = "mbarrier.arrive with a count of 3 stands for three arrivals."
verdict = "ok"
defined = [[0, 1]]
expected = [1, 0, 0, 0, 0, 0, 0, 0]
[mbarrier_arrive_drop]
rule = "arrive_drop lowers what the next phases expect."
verdict = "ok"
defined = [[0, 2]]
expected = [1, 1, 0, 0, 0, 0, 0, 0]
[mbarrier_pending_count]
rule = "mbarrier.pending_count tells how many arrivals the phase of a state still waited for."
verdict = "ok"
defined = [[0, 3]]
expected = [5, 4, 1, 0, 0, 0, 0, 0]
[mbarrier_state_word]
rule = "The opaque state that arrive returns, and the word in memory."
defined = [[0, 0]]
[mbarrier_expect_tx]
rule = "A phase with bytes expected does not complete by arrivals alone."
verdict = "ok"
defined = [[0, 2]]
expected = [0, 1, 0, 0, 0, 0, 0, 0]
[mbarrier_complete_before_expect]
rule = "complete_tx before expect_tx in one phase evens out while an arrival is pending."
verdict = "ok"
defined = [[0, 2]]
expected = [0, 1, 0, 0, 0, 0, 0, 0]
[mbarrier_wait_by_state]
rule = "test_wait by the state of an arrival is true once that phase is complete."
verdict = "ok"
defined = [[0, 2]]
expected = [0, 1, 0, 0, 0, 0, 0, 0]
[mbarrier_orders_warps]
rule = "arrive and try_wait order shared memory between warps."
block = 64
count = 64
verdict = "ok"
[mbarrier_two_phases_of_a_pipeline]
rule = "A full and an empty mbarrier carry four stages through one buffer."
block = 64
count = 128
verdict = "ok"
[mbarrier_without_init]
rule = "Arriving at memory that is no mbarrier is undefined."
verdict = "undefined"
risky = true
faults = ["mbarrier", "uninitialised shared read"]
[mbarrier_init_count_zero]
rule = "A count of 0 is out of range."
verdict = "undefined"
risky = true
faults = ["mbarrier"]
[mbarrier_never_completes]
rule = "Waiting for an arrival that never comes blocks for ever."
verdict = "fault"
risky = true
faults = ["mbarrier", "endless loop"]
[mbarrier_misaligned]
rule = "An mbarrier lies at a multiple of 8."
verdict = "fault"
risky = true
faults = ["misaligned", "mbarrier"]
[mbarrier_invalidated_and_reused]
rule = "After mbarrier.inval its memory may hold other values."
verdict = "ok"
defined = [[0, 1]]
expected = [77, 0, 0, 0, 0, 0, 0, 0]
[mbarrier_largest_count]
rule = "2^20 - 1 arrivals may be expected."
verdict = "ok"
defined = [[0, 2]]
expected = [0, 1, 0, 0, 0, 0, 0, 0]
[mbarrier_try_wait_gives_up]
rule = "try_wait returns false after a time of the card's own."
verdict = "ok"
defined = [[0, 1]]
expected = [0, 0, 0, 0, 0, 0, 0, 0]
*/

#define T threadIdx.x
#define SETUP(COUNT)                                                                                       \
    __shared__ __align__(8) unsigned long long barrier;                                                    \
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));                         \
    if (T == 0)                                                                                            \
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(COUNT) : "memory");               \
    __syncthreads()
#define KERNEL(NAME) extern "C" __global__ void NAME(unsigned *out)

__device__ unsigned long long arrive(unsigned at) {
    unsigned long long state;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(at) : "memory");
    return state;
}

__device__ unsigned complete(unsigned at, unsigned parity) {
    unsigned found;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(found) : "r"(at), "r"(parity) : "memory");
    return found;
}

__device__ void wait(unsigned at, unsigned parity) {
    unsigned found;
    do
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(found) : "r"(at), "r"(parity) : "memory");
    while (!found);
}

KERNEL(mbarrier_state_after_init) {
    SETUP(2);
    out[0] = complete(at, 0);
    out[1] = complete(at, 1);
}

KERNEL(mbarrier_phase_completes) {
    SETUP(2);
    arrive(at);
    out[0] = complete(at, 0);
    arrive(at);
    out[1] = complete(at, 0);
    arrive(at);
    out[2] = complete(at, 1);
    arrive(at);
    out[3] = complete(at, 1);
}

KERNEL(mbarrier_arrive_count) {
    SETUP(3);
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0], 3; }" ::"r"(at) : "memory");
    out[0] = complete(at, 0);
}

KERNEL(mbarrier_arrive_drop) {
    SETUP(2);
    asm volatile("{ .reg .b64 s; mbarrier.arrive_drop.shared.b64 s, [%0]; }" ::"r"(at) : "memory");
    arrive(at);
    out[0] = complete(at, 0);
    arrive(at);
    out[1] = complete(at, 1);
}

__device__ unsigned pending(unsigned long long state) {
    unsigned count;
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(count) : "l"(state));
    return count;
}

KERNEL(mbarrier_pending_count) {
    SETUP(5);
    out[0] = pending(arrive(at));
    out[1] = pending(arrive(at));
    arrive(at);
    arrive(at);
    out[2] = pending(arrive(at));
}

KERNEL(mbarrier_state_word) {
    SETUP(5);
    const unsigned long long state = arrive(at);
    out[0] = static_cast<unsigned>(state);
    out[1] = static_cast<unsigned>(state >> 32);
    out[2] = static_cast<unsigned>(*(volatile unsigned long long *)&barrier);
}

KERNEL(mbarrier_expect_tx) {
    SETUP(1);
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 64;" ::"r"(at) : "memory");
    out[0] = complete(at, 0);
    asm volatile("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], 64;" ::"r"(at) : "memory");
    out[1] = complete(at, 0);
}

KERNEL(mbarrier_complete_before_expect) {
    SETUP(1);
    asm volatile("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], 64;" ::"r"(at) : "memory");
    out[0] = complete(at, 0);
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 64;" ::"r"(at) : "memory");
    out[1] = complete(at, 0);
}

__device__ unsigned passed(unsigned at, unsigned long long state) {
    unsigned found;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(found) : "r"(at), "l"(state) : "memory");
    return found;
}

KERNEL(mbarrier_wait_by_state) {
    SETUP(2);
    const unsigned long long state = arrive(at);
    out[0] = passed(at, state);
    arrive(at);
    out[1] = passed(at, state);
}

KERNEL(mbarrier_orders_warps) {
    __shared__ unsigned words[64];
    SETUP(64);
    words[T] = 5 * T;
    arrive(at);
    wait(at, 0);
    out[T] = words[63 - T];
}

KERNEL(mbarrier_two_phases_of_a_pipeline) {
    __shared__ unsigned words[32];
    __shared__ __align__(8) unsigned long long barriers[2];
    const unsigned full = static_cast<unsigned>(__cvta_generic_to_shared(barriers)), empty = full + 8;
    if (T == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], 32; mbarrier.init.shared.b64 [%1], 32;" ::"r"(full), "r"(empty)
                     : "memory");
    __syncthreads();
    for (unsigned stage = 0; stage < 4; ++stage) {
        if (T < 32) {
            wait(empty, (stage + 1) % 2);
            words[T] = 100 * stage + T;
            arrive(full);
        } else {
            wait(full, stage % 2);
            out[32 * stage + T - 32] = words[63 - T];
            arrive(empty);
        }
    }
}

KERNEL(mbarrier_without_init) {
    __shared__ __align__(8) unsigned long long barrier;
    arrive(static_cast<unsigned>(__cvta_generic_to_shared(&barrier)));
    out[0] = 1;
}

KERNEL(mbarrier_init_count_zero) {
    SETUP(blockDim.x - 1);
    out[0] = complete(at, 0);
}

KERNEL(mbarrier_never_completes) {
    SETUP(2);
    arrive(at);
    wait(at, 0);
    out[0] = 1;
}

KERNEL(mbarrier_misaligned) {
    __shared__ __align__(8) unsigned long long barriers[2];
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(barriers)) + 4;
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at) : "memory");
    out[0] = complete(at, 0);
}

KERNEL(mbarrier_invalidated_and_reused) {
    SETUP(1);
    asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(at) : "memory");
    *(volatile unsigned long long *)&barrier = 77;
    out[0] = static_cast<unsigned>(*(volatile unsigned long long *)&barrier);
}

KERNEL(mbarrier_largest_count) {
    SETUP((1u << 20) - 1);
    arrive(at);
    out[0] = complete(at, 0);
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0], %1; }" ::"r"(at), "r"((1u << 20) - 2) : "memory");
    out[1] = complete(at, 0);
}

KERNEL(mbarrier_try_wait_gives_up) {
    SETUP(1);
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0, 100; selp.u32 %0, 1, 0, p; }"
                 : "=r"(out[0]) : "r"(at) : "memory");
}
