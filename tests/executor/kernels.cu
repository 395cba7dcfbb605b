// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Kernels, and what `test_executor_kernels.py` holds them to. `arrays` are formulas of NumPy's; `gives` says
// what each holds behind the launch, with t for the place of an element. `kind`, `words` and `place` tell of
// the fault in the `// planted` line; where a text has «wrong¦right», they are told of the wrong one. `lines`
// has counters of the line with such a comment; {word} in words or remarks is the number of that line.

//:: diverged lanes meet again and share one request
//: arrays = ["zeros(32, 'i4')", "arange(64, dtype='i4')", "zeros(32, 'i4')"]
//: gives = ["t", "t", "where(t % 2, 1, t + 32)"]
//: counters = { branch_divergent_warps = 1 }
//: [lines]
//: all = { global_store_requests = 1, global_store_sectors = 4 }
//: half = { global_store_requests = 1, global_store_efficiency_pct = 50.0 }
//: quarter = { global_store_efficiency_pct = 25.0 }
extern "C" __global__ void k(int *out, const int *in, int *other) {
    int value = in[threadIdx.x];
    if (value & 1)
        other[threadIdx.x] = 1; // half of the warp
    else
        reinterpret_cast<short *>(other)[2 * threadIdx.x] = in[threadIdx.x + 32]; // quarter
    out[threadIdx.x] = value; // all of it
}

//:: block 1's first warp waits for what block 0 writes behind the barrier
//: arrays = ["zeros(1, 'i4')", "zeros(192, 'i4')"]
//: launch = { grid = [2, 1, 1], block = [96, 1, 1] }
//: gives = ["1", "1"]
//: counters = { barriers = 12 }
extern "C" __global__ void k(volatile int *flag, int *count) {
    if (blockIdx.x == 1 && threadIdx.x < 32)
        while (flag[0] == 0)
            ;
    __syncthreads();
    atomicAdd(&count[blockIdx.x * 96 + threadIdx.x], 1);
    __threadfence();
    __syncthreads();
    if (blockIdx.x == 0 && threadIdx.x == 40)
        flag[0] = 1;
}

//:: warps of an inner branch go on to the join around it
//: arrays = ["zeros(128, 'i4')"]
//: launch = { block = [128, 1, 1] }
//: gives = ["where(t < 32, 1065 + t, where(t < 96, 1001, 1))"]
extern "C" __global__ void k(int *out) {
    __shared__ int tile[32];
    const int t = threadIdx.x;
    if (t < 96) {
        if (t < 32) {
            asm volatile("bar.sync 1, 64;" ::: "memory");
            out[t] = tile[t];
        }
        if (t >= 64) {
            tile[t - 64] = t;
            asm volatile("bar.sync 1, 64;" ::: "memory");
        }
        out[t] += 1000;
    }
    __syncthreads();
    out[t] += 1;
}

//:: LEAVES
//: arrays = ["full(160, VALUE, 'i4')", "zeros(128, 'i4')"]
extern "C" __global__ void k(const int *in, int *out) {
    const int t = threadIdx.x, rounds = t & 3;
    int a = in[t];
    #pragma unroll 1
    for (int i = 0; i < rounds; ++i) {
        if (a > 100) {
            ((int4 *)out)[t] = make_int4(a * 7 ^ 5, a / 3, a % 11, a ^ 3);
            return;
        }
        a += in[t + a];
    }
    out[4 * t] = a;
}

//:: lanes that leave a loop by itself, round by round
//: frame = "LEAVES"
//: arrays = ["zeros(160, 'i4')", "zeros(128, 'i4')"]
//: counters = { global_store_requests = 4 }

//:: lanes that leave a loop in its middle, all in one round
//: frame = "LEAVES"
//: arrays = ["full(160, 101, 'i4')", "zeros(128, 'i4')"]
//: counters = { global_store_requests = 2 }

//:: POINTERS
typedef int (*Operation)(int, int);
__device__ int plus(int a, int b) { return a + b; }
__device__ int times(int a, int b) { return a * b; }
__device__ int less(int a, int b) { return a - b; }
__device__ long long wide(int a, int b) { return 7; }
__device__ Operation table[4] = {plus, times, less, 0};
typedef long long (*Other)(int, int);
__device__ Other other = wide;
extern "C" __global__ void k(int *out, int index) {
    Operation chosen = index < 4 ? table[index] : (Operation)other;
    out[threadIdx.x] = chosen(threadIdx.x, 3);
}

