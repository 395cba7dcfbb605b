// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "memory model and progress"

[spin_lock_within_a_warp]
rule = "Lanes of a warp may contend for a lock by atomicCAS: from sm_70 on each lane makes progress."
count = 1
risky = true
verdict = "ok"
expected = [32]
[spin_lock_within_a_warp_release_inside]
rule = "The same with the release within the loop's branch, as written for older cards."
count = 1
verdict = "ok"
expected = [32]
[spin_lock_across_warps]
rule = "One lane of each warp contends for a lock in shared memory."
block = 256
count = 1
verdict = "ok"
expected = [8]
[spin_lock_across_blocks]
rule = "One thread of each block contends for a lock in global memory."
grid = 8
block = 32
count = 1
verdict = "ok"
expected = [8]
[ticket_lock_across_blocks]
rule = "A ticket lock serves blocks in the order of their tickets."
grid = 8
block = 32
count = 1
verdict = "ok"
expected = [8]
[flag_by_another_lane]
rule = "Lanes that poll a volatile flag do not stop the lane of their warp that sets it."
risky = true
verdict = "ok"
expected = [7]
[flag_by_another_warp]
rule = "A warp that polls a volatile flag in shared memory sees what another warp sets."
block = 64
count = 64
verdict = "ok"
expected = [9]
[flag_by_another_block]
rule = "A block that polls a flag in global memory sees what another, resident block sets."
grid = 2
count = 1
verdict = "ok"
expected = [5]
[flag_by_a_later_block_first_waits]
rule = "Block 0 waits for block 1: both are resident on any card, so it ends."
grid = 2
count = 1
verdict = "ok"
expected = [6]
[grid_barrier_by_counter]
rule = "A barrier of a resident grid by an atomic counter orders global memory."
grid = 16
block = 64
count = 1024
cooperative = true
verdict = "ok"
[grid_barrier_twice]
rule = "A grid barrier by sense reversal works again and again."
grid = 8
block = 32
count = 8
cooperative = true
verdict = "ok"
expected = [36]
[release_acquire_shared]
rule = "st.release and ld.acquire on shared memory order a message between warps."
block = 64
count = 32
verdict = "ok"
expected = [42]
[release_acquire_global]
rule = "st.release.gpu and ld.acquire.gpu order a message between blocks."
grid = 2
count = 32
verdict = "ok"
expected = [43]
[fence_and_relaxed_flag]
rule = "fence.acq_rel on both sides of a relaxed flag orders a message between warps."
block = 64
count = 32
verdict = "ok"
expected = [44]
[atomic_flag_in_shared]
rule = "A message passed by __threadfence_block and an atomic exchange."
block = 64
count = 32
verdict = "ok"
expected = [45]
[message_without_fence]
rule = "A plain message beside a relaxed flag without a fence is a race."
block = 64
count = 32
verdict = "undefined"
faults = ["shared-memory race"]
[shared_race_neighbour]
rule = "Reading a neighbour's word of another warp without a barrier is a race."
block = 64
count = 64
verdict = "undefined"
faults = ["shared-memory race"]
[shared_race_neighbour_correct]
rule = "The same with a barrier."
block = 64
count = 64
verdict = "ok"
[shared_race_overwrite]
rule = "Overwriting shared memory that another warp may still read is a race."
block = 64
count = 64
verdict = "undefined"
faults = ["shared-memory race"]
[shared_race_overwrite_correct]
rule = "The same with a second barrier."
block = 64
count = 64
verdict = "ok"
[global_race_counter]
rule = "Blocks that count without atomics race."
grid = 16
block = 32
count = 1
verdict = "undefined"
faults = ["global-memory race", "race"]
[global_race_counter_correct]
rule = "The same with atomics."
grid = 16
block = 32
count = 1
verdict = "ok"
expected = [512]
[global_race_neighbour_block]
rule = "Reading what another block writes, without order, is a race."
grid = 4
block = 32
count = 128
verdict = "undefined"
faults = ["global-memory race", "race"]
[global_race_neighbour_warp]
rule = "Reading what another warp of the block writes to global memory, without a barrier, is a race."
block = 64
count = 64
verdict = "undefined"
faults = ["global-memory race", "race"]
[global_race_neighbour_warp_correct]
rule = "The same with __syncthreads, which orders global memory within the block."
block = 64
count = 64
verdict = "ok"
[global_same_value_from_all]
rule = "All blocks write the same value to one word: still a race by the memory model, harmless on cards."
grid = 4
block = 32
count = 1
defined = [[0, 0]]
[last_block_reduces]
rule = "The last block to arrive at a counter, after a fence, reads what all others wrote."
grid = 8
block = 32
count = 1
verdict = "ok"
expected = [256]
[volatile_reads_again]
rule = "A volatile word is read again in each turn of a loop."
block = 64
count = 1
verdict = "ok"
expected = [3]
[backoff_with_nanosleep]
rule = "nanosleep in a polling loop lets others go on."
block = 64
count = 1
verdict = "ok"
expected = [4]
*/

