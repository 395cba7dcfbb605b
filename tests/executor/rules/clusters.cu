// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "clusters"
verdict = "ok"
block = 32
grid = 4
count = 128

[cluster_addresses]
rule = "An address of shared memory holds the block's rank in its cluster from bit 24 on."
[cluster_mapa_addresses]
rule = "mapa gives the address that the variable has in another block, and its own for its own rank."
[cluster_getctarank]
rule = "getctarank tells whose shared memory an address belongs to."
[cluster_generic_mapa]
rule = "mapa of a generic address gives a generic one, which plain loads read."
[cluster_exchange]
rule = "Blocks of a cluster read each other's shared memory between two barriers of the cluster."
[cluster_store_remote]
rule = "What is stored to another block's shared memory is seen there behind a barrier of the cluster."
[cluster_atomics]
rule = "Atomics of four blocks on one block's shared memory add up."
expected = [128]
[cluster_red_by_one_warp_each]
rule = "red.shared::cluster adds to another block's counter."
expected = [32]
[cluster_plain_shared_is_own]
rule = "ld.shared with the block's own address reads its own memory in every block."
[cluster_barrier_split]
rule = "Between arrive and wait a thread may go on."
[cluster_barrier_relaxed_then_fence]
rule = "A relaxed arrival with a fence before it orders as one that releases."
[cluster_barrier_in_branches]
rule = "Arrivals and waits without .aligned may stand in two branches of a warp."
[cluster_barrier_rounds]
rule = "The barrier of a cluster is used again, round after round."
expected = [10]
[cluster_global_memory_ordered]
rule = "A barrier of a cluster orders global memory between its blocks."
[cluster_remote_without_barrier]
rule = "Reading another block's shared memory without a barrier of the cluster is a race."
verdict = "undefined"
faults = ["shared-memory race", "uninitialised shared read"]
[cluster_read_before_writer]
rule = "Overwriting what another block still reads is a race."
verdict = "undefined"
faults = ["shared-memory race"]
[cluster_remote_out_of_bounds]
rule = "Reading far beyond another block's shared memory faults."
verdict = "fault"
faults = ["out of bounds"]
[cluster_two_dimensions]
rule = "Ranks count x first, then y: %clusterid, %cluster_ctaid and %cluster_ctarank of a 4 x 4 grid in clusters of 2 x 2."
grid = [4, 4]
block = 1
count = 16
[cluster_registers_when_explicit]
rule = "%is_explicit_cluster, %cluster_nctarank and %nclusterid of clusters that the kernel declares."
count = 12
block = 1
[cluster_not_explicit]
rule = "%is_explicit_cluster without clusters."
count = 4
block = 1
expected = [0]
[cluster_remote_mbarrier]
rule = "Threads arrive at the mbarrier of another block of their cluster."
[cluster_store_async]
rule = "st.async stores to another block and counts its bytes at that block's mbarrier."
[cluster_red_async]
rule = "red.async adds in another block and counts its bytes at that block's mbarrier."
*/

#define T threadIdx.x
#define KERNEL(NAME, X, Y) extern "C" __global__ void __cluster_dims__(X, Y, 1) NAME(unsigned *out)

__device__ unsigned shared_address(const void *pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ unsigned rank() {
    unsigned value;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(value));
    return value;
}

__device__ unsigned in_block(unsigned address, unsigned other) {
    unsigned value;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(value) : "r"(address), "r"(other));
    return value;
}

__device__ unsigned remote(unsigned address) {
    unsigned value;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    return value;
}

__device__ void meet() {
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}

KERNEL(cluster_addresses, 4, 1) {
    __shared__ unsigned words[32];
    asm volatile("" ::"l"(words) : "memory");
    out[blockIdx.x * 32 + T] = shared_address(words + T);
}

KERNEL(cluster_mapa_addresses, 4, 1) {
    __shared__ unsigned words[32];
    asm volatile("" ::"l"(words) : "memory");
    out[blockIdx.x * 32 + T] = in_block(shared_address(words + T), T % 4);
}

