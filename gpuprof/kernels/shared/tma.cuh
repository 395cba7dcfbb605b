// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0

// The copy engine, the barriers in shared memory that its copies tell, and shared memory as both address it: by 32-bit
// offsets.

struct __align__(64) TensorMap {
    unsigned long long opaque[16];
};

// A number that all lanes of a warp share, told to the compiler: it computes with it once for the warp, as the copy engine and
// tensor cores want to be addressed.
static __device__ __forceinline__ int of_warp(int value)
{
    return __shfl_sync(0xffffffff, value, 0);
}
// Holds for one lane of a whole warp, and tells the compiler so: without it each copy stands in a loop over lanes.
static __device__ __forceinline__ bool elected()
{
    int chosen;
    asm volatile("{\n"
                 ".reg .pred one;\n"
                 "elect.sync _|one, 0xffffffff;\n"
                 "selp.b32 %0, 1, 0, one;\n"
                 "}"
                 : "=r"(chosen));
    return chosen;
}
// The place of the block's cluster of BLOCKS where every GROUPS-th stand side by side: clusters are dealt to so many GPCs in
// turn, and the L2 cache is asked once for what SMs of a GPC fetch at the same time, unless it goes to several blocks each.
template <int GROUPS, int BLOCKS> static __device__ __forceinline__ int place_by_gpc()
{
    const int cluster = blockIdx.x / BLOCKS, clusters = gridDim.x / BLOCKS;
    return cluster % GROUPS * (clusters / GROUPS) + min(cluster % GROUPS, clusters % GROUPS) + cluster / GROUPS;
}
static __device__ __forceinline__ void prefetch(const TensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
// Start the copy of a map's box, whose first element is at (column, row), to shared memory.
static __device__ __forceinline__ void copy_box(unsigned target, const TensorMap *map, int column, int row,
                                                unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3}], [%4];" ::"r"(target),
                 "l"(map), "r"(column), "r"(row), "r"(barrier)
                 : "memory");
}
// The same, to the same place in BLOCKS blocks of the cluster, the first ones or those of a mask, whose barriers there all
// hear of it.
template <int BLOCKS>
static __device__ __forceinline__ void copy_box_to_all(unsigned target, const TensorMap *map, int column, int row,
                                                       unsigned barrier, int mask = (1 << BLOCKS) - 1)
{
    if (BLOCKS == 1)
        copy_box(target, map, column, row, barrier);
    else
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
                     " [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(target),
                     "l"(map), "r"(column), "r"(row), "r"(barrier), "h"((unsigned short)mask)
                     : "memory");
}
// Start the copy of a box in shared memory to the array, and close a group of such copies.
static __device__ __forceinline__ void store_box(const TensorMap *map, int column, int row, unsigned source)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(column),
                 "r"(row), "r"(source)
                 : "memory");
}
static __device__ __forceinline__ void close_stores()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// Wait until all groups of this thread but the last PENDING have been read from shared memory.
template <int PENDING> static __device__ __forceinline__ void wait_for_stores()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

