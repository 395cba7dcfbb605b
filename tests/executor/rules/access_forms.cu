// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "memory accesses"
verdict = "ok"
inputs = [["u32", [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33]]]
expected = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33]

[[family]]
name = "load_{form}"
line = 'LOAD({name}, "ld.{form}.u32")'
rule = "ld.{form} reads what any load reads."
counted = true
form = ["global.ca", "global.cg", "global.cs", "global.lu", "global.cv", "global.nc", "global.nc.L1::no_allocate", "volatile.global",
    "relaxed.cta.global", "relaxed.gpu.global", "relaxed.sys.global", "acquire.gpu.global", "weak.global", "global.L1::evict_last",
    "global.L1::evict_first", "global.L1::no_allocate", "global.L2::64B", "global.L2::128B", "global.L2::256B",
    "global.L1::evict_normal.L2::128B", "mmio.relaxed.sys.global", "volatile"]

[[family]]
name = "store_{form}"
line = 'STORE({name}, "st.{form}.u32")'
rule = "st.{form} writes what any store writes."
counted = true
form = ["global.wb", "global.cg", "global.cs", "global.wt", "volatile.global", "relaxed.cta.global", "relaxed.gpu.global",
    "release.gpu.global", "release.sys.global", "weak.global", "global.L1::evict_last", "global.L1::no_allocate", "volatile"]

[[family]]
name = "between_{form}"
line = 'BETWEEN({name}, "{form}")'
rule = "{form} leaves values as they are."
form = ["membar.cta;", "membar.gl;", "membar.sys;", "fence.acq_rel.cta;", "fence.acq_rel.cluster;", "fence.acq_rel.gpu;",
    "fence.acq_rel.sys;", "fence.sc.cta;", "fence.sc.gpu;", "fence.sc.sys;", "fence.proxy.alias;", "fence.proxy.async;",
    "fence.proxy.async.global;", "fence.proxy.async.shared::cta;", "prefetch.global.L1 [%0];", "prefetch.global.L2 [%0];",
    "prefetch.global.L2::evict_last [%0];", "prefetchu.L1 [%0];", "prefetch.L1 [%0];", "applypriority.global.L2::evict_normal [%0], 128;"]

[load_with_policy]
rule = "A load with a cache policy reads what any load reads."
[store_with_policy]
rule = "A store with a cache policy writes what any store writes."
[discard_then_store]
rule = "discard leaves a line undefined until it is written again."
[vector_2_of_b32]
rule = "ld.v2 and st.v2 of 4 bytes."
[vector_4_of_b32]
rule = "ld.v4 and st.v4 of 4 bytes."
[vector_2_of_b64]
rule = "ld.v2 and st.v2 of 8 bytes."
[vector_4_of_b16]
rule = "ld.v4 and st.v4 of 2 bytes."
[vector_4_of_b8]
rule = "ld.v4 and st.v4 of 1 byte."

[[family]]
name = "misaligned_{access}_by_{bytes}"
line = 'MISALIGNED({name}, {access}, {bytes})'
rule = "{access} at an address that is {bytes} off."
verdict = "fault"
faults = ["misaligned"]
access = ["global_v2_b32", "global_v4_b32", "global_v2_b64", "shared_v2_b32", "shared_v4_b32", "local_v4_b32", "generic_v4_b32", "global_b64"]
bytes = ["4"]

[[family]]
name = "misaligned_{access}_by_{bytes}"
line = 'MISALIGNED({name}, {access}, {bytes})'
rule = "{access} at an address that is {bytes} off."
verdict = "fault"
faults = ["misaligned"]
access = ["global_v4_b32", "global_v2_b64", "shared_v4_b32", "shared_v2_b64"]
bytes = ["8"]
*/

#define T threadIdx.x
#define KERNEL(NAME) extern "C" __global__ void NAME(unsigned *out, const unsigned *in)

#define LOAD(NAME, TEXT)                                                                                   \
    KERNEL(NAME) {                                                                                         \
        unsigned value;                                                                                    \
        asm volatile(TEXT " %0, [%1];" : "=r"(value) : "l"(in + T) : "memory");                            \
        out[T] = value;                                                                                    \
    }

#define STORE(NAME, TEXT)                                                                                  \
    KERNEL(NAME) {                                                                                         \
        asm volatile(TEXT " [%0], %1;" ::"l"(out + T), "r"(in[T]) : "memory");                             \
    }

#define BETWEEN(NAME, TEXT)                                                                                \
    KERNEL(NAME) {                                                                                         \
        out[T] = in[T];                                                                                    \
        asm volatile(TEXT ::"l"(out) : "memory");                                                          \
        out[T] = *(volatile unsigned *)(out + T);                                                          \
    }

