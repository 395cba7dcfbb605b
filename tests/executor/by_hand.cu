// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Kernels that tests of the executor change and launch by hand.

//:: stores, loads and a branch between sums
extern "C" __global__ void k(float *x, float *out, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    float a = x[t], b = x[t + 32], c = 0.5f;
#pragma unroll
    for (int i = 0; i < 6; ++i) {
        c = c * a + b;
        s[t] = c;             // stores between the sums, of values that they make
        __syncwarp();
        b = s[t ^ 1] + a * c; // and loads whose values they take
        __syncwarp();
        if (i == n)           // and a branch that parts the lanes
            if (t % 3 == 0)
                a = b * c - a;
        a = a - b;
    }
    out[t] = a;
    out[t + 32] = b * c + a;
}

//:: a sum of clusters
extern "C" __global__ void __cluster_dims__(SIZE, 1, 1) k(const float *in, float *out, int n) {
    __shared__ float parts[32], total;
    const int t = threadIdx.x;
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x)
        sum += in[i];
    for (int step = 16; step; step /= 2)
        sum += __shfl_down_sync(~0u, sum, step);
    if (t % 32 == 0)
        parts[t / 32] = sum;
    __syncthreads();
    if (t == 0) {
        total = 0;
        for (int i = 0; i < blockDim.x / 32; ++i)
            total += parts[i];
    }
    meet();
    if (rank() == 0 && t == 0) {
        float all = 0;
        for (int other = 0; other < SIZE; ++other)
            all += *pointer(&total, other);
        out[blockIdx.x / SIZE] = all;
    }
    meet();
}

//:: flags from block to block
// Each block waits for a flag in its own memory, which the block before it sets behind a fence.
extern "C" __global__ void __cluster_dims__(4, 1, 1) k(int *out) {
    __shared__ int value, flag;
    const int r = rank();
    if (threadIdx.x == 0) {
        flag = 0;
        value = r == 0;
    }
    meet();
    if (threadIdx.x == 0) {
        if (r > 0)
            while (atomicAdd(&flag, 0) == 0)
                ;
        if (r < 3) {
            *pointer(&value, r + 1) = 2 * value + 1;
            __threadfence();
            atomicExch(pointer(&flag, r + 1), 1);
        }
        out[blockIdx.x] = value;
    }
    meet();
}

//:: a signal within a block
// The first warp of a block tells the second one.
extern "C" __global__ void k(const int *a, int *b, int *c) {
    __shared__ unsigned flag;
    const int w = blockIdx.x, t = threadIdx.x;
    if (t == 0)
        flag = 0;
    __syncthreads();
    const unsigned place = (unsigned)__cvta_generic_to_shared(&flag);
    if (t == 0) {
        b[w] = a[w]; // writes
        asm volatile("STORE.shared::cta.u32 [%0], 1;" ::"r"(place) : "memory"); // signals
    }
    if (t == 32) {
        unsigned found;
        do
            asm volatile("LOAD.shared::cta.u32 %0, [%1];" : "=r"(found) : "r"(place) : "memory"); // waits
        while (found == 0);
        c[w] = b[w]; // reads
    }
}

//:: a ring of two stages
extern "C" __global__ void k(const float4 *in, float4 *out, int steps) {
    __shared__ __align__(128) float4 tile[2][64];
    __shared__ u64 b[2];
    const int t = threadIdx.x;
    if (t == 0) { init(b, 1); init(b + 1, 1); fence(); }
    __syncthreads();
    for (int i = 0; i < steps + 1; ++i) {
        if (t == 0 && i < steps) {
            expect(b + i % 2, 1024);
            load(tile[i % 2], in + i * 64, 1024, b + i % 2); // start
        }
        if (i > 0) {
            const int last = i - 1;
            WAIT
            out[last * 64 + t] = tile[last % 2][63 - t]; // read
        }
        SYNC
    }
}

//:: one bulk copy
extern "C" __global__ void k(const float4 *in, float4 *out) {
    __shared__ __align__(128) float4 tile[128];
    __shared__ u64 b;
    const int t = threadIdx.x;
    if (t == 0) { init(&b, 1); fence(); }
    __syncthreads();
    if (t == 0) {
        expect(&b, 512);
        LOAD // load
    }
    WAIT
    out[t] = tile[t];
}

//:: bulk stores of one tile
extern "C" __global__ void k(float4 *out) {
    __shared__ __align__(128) float4 tile[64];
    const int t = threadIdx.x;
    for (int i = 0; i < 3; ++i) {
        tile[t] = make_float4(i, t, 0, 0); // write
        proxy();
        BEFORE
        if (t == 0) {
            store(out + i * 64, tile, 1024); // store
            commit();
            WAIT
        }
        AFTER
    }
}

//:: a box of a tensor map
#define IN const __grid_constant__ Map
extern "C" __global__ void k(IN map, unsigned *out, int x, int y, int bytes) {
    extern __shared__ __align__(1024) unsigned tile[];
    __shared__ u64 b;
    const int t = threadIdx.x;
    if (t == 0) { init(&b, 1); fence(); }
    __syncthreads();
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map));
    if (t == 0) {
        expect(&b, bytes);
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%3, %4}], [%2];" ::"r"(at(tile + OFFSET)), "l"(&map), "r"(at(&b)),
                     "r"(x), "r"(y) : "memory"); // tensor
    }
    wait(&b, 0);
    for (int i = t; i < bytes / 4; i += 32)
        out[blockIdx.x * (bytes / 4) + i] = tile[OFFSET + i];
}

