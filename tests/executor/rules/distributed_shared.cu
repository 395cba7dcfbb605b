// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "distributed shared memory"
verdict = "ok"
block = 32
grid = 4
count = 128

[[family]]
name = "cluster_atom_{form}"
rule = "Atomics on another block's shared memory return what was there, and leave what they say."
line = "ATOMIC({name}, \"{form}\", unsigned, \"r\", 5)"
form = ["add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32", "exch.b32", "inc.u32", "dec.u32"]
grid = 2
result = "u64"

[[family]]
name = "cluster_atom_{form}"
rule = "So do those of 64 bits."
line = "ATOMIC({name}, \"{form}\", u64, \"l\", 0x500000005ull)"
form = ["add.u64", "min.s64", "max.u64", "and.b64", "or.b64", "xor.b64", "exch.b64"]
grid = 2
result = "u64"

[[family]]
name = "cluster_red_async_{form}"
rule = "red.async leaves in another block's memory what the operation says."
line = "REDUCE({name}, \"{form}\", unsigned, \"r\", 5)"
form = ["inc.u32", "dec.u32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32", "xor.b32", "add.u32",
    "add.s32"]
grid = 2
count = 64
result = "u64"

[[family]]
name = "cluster_red_async_{form}"
rule = "So does that of 64 bits."
line = "REDUCE({name}, \"{form}\", u64, \"l\", 0x5fffffff5ull)"
form = ["add.u64"]
grid = 2
count = 64
result = "u64"

[cluster_vector_store]
rule = "st.shared::cluster.v4 and ld.shared::cluster.v2 move vectors."
[cluster_store_async_vector]
rule = "st.async.v4 stores sixteen bytes of each lane and counts them."
grid = 2
count = 256
[cluster_getctarank_generic]
rule = "getctarank of a generic address tells whose shared memory it is."
[cluster_isspacep]
rule = "isspacep.shared::cta holds for the block's own shared memory alone, .shared::cluster for all of the cluster."
[cluster_cvta]
rule = "cvta.to.shared of what mapa gave generic gives what mapa gives in shared memory."
[cluster_three_dimensions]
rule = "Ranks count x first, then y, then z."
grid = [4, 4, 2]
block = 1
count = 32
[cluster_arrive_with_count]
rule = "A remote arrival may count for several."
grid = 2
count = 64
[cluster_expect_remote]
rule = "mbarrier.arrive.expect_tx and mbarrier.complete_tx reach the mbarrier of another block."
grid = 2
count = 64
[cluster_copy_between_blocks]
rule = "cp.async.bulk copies from shared memory to that of another block, and counts there."
grid = 2
count = 64
[cluster_multicast]
rule = "A multicast copy goes to the same place in every block of its mask, and counts at each one's mbarrier."
inputs = [["u32", [11, 22, 33, 44, 55, 66, 77, 88]]]
count = 32
[cluster_multicast_by_two]
rule = "Two blocks each send half of what all four wait for."
inputs = [["u32", [11, 22, 33, 44, 55, 66, 77, 88]]]
count = 32
[cluster_ended_threads_arrive]
rule = "Threads that have ended count as arrived at the barrier of their cluster."
grid = 2
count = 64
defined = [[0, 16], [32, 64]]
[cluster_block_barriers_apart]
rule = "Blocks of a cluster meet at barriers of their own, as often as each does."
grid = 2
block = 64
count = 128
[cluster_flag]
rule = "A flag in another block's memory, set behind a fence, hands over what was stored there before."
grid = 2
count = 2
[cluster_mbarrier_init_relaxed]
rule = "fence.mbarrier_init orders mbarriers that were set up before a relaxed arrival."
grid = 2
count = 64
[cluster_relaxed_without_fence]
rule = "A relaxed arrival with no fence before it orders nothing."
verdict = "undefined"
faults = ["shared-memory race"]
grid = 2
count = 64
[cluster_block_barrier_instead]
rule = "A barrier of the block orders nothing between blocks."
verdict = "undefined"
faults = ["shared-memory race"]
grid = 2
count = 64
[cluster_ends_before_read]
rule = "A block must not end while another may still read its memory."
verdict = "undefined"
faults = ["out of bounds"]
grid = 2
count = 64
[cluster_reads_what_has_ended]
rule = "Reading the memory of a block that ended long ago."
verdict = "undefined"
faults = ["out of bounds"]
grid = 2
count = 64
[cluster_rank_outside]
rule = "Reading at an address of a rank that the cluster does not have."
verdict = ""
risky = true
grid = 2
count = 64
[cluster_misaligned]
rule = "Remote accesses must be aligned as others."
verdict = "fault"
faults = ["misaligned"]
grid = 2
count = 64
[cluster_own_form_other_block]
rule = "ld.shared::cta at an address of another block."
verdict = ""
risky = true
grid = 2
count = 64
[cluster_own_form_without_rank]
rule = "ld.shared::cta at an address without the rank of its block."
verdict = ""
risky = true
grid = 2
count = 64
[cluster_multicast_outside]
rule = "A multicast copy to a block that the cluster does not have."
verdict = ""
risky = true
inputs = [["u32", [11, 22, 33, 44, 55, 66, 77, 88]]]
count = 32
[cluster_arrives_twice]
rule = "Arriving at the barrier of the cluster twice without a wait between."
verdict = "undefined"
faults = ["barrier"]
grid = 2
count = 64