//:: a pointer to a function
//: frame = "POINTERS"
//: arrays = ["zeros(32, 'i4')"]
//: launch = { scalars = [1] }
//: gives = ["3 * t"]

//:: a pointer to no function
//: frame = "POINTERS"
//: arrays = ["zeros(32, 'i4')"]
//: launch = { scalars = [3] }
//: kind = "BAD_TARGET"

//:: a pointer to a function of another type
//: frame = "POINTERS"
//: arrays = ["zeros(32, 'i4')"]
//: launch = { scalars = [4] }
//: kind = "BAD_TARGET"

//:: lanes that took a lock in turn meet at the next barrier
//: deep = true
//: arrays = ["zeros(64, 'i4')"]
//: launch = { block = [64, 1, 1] }
//: gives = ["2016"]
//: lines = { together = { global_store_requests = 2 } }
extern "C" __global__ void k(int *out) {
    __shared__ int lock, sum, tile[64];
    const int t = threadIdx.x;
    if (t == 0)
        lock = sum = 0;
    __syncthreads();
    while (atomicCAS(&lock, 0, 1) != 0)
        ;
    __threadfence_block();
    sum += t;
    __threadfence_block();
    atomicExch(&lock, 0);
    __syncthreads();
    tile[t] = sum;
    __syncwarp();
    out[t] = tile[t ^ 1]; // together
}

//:: lanes that come to different barriers
//: deep = true
//: arrays = ["zeros(1, 'i4')", "zeros(32, 'i4')"]
//: kind = "BARRIER"
//: words = "divergent code"
extern "C" __global__ void k(int *lock, int *out) {
    while (atomicCAS(lock, 0, 1) != 0)
        ;
    atomicExch(lock, 0);
    if (threadIdx.x % 2) {
        out[threadIdx.x] = 1;
        asm volatile("bar.sync 0;" ::: "memory");
    } else {
        out[threadIdx.x] = 2;
        asm volatile("bar.sync 0;" ::: "memory");
    }
}

//:: GRID
//: deep = true
__device__ unsigned arrived;
static __device__ void grid_barrier(unsigned round) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(&arrived, 1);
        while (*(volatile unsigned *)&arrived < EXPECTED * round)
            ;
        __threadfence();
    }
    __syncthreads();
}
extern "C" __global__ void k(int *a, int *b, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    a[i] = i;
    grid_barrier(1);
    b[i] = a[(i + 1025) % n];
    grid_barrier(2);
    a[i] = b[(i + 4000) % n];
}

//:: a grid barrier of few blocks
//: frame = "GRID"
//: EXPECTED = "gridDim.x"
//: arrays = ["zeros(320, 'i4')", "zeros(320, 'i4')"]
//: launch = { scalars = [320], grid = [5, 1, 1], block = [64, 1, 1] }
//: gives = ["(t + 5025) % t.size", "(t + 1025) % t.size"]
//: counters = { barriers = 40 }

//:: a grid barrier of more blocks than run together
//: frame = "GRID"
//: EXPECTED = "gridDim.x"
//: arrays = ["zeros(71680, 'i4')", "zeros(71680, 'i4')"]
//: launch = { scalars = [71680], grid = [70, 1, 1], block = [1024, 1, 1] }
//: gives = ["(t + 5025) % t.size", "(t + 1025) % t.size"]
//: counters = { barriers = 8960 }

//:: a grid barrier that waits for more blocks than can ever come
//: frame = "GRID"
//: EXPECTED = "(gridDim.x + 1)"
//: arrays = ["zeros(71680, 'i4')", "zeros(71680, 'i4')"]
//: launch = { scalars = [71680], grid = [70, 1, 1], block = [1024, 1, 1] }
//: kind = "ENDLESS"

//:: blocks of different batches contend for a lock
//: deep = true
//: arrays = ["zeros(1, 'i4')", "zeros(1, 'i4')"]
//: launch = { grid = [70, 1, 1], block = [1024, 1, 1] }
//: gives = ["0", "2415"]
extern "C" __global__ void k(int *lock, int *sum) {
    if (threadIdx.x == 1000) {
        while (atomicCAS(lock, 0, 1) != 0)
            ;
        __threadfence();
        *sum += blockIdx.x;
        __threadfence();
        atomicExch(lock, 0);
    }
}