KERNEL(load_with_policy) {
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("ld.global.L2::cache_hint.u32 %0, [%1], %2;" : "=r"(out[T]) : "l"(in + T), "l"(policy) : "memory");
}

KERNEL(store_with_policy) {
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %0, 0.5;" : "=l"(policy));
    asm volatile("st.global.L2::cache_hint.u32 [%0], %1, %2;" ::"l"(out + T), "r"(in[T]), "l"(policy) : "memory");
}

KERNEL(discard_then_store) {
    out[T] = 1;
    __syncwarp();
    if (T == 0)
        asm volatile("discard.global.L2 [%0], 128;" ::"l"(out) : "memory");
    __syncwarp();
    out[T] = in[T];
}

KERNEL(vector_2_of_b32) {
    if (T < 16)
        asm volatile("{ .reg .b32 a, b; ld.global.v2.b32 {a, b}, [%1]; st.global.v2.b32 [%0], {a, b}; }"
                     ::"l"(out + 2 * T), "l"(in + 2 * T) : "memory");
}

KERNEL(vector_4_of_b32) {
    if (T < 8)
        asm volatile("{ .reg .b32 a, b, c, d; ld.global.v4.b32 {a, b, c, d}, [%1]; st.global.v4.b32 [%0], {a, b, c, d}; }"
                     ::"l"(out + 4 * T), "l"(in + 4 * T) : "memory");
}

KERNEL(vector_2_of_b64) {
    if (T < 8)
        asm volatile("{ .reg .b64 a, b; ld.global.v2.b64 {a, b}, [%1]; st.global.v2.b64 [%0], {a, b}; }"
                     ::"l"(out + 4 * T), "l"(in + 4 * T) : "memory");
}

KERNEL(vector_4_of_b16) {
    if (T < 16)
        asm volatile("{ .reg .b16 a, b, c, d; ld.global.v4.b16 {a, b, c, d}, [%1]; st.global.v4.b16 [%0], {a, b, c, d}; }"
                     ::"l"(out + 2 * T), "l"(in + 2 * T) : "memory");
}

KERNEL(vector_4_of_b8) {
    asm volatile("{ .reg .b16 a, b, c, d; ld.global.v4.b8 {a, b, c, d}, [%1]; st.global.v4.b8 [%0], {a, b, c, d}; }"
                 ::"l"(out + T), "l"(in + T) : "memory");
}

#define MISALIGNED(NAME, ACCESS, BYTES)                                                                    \
    KERNEL(NAME) {                                                                                         \
        ACCESS(reinterpret_cast<char *>(out), T == 3 ? BYTES : 0);                                         \
    }

#define ON_OUT(TEXT)                                                                                       \
    asm volatile(TEXT ::"l"(bytes + off) : "memory")
#define ON_SHARED(TEXT)                                                                                    \
    __shared__ __align__(16) char held[64];                                                                \
    asm volatile(TEXT ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(held)) + off) : "memory")

__device__ void global_b64(char *bytes, unsigned off) { ON_OUT("{ .reg .b64 a; mov.b64 a, 5; st.global.b64 [%0], a; }"); }
__device__ void global_v2_b32(char *bytes, unsigned off) { ON_OUT("{ .reg .b32 a; mov.b32 a, 5; st.global.v2.b32 [%0], {a, a}; }"); }
__device__ void global_v4_b32(char *bytes, unsigned off) { ON_OUT("{ .reg .b32 a; mov.b32 a, 5; st.global.v4.b32 [%0], {a, a, a, a}; }"); }
__device__ void global_v2_b64(char *bytes, unsigned off) { ON_OUT("{ .reg .b64 a; mov.b64 a, 5; st.global.v2.b64 [%0], {a, a}; }"); }
__device__ void generic_v4_b32(char *bytes, unsigned off) { ON_OUT("{ .reg .b32 a; mov.b32 a, 5; st.v4.b32 [%0], {a, a, a, a}; }"); }
__device__ void shared_v2_b32(char *, unsigned off) { ON_SHARED("{ .reg .b32 a; mov.b32 a, 5; st.shared.v2.b32 [%0], {a, a}; }"); }
__device__ void shared_v4_b32(char *, unsigned off) { ON_SHARED("{ .reg .b32 a; mov.b32 a, 5; st.shared.v4.b32 [%0], {a, a, a, a}; }"); }
__device__ void shared_v2_b64(char *, unsigned off) { ON_SHARED("{ .reg .b64 a; mov.b64 a, 5; st.shared.v2.b64 [%0], {a, a}; }"); }
__device__ void local_v4_b32(char *, unsigned off) {
    __align__(16) char held[64];
    asm volatile("{ .reg .b32 a; mov.b32 a, 5; st.local.v4.b32 [%0], {a, a, a, a}; }"
                 ::"l"(__cvta_generic_to_local(held) + off) : "memory");
}
