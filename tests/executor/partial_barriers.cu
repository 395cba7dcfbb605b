// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Barriers that some of four warps take: «what the twin does wrong¦what is right».

//:: FRAME
static __device__ void sync(int number, int threads) {
    asm volatile("bar.sync %0, %1;" :: "r"(number), "r"(threads) : "memory");
}
static __device__ void arrive(int number, int threads) {
    asm volatile("bar.arrive %0, %1;" :: "r"(number), "r"(threads) : "memory");
}
extern "C" __global__ void k(int *out) {
    __shared__ int tile[128];
    const int t = threadIdx.x, warp = t / 32;
BODY
}

//:: a pair waits for itself
    tile[t] = t; sync(1 + warp / 2, 64); out[t] = tile[t ^ «64¦32»];

//:: all wait where one pair read from the other
    tile[t] = t; sync(1 + warp / 2, 64); «__syncwarp¦__syncthreads»(); out[t] = tile[t ^ 64];

//:: warps outside do not wait
    tile[t] = t;
    «if (warp < 2) sync(1, 64);
    out[t] = tile[127 - t];¦if (warp < 2) { sync(1, 64); out[t] = tile[t ^ 32]; }
    else out[t] = tile[t];»

//:: order is passed on
    if (warp == 0) tile[t] = t;
    if (warp < 2) sync(1, 64);
    if (warp == «3¦1» || warp == 2) sync(2, 64);
    if (warp == 2) out[t] = tile[t - 64];

//:: a reader must be waited for
    if (warp == 0) tile[t] = t;
    if (warp < 2) { sync(1, 64); if (warp == 1) out[t] = tile[t - 32]; «¦sync(1, 64); »}
    if (warp == 0) tile[t] = 5;

//:: who arrives is not ordered with who waits
    «if (warp == 0) { tile[t] = t; arrive(3, 64); tile[t] = 9; }
    if (warp == 1) { sync(3, 64); out[t] = tile[t - 32]; arrive(4, 64); }
    if (warp == 0) sync(4, 64);¦if (warp == 0) { tile[t] = t; arrive(3, 64); sync(4, 64); tile[t] = 9; }
    if (warp == 1) { sync(3, 64); out[t] = tile[t - 32]; arrive(4, 64); }»

//:: what a warp does after it arrived is not ordered by a later arrival of another
    tile[t] = t; __syncthreads();
    if (warp == 1) { out[t] = tile[0]; arrive(3, 96); «out[t] += tile[0]; ¦»}
    if (warp == 2) { out[t] = tile[0]; arrive(3, 96); }
    if (warp == 0) { sync(3, 96); tile[t] = 5; }

//:: many rounds
    for (int i = 0; i < 5; ++i) {
        tile[t] = t + i;
        sync(1 + warp / 2, 64);
        out[t] += tile[t ^ 33];
        «¦sync(1 + warp / 2, 64);»
    }

//:: two teams in turn, then everybody
    tile[t] = t;
    sync(1 + warp / 2, 64);
    const int got = tile[t ^ 32];
    sync(3 + warp % 2, 64);
«        tile[t ^ 64] = got;
    out[t] = tile[t ^ 32];¦        __syncthreads();
    tile[t ^ 96] = got;
    __syncthreads();
    out[t] = tile[t];»

//:: waiting where one has arrived
//: kind = "BARRIER"
//: words = "waits at barrier 4, where it has arrived before"
    arrive(4, 128);
    tile[t] = t;
    «¦__syncthreads();»
    sync(4, 128);
    out[t] = tile[t ^ 96];