//:: a loop that gives up by itself ends
//: deep = true
//: arrays = ["zeros(1, 'i4')", "zeros(32, 'i4')"]
//: gives = ["0", "500"]
extern "C" __global__ void k(volatile int *flag, int *out) {
    int tries = 0;
    while (flag[0] == 0 && tries < 500)
        ++tries;
    out[threadIdx.x] = tries;
}

//:: loops that no other thread ends keep their warps together
//: deep = true
//: arrays = ["zeros(1, 'i4')", "zeros(64, 'i4')"]
//: launch = { scalars = [40], block = [64, 1, 1] }
//: lines = { together = { global_store_requests = 2 } }
extern "C" __global__ void k(int *flag, int *out, int n) {
    for (int i = 0; i < n * (threadIdx.x % 32); ++i)
        atomicOr(flag, 1);
    out[threadIdx.x] = 1; // together
}

//:: lanes print one after the other and those elsewhere do not
//: arrays = ["zeros(5, 'i4')"]
//: launch = { grid = [2, 1, 1], block = [5, 1, 1] }
//: gives = ["t % 2 * 3"]
//: printed = "1 of first: 0.5\n3 of first: 1.5\n1 of last: 0.5\n3 of last: 1.5\n"
extern "C" __global__ void k(int *out) {
    if (threadIdx.x % 2)
        out[threadIdx.x] =
            printf("%d of %s: %.1f\n", threadIdx.x, blockIdx.x ? "last" : "first", threadIdx.x * 0.5);
}

//:: a string in memory of any kind is printed
//: arrays = ["frombuffer(b'global\\0', 'u1')"]
//: launch = { block = [2, 1, 1] }
//: printed = "global s m0;global s m1;"
extern "C" __global__ void k(char *given) {
    __shared__ char ours[4];
    char mine[4] = {'m', (char)('0' + threadIdx.x), 0, 0};
    if (threadIdx.x == 0) { ours[0] = 's'; ours[1] = 0; }
    __syncthreads();
    printf("%s %s %s;", given, ours, mine);
}

//:: a string that is nowhere
//: arrays = ["zeros(8, 'u1')"]
//: kind = "OUT_OF_BOUNDS"
extern "C" __global__ void k(const char *text) {
    printf("%s", text + 4096); // planted
}

//:: what malloc gives is checked to the byte
//: arrays = ["zeros(32, 'i4')"]
//: launch = { scalars = [9] }
//: gives = ["t"]
//: remarks = []
//: kind = "OUT_OF_BOUNDS"
//: words = "where nothing is given out"
extern "C" __global__ void k(int *out, int place) {
    char *mine = (char *)malloc(10);
    mine[«place + 1¦place»] = threadIdx.x; // planted
    out[threadIdx.x] = mine[place];
    free(mine);
}

//:: what is not freed is a remark
//: arrays = ["zeros(32, 'i4')"]
//: remarks = ["Of what malloc gave out, 80 bytes in 2 pieces are not freed"]
extern "C" __global__ void k(int *out) {
    int *mine = (int *)malloc(40);
    out[threadIdx.x] = mine != 0;
    if (threadIdx.x < 30) free(mine);
}

//:: freed memory is taken again when no other is left
//: arrays = ["zeros(1, 'i4')"]
//: launch = { block = [1, 1, 1] }
//: gives = ["7100"]
extern "C" __global__ void k(int *out) {
    int given = 0;
    for (int i = 0; i < 100; ++i) {
        int *mine = (int *)malloc(1 << 20);
        if (mine) { mine[i] = i; given += mine[i] == i; }
        free(mine);
    }
    void *all[9];
    for (int i = 0; i < 9; ++i) given += 1000 * ((all[i] = malloc(1 << 20)) != 0);
    out[0] = given;
}

//:: votes of two pairs of warps, one of which counts twice before the other
//: arrays = ["zeros(128, 'i4')"]
//: launch = { block = [128, 1, 1] }
//: gives = ["where(t < 64, 53, 64)"]
extern "C" __global__ void k(int *out) {
    int count = -7;
    const int pair = threadIdx.x / 64;
    for (int i = 0; i <= pair; ++i)
        asm volatile("{ .reg .pred p; setp.gt.u32 p, %1, 10; bar.red.popc.u32 %0, %2, 64, p; }"
                     : "=r"(count) : "r"(threadIdx.x % 64 + i * 20), "r"(pair + 1) : "memory");
    out[threadIdx.x] = count;
}