KERNEL(cluster_getctarank, 4, 1) {
    __shared__ unsigned words[32];
    asm volatile("" ::"l"(words) : "memory");
    unsigned owner;
    asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(owner) : "r"(in_block(shared_address(words), T % 4)));
    out[blockIdx.x * 32 + T] = owner;
}

KERNEL(cluster_generic_mapa, 4, 1) {
    __shared__ unsigned words[32];
    words[T] = 1000 * rank() + T;
    meet();
    unsigned long long place;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(place) : "l"(words + T), "r"((rank() + 1) % 4));
    unsigned value;
    asm volatile("ld.u32 %0, [%1];" : "=r"(value) : "l"(place) : "memory");
    out[blockIdx.x * 32 + T] = value;
    meet();
}

KERNEL(cluster_exchange, 4, 1) {
    __shared__ unsigned words[32];
    words[T] = 1000 * rank() + T;
    meet();
    out[blockIdx.x * 32 + T] = remote(in_block(shared_address(words + 31 - T), (rank() + T) % 4));
    meet();
}

KERNEL(cluster_store_remote, 2, 1) {
    __shared__ unsigned words[32];
    meet();
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(in_block(shared_address(words + T), rank() ^ 1)),
                 "r"(500 * rank() + T) : "memory");
    meet();
    out[blockIdx.x * 32 + T] = words[T];
}

KERNEL(cluster_atomics, 4, 1) {
    __shared__ unsigned sum;
    sum = 0;
    meet();
    unsigned before;
    asm volatile("atom.shared::cluster.add.u32 %0, [%1], 1;" : "=r"(before) : "r"(in_block(shared_address(&sum), 2)) : "memory");
    meet();
    out[blockIdx.x * 32 + T] = remote(in_block(shared_address(&sum), 2));
    meet();
}

KERNEL(cluster_red_by_one_warp_each, 2, 1) {
    __shared__ unsigned sum;
    sum = 0;
    meet();
    asm volatile("red.shared::cluster.add.u32 [%0], 1;" ::"r"(in_block(shared_address(&sum), rank() ^ 1)) : "memory");
    meet();
    out[blockIdx.x * 32 + T] = sum;
}

KERNEL(cluster_plain_shared_is_own, 4, 1) {
    __shared__ unsigned words[32];
    words[T] = blockIdx.x * 7 + T;
    __syncwarp();
    unsigned value;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(shared_address(words + (T ^ 1))) : "memory");
    out[blockIdx.x * 32 + T] = value;
}

KERNEL(cluster_barrier_split, 2, 1) {
    __shared__ unsigned words[32];
    words[T] = 10 * rank() + T;
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    unsigned own = words[T] * 1000;
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    out[blockIdx.x * 32 + T] = own + remote(in_block(shared_address(words + T), rank() ^ 1));
    meet();
}