//:: a tensor map that the kernel makes
// A map of 32-bit elements, 20 rows of 36, that the kernel makes itself: boxes of 4 rows of 8.
#define SET(text, ...) \
    asm volatile("tensormap.replace.tile." text ";" ::__VA_ARGS__ : "memory")
extern "C" __global__ void k(const unsigned *in, unsigned *out, char *scratch, int x, int y) {
    __shared__ __align__(128) unsigned map[32];
    __shared__ __align__(128) unsigned tile[32];
    __shared__ u64 b;
    const int t = threadIdx.x;
    map[t] = 0;
    if (t == 0) { init(&b, 1); fence(); }
    __syncthreads();
    const unsigned m = at(map);
    if (t == 0) {
        SET("global_address.shared::cta.b1024.b64 [%0], %1", "r"(m), "l"(in));
        SET("rank.shared::cta.b1024.b32 [%0], 1", "r"(m));
        SET("box_dim.shared::cta.b1024.b32 [%0], 0, %1", "r"(m), "r"(8));
        SET("box_dim.shared::cta.b1024.b32 [%0], 1, %1", "r"(m), "r"(4));
        SET("global_dim.shared::cta.b1024.b32 [%0], 0, %1", "r"(m), "r"(36));
        SET("global_dim.shared::cta.b1024.b32 [%0], 1, %1", "r"(m), "r"(20));
        SET("global_stride.shared::cta.b1024.b64 [%0], 0, %1", "r"(m), "l"(144ull));
        SET("element_stride.shared::cta.b1024.b32 [%0], 0, %1", "r"(m), "r"(1));
        SET("element_stride.shared::cta.b1024.b32 [%0], 1, %1", "r"(m), "r"(1));
        SET("elemtype.shared::cta.b1024.b32 [%0], 2", "r"(m));
        SET("swizzle_mode.shared::cta.b1024.b32 [%0], SWIZZLE", "r"(m));
    }
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
                 " [%0], [%1], 128;" ::"l"(scratch), "r"(m) : "memory");
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(scratch) : "memory");
    if (t == 0) {
        expect(&b, 128);
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%3, %4}], [%2];" ::"r"(at(tile)), "l"(scratch), "r"(at(&b)),
                     "r"(x), "r"(y) : "memory");
    }
    wait(&b, 0);
    out[t] = tile[t];
}

//:: a bulk store that is seen
extern "C" __global__ void k(float4 *out, float4 *seen) {
    __shared__ __align__(128) float4 tile[1];
    if (threadIdx.x == 0) {
        tile[0] = make_float4(1, 2, 3, 4);
        proxy();
        store(out, tile, 16);
        commit();
        asm volatile("cp.async.bulk.wait_groupHOW 0;" ::: "memory");
        tile[0] = make_float4(0, 0, 0, 0);
        *seen = *out;
    }
}

//:: blocks send one tile each
extern "C" __global__ void k(float *out) {
    __shared__ __align__(128) float tile[64];
    tile[threadIdx.x] = blockIdx.x + 1;
    proxy();
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("HOW [%0], [%1], 256;" ::"l"(out), "r"(at(tile)) : "memory"); // sends
        commit();
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
}

//:: rounds of two warps
// Two stages: in each round a warp writes one that the other warp has read, and the other way round.
extern "C" __global__ void k(int *out, int rounds, int wrong) {
    __shared__ int stage[2][2][32];
    __shared__ u64 turned;
    const int t = threadIdx.x, warp = t / 32, lane = t % 32;
    if (t == 0) { init(&turned, 64); fence(); }
    __syncthreads();
    int sum = 0;
    for (int i = 0; i < rounds; ++i) {
        stage[i % 2][warp][lane] = i + t;
        arrive_sink(&turned, 1);
        if (i != wrong)
            wait(&turned, i % 2);
        sum += stage[i % 2][1 - warp][lane]; // what the other warp wrote
    }
    out[t] = sum;
}

//:: 64 arrivals
// 64 arrivals, and whether each one's wait would succeed behind them.
extern "C" __global__ void k(int *over) {
    __shared__ u64 b;
    if (threadIdx.x == 0)
        init(&b, EXPECTED);
    __syncthreads();
    u64 state = 0;
    ARRIVE
    __syncthreads();
    unsigned done;
    asm volatile("{.reg .pred p;\nmbarrier.test_wait.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;}"
                 : "=r"(done) : "r"(at(&b)), "l"(state) : "memory");
    over[threadIdx.x] = done;
}

//:: an asynchronous copy of less
extern "C" __global__ void copy(const int *in, int *out, int bytes)
{
    __shared__ __align__(16) int tile[128];
    const unsigned to = (unsigned)__cvta_generic_to_shared(tile + 4 * threadIdx.x);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(in + 4 * threadIdx.x),
                 "r"(min(16, max(0, bytes - 16 * (int)threadIdx.x))));
    asm volatile("cp.async.wait_all;" ::: "memory");
    for (int i = 0; i < 4; ++i)
        out[4 * threadIdx.x + i] = tile[4 * threadIdx.x + i];
}

//:: a bulk copy in and one out
extern "C" __global__ void k(const float *in, float *out) {
    __shared__ __align__(128) float s[128];
    __shared__ u64 b;
    if (threadIdx.x == 0) { init(&b, 1); fence(); }
    __syncthreads();
    if (threadIdx.x == 0) { expect(&b, 128); load(s, in, 128, &b); }
    wait(&b, 0);
    volatile float v = s[threadIdx.x];
    volatile float w = s[32 + threadIdx.x];
    __syncthreads();
    s[64 + threadIdx.x] = STORED;
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        store(out, s + 64, 128);
        commit();
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