//:: what a vote gives is defined
//: arrays = ["zeros(32, 'i4')"]
//: launch = { follow_undefined = true }
//: gives = ["5"]
extern "C" __global__ void k(int *out) {
    __shared__ int never[32];
    int count = never[threadIdx.x];
    count = __syncthreads_count(threadIdx.x < 5);
    out[threadIdx.x] = count;
}

//:: DISAGREE
//: arrays = ["zeros(128, 'i4')"]
//: launch = { block = [128, 1, 1] }
//: kind = "BARRIER"
extern "C" __global__ void k(int *out) {
    if (threadIdx.x < 64)
        asm volatile("FIRST;" ::: "memory");
    else
        asm volatile("SECOND;" ::: "memory");
    out[threadIdx.x] = 1;
}

//:: threads that disagree on a count
//: frame = "DISAGREE"
//: FIRST = "bar.sync 1, 64"
//: SECOND = "bar.sync 1, 128"
//: words = ", where others wait for"

//:: threads that disagree on whether all are meant
//: frame = "DISAGREE"
//: FIRST = "bar.sync 0"
//: SECOND = "barrier.sync 0, 128"
//: words = ", where others wait for"

//:: odd lanes vote with lane 0, which their guard leaves out and which comes to a vote of its own later
//: arrays = ["zeros(64, 'u4')"]
//: launch = { block = [64, 1, 1] }
//: gives = ["where(t % 32 == 0, 0xaaaaaa01, where(t % 2, 0xaaaaaa02, 8))"]
extern "C" __global__ void k(unsigned *out) {
    const int t = threadIdx.x;
    unsigned d = 5;
    asm volatile("{ .reg .pred p, q; and.b32 %0, %1, 1; setp.ne.u32 p, %0, 0; setp.gt.u32 q, %1, 8;"
                 "mov.u32 %0, 7; @p vote.sync.ballot.b32 %0, q, 0xaaaaaaab; add.u32 %0, %0, 1; }"
                 : "=&r"(d) : "r"(t % 32));
    if (t % 32 == 0)
        asm volatile("{ .reg .pred q; setp.eq.u32 q, %1, 0; vote.sync.ballot.b32 %0, q, 0xaaaaaaab; }"
                     : "=r"(d) : "r"(t % 32));
    out[t] = d;
}

//:: masks that disagree are a deadlock
//: arrays = ["zeros(32, 'u4')"]
//: kind = "BARRIER"
//: place = { thread = [0, 0, 0] }
//: words = """waits at `vote.sync.ballot.b32` with member mask 0xffffffff for lane 4 of its warp, which waits at \
//: `vote.sync.ballot.b32` in line {planted}"""
extern "C" __global__ void k(unsigned *out) {
    out[threadIdx.x] = __ballot_sync(threadIdx.x == 4 ? 0x30u : 0xffffffffu, 1); // planted
}

//:: POLLING
//: arrays = ["where(arange(32) % 3, 0, 7).astype('i4')", "zeros(32, 'i4')"]
//: launch = { grid = [2, 1, 1] }
//: gives = ["where(t % 3, t + 100, 7)", "where(t % 3, 2 * t + 200, 14)"]
extern "C" __global__ void k(volatile int *flag, int *out) {
    const int t = threadIdx.x;
    if (blockIdx.x == WHO) {
        while (flag[t] == 0)
            ;
        out[t] = 2 * flag[t];
    } else if (t % 3)
        flag[t] = t + 100;
}

//:: lanes of the first block find what they poll for at different times
//: frame = "POLLING"
//: WHO = "0"

//:: lanes of the second block find what they poll for at different times
//: frame = "POLLING"
//: WHO = "1"

//:: predicated multiply-adds are counted as they run
//: arrays = ["zeros(64, 'f4')"]
//: launch = { scalars = [20], block = [64, 1, 1] }
//: gives = ["where(t < 20, 2, 0.5)"]
//: counters = { ffma_thread_instructions = 240 }
extern "C" __global__ void k(float *out, int limit) {
    float r = 1;
    asm volatile("{ .reg .pred p; setp.lt.s32 p, %1, %2; @p fma.rn.f32 %0, %0, %0, %0; }"
                 : "+f"(r) : "r"((int)threadIdx.x), "r"(limit));
    asm volatile("{ .reg .pred p; setp.lt.s32 p, %1, %2; @!p div.rn.f32 %0, %0, 0f40000000; }"
                 : "+f"(r) : "r"((int)threadIdx.x), "r"(limit));
    out[threadIdx.x] = r;
}

