// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "mbarriers"
count = 8
block = 1
verdict = "ok"

[mbarrier_no_complete]
rule = "arrive.noComplete counts down what is pending."
defined = [[0, 2]]
expected = [0, 1, 0, 0, 0, 0, 0, 0]
[mbarrier_expect_apart]
rule = "expect_tx by itself raises the bytes that the phase waits for."
defined = [[0, 3]]
expected = [0, 0, 1, 0, 0, 0, 0, 0]
[mbarrier_drop_with_count]
rule = "arrive_drop with a count takes that many out of later phases."
defined = [[0, 3]]
expected = [0, 1, 1, 0, 0, 0, 0, 0]
[mbarrier_drop_all]
rule = "After everybody has dropped out the phase is over."
defined = [[0, 1]]
expected = [1, 0, 0, 0, 0, 0, 0, 0]
[mbarrier_drop_and_expect]
rule = "arrive_drop.expect_tx announces bytes too."
defined = [[0, 2]]
expected = [0, 1, 0, 0, 0, 0, 0, 0]
[mbarrier_state_of_older_phase]
rule = "test_wait by a state stays true for the phase that follows its own."
defined = [[0, 1]]
expected = [1, 0, 0, 0, 0, 0, 0, 0]
[mbarrier_pending_of_lanes]
rule = "The lanes of a warp that arrive together find different counts pending."
block = 32
count = 32
defined = [[0, 0]]
[mbarrier_pending_sums]
rule = "Lanes of a warp that arrive together all find the state from before: 32 pending for each of 32."
block = 32
count = 1
expected = [1024]
[mbarrier_generic_address]
rule = "mbarriers work at generic addresses."
defined = [[0, 2]]
expected = [0, 1, 0, 0, 0, 0, 0, 0]
[mbarrier_try_wait_with_hint]
rule = "try_wait by state with a time that it may take."
defined = [[0, 2]]
expected = [0, 1, 0, 0, 0, 0, 0, 0]
[mbarrier_count_too_large]
rule = "A count of 2^20 is out of range."
verdict = "undefined"
risky = true
faults = ["mbarrier"]
[mbarrier_too_many_arrivals]
rule = "More arrivals than a phase of bytes expects break the rule."
verdict = "undefined"
risky = true
faults = ["mbarrier"]
[mbarrier_as_data]
rule = "Storing to an mbarrier that is in use breaks the rule."
verdict = "undefined"
risky = true
faults = ["mbarrier", "shared-memory race"]
*/

#define T threadIdx.x
#define KERNEL(NAME) extern "C" __global__ void NAME(unsigned *out)
#define SETUP(COUNT)                                                                                       \
    __shared__ __align__(8) unsigned long long barrier;                                                    \
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));                         \
    if (T == 0)                                                                                            \
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(COUNT) : "memory");               \
    __syncthreads()
#define DO(TEXT) asm volatile("{ .reg .b64 s; " TEXT " }" ::"r"(at) : "memory")

__device__ unsigned complete(unsigned at, unsigned parity) {
    unsigned found;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(found) : "r"(at), "r"(parity) : "memory");
    return found;
}

__device__ unsigned long long arrive(unsigned at) {
    unsigned long long state;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(at) : "memory");
    return state;
}

__device__ unsigned passed(unsigned at, unsigned long long state) {
    unsigned found;
    asm volatile("{ .reg .pred p; mbarrier.try_wait.shared.b64 p, [%1], %2, 50; selp.u32 %0, 1, 0, p; }"
                 : "=r"(found) : "r"(at), "l"(state) : "memory");
    return found;
}

KERNEL(mbarrier_no_complete) {
    SETUP(4);
    DO("mbarrier.arrive.noComplete.shared.b64 s, [%0], 3;");
    out[0] = complete(at, 0);
    arrive(at);
    out[1] = complete(at, 0);
}

KERNEL(mbarrier_expect_apart) {
    SETUP(1);
    DO("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 48;");
    arrive(at);
    out[0] = complete(at, 0);
    DO("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], 16;");
    out[1] = complete(at, 0);
    DO("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], 32;");
    out[2] = complete(at, 0);
}

KERNEL(mbarrier_drop_with_count) {
    SETUP(4);
    DO("mbarrier.arrive_drop.shared.b64 s, [%0], 3;");
    out[0] = complete(at, 0);
    arrive(at);
    out[1] = complete(at, 0);
    arrive(at);
    out[2] = complete(at, 1);
}

KERNEL(mbarrier_drop_all) {
    SETUP(2);
    DO("mbarrier.arrive_drop.shared.b64 s, [%0], 2;");
    out[0] = complete(at, 0);
}

KERNEL(mbarrier_drop_and_expect) {
    SETUP(2);
    arrive(at);
    DO("mbarrier.arrive_drop.expect_tx.shared.b64 s, [%0], 8;");
    out[0] = complete(at, 0);
    DO("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], 8;");
    out[1] = complete(at, 0);
}

KERNEL(mbarrier_state_of_older_phase) {
    SETUP(1);
    const unsigned long long state = arrive(at);
    out[0] = passed(at, state);
}

__device__ unsigned pending(unsigned at) {
    unsigned count;
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%1]; mbarrier.pending_count.b64 %0, s; }"
                 : "=r"(count) : "r"(at) : "memory");
    return count;
}

KERNEL(mbarrier_pending_of_lanes) {
    SETUP(32);
    out[T] = pending(at);
}

KERNEL(mbarrier_pending_sums) {
    SETUP(32);
    const unsigned sum = __reduce_add_sync(~0u, pending(at));
    if (T == 0)
        out[0] = sum;
}

KERNEL(mbarrier_generic_address) {
    __shared__ __align__(8) unsigned long long barrier;
    unsigned long long *place = &barrier;
    asm volatile("" : "+l"(place)::"memory");
    asm volatile("mbarrier.init.b64 [%0], 1;" ::"l"(place) : "memory");
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
    out[0] = complete(at, 0);
    asm volatile("{ .reg .b64 s; mbarrier.arrive.b64 s, [%0]; }" ::"l"(place) : "memory");
    out[1] = complete(at, 0);
}

KERNEL(mbarrier_try_wait_with_hint) {
    SETUP(2);
    const unsigned long long state = arrive(at);
    out[0] = passed(at, state);
    arrive(at);
    out[1] = passed(at, state);
}

KERNEL(mbarrier_count_too_large) {
    SETUP(blockDim.x << 20);
    arrive(at);
    out[0] = complete(at, 0);
}

KERNEL(mbarrier_too_many_arrivals) {
    SETUP(1);
    DO("mbarrier.arrive.expect_tx.shared.b64 s, [%0], 8;");
    arrive(at);
    out[0] = complete(at, 0);
}

KERNEL(mbarrier_as_data) {
    SETUP(2);
    arrive(at);
    *(volatile unsigned long long *)&barrier = 0;
    arrive(at);
    out[0] = complete(at, 0);
}