#define T threadIdx.x

__device__ int lock_word, next_ticket, now_serving, flag_word, counter_word, message, arrived;
__device__ volatile int sense;

extern "C" __global__ void spin_lock_within_a_warp(unsigned *out) {
    __shared__ int lock;
    __shared__ volatile unsigned total;
    if (T == 0)
        lock = 0, total = 0;
    __syncwarp();
    while (atomicCAS(&lock, 0, 1) != 0)
        ;
    __threadfence_block();
    total = total + 1;
    __threadfence_block();
    atomicExch(&lock, 0);
    __syncwarp();
    if (T == 0)
        out[0] = total;
}

extern "C" __global__ void spin_lock_within_a_warp_release_inside(unsigned *out) {
    __shared__ int lock;
    __shared__ volatile unsigned total;
    if (T == 0)
        lock = 0, total = 0;
    __syncwarp();
    bool done = false;
    while (!done) {
        if (atomicCAS(&lock, 0, 1) == 0) {
            __threadfence_block();
            total = total + 1;
            __threadfence_block();
            atomicExch(&lock, 0);
            done = true;
        }
    }
    __syncwarp();
    if (T == 0)
        out[0] = total;
}

extern "C" __global__ void spin_lock_across_warps(unsigned *out) {
    __shared__ int lock;
    __shared__ volatile unsigned total;
    if (T == 0)
        lock = 0, total = 0;
    __syncthreads();
    if (T % 32 == 0) {
        while (atomicCAS(&lock, 0, 1) != 0)
            ;
        __threadfence_block();
        total = total + 1;
        __threadfence_block();
        atomicExch(&lock, 0);
    }
    __syncthreads();
    if (T == 0)
        out[0] = total;
}

// The last block to come leaves what it found and clears the words for the next launch.
__device__ bool last_of_grid() {
    __threadfence();
    const bool last = atomicAdd(&arrived, 1) == gridDim.x - 1;
    __threadfence();
    return last;
}

extern "C" __global__ void spin_lock_across_blocks(unsigned *out) {
    if (T == 0) {
        while (atomicCAS(&lock_word, 0, 1) != 0)
            ;
        __threadfence();
        *(volatile int *)&counter_word += 1;
        __threadfence();
        atomicExch(&lock_word, 0);
        if (last_of_grid()) {
            out[0] = *(volatile int *)&counter_word;
            counter_word = 0;
            arrived = 0;
        }
    }
}

extern "C" __global__ void ticket_lock_across_blocks(unsigned *out) {
    if (T == 0) {
        const int ticket = atomicAdd(&next_ticket, 1);
        while (*(volatile int *)&now_serving != ticket)
            ;
        __threadfence();
        *(volatile int *)&counter_word += 1;
        __threadfence();
        atomicAdd(&now_serving, 1);
        if (last_of_grid()) {
            out[0] = *(volatile int *)&counter_word;
            counter_word = next_ticket = now_serving = arrived = 0;
        }
    }
}

extern "C" __global__ void flag_by_another_lane(unsigned *out) {
    __shared__ volatile int flag;
    if (T == 0)
        flag = 0;
    __syncwarp();
    if (T != 13)
        while (flag == 0)
            ;
    else
        flag = 7;
    out[T] = flag;
}