[cluster_counted_load]
rule = "What loads from another block's shared memory count."
counted = true
grid = 2
count = 64
[cluster_counted_own_load]
rule = "What ld.shared::cluster from the block's own memory counts."
counted = true
grid = 2
count = 64
[cluster_counted_conflicts]
rule = "What loads from another block's shared memory count where lanes share banks."
counted = true
grid = 2
count = 64
[cluster_counted_generic_load]
rule = "What plain loads at generic addresses of another block's shared memory count."
counted = true
grid = 2
count = 64
[cluster_counted_store]
rule = "What stores to another block's shared memory count."
counted = true
grid = 2
count = 64
[cluster_counted_atomic]
rule = "What atomics on another block's shared memory count."
counted = true
grid = 2
count = 64
[cluster_counted_store_async]
rule = "What st.async counts."
counted = true
grid = 2
count = 64
[cluster_counted_barrier]
rule = "Whether barriers of clusters count as barriers."
counted = true
grid = 2
count = 64
*/

#define T threadIdx.x
typedef unsigned long long u64;
#define KERNEL(NAME, X) extern "C" __global__ void __cluster_dims__(X, 1, 1) NAME

__device__ unsigned shared_address(const void *pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ unsigned rank() {
    unsigned value;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(value));
    return value;
}

__device__ unsigned in_block(const void *own, unsigned other) {
    unsigned value;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(value) : "r"(shared_address(own)), "r"(other));
    return value;
}

__device__ u64 generic_in_block(const void *own, unsigned other) {
    u64 value;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(value) : "l"(own), "r"(other));
    return value;
}

__device__ unsigned remote(unsigned address) {
    unsigned value;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    return value;
}

__device__ void store_remote(unsigned address, unsigned value) {
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

__device__ void meet() {
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}

__device__ void set_up(u64 *barrier, unsigned count) {
    if (T == 0)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1; fence.mbarrier_init.release.cluster;"
                     ::"r"(shared_address(barrier)), "r"(count) : "memory");
}

__device__ void expect(u64 *barrier, unsigned bytes) {
    if (T == 0)
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                     ::"r"(shared_address(barrier)), "r"(bytes) : "memory");
}

__device__ void wait(u64 *barrier) {
    asm volatile("{ .reg .pred p; AGAIN%=: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0;"
                 "@!p bra AGAIN%=; }" ::"r"(shared_address(barrier)) : "memory");
}

// Both blocks change words of the other; each lane has its own.
#define ATOMIC(NAME, FORM, TYPE, LETTER, START)                                                            \
    KERNEL(NAME, 2)(u64 *out) {                                                                            \
        __shared__ TYPE words[32];                                                                         \
        words[T] = START;                                                                                  \
        meet();                                                                                            \
        TYPE before;                                                                                       \
        asm volatile("atom.shared::cluster." FORM " %0, [%1], %2;"                                         \
                     : "=" LETTER(before) : "r"(in_block(words + T, rank() ^ 1)), LETTER((TYPE)(T + 3)) : "memory"); \
        meet();                                                                                            \
        out[(blockIdx.x * 32 + T) * 2] = before;                                                           \
        out[(blockIdx.x * 32 + T) * 2 + 1] = words[T];                                                     \
    }

