// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
//
// What a modelled time needs to know of a device beside the rates of rates.cu: how long single instructions, requests,
// copies, blocks and fetches take. Each warp writes four values to `out`: its first and last clock cycle, and the
// same in nanoseconds. Code is gone through twice and measured the second time, unless its fetch is the question.
// `zero` is 0, which the compiler cannot know; `sink` is written only where an impossible condition holds.

#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)
#define STEPS 16
#define ARRAY_BYTES 32768
#define LANES_APART (255 * 8192)

typedef unsigned long long u64;

static __device__ __forceinline__ u64 nanoseconds()
{
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

static __device__ __forceinline__ void stamp(long long *out, long long begin, long long end, u64 from, u64 to)
{
    if (threadIdx.x % 32 == 0) {
        out += THREAD / 32 * 4;
        out[0] = begin;
        out[1] = end;
        out[2] = from;
        out[3] = to;
    }
}

static __device__ __forceinline__ unsigned shared_address(const void *at)
{
    return (unsigned)__cvta_generic_to_shared(at);
}

// STEPS times `body` a round, timed.
#define TIMED(rounds, body)                                                                                            \
    long long begin = 0, end = 0;                                                                                      \
    u64 from = 0, to = 0;                                                                                              \
    _Pragma("unroll 1") for (int pass = 0; pass < 2; ++pass)                                                           \
    {                                                                                                                  \
        __syncthreads();                                                                                               \
        from = nanoseconds();                                                                                          \
        begin = clock64();                                                                                             \
        _Pragma("unroll 1") for (int round = 0; round < rounds; ++round)                                               \
        {                                                                                                              \
            _Pragma("unroll") for (int step = 0; step < STEPS; ++step)                                                 \
            {                                                                                                          \
                body;                                                                                                  \
            }                                                                                                          \
        }                                                                                                              \
        end = clock64();                                                                                               \
        to = nanoseconds();                                                                                            \
    }                                                                                                                  \
    stamp(out, begin, end, from, to);

extern "C" __constant__ unsigned constants[64] = {0};

template <int CHAINS, typename T, typename Step>
static __device__ void repeated(int rounds, T first, Step one, float *sink, long long *out)
{
    T value[CHAINS];
    for (int i = 0; i < CHAINS; ++i)
        value[i] = first;
    const T other = first + (T)rounds;
    TIMED(rounds, for (int i = 0; i < CHAINS; ++i) one(value[i], other));
    T total = 0;
    for (int i = 0; i < CHAINS; ++i)
        total += value[i];
    if (total == (T)123456789)
        *sink = (float)total;
}

struct Tile {
    float value[4];
};
struct Pair {
    double value[2];
};

template <int CHAINS, typename Sum, typename Step>
static __device__ void multiplied(int rounds, Step one, float *sink, long long *out)
{
    Sum sum[CHAINS] = {};
    const unsigned half = rounds < 0;
    TIMED(rounds, for (int i = 0; i < CHAINS; ++i) one(sum[i], half));
    double total = 0;
    for (int i = 0; i < CHAINS; ++i)
        for (auto each : sum[i].value)
            total += each;
    if (total == 123456789)
        *sink = (float)total;
}

#define ONE(number, type, mark, text)                                                                                  \
    case number: {                                                                                                     \
        auto one = [](type &value, type other) { asm volatile(text : "+" mark(value) : mark(other)); };                \
        chains == 1 ? repeated<1, type>(rounds, (type)first, one, sink, out)                                           \
                    : repeated<4, type>(rounds, (type)first, one, sink, out);                                          \
        break;                                                                                                         \
    }
#define TENSOR(number, text, ...)                                                                                      \
    case number: {                                                                                                     \
        auto one = [](Tile &sum, unsigned a) {                                                                         \
            asm volatile(text                                                                                          \
                         : "+f"(sum.value[0]), "+f"(sum.value[1]), "+f"(sum.value[2]), "+f"(sum.value[3])              \
                         : "r"(a));                                                                                    \
        };                                                                                                             \
        chains == 1 ? multiplied<1, Tile>(rounds, one, sink, out) : multiplied<4, Tile>(rounds, one, sink, out);       \
        break;                                                                                                         \
    }

// One instruction after another, in one chain, which shows its latency, or in four, which show its rate.
extern "C" __global__ void instructions(int kind, int chains, int rounds, float *sink, long long *out)
{
    __shared__ u64 barrier;
    // Of each lane another, so that nothing is reckoned once for a whole warp.
    const unsigned first = threadIdx.x % 16 * 4;
    switch (kind) {
        ONE(0, unsigned, "r", "lop3.b32 %0, %0, %1, 0x55aa77, 0xe8;")
        ONE(1, unsigned, "r", "mul.hi.u32 %0, %0, %1;")
        ONE(2, float, "f", "ex2.approx.ftz.f32 %0, %0;")
        ONE(3, float, "f", "{ .reg .s32 t; cvt.rni.s32.f32 t, %0; cvt.rn.f32.s32 %0, t; }")
        ONE(4, double, "d", "fma.rn.f64 %0, %0, %1, %1;")
        ONE(5, unsigned, "r", "shfl.sync.bfly.b32 %0, %0, 1, 31, -1;")
        ONE(6, unsigned, "r", "popc.b32 %0, %0;")
        ONE(7, unsigned, "r", "{ .reg .u64 a, b; cvt.u64.u32 b, %0; mov.u64 a, constants; add.u64 a, a, b;"
                               " ld.const.u32 %0, [a]; }")
        ONE(8, float, "f", "membar.gl;")
        ONE(9, float, "f", "bar.sync 0;")
#if __CUDA_ARCH__ >= 800
        ONE(10, unsigned, "r", "redux.sync.add.u32 %0, %0, -1;")
        TENSOR(11, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%4, %4},"
                   " {%0, %1, %2, %3};")
        TENSOR(12, "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4}, {%4},"
                   " {%0, %1, %2, %3};")
        TENSOR(13, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%4, %4},"
                   " {%0, %1, %2, %3};")
        TENSOR(14, "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %4}, {%4},"
                   " {%0, %1, %2, %3};")
    case 15: {
        auto one = [](Pair &sum, unsigned a) {
            asm volatile("{ .reg .f64 a; cvt.rn.f64.u32 a, %2;"
                         " mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {a}, {a}, {%0, %1}; }"
                         : "+d"(sum.value[0]), "+d"(sum.value[1])
                         : "r"(a));
        };
        chains == 1 ? multiplied<1, Pair>(rounds, one, sink, out) : multiplied<4, Pair>(rounds, one, sink, out);
        break;
    }
    case 16: {
        // A barrier in shared memory that every thread of the block arrives at.
        const unsigned at = shared_address(&barrier);
        if (threadIdx.x == 0)
            asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(blockDim.x));
        TIMED(rounds, asm volatile("{ .reg .pred p; .reg .b64 t;\n"
                                   "mbarrier.arrive.shared.b64 t, [%0];\n"
                                   "again: mbarrier.test_wait.shared.b64 p, [%0], t;\n"
                                   "@!p bra again; }" ::"r"(at)
                                   : "memory"));
        break;
    }