extern "C" __global__ void flag_by_another_warp(unsigned *out) {
    __shared__ volatile int flag;
    if (T == 0)
        flag = 0;
    __syncthreads();
    if (T < 32)
        while (flag == 0)
            ;
    else if (T == 63)
        flag = 9;
    __syncthreads();
    out[T] = flag;
}

extern "C" __global__ void flag_by_another_block(unsigned *out) {
    if (T != 0)
        return;
    if (blockIdx.x == 0) {
        atomicExch(&flag_word, 5);
    } else {
        int found;
        while ((found = *(volatile int *)&flag_word) == 0)
            ;
        out[0] = found;
        atomicExch(&flag_word, 0);
    }
}

extern "C" __global__ void flag_by_a_later_block_first_waits(unsigned *out) {
    if (T != 0)
        return;
    if (blockIdx.x == 1) {
        atomicExch(&flag_word, 6);
    } else {
        int found;
        while ((found = *(volatile int *)&flag_word) == 0)
            ;
        out[0] = found;
        atomicExch(&flag_word, 0);
    }
}

__device__ void grid_barrier() {
    __syncthreads();
    if (T == 0) {
        const int before = sense;
        __threadfence();
        if (atomicAdd(&arrived, 1) == gridDim.x - 1) {
            arrived = 0;
            __threadfence();
            sense = before + 1;
        } else {
            while (sense == before)
                ;
        }
        __threadfence();
    }
    __syncthreads();
}

extern "C" __global__ void grid_barrier_by_counter(unsigned *out) {
    __shared__ unsigned words[64];
    const unsigned i = blockIdx.x * blockDim.x + T, all = gridDim.x * blockDim.x;
    out[i] = 3 * i;
    grid_barrier();
    words[T] = *(volatile unsigned *)(out + all - 1 - i);
    grid_barrier();
    out[i] = words[T];
}

extern "C" __global__ void grid_barrier_twice(unsigned *out) {
    if (T == 0)
        out[blockIdx.x] = blockIdx.x + 1;
    for (unsigned step = 1; step < gridDim.x; step *= 2) {
        grid_barrier();
        const unsigned other = *(volatile unsigned *)(out + (blockIdx.x + step) % gridDim.x);
        grid_barrier();
        if (T == 0)
            out[blockIdx.x] += other;
    }
}

extern "C" __global__ void release_acquire_shared(unsigned *out) {
    __shared__ unsigned message_shared, flag;
    if (T == 0)
        flag = 0;
    __syncthreads();
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(&flag));
    if (T == 32) {
        message_shared = 42;
        asm volatile("st.release.cta.shared.u32 [%0], 1;" ::"r"(address) : "memory");
    } else if (T < 32) {
        unsigned seen;
        do
            asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(seen) : "r"(address) : "memory");
        while (seen == 0);
        out[T] = message_shared;
    }
}

extern "C" __global__ void release_acquire_global(unsigned *out) {
    if (blockIdx.x == 0) {
        if (T == 0) {
            message = 43;
            asm volatile("st.release.gpu.u32 [%0], 1;" ::"l"(&flag_word) : "memory");
        }
    } else {
        unsigned seen;
        do
            asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(&flag_word) : "memory");
        while (seen == 0);
        out[T] = message;
        __syncwarp();
        if (T == 0)
            flag_word = 0;
    }
}

extern "C" __global__ void fence_and_relaxed_flag(unsigned *out) {
    __shared__ unsigned message_shared, flag;
    if (T == 0)
        flag = 0;
    __syncthreads();
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(&flag));
    if (T == 32) {
        message_shared = 44;
        asm volatile("fence.acq_rel.cta; st.relaxed.cta.shared.u32 [%0], 1;" ::"r"(address) : "memory");
    } else if (T < 32) {
        unsigned seen;
        do
            asm volatile("ld.relaxed.cta.shared.u32 %0, [%1];" : "=r"(seen) : "r"(address) : "memory");
        while (seen == 0);
        asm volatile("fence.acq_rel.cta;" ::: "memory");
        out[T] = message_shared;
    }
}

