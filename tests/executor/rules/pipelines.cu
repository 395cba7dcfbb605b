// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
block = 64
count = 64
verdict = "ok"

[ring_of_copies]
chapter = "asynchronous copies"
rule = "Four stages of cp.async in a ring, with empty groups at the end so that wait_group counts right."
count = 512
block = 32
inputs = [["u32", [7, 11, 13, 17, 19, 23, 29, 31]]]
[ring_without_empty_groups]
chapter = "asynchronous copies"
rule = "The same ring without the empty groups: its last waits leave copies in flight that are read."
count = 512
block = 32
inputs = [["u32", [7, 11, 13, 17, 19, 23, 29, 31]]]
verdict = "undefined"
faults = ["shared-memory race", "asynchronous copy not waited for"]
[ring_refilled_too_early]
chapter = "asynchronous copies"
rule = "A stage that is filled again before other warps have read it: a race."
count = 512
inputs = [["u32", [7, 11, 13, 17, 19, 23, 29, 31]]]
verdict = "undefined"
faults = ["shared-memory race", "asynchronous copy not waited for"]
[copies_of_lanes_that_part]
chapter = "asynchronous copies"
rule = "Lanes that part have groups of their own: those with one more group wait for one more."
block = 32
count = 64
inputs = [["u32", [5, 6, 7, 8]]]
[copy_over_a_store]
chapter = "asynchronous copies"
rule = "A store to the target before the copy is issued by the same thread is overwritten."
block = 32
count = 32
inputs = [["u32", [3, 1, 4, 1]]]
[copy_then_mbarrier_counts]
chapter = "mbarriers"
rule = "cp.async.mbarrier.arrive without noinc raises the count by the arrival that it makes: the others are still due."
count = 2
block = 32
inputs = [["u32", [3, 1, 4, 1]]]
expected = [0, 1]
[wait_by_one_thread_then_barrier]
chapter = "mbarriers"
rule = "One thread waits for an mbarrier, and __syncthreads passes on what it has seen."
[wait_by_the_wrong_parity]
chapter = "mbarriers"
rule = "Waiting for the parity before the first phase is over at once: what follows reads too early."
verdict = "undefined"
faults = ["shared-memory race", "uninitialised shared read", "mbarrier"]
[parity_not_flipped]
chapter = "mbarriers"
rule = "A consumer that forgets to flip its parity passes the second phase at once and races."
verdict = "undefined"
faults = ["shared-memory race", "mbarrier"]
[parity_flipped]
chapter = "mbarriers"
rule = "The same with the parity flipped, and an empty mbarrier for the way back."
[phases_two_ahead]
chapter = "mbarriers"
rule = "A parity tells only two phases apart: a waiter that is two phases late waits for the next."
block = 1
count = 3
expected = [1, 0, 1]
[token_of_one_lane_for_all]
chapter = "mbarriers"
rule = "One lane arrives for its warp, waits by its token, and __syncwarp passes on what it has seen."
[bytes_by_two_producers]
chapter = "mbarriers"
rule = "Two bulk copies whose bytes were announced at once complete one phase."
block = 32
inputs = [["u32", [1, 2, 3, 4, 5, 6, 7, 8]]]
count = 8
[more_bytes_than_announced]
chapter = "mbarriers"
rule = "A bulk copy of more bytes than announced leaves its phase unfinished or over too early."
block = 32
inputs = [["u32", [1, 2, 3, 4, 5, 6, 7, 8]]]
count = 8
verdict = "undefined"
faults = ["mbarrier", "endless loop", "asynchronous copy not waited for"]
[bulk_source_off_by_eight]
chapter = "asynchronous copies"
rule = "The source of a bulk copy must lie at a multiple of 16."
block = 32
inputs = [["u32", [1, 2, 3, 4, 5, 6, 7, 8]]]
count = 8
verdict = "undefined"
faults = ["misaligned"]
[bulk_source_read_then_overwritten]
chapter = "asynchronous copies"
rule = "After wait_group.read the source in shared memory may be overwritten; after wait_group the target holds the old."
block = 32
count = 32
[bulk_source_overwritten_at_once]
chapter = "asynchronous copies"
rule = "Without wait_group.read the source must not be overwritten."
block = 32
count = 32
verdict = "undefined"
faults = ["shared-memory race", "asynchronous copy not waited for"]
[bulk_prefetch]
chapter = "asynchronous copies"
rule = "cp.async.bulk.prefetch.L2 moves nothing that a program could see."
block = 32
inputs = [["u32", [1, 2, 3, 4, 5, 6, 7, 8]]]
count = 8
[bulk_reduce_of_blocks]
chapter = "asynchronous copies"
rule = "Four blocks reduce their tiles into one array by cp.reduce.async.bulk: all additions are made."
grid = 4
block = 32
count = 32
inputs = [["u32", [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]], ["u32", [0]]]
*/

