// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Threads signal to each other as public code does, and forget one thing.

//:: WORDS
__device__ unsigned head, tail, flags[8];
__device__ unsigned look(unsigned *word) { return *(volatile unsigned *)word; }
__device__ void put(unsigned *word, unsigned value) { *(volatile unsigned *)word = value; }
__device__ unsigned acquire(unsigned *word)
{
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" // meets
                 : "=r"(value) : "l"(word) : "memory");
    return value;
}
__device__ unsigned relaxed(unsigned *word)
{
    unsigned value;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
}
__device__ void store_relaxed(unsigned *word, unsigned value)
{
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}
__device__ void store_release(unsigned *word, unsigned value)
{
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory"); // meets
}

//:: MBARRIERS
typedef unsigned long long u64;
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void set_up(u64 *b, int count)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at(b)), "r"(count) : "memory");
}
__device__ void arrive(u64 *b)
{
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" ::"r"(at(b)) : "memory");
}
__device__ void wait(u64 *b, int parity)
{
    asm volatile("{ .reg .pred p; AGAIN%=: mbarrier.try_wait.parity.shared.b64 p, [%0], %1;"
                 " @!p bra AGAIN%=; }"
                 ::"r"(at(b)), "r"(parity) : "memory");
}

//:: CLUSTER
#undef __global__
#define __global__ __cluster_dims__(4, 1, 1) __attribute__((global))
__device__ unsigned mapped(const void *own, unsigned other)
{
    unsigned place;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(place) : "r"((unsigned)__cvta_generic_to_shared(own)), "r"(other));
    return place;
}
__device__ int remote(unsigned place)
{
    int value;
    asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(value) : "r"(place) : "memory"); // meets
    return value;
}
__device__ void meet()
{
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}

//:: PIPELINE
//: # Two stages over six items: warp 0 fills them, warp 1 reads.
//: grid = 1
//: before = "MBARRIERS"
//: shared = true
//: PRODUCER = "wait(empty + s, round + 1 & 1);"
//: CONSUMER = "round & 1"
    __shared__ u64 full[2], empty[2];
    __shared__ int stage[2][32];
    if (t == 0)
        for (int s = 0; s < 2; ++s) {
            set_up(full + s, 32);
            set_up(empty + s, 32);
        }
    __syncthreads();
    for (int k = 0; k < 6; ++k) {
        const int s = k % 2, round = k / 2;
        if (t < 32) {
            if (round > 0)
                PRODUCER
            stage[s][t] = a[32 * k + t]; // meets
            arrive(full + s);
        } else {
            wait(full + s, CONSUMER);
            c[32 * k + t - 32] = stage[s][63 - t]; // meets
            arrive(empty + s);
        }
    }

//:: queue whose writer overtakes its reader
//: grid = 2
//: before = "WORDS"
    if (t == 0 && w == 0)
        for (unsigned k = 0; k < 12; ++k) {
            «¦while (k >= look(&tail) + 4)
                ;
            __threadfence();»
            b[k % 4] = a[k]; // meets
            __threadfence();
            put(&head, k + 1);
        }
    if (t == 0 && w == 1)
        for (unsigned k = 0; k < 12; ++k) {
            while (look(&head) <= k)
                ;
            __threadfence();
            c[k] = b[k % 4]; // meets
            __threadfence();
            put(&tail, k + 1);
        }

//:: message passed on without release
//: grid = 3
//: before = "WORDS"
    if (t == 0 && w == 0) {
        *b = a[0]; // meets
        store_release(flags, 1);
    }
    if (t == 0 && w == 1) {
        while («relaxed¦acquire»(flags) == 0)
            ;
        «store_relaxed¦store_release»(flags + 1, 1);
    }
    if (t == 0 && w == 2) {
        while (acquire(flags + 1) == 0)
            ;
        *c = *b; // meets
    }

//:: message relayed by a warp that does not meet
//: grid = 2
//: before = "WORDS"
    if (w == 0 && t == 32) {
        *b = a[0]; // meets
    }
    if (w == 0) {
        «¦__syncthreads();»
        if (t == 0)
            store_release(flags, 1);
    }
    if (w == 1 && t == 0) {
        while (acquire(flags) == 0)
            ;
        *c = *b; // meets
    }

//:: data of a seqlock
//: grid = 2
//: before = "WORDS"
    if (w == 0 && t == 0)
        for (unsigned k = 1; k < 4; ++k) {
            put(flags, 2 * k - 1);
            __threadfence();
            «b[0] = a[k]; // meets¦*(volatile int *)b = a[k];»
            __threadfence();
            put(flags, 2 * k);
        }
    if (w == 1 && t == 0) {
        unsigned before;
        int found;
        do {
            before = look(flags);
            __threadfence();
            found = «b[0]; // meets¦*(volatile int *)b;»
            __threadfence();
        } while (before % 2 || before == 0 || look(flags) != before);
        *c = found;
    }

//:: look-back by flag and value apart
//: before = "WORDS"
    if (t == 0) {
        int sum = a[w];
        if (w > 0) {
            while (look(flags + w - 1) == 0)
                ;
            __threadfence();
            sum += b[w - 1]; // meets
        }
        b[w] = sum; // meets
        «¦__threadfence();»
        put(flags + w, 1);
    }