//:: floats added atomically lose subnormals in global memory only, however the address was written
//: arrays = ["array([-0.0, 0, -2.0**-130, -2.0**-130], 'f4')", "array([-2.0**-130, 2.0**-126], 'f4')"]
//: launch = { block = [4, 1, 1] }
//: gives = ["array([0, 2.0**-126 - 2.0**-130, -2.0**-130, 2.0**-126])"]
extern "C" __global__ void k(float *out, const float *in) {
    __shared__ float near[2];
    if (threadIdx.x < 2)
        near[threadIdx.x] = in[0];
    __syncthreads();
    float *generic = threadIdx.x < 2 ? near : out + 2;
    if (threadIdx.x % 2 == 0)
        atomicAdd(generic + threadIdx.x / 2 % 2, in[1]);
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(&out[0], in[0]);
        out[1] = near[0];
    }
}

//:: an assertion that fails, and one that holds
//: arrays = ["zeros(32, 'i4')"]
//: gives = ["t"]
//: kind = "TRAP"
//: place = { thread = [5, 0, 0] }
//: words = "fails the assertion `t != 5` (test.cu:{planted}, in void k(int *))"
extern "C" __global__ void k(int *out) {
    const int t = threadIdx.x;
    assert(t != «5¦1000»); // planted
    out[t] = t;
}

//:: a trap behind the end, before a barrier
//: arrays = ["zeros(32, 'i4')"]
//: gives = ["t"]
//: kind = "TRAP"
//: place = { thread = [5, 0, 0] }
extern "C" __global__ void k(int *out) {
    const int t = threadIdx.x;
    if (__builtin_expect(t == «5¦1000», 0))
        __trap();
    __syncthreads();
    out[t] = t;
}

//:: SUM_OF_A_WARP
//: arrays = ["zeros(32, 'i4')"]
extern "C" __global__ void k(int *out) {
    __shared__ volatile int tile[64];
    const int t = threadIdx.x;
    tile[t] = t; // stores
    tile[t + 32] = 0;
    SYNC
    for (int step = 16; step > 0; step /= 2) {
        const int other = tile[t + step]; // reads
        SYNC
        tile[t] = tile[t] + other;
        SYNC
    }
    out[t] = tile[0];
}

//:: volatile words of a warp that nothing orders are remarked on
//: frame = "SUM_OF_A_WARP"
//: SYNC = ""
//: remarks = ["""undefined: line {reads} reads as volatile what another lane of its warp stores in line {stores} \
//: (thread (0, 0, 0) of block (0, 0, 0)), and no __syncwarp orders the two"""]

//:: volatile words of a warp whose lanes meet are not
//: frame = "SUM_OF_A_WARP"
//: SYNC = "__syncwarp();"
//: gives = ["496"]
//: remarks = []

//:: nor are those of lanes that wait for each other
//: arrays = ["zeros(32, 'i4')"]
//: remarks = []
extern "C" __global__ void k(int *out) {
    __shared__ volatile int flags[33];
    flags[threadIdx.x + 1] = 0;
    if (threadIdx.x == 0)
        flags[0] = 100;
    __syncwarp();
    int found;
    while ((found = flags[threadIdx.x]) == 0)
        ;
    flags[threadIdx.x + 1] = found + threadIdx.x;
    out[threadIdx.x] = found;
}

//:: OVERLAP
//: deep = true
extern "C" __global__ void k(float *c, int step, float by) {
    c[blockIdx.x * step + threadIdx.x] = blockIdx.x * by; // planted
}

//:: a race names array, element, threads and lines
//: frame = "OVERLAP"
//: arrays = ["zeros(2048, 'f4')"]
//: launch = { scalars = [63, 1.0], grid = [4, 1, 1], block = [64, 1, 1] }
//: kind = "GLOBAL_RACE"
//: place = { block = [1, 0, 0], thread = [0, 0, 0] }
//: words = """writes element 63 of array 0, which thread (63, 0, 0) of block (0, 0, 0) writes in line {planted} \
//: with another value, and nothing orders them"""