#define T threadIdx.x
#define KERNEL(NAME) extern "C" __global__ void NAME(unsigned *out)
#define KERNEL_OF(NAME) extern "C" __global__ void NAME(unsigned *out, const unsigned *in)

__device__ unsigned place(const void *pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ void copy_4(unsigned *to, const unsigned *from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(place(to)), "l"(from) : "memory");
}

__device__ void close_group() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int LEFT> __device__ void wait_groups() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

// Eight turns over a ring of four stages. CLOSED: groups are closed when there is nothing left to copy, too.
template <bool CLOSED, bool ORDERED> __device__ void ring(unsigned *out, const unsigned *in) {
    __shared__ unsigned stages[4][64];
    for (unsigned stage = 0; stage < 3; ++stage) {
        copy_4(&stages[stage][T], in + (stage + T) % 8);
        close_group();
    }
    for (unsigned turn = 0; turn < 8; ++turn) {
        wait_groups<2>();
        __syncthreads();
        out[turn * blockDim.x + T] = stages[turn % 4][(T + 33) % blockDim.x];
        if (!ORDERED && turn + 4 < 8)
            copy_4(&stages[turn % 4][T], in + (turn + 4 + T) % 8);
        if (turn + 3 < 8) {
            if (ORDERED || turn < 1)
                copy_4(&stages[(turn + 3) % 4][T], in + (turn + 3 + T) % 8);
            close_group();
        } else if (CLOSED)
            close_group();
    }
}

KERNEL_OF(ring_of_copies) {
    ring<true, true>(out, in);
}

KERNEL_OF(ring_without_empty_groups) {
    ring<false, true>(out, in);
}

KERNEL_OF(ring_refilled_too_early) {
    ring<true, false>(out, in);
}

KERNEL_OF(copies_of_lanes_that_part) {
    __shared__ unsigned words[64];
    words[T] = words[T + 32] = 0;
    copy_4(words + T, in + T % 4);
    close_group();
    if (T % 2) {
        copy_4(words + 32 + T, in + T % 3);
        close_group();
        wait_groups<1>();
    } else
        wait_groups<0>();
    out[T] = words[T];
    wait_groups<0>();
    out[T + 32] = words[T + 32];
}

KERNEL_OF(copy_over_a_store) {
    __shared__ unsigned words[32];
    words[T] = 1000;
    copy_4(words + T, in + T % 4);
    wait_groups<0>();
    asm volatile("cp.async.wait_all;" ::: "memory");
    out[T] = words[T];
}

__device__ void set_up(const unsigned long long *barrier, unsigned count) {
    if (T == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], %1; fence.proxy.async.shared::cta;"
                     ::"r"(place(barrier)), "r"(count) : "memory");
    __syncthreads();
}

__device__ unsigned long long arrive(const unsigned long long *barrier) {
    unsigned long long token;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(token) : "r"(place(barrier)) : "memory");
    return token;
}

__device__ unsigned over(const unsigned long long *barrier, unsigned parity) {
    unsigned found;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(found) : "r"(place(barrier)), "r"(parity) : "memory");
    return found;
}

__device__ void wait(const unsigned long long *barrier, unsigned parity) {
    while (!over(barrier, parity))
        ;
}

KERNEL_OF(copy_then_mbarrier_counts) {
    __shared__ unsigned long long barrier;
    __shared__ unsigned words[32];
    set_up(&barrier, 32);
    copy_4(words + T, in + T % 4);
    asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(place(&barrier)) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    if (T == 0)
        out[0] = over(&barrier, 0);
    __syncthreads();
    arrive(&barrier);
    wait(&barrier, 0);
    if (T == 0)
        out[1] = over(&barrier, 0);
}

KERNEL(wait_by_one_thread_then_barrier) {
    __shared__ unsigned long long barrier;
    __shared__ unsigned words[32];
    set_up(&barrier, 32);
    if (T >= 32) {
        words[T - 32] = 3 * T;
        arrive(&barrier);
    }
    if (T == 0)
        wait(&barrier, 0);
    __syncthreads();
    out[T] = words[T % 32];
}

