// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// One word decides whether what threads do is ordered: a scope, a fence, a meeting.

//:: WORDS
__device__ unsigned flags[8];
__device__ unsigned look(unsigned *word) { return *(volatile unsigned *)word; }
__device__ void put(unsigned *word, unsigned value) { *(volatile unsigned *)word = value; } // meets

//:: MESSAGE
//: grid = 2
//: before = "WORDS"
//: READER = "t == 0 && w == 1"
//: FIRST = ""
//: THEN = ""
    if (t == 0 && w == 0) {
        b[0] = a[0]; // meets
        FIRST
        asm volatile("STORE.global.u32 [%0], 1;" ::"l"(flags) : "memory"); // meets
    }
    if (READER) {
        unsigned found;
        do
            asm volatile("LOAD.global.u32 %0, [%1];" // meets
                         : "=r"(found) : "l"(flags) : "memory");
        while (!found);
        THEN
        c[0] = b[0]; // meets
    }

//:: relaxed store of a block's scope to another block
//: frame = "MESSAGE"
//: STORE = "st.relaxed.«cta¦gpu»"
//: LOAD = "ld.relaxed.gpu"
//: FIRST = "__threadfence();"
//: THEN = "__threadfence();"

//:: relaxed load of a block's scope from another block
//: frame = "MESSAGE"
//: STORE = "st.relaxed.gpu"
//: LOAD = "ld.relaxed.«cta¦gpu»"
//: FIRST = "__threadfence();"
//: THEN = "__threadfence();"

//:: relaxed load in a block without fence
//: frame = "MESSAGE"
//: STORE = "st.relaxed.cta"
//: LOAD = "ld.relaxed.cta"
//: FIRST = "__threadfence_block();"
//: THEN = "«¦__threadfence_block();»"
//: grid = 1
//: READER = "t == 32"

//:: release to a cluster that is a block
//: frame = "MESSAGE"
//: STORE = "st.release.«cluster¦gpu»"
//: LOAD = "ld.acquire.gpu"

//:: acquire in a cluster that is a block
//: frame = "MESSAGE"
//: STORE = "st.release.gpu"
//: LOAD = "ld.acquire.«cluster¦gpu»"

//:: fence of a cluster that is a block
//: frame = "MESSAGE"
//: STORE = "st.relaxed.gpu"
//: LOAD = "ld.acquire.gpu"
//: FIRST = 'asm volatile("fence.acq_rel.«cluster¦gpu»;" ::: "memory");'

//:: release whose word another block overwrites
//: grid = 3
//: before = "WORDS"
    if (t == 0 && w == 0) {
        b[0] = a[0]; // meets
        asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flags) : "memory");
    }
    if (t == 0 && w == 1) {
        «while (look(flags) != 1)
            ;
        asm volatile("st.relaxed.gpu.global.u32 [%0], 2;" ::"l"(flags) : "memory");¦while (
            atomicCAS(flags, 1u, 2u) != 1)
            ;»
    }
    if (t == 0 && w == 2) {
        unsigned found;
        do
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(found) : "l"(flags) : "memory");
        while (found != 2);
        c[0] = b[0]; // meets
    }

//:: fence and signal by two lanes
//: grid = 2
//: block = 32
//: before = "WORDS"
    if (w == 0) {
        if (t == 0) {
            b[0] = a[0]; // meets
            __threadfence();
        }
        «¦__syncwarp();»
        if (t == 1) {
            __threadfence();
            put(flags, 1);
        }
    }
    if (w == 1 && t == 0) {
        while (!look(flags))
            ;
        __threadfence();
        c[0] = b[0]; // meets
    }

//:: word of a vector that another stores
//: grid = 1
    if (t == 0)
        *(int4 *)b = make_int4(1, 2, 3, 4); // meets
    if (t == 33)
        b[«2¦4»] = 9; // meets

//:: who arrives reads as if it had waited
//: grid = 1
    if (t < 32) {
        b[t] = a[t]; // meets
        asm volatile("bar.«arrive¦sync» 1, 64;" ::: "memory");
        c[t] = b[t + 32]; // meets
    } else {
        b[95 - t] = a[t]; // meets
        asm volatile("bar.sync 1, 64;" ::: "memory");
        c[t] = b[t - 32]; // meets
    }

//:: word in shared memory that tells of one in global memory
//: grid = 1
//: before = "WORDS"
    __shared__ unsigned flag;
    if (t == 0)
        flag = 0;
    __syncthreads();
    if (t == 0) {
        b[0] = a[0]; // meets
        «¦__threadfence_block();»
        put(&flag, 1);
    }
    if (t == 32) {
        while (!look(&flag))
            ;
        c[0] = b[0]; // meets
    }

//:: word in global memory that tells of one in shared memory
//: grid = 1
//: before = "WORDS"
//: shared = true
    __shared__ int data;
    if (t == 0) {
        data = a[0]; // meets
        «¦__threadfence();»
        put(flags, 1);
    }
    if (t == 32) {
        while (!look(flags))
            ;
        __threadfence();
        c[0] = data; // meets
    }
