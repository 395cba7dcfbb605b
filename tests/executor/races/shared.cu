// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Shared memory ordered by more than barriers: flags, locks, fences, `__syncwarp` of some lanes, arrivals.

//:: WORDS
template <typename T> static __device__ unsigned at(T *p) { return (unsigned)__cvta_generic_to_shared(p); }
static __device__ void release(int *p, int value) {
    asm volatile("st.release.cta.shared.s32 [%0], %1;" ::"r"(at(p)), "r"(value) : "memory");
}
static __device__ int acquire(int *p) {
    int value;
    asm volatile("ld.acquire.cta.shared.s32 %0, [%1];" : "=r"(value) : "r"(at(p)) : "memory");
    return value;
}
static __device__ void take(int *lock) {
    while (atomicCAS(lock, 0, 1) != 0)
        ;
    __threadfence_block();
}
static __device__ void give(int *lock) {
    __threadfence_block();
    atomicExch(lock, 0);
}
static __device__ void sync(int number, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}
static __device__ void arrive(int number, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory");
}
static __device__ void init(unsigned long long *barrier, int count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at(barrier)), "r"(count) : "memory");
}
static __device__ void arrive(unsigned long long *barrier) {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(at(barrier)) : "memory");
}
static __device__ void wait(unsigned long long *barrier) {
    asm volatile("{\n.reg .pred over;\nagain: mbarrier.try_wait.parity.shared.b64 over, [%0], 0;\n"
                 "@!over bra again;\n}" ::"r"(at(barrier)) : "memory");
}

//:: FRAME
//: grid = 2
//: block = 128
//: before = "WORDS"
//: shared = true
    __shared__ int tile[128], flag, lock, locks[2], sum;
    const int lane = t % 32, warp = t / 32;
    int *const out = c + 256 * w;
    if (t == 0)
        flag = lock = locks[0] = locks[1] = sum = 0;
    tile[t] = -1;
    __syncthreads();
BODY

//:: READ
    __shared__ unsigned long long read;
    if (t == 0)
        init(&read, COUNT);
    __syncthreads();
    if (warp == 1) {
        out[t] = tile[t]; // meets
        WHO arrive(&read);
    } else if (warp == 0) {
        wait(&read);
        tile[t + 32] = t; // meets
    }

//:: flag without a fence
    if (t == 32) {
        tile[t] = out[t]; // meets
        «¦__threadfence_block();»
        *(volatile int *)&flag = 1;
    } else if (t == 0) {
        while (*(volatile int *)&flag == 0)
            ;
        «¦__threadfence_block();»
        out[0] = tile[32]; // meets
    }

//:: only one of a warp's lanes' message
    if (warp == 1) {
        tile[t] = t; // meets
        «¦__syncwarp();»
        if (lane == 3)
            release(&flag, 1);
    } else if (warp == 0) {
        while (acquire(&flag) == 0)
            ;
        out[t] = tile[t + 32]; // meets
    }

//:: lock left out, within a warp
    if (warp == 0) {
        «¦take(&lock);»
        sum += t; // meets
        «¦give(&lock);»
    }

//:: two locks for one sum
    if (lane == 0) {
        take(&locks[«warp % 2¦1»]);
        sum += t; // meets
        give(&locks[«warp % 2¦1»]);
    }

//:: what no shuffle has taken
    int left = 0;
    if (lane) {
        left = «tile[t - 1]¦__shfl_sync(~1u, tile[t - 1], lane)»; // meets
        tile[t] = left + 1; // meets
    }

//:: what no shuffle has taken, behind a branch
    int left = lane < 8 ? tile[t] : 0; // meets
    left = «left¦__shfl_sync(~0u, left, 0)»;
    tile[32 * warp] = left; // meets

//:: what no shuffle has taken, beside a volatile word
    if (t == 0)
        *(volatile int *)&flag = 1;
    int left = 0;
    if (lane) {
        left = «tile[t - 1]¦__shfl_sync(~1u, tile[t - 1], lane)»; // meets
        tile[t] = left + 1; // meets
    }

//:: what a shuffle has taken, of another warp
    out[t] = __shfl_sync(~0u, tile[lane], 0); // meets
    «¦__syncthreads();»
    if (warp == 1)
        tile[lane] = t; // meets

//:: what a shuffle has taken, of another warp, beside a volatile word
    if (t == 0)
        *(volatile int *)&flag = 1;
    out[t] = __shfl_sync(~0u, tile[lane], 0); // meets
    «¦__syncthreads();»
    if (warp == 1)
        tile[lane] = t; // meets

//:: stored before a shuffle takes it
    tile[t] = t; // meets
    «¦__syncwarp();»
    out[t] = __shfl_sync(~0u, tile[t ^ 1], lane); // meets

//:: half of a warp
    tile[t] = t; // meets
    if (lane < 16)
        __syncwarp(0xffff);
    else
        __syncwarp(0xffff0000);
    out[t] = tile[t ^ «16¦15»]; // meets

//:: passed on from pair to pair
    tile[t] = t; // meets
    __syncwarp(1u << lane | 1u << (lane ^ 1));
    __syncwarp(1u << lane | 1u << (lane ^ 2));
    out[t] = tile[t ^ «4¦3»]; // meets

//:: half of a warp, beside an mbarrier
    __shared__ unsigned long long arrived;
    if (t == 0)
        init(&arrived, 1);
    tile[t] = t; // meets
    __syncwarp(lane < 16 ? 0xffff : 0xffff0000);
    out[t] = tile[t ^ «16¦15»]; // meets

//:: what half of a warp has read, beside an mbarrier
    __shared__ unsigned long long arrived;
    if (t == 0)
        init(&arrived, 1);
    out[t] = tile[t & 112]; // meets
    «¦__syncwarp(lane < 16 ? 0xffff : 0xffff0000);»
    if (t % 16 == 1)
        tile[t & 112] = t; // meets

//:: a lane arrives for its warp
//: BODY = "READ"
//: COUNT = "1"
//: WHO = '«asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");¦__syncwarp();» if (lane == 0)'

//:: half of a warp arrives for all
//: BODY = "READ"
//: COUNT = "«16¦32»"
//: WHO = "«if (lane % 2)¦»"

//:: lanes arrive for those that they met
//: BODY = "READ"
//: COUNT = "2"
//: WHO = "«¦__syncwarp(lane < 16 ? 0xffff : 0xffff0000);» if (lane % 16 == 0)"

//:: two branches that meet
    if (lane % 2) {
        tile[t] = 1; // meets
        «¦asm volatile("bar.warp.sync -1;" ::: "memory");»
        out[t] = tile[t - 1]; // meets
    } else {
        tile[t] = 2; // meets
        «¦asm volatile("bar.warp.sync -1;" ::: "memory");»
        out[t] = tile[t + 1] + 5; // meets
    }

//:: a vote orders no memory
    tile[t] = t; // meets
    «out[t] = __ballot_sync(0xffffffff, t & 1);¦__syncwarp();»
    out[t] = tile[t ^ 1]; // meets

//:: two teams that each wait for the other
    tile[t] = t; // meets
    if (t < 64) {
        arrive(1, 128);
        «¦sync(2, 128);»
    } else {
        «¦arrive(2, 128);»
        sync(1, 128);
    }
    out[t] = tile[t ^ 64]; // meets

//:: copied over what others read
    out[t] = tile[t ^ 32]; // meets
    «__syncwarp(0xffffffffu >> (t & 0));¦__syncthreads();»
    if (*(volatile int *)&sum == 0)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" // meets
                     ::"r"(at(tile + t)), "l"(out + 128 + t) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