#endif
    }
}

enum Space { L2_LOAD, STORE, WIDE_STORE, FETCH_ADD, RED, RED_F32 };

template <int SPACE, bool DEPENDENT>
static __device__ void requested(int rounds, unsigned zero, char *data, unsigned mask, unsigned at, unsigned apart,
                                 float *sink, long long *out)
{
    unsigned total = zero;
    u64 place = (u64)data + (at & mask);
    TIMED(
        rounds, unsigned got = zero;
        if (SPACE == L2_LOAD) asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(got) : "l"(place));
        else if (SPACE == STORE) asm volatile("st.global.u32 [%0], %1;" ::"l"(place), "r"(zero));
        else if (SPACE == WIDE_STORE)
            asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(place), "r"(zero));
        else if (SPACE == FETCH_ADD)
            asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(got) : "l"(place), "r"(zero));
        else if (SPACE == RED) asm volatile("red.global.add.u32 [%0], %1;" ::"l"(place), "r"(zero));
        else asm volatile("red.global.add.f32 [%0], %1;" ::"l"(place), "f"((float)zero));
        if (DEPENDENT) place += got;
        else {
            total += got;
            at += apart;
            place = (u64)data + (at & mask);
        });
    if (total + (unsigned)place == 123456789u)
        *sink = (float)total;
}

#define REQUEST(space)                                                                                                 \
    case space:                                                                                                        \
        dependent ? requested<space, true>(rounds, zero, data, mask, at, apart, sink, out)                             \
                  : requested<space, false>(rounds, zero, data, mask, at, apart, sink, out);                           \
        break;

// Requests of warps whose lanes are `lane_bytes` apart and that are `warp_bytes` apart, STEPS a round, in a power of two
// of bytes of global memory, `mask` and one. Dependent ones wait for the answer of the one before.
extern "C" __global__ void requests(int space, int dependent, int rounds, unsigned zero, unsigned lane_bytes,
                                    unsigned warp_bytes, char *data, unsigned mask, float *sink, long long *out)
{
    const unsigned at = THREAD / 32 * warp_bytes + threadIdx.x % 32 * lane_bytes;
    const unsigned apart = gridDim.x * blockDim.x / 32 * warp_bytes;
    switch (space) {
        REQUEST(L2_LOAD)
        REQUEST(STORE)
        REQUEST(WIDE_STORE)
        REQUEST(FETCH_ADD)
        REQUEST(RED)
        REQUEST(RED_F32)
    }
}