extern "C" __global__ void atomic_flag_in_shared(unsigned *out) {
    __shared__ unsigned message_shared, flag;
    if (T == 0)
        flag = 0;
    __syncthreads();
    if (T == 32) {
        message_shared = 45;
        __threadfence_block();
        atomicExch(&flag, 1);
    } else if (T < 32) {
        while (atomicAdd(&flag, 0) == 0)
            ;
        __threadfence_block();
        out[T] = message_shared;
    }
}

extern "C" __global__ void message_without_fence(unsigned *out) {
    __shared__ unsigned message_shared;
    __shared__ volatile unsigned flag;
    if (T == 0)
        flag = 0;
    __syncthreads();
    if (T == 32) {
        message_shared = 46;
        flag = 1;
    } else if (T < 32) {
        while (flag == 0)
            ;
        out[T] = message_shared;
    }
}

extern "C" __global__ void shared_race_neighbour(unsigned *out) {
    __shared__ unsigned words[64];
    words[T] = T;
    out[T] = words[T ^ 32];
}

extern "C" __global__ void shared_race_neighbour_correct(unsigned *out) {
    __shared__ volatile unsigned words[64];
    words[T] = T;
    __syncthreads();
    out[T] = words[T ^ 32];
}

extern "C" __global__ void shared_race_overwrite(unsigned *out) {
    __shared__ unsigned words[64];
    words[T] = T;
    __syncthreads();
    const unsigned other = words[T ^ 32];
    words[T] = other + 1;
    __syncthreads();
    out[T] = words[T];
}

extern "C" __global__ void shared_race_overwrite_correct(unsigned *out) {
    __shared__ volatile unsigned words[64];
    words[T] = T;
    __syncthreads();
    const unsigned other = words[T ^ 32];
    __syncthreads();
    words[T] = other + 1;
    __syncthreads();
    out[T] = words[T];
}

extern "C" __global__ void global_race_counter(unsigned *out) {
    out[0] += 1;
}

extern "C" __global__ void global_race_counter_correct(unsigned *out) {
    const unsigned old = atomicInc(reinterpret_cast<unsigned *>(&counter_word), 511);
    if (old == 511)
        out[0] = old + 1;
}

extern "C" __global__ void global_race_neighbour_block(unsigned *out) {
    unsigned *words = out;
    const unsigned i = blockIdx.x * 32 + T;
    words[i] = i;
    words[i] = words[(i + 32) % 128] + 1;
}

extern "C" __global__ void global_race_neighbour_warp(unsigned *out) {
    unsigned *words = out;
    words[T] = T;
    const unsigned other = words[T ^ 32];
    __syncthreads();
    words[T] = other;
}

extern "C" __global__ void global_race_neighbour_warp_correct(unsigned *out) {
    volatile unsigned *words = out;
    words[T] = T;
    __syncthreads();
    const unsigned other = words[T ^ 32];
    __syncthreads();
    words[T] = other;
}

extern "C" __global__ void global_same_value_from_all(unsigned *out) {
    out[0] = 5;
}

extern "C" __global__ void last_block_reduces(unsigned *out) {
    __shared__ bool last;
    static __device__ unsigned partial[8];
    if (T == 0) {
        partial[blockIdx.x] = 32;
        last = last_of_grid();
    }
    __syncthreads();
    if (last && T == 0) {
        unsigned sum = 0;
        for (int i = 0; i < 8; ++i)
            sum += *(volatile unsigned *)(partial + i);
        out[0] = sum;
        arrived = 0;
    }
}

extern "C" __global__ void volatile_reads_again(unsigned *out) {
    __shared__ volatile unsigned stage;
    if (T == 0)
        stage = 0;
    __syncthreads();
    if (T == 0) {
        stage = 1;
        while (stage != 2)
            ;
        stage = 3;
    } else if (T == 32) {
        while (stage != 1)
            ;
        stage = 2;
        while (stage != 3)
            ;
        out[0] = stage;
    }
}

extern "C" __global__ void backoff_with_nanosleep(unsigned *out) {
    __shared__ volatile unsigned flag;
    if (T == 0)
        flag = 0;
    __syncthreads();
    if (T == 0) {
        while (flag == 0)
            __nanosleep(100);
        out[0] = flag;
    } else if (T == 32) {
        __nanosleep(1000);
        flag = 4;
    }
}
