// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Copies in flight to one place: «what makes it wrong¦what makes it right».

//:: FRAME
__device__ __forceinline__ void copy(void *to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at(to)), "l"(from) : "memory");
}
__device__ __forceinline__ void close() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ __forceinline__ void newest() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
__device__ __forceinline__ void track(u64 *b) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(at(b)) : "memory");
}
template <int N> __device__ __forceinline__ void stored() {
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory");
}
template <int N> __device__ __forceinline__ void stores_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}
extern "C" __global__ void k(const float4 *in, float4 *out) {
    __shared__ __align__(128) float4 tile[8][32];
    __shared__ u64 b[2];
    const int t = threadIdx.x;
    if (t == 0) { init(b, 1); init(b + 1, 32); fence(); }
    __syncthreads();
BODY
}

//:: two cp.async of different groups to one place
    copy(tile[0] + t, in + t);
    close();
    «¦newest<0>();»
    copy(tile[0] + t, in + 32 + t);
    close();
    newest<0>();
    out[t] = tile[0][t];

//:: a read after waiting for all groups but one
    copy(tile[0] + t, in + t);
    close();
    «copy(tile[0]¦copy(tile[1]» + t, in + 32 + t);
    close();
    newest<1>();
    out[t] = tile[0][t];

//:: two cp.async of one group
    copy(tile[0] + t, in + t);
    «copy(tile[0]¦copy(tile[1]» + t, in + 32 + t);
    close();
    newest<0>();
    out[t] = tile[0][t];

//:: lanes of one cp.async
//: kind = "SHARED_RACE"
    copy(tile[0] + t % 16, «in + t¦in + t % 16»);
    close();
    newest<0>();
    __syncwarp();
    out[t] = tile[0][t % 16];

//:: an ordinary write while a cp.async is in flight
    copy(tile[0] + t, in + t);
    close();
    «¦newest<0>();»
    tile[0][t].x = 1;
    out[t] = tile[0][t];

//:: an ordinary write of another warp behind a barrier
    copy(tile[0] + t, in + t);
    close();
    «¦newest<0>();»
    __syncthreads();
    tile[0][31 - t].x = 1;
    __syncthreads();
    out[t] = tile[0][t];

//:: four stages in four buffers, not five
    for (int i = 0; i < 4; ++i) {
        copy(tile[i] + t, in + 32 * i + t);
        close();
    }
    float4 sum = {};
    for (int i = 0; i < 12; ++i) {
        «if (i + 4 < 12) copy(tile[i % 4] + t, in + 32 * (i % 8) + t);
        close();
        newest<4>();
        __syncthreads();
        sum.x += tile[i % 4][31 - t].x;
        __syncthreads();¦newest<3>();
        __syncthreads();
        sum.x += tile[i % 4][31 - t].x;
        __syncthreads();
        if (i + 4 < 12) copy(tile[i % 4] + t, in + 32 * (i % 8) + t);
        close();»
    }
    out[t] = sum;

//:: a cp.async after one that an mbarrier tracks
    copy(tile[0] + t, in + t);
    track(b + 1);
    «¦wait(b + 1, 0);»
    copy(tile[0] + t, in + 32 + t);
    close();
    newest<0>();
    out[t] = tile[0][t];

//:: two bulk copies
    if (t == 0) {
        expect(b, 1024);
        load(tile[0], in, 512, b);
        «load(tile[0]¦load(tile[1]», in + 32, 512, b);
    }
    wait(b, 0);
    out[t] = tile[0][t];

//:: bulk copies of several lanes
//: kind = "SHARED_RACE"
    if (t == 0) expect(b, 1024);
    __syncwarp();
    if (t < 2) «load(tile[0] + t¦load(tile[t]», in + 32 * t, 512, b);
    wait(b, 0);
    out[t] = tile[0][t];

//:: a bulk copy to where a cp.async is in flight
    copy(tile[0] + t, in + t);
    close();
    «¦newest<0>();»
    proxy();
    __syncthreads();
    if (t == 0) {
        expect(b, 512);
        load(tile[0], in, 512, b);
    }
    wait(b, 0);
    out[t] = tile[0][t];

//:: a cp.async to where a bulk copy is in flight
    if (t == 0) {
        expect(b, 512);
        load(tile[0], in, 512, b);
    }
    «¦wait(b, 0);»
    copy(tile[0] + t, in + t);
    close();
    newest<0>();
    out[t] = tile[0][t];

//:: a bulk store of what a bulk copy brings
    if (t == 0) {
        expect(b, 512);
        load(tile[0], in, 512, b);
        «¦wait(b, 0);»
        store(out, tile[0], 512);
        commit();
        stored<0>();
    }

//:: a bulk store of what cp.async brings
    copy(tile[0] + t, in + t);
    close();
    «¦newest<0>();»
    proxy();
    __syncthreads();
    if (t == 0) {
        store(out, tile[0], 512);
        commit();
        stored<0>();
    }

//:: a bulk copy over what a bulk store reads
    tile[0][t] = in[t];
    proxy();
    __syncthreads();
    if (t == 0) {
        store(out, tile[0], 512);
        commit();
        «¦stores_read<0>();»
        expect(b, 512);
        load(tile[0], in + 32, 512, b);
        wait(b, 0);
    }

//:: a cp.async over what a bulk store reads
    tile[0][t] = in[t];
    proxy();
    __syncthreads();
    if (t == 0) {
        store(out, tile[0], 512);
        commit();
        «¦stores_read<0>();»
        copy(tile[0], in + 32);
        close();
        newest<0>();
    }

//:: an ordinary write of what a bulk copy reads
    if (t == 0) {
        expect(b, 512);
        load(tile[0], in, 512, b);
    }
    «if (t == 0) ((float4 *)in)[t].x = 1;
    wait(b, 0);
    out[t] = tile[0][t];¦wait(b, 0);
    out[t] = tile[0][t];
    ((float4 *)in)[t].x = 1;»

//:: a bulk store over what a bulk copy reads
    tile[0][t] = in[t];
    proxy();
    __syncthreads();
    if (t == 0) {
        expect(b, 512);
        load(tile[1], out, 512, b);
        «store(out, tile[0], 512);
        wait(b, 0);¦wait(b, 0);
        store(out, tile[0], 512);»
        commit();
        stored<0>();
    }

//:: an ordinary read of what a bulk store writes
    tile[0][t] = in[t];
    proxy();
    __syncthreads();
    if (t == 0) {
        store(out, tile[0], 512);
        commit();
        «stores_read<0>();¦stored<0>();»
    }
    __syncthreads();
    ((float4 *)in)[t] = out[31 - t];
    __syncthreads();
    if (t == 0) stored<0>();

//:: two bulk stores to one place
    tile[0][t] = in[t];
    tile[1][t] = in[32 + t];
    proxy();
    __syncthreads();
    if (t == 0) {
        store(out, tile[0], 512);
        commit();
        «¦stored<0>();»
        store(out, tile[1], 512);
        commit();
        stored<0>();
    }

//:: a bulk copy of what a bulk store writes
    tile[0][t] = in[t];
    proxy();
    __syncthreads();
    if (t == 0) {
        store(out, tile[0], 512);
        commit();
        «stores_read<0>();¦stored<0>();»
        expect(b, 512);
        load(tile[1], out, 512, b);
    }
    wait(b, 0);
