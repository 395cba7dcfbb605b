// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Fences between threads and the copy engine: «what makes it wrong¦what makes it right». The wrong one is
// told at the bulk store, of thread 0 and byte 0, for want of a fence, unless a kernel says otherwise; the
// right one leaves 0 to 255, or twice that.

//:: FRAME
//: kind = "PROXY"
//: line = "cp.async.bulk.global.shared::cta"
//: thread = 0
//: address = 0
//: words = "no fence.proxy.async lies between"
//: times = 1
#define NUMBERS make_float4(4 * t, 4 * t + 1, 4 * t + 2, 4 * t + 3)
#define WRITE ((float4 *)tile)[t] = NUMBERS
#define DOUBLE tile[t].x *= 2, tile[t].y *= 2, tile[t].z *= 2, tile[t].w *= 2
#define READ() asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory")
#define ALL() asm volatile("cp.async.bulk.wait_group 0;" ::: "memory")
#define SEND(waits) if (t == 0) { store(out, tile, 1024); commit(); waits; }
#define SET_UP if (t == 0) { init(b, 1); init(b + 1, 32); fence(); } __syncthreads()
#define GET if (t == 0) { expect(b, 1024); load(tile, in, 1024, b); } wait(b, 0)
extern "C" __global__ void k(const float4 *in, float4 *out) {
    __shared__ __align__(128) struct { float4 tile[64]; u64 b[2]; } all;
    float4 *const tile = all.tile;
    u64 *const b = all.b;
    const int t = threadIdx.x;
BODY
}

//:: writers fence before the barrier
    WRITE; «¦proxy();» __syncthreads(); SEND(READ())

//:: the thread that stores fences behind the barrier
    WRITE; __syncthreads(); if (t == «1¦0») proxy(); SEND(READ())

//:: all writers fence, not only the one that stores
//: address = 16
    WRITE; «if (t == 0) ¦»proxy(); __syncthreads(); SEND(READ())

//:: the fence follows the write
    «proxy(); WRITE;¦WRITE; proxy();» __syncthreads(); SEND(READ())

//:: a fence for shared memory, not for global memory
    WRITE; «asm volatile("fence.proxy.async.global;" ::: "memory");¦proxy();» __syncthreads(); SEND(READ())

//:: threads of one warp meet by __syncwarp
//: thread = 5
    if (t < 32) {
        WRITE; «¦proxy();» __syncwarp();
        if (t == 5) { store(out, tile, 512); commit(); READ(); }
    } else
        ((float4 *)out)[t] = NUMBERS;

//:: lanes meet without the rest of their warp
//: thread = 5
    if (t < 16) {
        WRITE; «¦proxy();» __syncwarp(0xffff);
        if (t == 5) { store(out, tile, 256); commit(); READ(); }
    } else
        ((float4 *)out)[t] = NUMBERS;

//:: the lane that stores fences for those that it has met
//: thread = 5
    if (t < 16) {
        WRITE; __syncwarp(0xffff);
        if (t == 5) { «¦proxy();» store(out, tile, 256); commit(); READ(); }
    } else
        ((float4 *)out)[t] = NUMBERS;

//:: writers arrive at an mbarrier for which the thread that stores waits
//: thread = 32
    SET_UP;
    if (t < 32) {
        tile[t] = in[t]; tile[t + 32] = in[t + 32];
        «arrive(b + 1); proxy();¦proxy(); arrive(b + 1);»
    }
    if (t == 32) { wait(b + 1, 0); store(out, tile, 1024); commit(); READ(); }

//:: warps meet at a barrier of their own
    WRITE; «¦proxy();» asm volatile("bar.sync 1, 64;" ::: "memory"); SEND(READ())

//:: the second tile needs a fence of its own
//: times = 2
    WRITE; proxy(); __syncthreads(); SEND(ALL()) __syncthreads();
    DOUBLE; «¦proxy();» __syncthreads(); SEND(READ())

//:: what a bulk copy brought is changed in place
//: times = 2
    SET_UP; GET; DOUBLE; «¦proxy();» __syncthreads(); SEND(READ())

//:: an atomic operation writes too
//: address = 52
    WRITE; proxy(); __syncthreads();
    if (t == 0) atomicAdd(&tile[3].y, 0.0f);
    «¦proxy();» __syncthreads(); SEND(READ())

//:: a bulk copy overwrites what threads wrote
//: line = "cp.async.bulk.shared::cluster.global"
    SET_UP; tile[t] = make_float4(0, 0, 0, 0); «¦proxy();» __syncthreads(); GET; ((float4 *)out)[t] = tile[t];

//:: an mbarrier needs no fence, but an order, before a copy counts for it
//: kind = "SHARED_RACE"
//: line = '{\n.reg .pred p;\nAGAIN'
//: thread = 32
//: address = 1024
//: words = "uses the mbarrier at"
    if (t == 5) { init(b, 1); init(b + 1, 32); }
    «if (t < 32) __syncwarp();¦__syncthreads();»
    if (t == 5) { expect(b, 1024); load(tile, in, 1024, b); }
    wait(b, 0); ((float4 *)out)[t] = tile[t];

//:: the fence of mbarriers is for nothing else
    SET_UP; WRITE; «fence();¦proxy();» __syncthreads(); SEND(READ())

//:: the source is overwritten only when it has been read
//: kind = "ASYNC_COPY"
//: line = "// again"
//: words = "still reads"
    WRITE; proxy(); __syncthreads(); SEND(«¦READ()») __syncthreads();
    tile[t].x = 0; // again

//:: the thread that overwrites is ordered with the one that waited
//: kind = "SHARED_RACE"
//: line = "// again"
//: thread = 1
//: address = 16
//: words = "which thread (0, 0, 0) of block (0, 0, 0) reads"
    WRITE; proxy(); __syncthreads(); SEND(READ()) «¦__syncthreads();»
    tile[t].x = 0; // again

//:: nobody ends while a copy reads
//: kind = "ASYNC_COPY"
//: address = -1
//: words = "ends without waiting for its bulk copy"
    WRITE; proxy(); __syncthreads(); SEND(«¦READ()»)

//:: a copy is committed before it is waited for
//: kind = "ASYNC_COPY"
//: address = -1
//: words = "ends without waiting for its bulk copy"
    WRITE; proxy(); __syncthreads(); if (t == 0) { store(out, tile, 1024); «¦commit();» READ(); }
