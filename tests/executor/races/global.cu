// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Races on global memory. «racy¦right» is where a kernel and its racy twin differ; `// meets` marks the
// lines whose accesses meet.

//:: TICKET
__device__ unsigned tickets;

//:: LOCK
__device__ int lock, locks[2];
__device__ void take(int *one) {
    while (atomicCAS(one, 0, 1) != 0)
        ;
    __threadfence();
}
__device__ void release(int *one) {
    __threadfence();
    atomicExch(one, 0);
}

//:: initialised by one block
    «if (i == 0)
        b[5] = 7; // meets¦»
    atomicAdd(&b[5], 1); // meets

//:: atomics of a block's own scope
    «atomicAdd_block(c, 1); // meets¦atomicAdd(c, 1);»

//:: two lanes of a warp
    c[«i / 2¦i»] = t; // meets

//:: scratch of another lane
//: grid = 1
    b[t] = a[t]; // meets
    «¦__syncwarp();»
    c[t] = b[t ^ 1]; // meets

//:: what lanes of a warp read, and only some meet
//: grid = 1
//: block = 32
    if (t < 8)
        c[t] = b[0]; // meets
    __syncwarp(t < «4¦8» ? 0x«0f¦ff» : t < «8¦0» ? 0xf0 : 0xffffff00);
    if (t == 0)
        b[0] = 1; // meets

//:: what lanes of a warp store alike, and only some meet
//: grid = 1
//: block = 32
    if (t < 8)
        b[0] = 5; // meets
    __syncwarp(t < «4¦8» ? 0x«0f¦ff» : t < «8¦0» ? 0xf0 : 0xffffff00);
    if (t == 0)
        c[0] = b[0]; // meets

//:: what several warps read, and one barrier is of some
//: grid = 1
//: block = 128
    c[t] = «t < 96¦t < 64» ? *(volatile int *)b : 0; // meets
    if (t / 32 != 2)
        asm volatile("bar.sync 1, 96;" ::: "memory");
    if (t == 96)
        b[0] = 7; // meets

//:: last block with its own block's fence
//: before = "TICKET"
    __shared__ bool last;
    if (t == 0) {
        b[w] = a[i] + 1; // meets
        «__threadfence_block();¦__threadfence();»
        last = atomicAdd(&tickets, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && t < gridDim.x)
        c[t] = b[t]; // meets
    if (last && t == 0)
        tickets = 0;

//:: released by the ticket itself
//: before = "TICKET"
    __shared__ unsigned old;
    b[i] = a[i]; // meets
    __syncthreads();
    if (t == 0)
        asm volatile("atom.«relaxed¦acq_rel».gpu.global.add.u32 %0, [%1], 1;"
                     : "=r"(old) : "l"(&tickets) : "memory");
    __syncthreads();
    if (old == gridDim.x - 1)
        for (int j = t; j < n; j += 64)
        c[j] = b[j]; // meets

//:: grid barrier without a fence
//: before = "TICKET"
    b[i] = a[i]; // meets
    __syncthreads();
    if (t == 0) {
        «¦__threadfence();»
        atomicAdd(&tickets, 1);
        while (*(volatile unsigned *)&tickets < gridDim.x)
            ;
    }
    __syncthreads();
    c[i] = b[(i + 64) % n]; // meets

//:: lock of every lane left out
//: grid = 2
//: block = 32
//: before = "LOCK"
    «¦take(&lock);»
    *c += a[i]; // meets
    «¦release(&lock);»

//:: two locks for one sum
//: before = "LOCK"
    if (t == 0) {
        take(&locks[«w % 2¦0»]);
        *c += a[w]; // meets
        release(&locks[«w % 2¦0»]);
    }

//:: lock with acquire and release
//: before = "LOCK"
    if (t == 0) {
        int held;
        do
            asm volatile("atom.«relaxed¦acquire».gpu.global.cas.b32 %0, [%1], 0, 1;"
                         : "=r"(held) : "l"(&lock) : "memory");
        while (held);
        *c += a[w]; // meets
        asm volatile("st.«relaxed¦release».gpu.global.s32 [%0], 0;" ::"l"(&lock) : "memory");
    }