KERNEL(wait_by_the_wrong_parity) {
    __shared__ unsigned long long barrier;
    __shared__ unsigned words[32];
    set_up(&barrier, 32);
    if (T >= 32) {
        words[T - 32] = 3 * T;
        arrive(&barrier);
    } else {
        wait(&barrier, 1);
        out[T] = words[T];
    }
}

template <bool FLIPPED> __device__ void two_phases(unsigned *out) {
    __shared__ unsigned long long full, empty;
    __shared__ unsigned words[32];
    set_up(&full, 32);
    set_up(&empty, 32);
    for (unsigned turn = 0; turn < 2; ++turn) {
        const unsigned parity = FLIPPED ? turn : 0;
        if (T >= 32) {
            if (turn)
                wait(&empty, 0);
            words[T - 32] = 3 * T + turn;
            arrive(&full);
        } else {
            wait(&full, parity);
            out[32 * turn + T] = words[31 - T];
            arrive(&empty);
        }
    }
}

KERNEL(parity_not_flipped) {
    two_phases<false>(out);
}

KERNEL(parity_flipped) {
    two_phases<true>(out);
}

KERNEL(phases_two_ahead) {
    __shared__ unsigned long long barrier;
    set_up(&barrier, 1);
    arrive(&barrier);
    out[0] = over(&barrier, 0);
    arrive(&barrier);
    out[1] = over(&barrier, 0);
    arrive(&barrier);
    out[2] = over(&barrier, 0);
}

KERNEL(token_of_one_lane_for_all) {
    __shared__ unsigned long long barrier;
    __shared__ unsigned words[64];
    set_up(&barrier, 2);
    words[T] = T + 9;
    __syncwarp();
    if (T % 32 == 0) {
        const unsigned long long token = arrive(&barrier);
        unsigned found;
        do
            asm volatile("{ .reg .pred p; mbarrier.try_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                         : "=r"(found) : "r"(place(&barrier)), "l"(token) : "memory");
        while (!found);
    }
    __syncwarp();
    out[T] = words[T ^ 32];
}

__device__ void announce(const unsigned long long *barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(place(barrier)), "r"(bytes) : "memory");
}

__device__ void fetch(void *to, const void *from, unsigned bytes, const unsigned long long *barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(place(to)), "l"(from), "r"(bytes), "r"(place(barrier)) : "memory");
}

// Two pieces of 16 bytes, of which so many bytes are announced.
__device__ void two_pieces(unsigned *out, const unsigned *in, unsigned announced, unsigned off) {
    __shared__ __align__(16) unsigned words[8];
    __shared__ unsigned long long barrier;
    set_up(&barrier, 1);
    if (T == 0) {
        announce(&barrier, announced);
        fetch(words, in + off, 16, &barrier);
        fetch(words + 4, in + 4, 16, &barrier);
    }
    wait(&barrier, 0);
    if (T < 8)
        out[T] = words[T];
}

KERNEL_OF(bytes_by_two_producers) {
    two_pieces(out, in, 32, 0);
}

KERNEL_OF(more_bytes_than_announced) {
    two_pieces(out, in, 16, 0);
}

KERNEL_OF(bulk_source_off_by_eight) {
    two_pieces(out, in, 32, 2);
}

template <bool WAITED> __device__ void overwritten(unsigned *out) {
    __shared__ __align__(16) unsigned words[32];
    words[T] = T + 5;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (T == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;" ::"l"(out), "r"(place(words))
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        if (WAITED)
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    __syncwarp();
    words[T] = 0;
    if (T == 0)
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

KERNEL(bulk_source_read_then_overwritten) {
    overwritten<true>(out);
}

KERNEL(bulk_source_overwritten_at_once) {
    overwritten<false>(out);
}

KERNEL_OF(bulk_prefetch) {
    if (T == 0)
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], 32;" ::"l"(in) : "memory");
    if (T < 8)
        out[T] = in[7 - T];
}

extern "C" __global__ void bulk_reduce_of_blocks(unsigned *out, unsigned *sums, unsigned *done) {
    __shared__ __align__(16) unsigned words[32];
    __shared__ unsigned before;
    words[T] = (blockIdx.x + 1) * T;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (T == 0) {
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], 128;"
                     ::"l"(sums), "r"(place(words)) : "memory");
        asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
        asm volatile("fence.proxy.async.global;" ::: "memory");
        __threadfence();
        before = atomicAdd(done, 1);
    }
    __syncwarp();
    if (before == gridDim.x - 1) {
        __threadfence();
        out[T] = atomicExch(sums + T, 0);
        if (T == 0)
            atomicExch(done, 0);
    }
}