//:: the same value from several threads is no race
//: frame = "OVERLAP"
//: arrays = ["ones(64, 'f4')"]
//: launch = { scalars = [0, 0.0], grid = [4, 1, 1], block = [64, 1, 1] }
//: gives = ["0"]

//:: a sum that lanes have in other orders is one value
//: arrays = ["zeros(64, 'f4')"]
//: launch = { block = [64, 1, 1] }
//: gives = ["1"]
//: kind = "SHARED_RACE"
//: words = "which another thread writes in line {planted} with another value, and nothing orders them"
extern "C" __global__ void k(float *out) {
    __shared__ float sum;
    sum = 1 + threadIdx.x * «1e-4f¦1e-7f»; // planted
    __syncthreads();
    out[threadIdx.x] = rintf(sum);
}

//:: blocks of different batches race too
//: frame = "OVERLAP"
//: arrays = ["zeros(1024, 'f4')"]
//: launch = { scalars = [0, 1.0], grid = [2048, 1, 1], block = [1024, 1, 1] }
//: kind = "GLOBAL_RACE"

//:: what lanes store before they part and after is judged by the time it happened
//: deep = true
//: arrays = ["zeros(128, 'i4')"]
//: launch = { block = [64, 1, 1] }
//: kind = "GLOBAL_RACE"
//: words = "in line {early} "
extern "C" __global__ void k(int *c) {
    c[threadIdx.x] = 1; // early
    c[threadIdx.x ^ 32] = 2; // planted
    __syncthreads();
    c[64 + threadIdx.x] = 3;
}

//:: PARTS
//: deep = true
//: arrays = ["zeros(16, 'i4')"]
//: launch = { grid = [8, 1, 1], block = [1, 1, 1] }
extern "C" __global__ void k(int *out) {
    volatile int *parts = out + 1;
    parts[blockIdx.x] = blockIdx.x; // stores
    FENCE
    if (atomicAdd(out + 9, 1) == gridDim.x - 1)
        out[0] = parts[0] + parts[1] + parts[2]; // reads
}

//:: volatile words of other blocks that no fence orders are remarked on
//: frame = "PARTS"
//: FENCE = ""
//: remarks = ["""undefined: line {reads} reads as volatile what another block stores in line {stores} \
//: (thread (0, 0, 0) of block (7, 0, 0)), and no __threadfence orders the two"""]

//:: volatile words of other blocks behind a fence are not
//: frame = "PARTS"
//: FENCE = "__threadfence();"
//: remarks = []

//:: the word that a swap checks may lie behind another address
//: deep = true
//: arrays = ["zeros(2, 'i4')"]
//: launch = { grid = [3, 1, 1], block = [64, 1, 1] }
//: gives = ["192 * (t + 1)"]
extern "C" __global__ void k(int *a) {
    int old = a[1], seen;
    do
        old = atomicCAS(&a[1], seen = old, seen + 2);
    while (old != seen);
    atomicAdd(&a[0], 1);
}

//:: TILE
//: arrays = ["zeros(128, 'f4')", "random.default_rng(3).integers(-4, 5, 192).astype('f2').view('u4')"]
//: BLOCK_SYNC = "__syncthreads();"
//: FILLED = "96"
//: AT = "0"
//: TO_B = "256"
extern "C" __global__ void k(float *out, const unsigned *in) // a tensor core's product of two tiles
{
    __shared__ __align__(16) unsigned s[192];
    const int lane = threadIdx.x;
    for (int i = lane; i < FILLED; i += 32)
        s[i] = in[i];
    BLOCK_SYNC
    unsigned a[2], b, at = (unsigned)__cvta_generic_to_shared(s) + lane % 16 * 16 + AT;
    float d[4] = {};
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(a[0]), "=r"(a[1]) : "r"(at) : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" // tile of B
                 : "=r"(b) : "r"(at + TO_B) : "memory");
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6},"
                 " {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(b));
    for (int i = 0; i < 4; ++i) out[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = d[i];
}

//:: a tile read without a barrier is a race
//: frame = "TILE"
//: BLOCK_SYNC = ""
//: kind = "SHARED_RACE"

//:: a tile that nobody wrote
//: frame = "TILE"
//: FILLED = "64"
//: kind = "UNINITIALISED_SHARED"
//: at = "// tile of B"

//:: a row of a tile that is not aligned
//: frame = "TILE"
//: AT = "4"
//: kind = "MISALIGNED"