// All lanes of a block reduce into four words of the other.
#define REDUCE(NAME, FORM, TYPE, LETTER, START)                                                            \
    KERNEL(NAME, 2)(u64 *out) {                                                                            \
        __shared__ TYPE words[32];                                                                         \
        __shared__ u64 barrier;                                                                            \
        words[T] = START;                                                                                  \
        set_up(&barrier, 1);                                                                               \
        expect(&barrier, sizeof(words));                                                                   \
        meet();                                                                                            \
        asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes." FORM        \
                     " [%0], %1, [%2];" ::"r"(in_block(words + T % 4, rank() ^ 1)),                        \
                     LETTER((TYPE)(rank() ? T % 4 + 2 : 9 - T % 4)), "r"(in_block(&barrier, rank() ^ 1)) : "memory"); \
        wait(&barrier);                                                                                    \
        out[blockIdx.x * 32 + T] = words[T];                                                               \
        meet();                                                                                            \
    }

KERNEL(cluster_vector_store, 4)(unsigned *out) {
    __shared__ __align__(16) unsigned words[128];
    for (int i = 0; i < 4; ++i)
        words[i * 32 + T] = 9;
    meet();
    asm volatile("st.shared::cluster.v4.u32 [%0], {%1, %2, %2, %1};"
                 ::"r"(in_block(words + 4 * T, (rank() + 1) % 4)), "r"(T), "r"(rank()) : "memory");
    meet();
    unsigned one, two;
    asm volatile("ld.shared::cluster.v2.u32 {%0, %1}, [%2];"
                 : "=r"(one), "=r"(two) : "r"(in_block(words + 4 * T, (rank() + 2) % 4)) : "memory");
    out[blockIdx.x * 32 + T] = 1000 * one + two;
    meet();
}

KERNEL(cluster_store_async_vector, 2)(unsigned *out) {
    __shared__ __align__(16) unsigned words[128];
    __shared__ u64 barrier;
    set_up(&barrier, 1);
    expect(&barrier, sizeof(words));
    meet();
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [%0], {%1, %2, %2, %1}, [%3];"
                 ::"r"(in_block(words + 4 * T, rank() ^ 1)), "r"(T), "r"(rank()), "r"(in_block(&barrier, rank() ^ 1))
                 : "memory");
    wait(&barrier);
    for (int i = 0; i < 4; ++i)
        out[blockIdx.x * 128 + i * 32 + T] = words[i * 32 + T];
    meet();
}

KERNEL(cluster_getctarank_generic, 4)(unsigned *out) {
    __shared__ unsigned words[32];
    unsigned owner;
    asm volatile("getctarank.u64 %0, %1;" : "=r"(owner) : "l"(generic_in_block(words + T, T % 4)));
    out[blockIdx.x * 32 + T] = owner;
}

KERNEL(cluster_isspacep, 4)(unsigned *out) {
    __shared__ unsigned words[32];
    unsigned own, any;
    asm volatile("{ .reg .pred p; isspacep.shared::cta p, %1; selp.u32 %0, 1, 0, p; }"
                 : "=r"(own) : "l"(generic_in_block(words + T, T % 4)));
    asm volatile("{ .reg .pred p; isspacep.shared::cluster p, %1; selp.u32 %0, 1, 0, p; }"
                 : "=r"(any) : "l"(generic_in_block(words + T, T % 4)));
    out[blockIdx.x * 32 + T] = own + 2 * any;
}

KERNEL(cluster_cvta, 4)(unsigned *out) {
    __shared__ unsigned words[32];
    u64 near;
    asm volatile("cvta.to.shared.u64 %0, %1;" : "=l"(near) : "l"(generic_in_block(words + T, T % 4)));
    out[blockIdx.x * 32 + T] = near == in_block(words + T, T % 4);
}

extern "C" __global__ void __cluster_dims__(2, 2, 2) cluster_three_dimensions(unsigned *out) {
    unsigned x, y, z;
    asm volatile("mov.u32 %0, %%cluster_ctaid.x;\n\tmov.u32 %1, %%cluster_ctaid.y;\n\tmov.u32 %2, %%cluster_ctaid.z;"
                 : "=r"(x), "=r"(y), "=r"(z));
    out[(blockIdx.z * 4 + blockIdx.y) * 4 + blockIdx.x] = rank() | x << 4 | y << 8 | z << 12;
}

KERNEL(cluster_arrive_with_count, 2)(unsigned *out) {
    __shared__ unsigned word;
    __shared__ u64 barrier;
    set_up(&barrier, 64);
    meet();
    if (T == 0)
        store_remote(in_block(&word, rank() ^ 1), 7 + rank());
    __syncwarp();
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0], 2;"
                 ::"r"(in_block(&barrier, rank() ^ 1)) : "memory");
    wait(&barrier);
    out[blockIdx.x * 32 + T] = word;
    meet();
}