//:: look-back in one word, past the first cache
//: before = "WORDS"
    if (t == 0) {
        unsigned sum = a[w], found = 0;
        if (w > 0) {
            while (!(found = *(volatile unsigned *)(flags + w - 1))) // meets
                ;
            sum += found;
        }
        «flags[w] = sum¦__stcg(flags + w, sum)»; // meets
        c[w] = sum;
    }

//:: partial sums told by one thread's fence
//: before = "WORDS"
    __shared__ bool last;
    b[i] = a[i] * 3; // meets
    if (t == 0) {
        «¦»__threadfence();
    }
    «¦__threadfence();»
    __syncthreads();
    if (t == 1)
        last = atomicAdd(&head, 1) == gridDim.x - 1;
    __syncthreads();
    if (last) {
        int sum = 0;
        for (int j = t; j < n; j += 64)
            sum += b[j ^ 3]; // meets
        c[t] = sum;
    }

//:: pair of words looked at as one
//: grid = 2
    if (t == 0 && w == 0)
        asm volatile("st.volatile.global.v2.u32 [%0], {%1, %1};" ::"l"(c), "r"(a[0]) : "memory"); // meets
    if (t == 0 && w == 1) {
        unsigned low, high;
        do
            asm volatile(«"{ .reg .b64 w; ld.volatile.global.u64 w, [%2]; mov.b64 {%0, %1}, w; }" // meets¦
                         "ld.volatile.global.v2.u32 {%0, %1}, [%2];"»
                         : "=r"(low), "=r"(high) : "l"(c) : "memory");
        while (high == 0);
        *b = low;
    }

//:: named barriers that only go one way
//: grid = 1
    for (int k = 0; k < 4; ++k)
        if (t < 32) {
            «¦if (k > 0)
                asm volatile("bar.sync 2, 64;" ::: "memory");»
            b[t] = a[32 * k + t]; // meets
            asm volatile("bar.arrive 1, 64;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 64;" ::: "memory");
            c[32 * k + t - 32] = b[63 - t]; // meets
            «¦if (k < 3)
                asm volatile("bar.arrive 2, 64;" ::: "memory");»
        }

//:: parity of the other round
//: frame = "PIPELINE"
//: PRODUCER = "wait(empty + s, round «& 1¦+ 1 & 1»);"
//: kind = "mbarrier"

//:: parity by stage instead of round
//: frame = "PIPELINE"
//: CONSUMER = "«s¦round & 1»"
//: kind = "uninitialised shared read"

//:: written to global memory after the arrival
//: grid = 1
//: before = "MBARRIERS"
    __shared__ u64 full;
    if (t == 0)
        set_up(&full, 32);
    __syncthreads();
    if (t < 32) {
        «arrive(&full);¦»
        b[t] = a[t]; // meets
        «¦arrive(&full);»
    } else {
        wait(&full, 0);
        c[t] = b[63 - t]; // meets
    }

//:: written to global memory by a lane that does not arrive
//: grid = 2
//: before = "MBARRIERS"
    __shared__ u64 full;
    if (t == 0)
        set_up(&full, 1);
    __syncthreads();
    if (t == «1¦0»)
        b[w] = a[w]; // meets
    if (t == 0)
        arrive(&full);
    if (t == 32) {
        wait(&full, 0);
        c[w] = b[w]; // meets
    }

//:: passed on by a warp that waited for one lane
//: grid = 2
//: before = "MBARRIERS"
    __shared__ u64 full;
    if (t == 0)
        set_up(&full, 1);
    __syncthreads();
    if (w == 0 && t == «1¦0»)
        b[0] = a[0]; // meets
    if (w == 0 && t == 0)
        arrive(&full);
    if (w == 0 && t == 32) {
        wait(&full, 0);
        __threadfence();
        *(volatile int *)(c + 1) = 1;
    }
    if (w == 1 && t == 0) {
        while (*(volatile int *)(c + 1) == 0)
            ;
        __threadfence();
        c[0] = b[0]; // meets
    }

//:: overwritten by one warp before the others have read
//: grid = 1
//: before = "MBARRIERS"
    __shared__ u64 done;
    if (t == 0)
        set_up(&done, 64);
    __syncthreads();
    «arrive(&done);¦»
    c[t] = b[0]; // meets
    «¦arrive(&done);»
    if (t == 40) {
        wait(&done, 0);
        b[0] = 1; // meets
    }

//:: relaxed arrival whose fence comes before the write
//: before = "CLUSTER"
    if (t == 5) {
        «__threadfence();
        b[w] = a[w]; // meets¦b[w] = a[w];
        __threadfence();»
    }
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
    if (t == 40)
        c[w] = b[w ^ 1]; // meets

//:: sum of a cluster behind a block's barrier
//: before = "CLUSTER"
//: shared = true
    __shared__ int sums[64];
    sums[t] = a[i]; // meets
    «__syncthreads();¦meet();»
    int sum = 0;
    for (unsigned r = 0; r < 4; ++r)
        sum += remote(mapped(sums + t, r)); // meets
    meet();
    c[i] = sum;