// Blocks that live `cycles` or up to 4,096 more: each warp notes when it was.
extern "C" __global__ void lives(int cycles, long long *out)
{
    const long long begin = clock64();
    const int lives = cycles ? cycles + blockIdx.x * 7919 % 4096 : 0;
    while (clock64() - begin < lives)
        ;
    if (cycles)
        stamp(out, begin, clock64(), 0, 0);
}

// 8,192 instructions in a row, 16 bytes each, three times: cycles of each 256 of them.
extern "C" __global__ void straight_code(int passes, float *sink, long long *out)
{
    float value[4] = {1, 2, 3, 4};
    const float factor = 0.999f + passes * 1e-9f;
    for (int pass = 0; pass < passes; ++pass) {
#pragma unroll
        for (int part = 0; part < 32; ++part) {
            const long long begin = clock64();
#pragma unroll
            for (int i = 0; i < 256; ++i)
                asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(value[i % 4]) : "f"(factor));
            if (THREAD == 0)
                out[pass * 32 + part] = clock64() - begin;
        }
    }
    if (value[0] + value[1] + value[2] + value[3] == 123456789.0f)
        *sink = value[0];
}

// `lanes` threads chase pointers through `ring`, a step of all together, while the other blocks read a power of two
// `quads` of 16 bytes over and over until they are done, and copy them where that is asked for: they note rounds of 32
// accesses for clock cycles.
extern "C" __global__ void loaded_latency(int copying, int steps, int lanes, const char *ring, float4 *data,
                                          u64 quads, unsigned *done, float *sink, long long *out)
{
    if (blockIdx.x == 0) {
        if ((int)threadIdx.x >= lanes)
            return;
        u64 at = (u64)threadIdx.x * LANES_APART;
        const u64 from = nanoseconds();
        const long long begin = clock64();
#pragma unroll 1
        for (int i = 0; i < steps; ++i)
            asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(at) : "l"(ring + at));
        if (at == 1)
            *sink = at;
        stamp(out, begin, clock64(), from, nanoseconds());
        atomicExch(done, 1);
        return;
    }
    float total = 0;
    u64 at = (u64)(blockIdx.x - 1) * blockDim.x + threadIdx.x, rounds = 0;
    const u64 apart = (u64)(gridDim.x - 1) * blockDim.x;
    const u64 from = nanoseconds();
    while (rounds < 1 << 18 && !*(volatile unsigned *)done) {
#pragma unroll 4
        for (int i = 0; i < 32; ++i) {
            const u64 place = at & (quads - 1);
            const float4 got = __ldcg(data + place);
            if (copying)
                data[quads + place] = got;
            total += got.x;
            at += apart;
        }
        ++rounds;
    }
    if (total == 123456789.0f)
        *sink = total;
    stamp(out, 0, rounds, from, nanoseconds());
}

// Blocks read, or write, `run` quads of 16 bytes that lie side by side of each of their rows, eight a thread. Those that
// begin one after the other go down the rows, `pitch` quads apart, or along them.
extern "C" __global__ void dram_runs(int writes, int down, unsigned run, unsigned rows, unsigned pitch, float4 *data,
                                     float *sink)
{
    const unsigned pass = blockDim.x / run, high = rows / (8 * pass), wide = pitch / run;
    const unsigned y = down ? blockIdx.x % high : blockIdx.x / wide;
    const unsigned x = down ? blockIdx.x / high : blockIdx.x % wide;
    float4 *at = data + (u64)(8 * pass * y + threadIdx.x / run) * pitch + x * run + threadIdx.x % run;
    if (writes) {
#pragma unroll
        for (int i = 0; i < 8; ++i)
            at[(u64)i * pass * pitch] = make_float4(1, 2, 3, 4);
        return;
    }
    float total = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i)
        total += __ldcg(at + (u64)i * pass * pitch).x;
    if (total == 123456789.0f)
        *sink = total;
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// Barriers of the two blocks of a cluster, one after the other.
extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_barriers(int rounds, long long *out)
{
    TIMED(rounds, asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory"));
}

// Bulk copies of `bytes` by one thread of each block, each of which is waited for; so many blocks copy the same.
extern "C" __global__ void bulk_copies(int rounds, unsigned bytes, unsigned sharers, char *data, unsigned mask,
                                       long long *out)
{
    __shared__ __align__(128) char array[ARRAY_BYTES];
    __shared__ u64 barrier;
    const unsigned tile = shared_address(array), barred = shared_address(&barrier);
    const unsigned apart = gridDim.x / sharers * bytes;
    unsigned at = blockIdx.x / sharers * bytes;
    for (int i = threadIdx.x; i < ARRAY_BYTES / 16; i += blockDim.x)
        ((float4 *)array)[i] = make_float4(0, 0, 0, 0);
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(barred));
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    long long begin = 0, end = 0;
    u64 from = 0, to = 0;
    unsigned phase = 0;
#pragma unroll 1
    for (int pass = 0; pass < 2; ++pass) {
        from = nanoseconds();
        begin = clock64();
#pragma unroll 1
        for (int round = 0; round < rounds; ++round, at += apart)
            if (threadIdx.x == 0) {
                asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barred), "r"(bytes));
                asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                             ::"r"(tile), "l"(data + (at & mask)), "r"(bytes), "r"(barred) : "memory");
                unsigned ready = 0;
                while (!ready)
                    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                                 : "=r"(ready) : "r"(barred), "r"(phase) : "memory");
                phase ^= 1;
            }
        end = clock64();
        to = nanoseconds();
    }
    stamp(out, begin, end, from, to);
}