//:: a row of a tile beyond shared memory
//: frame = "TILE"
//: TO_B = "4096"
//: kind = "OUT_OF_BOUNDS"

//:: half a warp multiplies tiles
//: frame = "TILE"
//: launch = { block = [16, 1, 1] }
//: kind = "BARRIER"
//: words = "all 32 lanes"

//:: a warp and a half multiply tiles
//: frame = "TILE"
//: launch = { block = [48, 1, 1] }
//: kind = "BARRIER"
//: words = "all 32 lanes"

//:: UNDEFINED
//: deep = true
//: kind = "UNINITIALISED_SHARED"
//: words = "shared memory, which line {read} read and which was never written"
//: launch = { follow_undefined = true }
BODY

//:: of an undefined value the block is named too
//: frame = "UNDEFINED"
//: arrays = ["zeros(256, 'f4')"]
//: launch = { follow_undefined = true, grid = [8, 1, 1] }
//: place = { block = [5, 0, 0], thread = [0, 0, 0] }
extern "C" __global__ void k(float *out) {
    __shared__ float s[32];
    if (blockIdx.x != 5)
        s[threadIdx.x] = 1;
    __syncthreads();
    float v = s[threadIdx.x]; // read
    if (blockIdx.x != 4)
        out[blockIdx.x * 32 + threadIdx.x] = v; // planted
}

//:: of a value that nothing depends on block, thread and byte are named
//: deep = true
//: arrays = ["zeros(3, 'f4')"]
//: launch = { follow_undefined = true, grid = [4, 1, 1] }
//: remarks = ["""Line {read} reads byte 128 of shared memory, which was never written (thread (28, 0, 0) of block \
//: (2, 0, 0)); no result depends on it"""]
extern "C" __global__ void k(volatile float *out) {
    __shared__ volatile float s[40];
    s[threadIdx.x] = 1;
    __syncthreads();
    float v = s[threadIdx.x + (blockIdx.x == 2 ? 4 : 0)]; // read
    if (threadIdx.x < 3)
        out[threadIdx.x] = v;
}

//:: through a shuffle and shared memory the read is named: lane 16 takes from r[15] what lane 31 read
//: frame = "UNDEFINED"
//: arrays = ["zeros(32, 'f4')"]
//: place = { thread = [16, 0, 0], address = 124 }
extern "C" __global__ void k(float *out) {
    __shared__ float s[64], r[32];
    if (threadIdx.x < 16)
        s[threadIdx.x] = 1;
    __syncthreads();
    float v = s[threadIdx.x]; // read
    v = __shfl_xor_sync(~0u, v, 16) * 2 + 1;
    r[threadIdx.x] = v;
    __syncwarp();
    out[threadIdx.x] = r[31 - threadIdx.x]; // planted
}

//:: a race comes before what is read by it
//: frame = "UNDEFINED"
//: arrays = ["zeros(32, 'f4')"]
//: kind = "SHARED_RACE"
//: words = ""
extern "C" __global__ void k(float *out) {
    __shared__ float s[64];
    s[threadIdx.x] = 1;
    const float v = *(volatile float *)&s[threadIdx.x ^ 1]; // planted
    out[threadIdx.x] = v + s[threadIdx.x + 32];
}

//:: ASYNC
//: deep = true
//: arrays = ["arange(64, dtype='f4')", "zeros(32, 'f4')"]
//: launch = { follow_undefined = true, scalars = [40] }
//: GUARD = "true"
//: LEFT = "0"
//: STORED = "true"
extern "C" __global__ void k(const float *in, float *out, int n) {
    __shared__ __align__(16) float s[2][32];
    const int t = threadIdx.x;
    for (int stage = 0; stage < 2; ++stage) {
        const unsigned to = (unsigned)__cvta_generic_to_shared(&s[stage][t]);
        const int size = 32 * stage + t < n ? 4 : 0;
        if (GUARD)
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(in + t), "r"(size));
        asm volatile("cp.async.commit_group;");
    }
    asm volatile("cp.async.wait_group LEFT;" ::: "memory");
    __syncthreads();
    const float v = *(volatile float *)&s[1][t ^ 1]; // read
    out[t] = *(volatile float *)&s[0][t ^ 1];
    if (STORED)
        out[t] = v; // planted
}

//:: what an asynchronous copy brings is defined, zeros too
//: frame = "ASYNC"
//: gives = ["t", "where(t < 8, t ^ 1, 0)"]
//: remarks = []