KERNEL(cluster_expect_remote, 2)(unsigned *out) {
    __shared__ u64 barrier;
    set_up(&barrier, 1);
    meet();
    if (T == 0) {
        asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], 96;"
                     ::"r"(in_block(&barrier, rank() ^ 1)) : "memory");
        asm volatile("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], 96;"
                     ::"r"(in_block(&barrier, rank() ^ 1)) : "memory");
    }
    wait(&barrier);
    out[blockIdx.x * 32 + T] = 1;
    meet();
}

KERNEL(cluster_copy_between_blocks, 2)(unsigned *out) {
    __shared__ __align__(16) unsigned from[32], to[32];
    __shared__ u64 barrier;
    from[T] = 100 * rank() + T;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    set_up(&barrier, 1);
    expect(&barrier, sizeof(to));
    meet();
    if (T == 0)
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];"
                     ::"r"(in_block(to, rank() ^ 1)), "r"(shared_address(from)), "r"(in_block(&barrier, rank() ^ 1))
                     : "memory");
    wait(&barrier);
    out[blockIdx.x * 32 + T] = to[T];
    meet();
}

__device__ void multicast(const void *to, const void *from, u64 *barrier, unsigned blocks) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1], 16, [%2], %3;"
                 ::"r"(shared_address(to)), "l"(from), "r"(shared_address(barrier)), "h"((short)blocks) : "memory");
}

KERNEL(cluster_multicast, 4)(unsigned *out, const unsigned *in) {
    __shared__ __align__(16) unsigned words[8];
    __shared__ u64 barrier;
    if (T < 8)
        words[T] = 5;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    set_up(&barrier, 1);
    expect(&barrier, rank() == 2 ? 0 : 16);
    meet();
    if (T == 0 && rank() == 1)
        multicast(words + 4, in + 4, &barrier, 11);
    wait(&barrier);
    if (T < 8)
        out[blockIdx.x * 8 + T] = words[T];
    meet();
}

KERNEL(cluster_multicast_by_two, 4)(unsigned *out, const unsigned *in) {
    __shared__ __align__(16) unsigned words[8];
    __shared__ u64 barrier;
    set_up(&barrier, 1);
    expect(&barrier, 32);
    meet();
    if (T == 0 && rank() % 2)
        multicast(words + rank() / 2 * 4, in + rank() / 2 * 4, &barrier, 15);
    wait(&barrier);
    if (T < 8)
        out[blockIdx.x * 8 + T] = words[T];
    meet();
}

KERNEL(cluster_ended_threads_arrive, 2)(unsigned *out) {
    __shared__ unsigned words[32];
    words[T] = T + rank();
    if (rank() == 0 && T >= 16)
        return;
    asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
    out[blockIdx.x * 32 + T] = remote(in_block(words + T % 16, rank() ^ 1));
    asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
}

KERNEL(cluster_block_barriers_apart, 2)(unsigned *out) {
    __shared__ unsigned words[64];
    unsigned sum = 0;
    for (unsigned i = 0; i < 2 + 3 * rank(); ++i) {
        words[T] = T * i;
        __syncthreads();
        sum += words[63 - T];
        __syncthreads();
    }
    out[blockIdx.x * 64 + T] = sum;
}

KERNEL(cluster_flag, 2)(unsigned *out) {
    __shared__ unsigned value, flag;
    if (T == 0)
        value = flag = 0;
    meet();
    if (T == 0 && rank() == 0) {
        store_remote(in_block(&value, 1), 77);
        asm volatile("st.release.cluster.shared::cluster.u32 [%0], 1;" ::"r"(in_block(&flag, 1)) : "memory");
        out[0] = 1;
    }
    if (T == 0 && rank() == 1) {
        unsigned set = 0;
        while (!set)
            asm volatile("ld.acquire.cluster.shared::cta.u32 %0, [%1];" : "=r"(set) : "r"(shared_address(&flag)) : "memory");
        out[1] = value;
    }
    meet();
}

KERNEL(cluster_mbarrier_init_relaxed, 2)(unsigned *out) {
    __shared__ u64 barrier;
    set_up(&barrier, 32);
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
                 ::"r"(in_block(&barrier, rank() ^ 1)) : "memory");
    wait(&barrier);
    out[blockIdx.x * 32 + T] = 3;
    meet();
}

KERNEL(cluster_relaxed_without_fence, 2)(unsigned *out) {
    __shared__ unsigned words[32];
    words[T] = T;
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
    out[blockIdx.x * 32 + T] = remote(in_block(words + T, rank() ^ 1));
    meet();
}