// Sums of a product, as operands, and by their numbers in its text.
#define SUMS_4(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define SUMS_16(i) SUMS_4(i), SUMS_4(i + 4), SUMS_4(i + 8), SUMS_4(i + 12)
#define SUMS_32(i) SUMS_16(i), SUMS_16(i + 16)
#define SUMS_64(i) SUMS_32(i), SUMS_32(i + 32)
#define SUMS_128(i) SUMS_64(i), SUMS_64(i + 64)
#define NUMBERS_32                                                                                                     \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"                                             \
    ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define NUMBERS_64 NUMBERS_32                                                                                          \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"                                 \
    ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define NUMBERS_128 NUMBERS_64                                                                                         \
    ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"                                 \
    ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"                                 \
    ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"                     \
    ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define PRODUCT(name, registers, shape, operands)                                                                      \
    static __device__ __forceinline__ void name(float (&sum)[registers], u64 a, u64 b)                                 \
    {                                                                                                                  \
        asm volatile("wgmma.mma_async.sync.aligned." shape " {" NUMBERS_##registers "}, " operands ";"                 \
                     : SUMS_##registers(0)                                                                             \
                     : "l"(a), "l"(b));                                                                                \
    }
PRODUCT(f16_64, 32, "m64n64k16.f32.f16.f16", "%32, %33, 1, 1, 1, 0, 0")
PRODUCT(f16_128, 64, "m64n128k16.f32.f16.f16", "%64, %65, 1, 1, 1, 0, 0")
PRODUCT(f16_256, 128, "m64n256k16.f32.f16.f16", "%128, %129, 1, 1, 1, 0, 0")

#define GROUP(number, form, registers)                                                                                 \
    case number: {                                                                                                     \
        float sum[registers] = {};                                                                                     \
        long long begin = 0, end = 0;                                                                                  \
        _Pragma("unroll 1") for (int pass = 0; pass < 2; ++pass)                                                       \
        {                                                                                                              \
            __syncthreads();                                                                                           \
            begin = clock64();                                                                                         \
            _Pragma("unroll 1") for (int round = 0; round < rounds; ++round)                                           \
            {                                                                                                          \
                asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                                                \
                _Pragma("unroll 1") for (int i = 0; i < depth; ++i) form(sum, one, other);                             \
                asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");                                         \
                asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");                                         \
            }                                                                                                          \
            end = clock64();                                                                                           \
        }                                                                                                              \
        float total = 0;                                                                                               \
        for (int i = 0; i < registers; ++i)                                                                            \
            total += sum[i];                                                                                           \
        if (total == 123456789.0f)                                                                                     \
            *sink = total;                                                                                             \
        stamp(out, begin, end, 0, 0);                                                                                  \
        break;                                                                                                         \
    }

// Matrix products of warp groups, `depth` of them at a time that are then waited for.
extern "C" __global__ void group_products(int kind, int rounds, int depth, float *sink, long long *out)
{
    __shared__ __align__(128) float4 array[ARRAY_BYTES / 16];
    for (int i = threadIdx.x; i < ARRAY_BYTES / 16; i += blockDim.x)
        array[i] = make_float4(0, 0, 0, 0);
    asm volatile("fence.proxy.async;" ::: "memory");
    const u64 layout = (u64)8 << 16 | (u64)16 << 32;
    const u64 one = layout | (shared_address(array) & 0x3ffff) >> 4;
    const u64 other = layout | (shared_address(array + 512) & 0x3ffff) >> 4;
    switch (kind) {
        GROUP(0, f16_64, 32)
        GROUP(1, f16_128, 64)
        GROUP(2, f16_256, 128)
    }
}
#endif