//:: what no copy brought is not defined
//: frame = "ASYNC"
//: GUARD = "32 * stage + t < n"
//: kind = "UNINITIALISED_SHARED"
//: words = "shared memory, which line {read} read and which was never written"
//: place = { thread = [8, 0, 0], address = 164 }

//:: what no copy brought and nobody stores is remarked on
//: frame = "ASYNC"
//: GUARD = "32 * stage + t < n"
//: STORED = "32 + t < n"
//: gives = ["t", "t ^ 1"]
//: remarks = ["""Line {read} reads byte 164 of shared memory, which was never written (thread (8, 0, 0) of block \
//: (0, 0, 0)); no result depends on it"""]

//:: a copy in flight stays the fault that it is
//: frame = "ASYNC"
//: LEFT = "1"
//: launch = { follow_undefined = true, scalars = [64] }
//: at = "// read"
//: kind = "ASYNC_COPY"

//:: a copy in flight is a fault where nobody stores it either
//: frame = "ASYNC"
//: LEFT = "1"
//: STORED = "false"
//: launch = { follow_undefined = true, scalars = [64] }
//: at = "// read"
//: kind = "ASYNC_COPY"

//:: WAITING
//: deep = true
//: arrays = ["zeros(32, 'i4')"]
//: launch = { follow_undefined = true }
extern "C" __global__ void k(int *out) {
    __shared__ int tile[32];
    const int t = threadIdx.x;
    if (WRITES)
        tile[t] = t;
    #pragma unroll 1
    for (int i = t < 16; i < 2; ++i) // lanes from 16 on come a turn later
        if (i) {
            int v;
            asm volatile("ld.shared.u32 %0, [%1];"
                         : "=r"(v) : "r"((int)__cvta_generic_to_shared(tile + t)));
            out[t] = v + __shfl_xor_sync(~0u, t, 1);
        }
}

//:: lanes that wait keep what they read while others read by the same line
//: frame = "WAITING"
//: WRITES = "t >= 16"
//: kind = "UNINITIALISED_SHARED"
//: place = { thread = [0, 0, 0] }

//:: as do those that come later
//: frame = "WAITING"
//: WRITES = "t < 16"
//: kind = "UNINITIALISED_SHARED"
//: place = { thread = [16, 0, 0] }

//:: where all wrote nothing is undefined
//: frame = "WAITING"
//: WRITES = "true"
//: gives = ["t + (t ^ 1)"]

//:: BINS
//: deep = true
//: arrays = ["zeros(4, 'u4')"]
//: CLEAR = ""
//: STORED = "4"
extern "C" __global__ void k(unsigned *out) {
    __shared__ unsigned bins[4];
    CLEAR
    atomicAdd(&bins[threadIdx.x % 4], 1u); // adds
    __syncthreads();
    if (threadIdx.x < STORED)
        out[threadIdx.x] = bins[threadIdx.x]; // stores
}

//:: an address outside of all memory is told by what it comes of: what nobody wrote, or a race
//: arrays = ["zeros(64, 'f4')", "arange(64, dtype='f4')"]
//: launch = { grid = [1, 1, 1], block = [64, 1, 1] }
//: kind = "UNINITIALISED_SHARED"
//: words = "which was never written"
extern "C" __global__ void k(float *out, const float *in) {
    __shared__ int places[64];
    if (threadIdx.x < 40)
        places[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = in[places[threadIdx.x] * 3 / 2]; // planted
}

//:: an atomic operation on what nobody wrote
//: frame = "BINS"
//: at = "// adds"
//: kind = "UNINITIALISED_SHARED"

//:: its result is what counts where values are followed
//: frame = "BINS"
//: launch = { follow_undefined = true }
//: at = "// stores"
//: words = "shared memory, which line {stores} read and which was never written"
//: kind = "UNINITIALISED_SHARED"

//:: if it is stored
//: frame = "BINS"
//: launch = { follow_undefined = true }
//: STORED = "0"
//: remarks = ["""Line {adds} reads byte 0 of shared memory, which was never written (thread (0, 0, 0) of block \
//: (0, 0, 0)); no result depends on it"""]

//:: and was not cleared before
//: frame = "BINS"
//: launch = { follow_undefined = true }
//: CLEAR = "if (threadIdx.x < 4) bins[threadIdx.x] = 0; __syncthreads();"
//: gives = ["8"]
//: remarks = []