KERNEL(cluster_barrier_relaxed_then_fence, 2, 1) {
    __shared__ unsigned words[32];
    words[T] = 10 * rank() + T;
    asm volatile("fence.acq_rel.cluster;\n\tbarrier.cluster.arrive.relaxed.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
    out[blockIdx.x * 32 + T] = remote(in_block(shared_address(words + T), rank() ^ 1));
    meet();
}

KERNEL(cluster_barrier_in_branches, 2, 1) {
    __shared__ unsigned words[32];
    words[T] = 10 * rank() + T;
    if (T % 2)
        asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
    else
        asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
    out[blockIdx.x * 32 + T] = remote(in_block(shared_address(words + T), rank() ^ 1));
    meet();
}

KERNEL(cluster_barrier_rounds, 4, 1) {
    __shared__ unsigned words[32];
    unsigned sum = 0;
    for (unsigned i = 0; i < 5; ++i) {
        words[T] = i;
        meet();
        sum += remote(in_block(shared_address(words + T), (rank() + i) % 4));
        meet();
    }
    out[blockIdx.x * 32 + T] = sum;
}

KERNEL(cluster_global_memory_ordered, 4, 1) {
    out[blockIdx.x * 32 + T] = blockIdx.x + 100 * T;
    meet();
    const unsigned found = out[(blockIdx.x ^ 1) * 32 + T];
    meet();
    out[blockIdx.x * 32 + T] = found + 1;
}

KERNEL(cluster_remote_without_barrier, 2, 1) {
    __shared__ unsigned words[32];
    words[T] = T;
    out[blockIdx.x * 32 + T] = remote(in_block(shared_address(words + T), rank() ^ 1));
    meet();
}

KERNEL(cluster_read_before_writer, 2, 1) {
    __shared__ unsigned words[32];
    words[T] = T;
    meet();
    out[blockIdx.x * 32 + T] = remote(in_block(shared_address(words + T), rank() ^ 1));
    words[T] = 5;
    meet();
    out[blockIdx.x * 32 + T] += words[T];
}

KERNEL(cluster_remote_out_of_bounds, 2, 1) {
    __shared__ unsigned words[32];
    words[T] = T;
    meet();
    out[blockIdx.x * 32 + T] = remote(in_block(shared_address(words), rank() ^ 1) + 0x80000 + 4 * T);
    meet();
}

KERNEL(cluster_two_dimensions, 2, 2) {
    unsigned x, y, inside_x, inside_y;
    asm volatile("mov.u32 %0, %%clusterid.x;\n\tmov.u32 %1, %%clusterid.y;\n\tmov.u32 %2, %%cluster_ctaid.x;"
                 "\n\tmov.u32 %3, %%cluster_ctaid.y;" : "=r"(x), "=r"(y), "=r"(inside_x), "=r"(inside_y));
    out[blockIdx.y * 4 + blockIdx.x] = rank() | inside_x << 4 | inside_y << 8 | x << 12 | y << 16;
}

KERNEL(cluster_registers_when_explicit, 2, 1) {
    asm volatile("{ .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p; }" : "=r"(out[blockIdx.x * 3]));
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(out[blockIdx.x * 3 + 1]));
    asm volatile("mov.u32 %0, %%nclusterid.x;" : "=r"(out[blockIdx.x * 3 + 2]));
}

extern "C" __global__ void cluster_not_explicit(unsigned *out) {
    asm volatile("{ .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p; }" : "=r"(out[blockIdx.x]));
}

__device__ void wait(unsigned at) {
    asm volatile("{ .reg .pred p; AGAIN%=: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0;"
                 "@!p bra AGAIN%=; }" ::"r"(at) : "memory");
}

#define MBARRIER(COUNT)                                                                                    \
    __shared__ __align__(8) unsigned long long barrier;                                                    \
    const unsigned at = shared_address(&barrier);                                                          \
    if (T == 0)                                                                                            \
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1; fence.mbarrier_init.release.cluster;"        \
                     ::"r"(at), "r"(COUNT) : "memory")

KERNEL(cluster_remote_mbarrier, 2, 1) {
    __shared__ unsigned words[32];
    MBARRIER(32);
    meet();
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(in_block(shared_address(words + T), rank() ^ 1)),
                 "r"(500 * rank() + T) : "memory");
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(in_block(at, rank() ^ 1)) : "memory");
    wait(at);
    out[blockIdx.x * 32 + T] = words[T];
    meet();
}

KERNEL(cluster_store_async, 2, 1) {
    __shared__ unsigned words[32];
    MBARRIER(1);
    if (T == 0)
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(at) : "memory");
    meet();
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];"
                 ::"r"(in_block(shared_address(words + T), rank() ^ 1)), "r"(500 * rank() + T), "r"(in_block(at, rank() ^ 1))
                 : "memory");
    wait(at);
    out[blockIdx.x * 32 + T] = words[T];
    meet();
}

KERNEL(cluster_red_async, 2, 1) {
    __shared__ unsigned words[32];
    words[T] = 3;
    MBARRIER(1);
    if (T == 0)
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(at) : "memory");
    meet();
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];"
                 ::"r"(in_block(shared_address(words + T), rank() ^ 1)), "r"(500 * rank() + T), "r"(in_block(at, rank() ^ 1))
                 : "memory");
    wait(at);
    out[blockIdx.x * 32 + T] = words[T];
    meet();
}
