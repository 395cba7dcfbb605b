// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Kernels that hang, each with a right twin: «what hangs¦what does not». `words` are said of it; `@n` in
// them is the line that ends in `// n`.

//:: FRAME
//: CLUSTER = ""
/*gpuprof
operation = "doubled"
dimensions = ["n"]
default_sizes = "256"
arguments = ["y", "x", "flag", "n"]
[arrays]
x = { shape = ["n"] }
flag = { shape = ["4"], role = "inout", dtype = "i32" }
y = { shape = ["n"], role = "out" }
[inputs]
flag = "zeros"
[work]
bytes = "8 * n"
[check]
y = { value = "2 * x", equal = true }
flag = { value = "flag", absolute = "1000" }
[launch]
block = [128]
grid = ["cdiv(n, 128)"]
*/
typedef unsigned long long u64;
__device__ __forceinline__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void init(u64 *b, int n) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(b)), "r"(n) : "memory");
}
__device__ __forceinline__ void arrive(u64 *b) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(b)) : "memory");
}
__device__ __forceinline__ void expect(u64 *b, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 ::"r"(at(b)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void wait(u64 *b, int parity) {
    asm volatile("{\n.reg .pred p;\nAGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@p bra DONE;\nbra AGAIN;\nDONE:\n}" ::"r"(at(b)), "r"(parity) : "memory");
}
__global__ void CLUSTER hung(float *y, const float *x, int *flag, int n)
{
    const int t = threadIdx.x, warp = t / 32, i = blockIdx.x * blockDim.x + t;
BODY
    if (i < n)
        y[i] = 2 * x[i];
}

//:: a barrier that one warp does not reach
//: words = [
//:     "warps 0–2 of 2 blocks, line @2: `__syncthreads`, where 96 of 128 threads have come",
//:     "warp 3 of 2 blocks, line @1: barrier 1, where 32 of 64 threads have come",
//: ]
    if (warp == 3)
        asm volatile("bar.sync 1, «64¦32»;" ::: "memory"); // 1
    __syncthreads(); // 2

//:: a named barrier with too few
//: words = [
//:     "warps 0–2 of 2 blocks, line @1: barrier 2, where 96 of 128 threads have come",
//:     "warp 3 of 2 blocks: have ended",
//: ]
    if (warp < «3¦4»)
        asm volatile("bar.sync 2, 128;" ::: "memory"); // 1

//:: an arrival too few
//: words = [
//:     "warps 0–3 of 2 blocks, line ",
//:     ", called in line @2: phase 0 of the mbarrier `full[1]`: 1 of 3 arrivals are missing; arrived:",
//:     ", called in line @1, warp 2 in line ",
//: ]
    __shared__ u64 full[2];
    if (t == 0) { init(full, 1); init(full + 1, «3¦2»); }
    __syncthreads();
    if (t == 32 || t == 64)
        arrive(full + 1); // 1
    wait(full + 1, 0); // 2

//:: bytes that nobody copies
//: words = [
//:     "called in line @2: phase 0 of the mbarrier `full[0]`: 512 announced bytes are missing; arrived:",
//:     "called in line @1",
//: ]
    __shared__ u64 full;
    if (t == 0) init(&full, 1);
    __syncthreads();
    if (t == 0)
        expect(&full, «512¦0»); // 1
    wait(&full, 0); // 2

//:: a ring that is never free
//: words = [
//:     "called in line @1: phase 0 of the mbarrier `empty[0]`: 96 of 96 arrivals are missing; nobody",
//:     "called in line @3 (no thread came there)",
//:     "called in line @2: phase 0 of the mbarrier `full[0]`: 1 of 1 arrivals are missing; nobody",
//: ]
    __shared__ u64 full, empty;
    if (t == 0) { init(&full, 1); init(&empty, 96); }
    __syncthreads();
    for (int k = 0; k < 3; ++k) {
        if (warp == 0) {
            wait(&empty, «k &¦(k & 1) ^» 1); // 1
            if (t == 0)
                arrive(&full);
        } else {
            wait(&full, k & 1); // 2
            arrive(&empty); // 3
        }
    }

//:: a flag that nobody sets
//: words = [
//:     "lane 0 of warp 0 of block (1, 0, 0), line @1: flag[2] to change, which holds 0",
//:     "to write it: line @2 (no thread came there)",
//: ]
    if (t == 0 && blockIdx.x == 1)
        while (*(volatile int *)(flag + 2) != 7) // 1
            ;
    if (t == 0 && blockIdx.x == 0« && x[0] > 1e30f¦»)
        atomicExch(flag + 2, 7); // 2

//:: a flag that nobody sets, and a count of how often it was looked at
//: words = [
//:     "line @1: flag[2] to change, which holds 0; no line would write it",
//: ]
    if (t == 0)
        while (*(volatile int *)(flag + 2) «=¦!»= 0) // 1
            atomicAdd(flag + 1, 1);

//:: flags that nobody sets, one for each warp
//: words = [
//:     "Waiting: warps 0–2 and lanes 0–3 of warp 3 of 2 blocks, line @1: flag[0] and 3 more to change, which holds 0; no line",
//: ]
    while (t < 100 && *(volatile int *)(flag + warp) «=¦!»= 0) // 1
        ;

//:: a flag in shared memory behind a barrier
//: words = [
//:     "warp 1 of 2 blocks, line @1: `ready[3]` to change, which holds 0; to write it: line @3 (no",
//:     "warp 0 of 2 blocks, line @2: barrier 1, where 32 of 64 threads have come",
//: ]
    __shared__ int ready[4];
    if (t < 4) ready[t] = 0;
    __syncthreads();
    if (warp == 1) {
        while (*(volatile int *)(ready + 3) == «0¦1») // 1
            ;
        asm volatile("bar.sync 1, 64;" ::: "memory");
    }
    if (warp == 0) {
        asm volatile("bar.sync 1, 64;" ::: "memory"); // 2
        *(volatile int *)(ready + 3) = 1; // 3
    }

//:: a lock that stays taken
//: words = [
//:     "line @1: flag[1] to change, which holds 1",
//:     "to write it: line @2 (no thread came there)",
//: ]
    if (t == 0) {
        while (atomicCAS(flag + 1, 0, 1) != 0) // 1
            ;
        if (blockIdx.x «==¦<» 7)
            atomicExch(flag + 1, 0); // 2
    }

//:: a loop without a read
//: words = [
//:     "its loop to end, which nothing in it can do: what it tests is not read in it",
//: ]
    if (warp == 2)
        while (flag[3] «!¦=»= 5) // 1
            ;

//:: a cluster of which one thread does not arrive
//: words = [
//:     "of 256 threads have arrived",
//:     "lane 5 of warp 0 of block (0, 0, 0), line @2: flag[0] to change, which holds 0; no line would",
//: ]
//: CLUSTER = "__cluster_dims__(2)"
    if (i != 5 || x[0] > 1e30f)
        asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory"); // 1
    else
        while (*(volatile int *)flag «=¦!»= 0) // 2
            ;

//:: a vote without some lanes
//: words = [
//:     "lanes 0–15 of warp 0 of 2 blocks, line @1: `bar.warp.sync` with lanes 16–31 of its warp",
//:     "lanes 16–31 of warp 0 of 2 blocks, line @2: flag[0] to change, which holds 0; no line would",
//: ]
    if (t < 16)
        __syncwarp(); // 1
    else
        while (t < 32 && *(volatile int *)flag «=¦!»= 0) // 2
            ;