// One thread makes barriers of so many arrivals each, then lets the copy engine see them.
static __device__ __forceinline__ void init_barrier(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
static __device__ __forceinline__ void publish_barriers()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
static __device__ __forceinline__ void arrive_at(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// Arrive at the barrier in the same place of another block of the cluster. To order reads and writes by threads of both it
// would have to be a release to the cluster, which waits for all that the thread wrote to memory.
static __device__ __forceinline__ void arrive_at_block(unsigned barrier, unsigned rank)
{
    asm volatile("{\n"
                 ".reg .b32 theirs;\n"
                 "mapa.shared::cluster.u32 theirs, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [theirs];\n"
                 "}" ::"r"(barrier),
                 "r"(rank)
                 : "memory");
}
// A warp arrives at the barrier in the same place of each of a cluster's BLOCKS blocks; at that of a single one as a thread of
// it does, which is sooner there.
template <int BLOCKS> static __device__ __forceinline__ void arrive_at_all(unsigned barrier)
{
    const int lane = threadIdx.x % 32;
    if (BLOCKS == 1) {
        if (lane == 0)
            arrive_at(barrier);
    } else if (lane < BLOCKS)
        arrive_at_block(barrier, lane);
}
// Wait for all threads of all blocks of the cluster, not for what they wrote to memory.
static __device__ __forceinline__ void meet_cluster()
{
    asm volatile("barrier.cluster.arrive.relaxed;\n"
                 "barrier.cluster.wait;" ::
                     : "memory");
}
// The same, and see what they wrote to shared memory.
static __device__ __forceinline__ void meet_cluster_in_order()
{
    asm volatile("barrier.cluster.arrive.release;\n"
                 "barrier.cluster.wait.acquire;" ::
                     : "memory");
}
// Goes through COUNT stages of shared memory round after round: which is next, and in a round of which parity. Counted, as
// dividing by COUNT takes as long as multiplying a narrow tile.
template <int COUNT> struct Turn {
    unsigned stage = 0, parity = 0;

    __device__ __forceinline__ void advance()
    {
        if (++stage == COUNT) {
            stage = 0;
            parity ^= 1;
        }
    }
    __device__ __forceinline__ void skip(unsigned count)
    {
        stage += count;
        parity ^= stage / COUNT % 2;
        stage %= COUNT;
    }
};

// Arrive, and have the barrier wait for so many bytes of copies too.
static __device__ __forceinline__ void expect_bytes(unsigned barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
// Wait until a barrier's phase of this parity is over.
static __device__ __forceinline__ void wait(unsigned barrier, int parity)
{
    asm volatile("{\n"
                 ".reg .pred over;\n"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
                 "@!over bra again;\n"
                 "}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

static __device__ __forceinline__ float4 load4(unsigned address)
{
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(address)
                 : "memory");
    return v;
}
static __device__ __forceinline__ float2 load2(unsigned address)
{
    float2 v;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(address) : "memory");
    return v;
}
static __device__ __forceinline__ float load1(unsigned address)
{
    float v;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(address) : "memory");
    return v;
}
static __device__ __forceinline__ unsigned load_word(unsigned address)
{
    unsigned word;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
    return word;
}
static __device__ __forceinline__ void store_word(unsigned address, unsigned word)
{
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(word) : "memory");
}
static __device__ __forceinline__ void store(unsigned address, float value)
{
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(address), "f"(value) : "memory");
}
static __device__ __forceinline__ void store2(unsigned address, float2 v)
{
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(v.x), "f"(v.y) : "memory");
}
static __device__ __forceinline__ void store4(unsigned address, float4 v)
{
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
                 : "memory");
}
// Four sums that another block of the cluster has in the same place of its shared memory.
static __device__ __forceinline__ float4 load_of_block(unsigned address, unsigned rank)
{
    float4 v;
    asm volatile("{\n"
                 ".reg .b32 theirs;\n"
                 "mapa.shared::cluster.u32 theirs, %4, %5;\n"
                 "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [theirs];\n"
                 "}"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(address), "r"(rank)
                 : "memory");
    return v;
}
// Send four numbers to a place in the shared memory of another block of the cluster, whose barrier hears of their bytes.
static __device__ __forceinline__ void send4(unsigned target, unsigned barrier, unsigned rank, float4 v)
{
    asm volatile("{\n"
                 ".reg .b32 there, theirs;\n"
                 "mapa.shared::cluster.u32 there, %0, %2;\n"
                 "mapa.shared::cluster.u32 theirs, %1, %2;\n"
                 "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [there], {%3, %4, %5, %6}, [theirs];\n"
                 "}" ::"r"(target),
                 "r"(barrier), "r"(rank), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
                 : "memory");
}
// A flag in global memory that says: what this thread, and those that it has waited for, wrote before can be read.
static __device__ __forceinline__ void raise(unsigned *flag)
{
    asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
}
static __device__ __forceinline__ bool is_raised(const unsigned *flag)
{
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    return value != 0;
}
// Add to four neighbours in global memory, without waiting for them.
static __device__ __forceinline__ void add4(float4 *target, float4 v)
{
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(target), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
                 : "memory");
}