KERNEL(cluster_block_barrier_instead, 2)(unsigned *out) {
    __shared__ unsigned words[32];
    words[T] = T;
    __syncthreads();
    out[blockIdx.x * 32 + T] = remote(in_block(words + T, rank() ^ 1));
    meet();
}

KERNEL(cluster_ends_before_read, 2)(unsigned *out) {
    __shared__ unsigned words[32];
    words[T] = T;
    meet();
    out[blockIdx.x * 32 + T] = rank() ? remote(in_block(words + T, 0)) : 1;
}

KERNEL(cluster_reads_what_has_ended, 2)(unsigned *out) {
    __shared__ unsigned words[32];
    words[T] = T;
    meet();
    if (rank() == 0)
        return;
    for (int i = 0; i < 100; ++i)
        __nanosleep(10000);
    out[T] = remote(in_block(words + T, 0));
}

KERNEL(cluster_rank_outside, 2)(unsigned *out) {
    __shared__ unsigned words[32];
    words[T] = T;
    meet();
    out[blockIdx.x * 32 + T] = remote(in_block(words + T, 2));
    meet();
}

KERNEL(cluster_misaligned, 2)(unsigned *out) {
    __shared__ unsigned words[33];
    words[T] = T;
    meet();
    out[blockIdx.x * 32 + T] = remote(in_block(words + T, rank() ^ 1) + 2);
    meet();
}

__device__ unsigned own(unsigned address) {
    unsigned value;
    asm volatile("ld.shared::cta.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    return value;
}

KERNEL(cluster_own_form_other_block, 2)(unsigned *out) {
    __shared__ unsigned words[32];
    words[T] = 100 * rank() + T;
    meet();
    out[blockIdx.x * 32 + T] = own(in_block(words + T, rank() ^ 1));
    meet();
}

KERNEL(cluster_own_form_without_rank, 2)(unsigned *out) {
    __shared__ unsigned words[32];
    words[T] = 100 * rank() + T;
    meet();
    out[blockIdx.x * 32 + T] = own(shared_address(words + T) & 0xffffff);
    meet();
}

KERNEL(cluster_multicast_outside, 4)(unsigned *out, const unsigned *in) {
    __shared__ __align__(16) unsigned words[8];
    __shared__ u64 barrier;
    set_up(&barrier, 1);
    expect(&barrier, 16);
    meet();
    if (T == 0 && rank() == 1)
        multicast(words, in, &barrier, 31);
    wait(&barrier);
    if (T < 4)
        out[blockIdx.x * 8 + T] = words[T];
    meet();
}

KERNEL(cluster_arrives_twice, 2)(unsigned *out) {
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
    out[blockIdx.x * 32 + T] = 1;
}

#define COUNTED(NAME, WHAT)                                                                                \
    KERNEL(NAME, 2)(unsigned *out) {                                                                       \
        __shared__ unsigned words[1024];                                                                   \
        __shared__ u64 barrier;                                                                            \
        for (int i = 0; i < 32; ++i)                                                                       \
            words[32 * i + T] = i;                                                                         \
        set_up(&barrier, 1);                                                                               \
        expect(&barrier, 128);                                                                             \
        meet();                                                                                            \
        unsigned found = 0;                                                                                \
        WHAT;                                                                                              \
        meet();                                                                                            \
        out[blockIdx.x * 32 + T] = found;                                                                  \
    }

COUNTED(cluster_counted_load, found = remote(in_block(words + T, rank() ^ 1)))
COUNTED(cluster_counted_own_load, found = remote(shared_address(words + T)))
COUNTED(cluster_counted_conflicts, found = remote(in_block(words + 8 * T, rank() ^ 1)))
COUNTED(cluster_counted_generic_load,
        asm volatile("ld.u32 %0, [%1];" : "=r"(found) : "l"(generic_in_block(words + T, rank() ^ 1)) : "memory"))
COUNTED(cluster_counted_store, store_remote(in_block(words + T, rank() ^ 1), T))
COUNTED(cluster_counted_atomic,
        asm volatile("atom.shared::cluster.add.u32 %0, [%1], 1;"
                     : "=r"(found) : "r"(in_block(words + T, rank() ^ 1)) : "memory"))
COUNTED(cluster_counted_store_async,
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];"
                     ::"r"(in_block(words + T, rank() ^ 1)), "r"(T), "r"(in_block(&barrier, rank() ^ 1)) : "memory");
        wait(&barrier))
COUNTED(cluster_counted_barrier, meet())
