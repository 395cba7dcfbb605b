// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "asynchronous copies"
count = 128
block = 32
inputs = [["u32", [101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119, 120, 121, 122,
    123, 124, 125, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135, 136, 137, 138, 139, 140, 141, 142, 143, 144, 145, 146, 147,
    148, 149, 150, 151, 152, 153, 154, 155, 156, 157, 158, 159, 160, 161, 162, 163, 164, 165, 166, 167, 168, 169, 170, 171, 172,
    173, 174, 175, 176, 177, 178, 179, 180, 181, 182, 183, 184, 185, 186, 187, 188, 189, 190, 191, 192, 193, 194, 195, 196, 197,
    198, 199, 200, 201, 202, 203, 204, 205, 206, 207, 208, 209, 210, 211, 212, 213, 214, 215, 216, 217, 218, 219, 220, 221, 222,
    223, 224, 225, 226, 227, 228]]]

[[family]]
name = "cp_async_{bytes}_of_{size}"
line = 'COPY({name}, "cp.async.{cache}.shared.global [%0], [%1], {size}, {bytes};", {size}, {bytes})'
rule = "cp.async of {bytes} of {size} bytes fills the rest with zeros, and counts what it reads."
verdict = "ok"
counted = true
size = ["16"]
bytes = ["0", "4", "8", "12", "16"]
cache = ["cg"]

[[family]]
name = "cp_async_{bytes}_of_{size}"
line = 'COPY({name}, "cp.async.{cache}.shared.global [%0], [%1], {size}, {bytes};", {size}, {bytes})'
rule = "cp.async of {bytes} of {size} bytes through L1 fills the rest with zeros."
verdict = "ok"
counted = true
size = ["4", "8"]
bytes = ["0", "4"]
cache = ["ca"]

[[family]]
name = "cp_async_register_size_{bytes}"
line = 'COPY({name}, "cp.async.ca.shared.global [%0], [%1], {size}, %2;", {size}, {bytes}())'
rule = "The source size may come from a register, another one in each lane ({bytes})."
verdict = "ok"
counted = true
size = ["16"]
bytes = ["any_bytes", "whole_words", "all_or_none"]

[cp_async_ignore_src_all]
rule = "With a true ignore-src nothing is read and zeros are written."
verdict = "ok"
expected = [0]
counted = true
[cp_async_ignore_src_some]
rule = "ignore-src is each lane's own."
verdict = "ok"
counted = true
[cp_async_predicated]
rule = "A lane whose guard is false copies nothing and leaves its words."
verdict = "ok"
counted = true
[cp_async_4_strided]
rule = "4-byte copies to words 128 bytes apart conflict in banks."
count = 32
verdict = "ok"
counted = true
[cp_async_16_same_source]
rule = "All lanes may copy the same sixteen bytes."
verdict = "ok"
counted = true
[cp_async_zero_bytes_invalid_source]
rule = "A copy of 0 bytes does not touch its source, whatever the address."
risky = true
verdict = "ok"
expected = [0]
[cp_async_past_the_end]
rule = "A copy whose source size stops at the array's end does not read beyond it."
verdict = "ok"
[cp_async_wait_all]
rule = "wait_all waits for copies that no group holds."
verdict = "ok"
[cp_async_wait_group_one]
rule = "wait_group 1 leaves the newest group in flight: the older one has landed."
verdict = "ok"
defined = [[0, 64]]
[cp_async_wait_group_too_many]
rule = "wait_group 2 with two groups waits for none: reading is undefined."
verdict = "undefined"
faults = ["asynchronous copy not waited for", "uninitialised shared read"]
[cp_async_empty_groups]
rule = "Empty groups count: wait_group 1 after an empty one waits for the copies."
verdict = "ok"
[cp_async_not_waited_for]
rule = "Reading without a wait is undefined."
verdict = "undefined"
faults = ["asynchronous copy not waited for", "uninitialised shared read"]
[cp_async_without_barrier]
rule = "wait_all is each thread's own: what another warp copied needs a barrier too."
block = 64
verdict = "undefined"
faults = ["asynchronous copy not waited for", "shared-memory race", "uninitialised shared read"]
[cp_async_with_barrier]
rule = "wait_all and a barrier make copies of other warps visible."
block = 64
verdict = "ok"
[cp_async_source_misaligned]
rule = "A 16-byte copy from an address that is no multiple of 16 faults."
verdict = "fault"
faults = ["misaligned"]
[cp_async_target_misaligned]
rule = "A 16-byte copy to an address that is no multiple of 16 faults."
verdict = "fault"
faults = ["misaligned"]
[cp_async_mbarrier_arrive]
rule = "cp.async.mbarrier.arrive.noinc arrives when the thread's copies have landed."
verdict = "ok"
[cp_async_source_overwritten]
rule = "Writing the source before the copy has landed is a race."
verdict = "undefined"
faults = ["asynchronous copy not waited for", "race", "global-memory race"]
[bulk_copy_to_shared]
rule = "cp.async.bulk completes on an mbarrier that expects its bytes."
verdict = "ok"
[bulk_copy_to_global]
rule = "cp.async.bulk from shared memory, a fence before and wait_group after."
verdict = "ok"
[bulk_copy_odd_size]
rule = "A bulk copy of a size that is no multiple of 16 breaks the rule."
risky = true
verdict = "undefined"
faults = ["misaligned", "mbarrier", "out of bounds", "endless loop"]
*/

#define T threadIdx.x

__device__ unsigned target(const void *pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ void wait_all() {
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
}

__device__ void leave(unsigned *out, const unsigned *words) {
    for (unsigned i = T; i < 128; i += blockDim.x)
        out[i] = words[i];
}

__device__ void fill(unsigned *words) {
    for (unsigned i = T; i < 128; i += blockDim.x)
        words[i] = 9000 + i;
    __syncthreads();
}

__device__ void copy_16(unsigned *to, const unsigned *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(target(to)), "l"(from) : "memory");
}

__device__ unsigned any_bytes() {
    return T % 17;
}

__device__ unsigned whole_words() {
    return T % 5 * 4;
}

__device__ unsigned all_or_none() {
    return T < 7 ? 16 : 0;
}

// Each thread copies one piece of SIZE bytes.
#define COPY(NAME, TEXT, SIZE, BYTES)                                                                      \
    extern "C" __global__ void NAME(unsigned *out, const unsigned *in) {                                   \
        __shared__ __align__(16) unsigned words[128];                                                      \
        fill(words);                                                                                       \
        const unsigned bytes = BYTES;                                                     \
        asm volatile(TEXT ::"r"(target(words) + T * SIZE), "l"(in + T * SIZE / 4), "r"(bytes) : "memory"); \
        wait_all();                                                                                        \
        leave(out, words);                                                                                 \
    }

#define KERNEL(NAME, ...)                                                                                  \
    extern "C" __global__ void NAME(unsigned *out, const unsigned *in) {                                   \
        __shared__ __align__(16) unsigned words[128];                                                      \
        fill(words);                                                                                       \
        __VA_ARGS__                                                                                        \
        leave(out, words);                                                                                 \
    }

// The same, of words that nothing was written to.
#define BARE_KERNEL(NAME, ...)                                                                             \
    extern "C" __global__ void NAME(unsigned *out, const unsigned *in) {                                   \
        __shared__ __align__(16) unsigned words[128];                                                      \
        __VA_ARGS__                                                                                        \
    }

#define IGNORING(condition)                                                                                \
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; cp.async.cg.shared.global [%0], [%1], 16, p; }"    \
                 ::"r"(target(words + 4 * T)), "l"(in + 4 * T), "r"(static_cast<unsigned>(condition)) : "memory")

KERNEL(cp_async_ignore_src_all, IGNORING(T < 32); wait_all();)
KERNEL(cp_async_ignore_src_some, IGNORING(T % 3 == 0); wait_all();)
KERNEL(cp_async_predicated, if (T % 5) copy_16(words + 4 * T, in + 4 * T); wait_all();)
KERNEL(cp_async_16_same_source, copy_16(words + 4 * T, in); wait_all();)
KERNEL(cp_async_zero_bytes_invalid_source,
       asm volatile("cp.async.cg.shared.global [%0], [%1], 16, 0;" ::"r"(target(words + 4 * T)), "l"(16ull) : "memory");
       wait_all();)
KERNEL(cp_async_past_the_end,
       asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target(words + 4 * T)),
                    "l"(in + 4 * T + 20), "r"(T < 27 ? 16u : 0u) : "memory");
       wait_all();)
KERNEL(cp_async_source_misaligned, copy_16(words + 4 * T, in + 4 * T + 1 - (T == 31)); wait_all();)
KERNEL(cp_async_target_misaligned, copy_16(words + 4 * T + 2 - 2 * (T == 31), in + 4 * T); wait_all();)
BARE_KERNEL(cp_async_wait_all, copy_16(words + 4 * T, in + 4 * T); wait_all(); leave(out, words);)
BARE_KERNEL(cp_async_wait_group_one,
            if (T < 16) copy_16(words + 4 * T, in + 4 * T);
            asm volatile("cp.async.commit_group;" ::: "memory");
            if (T >= 16) copy_16(words + 4 * T, in + 4 * T);
            asm volatile("cp.async.commit_group;" ::: "memory");
            asm volatile("cp.async.wait_group 1;" ::: "memory"); __syncthreads();
            out[T] = words[T]; out[T + 32] = words[T + 32];
            asm volatile("cp.async.wait_all;" ::: "memory");)
BARE_KERNEL(cp_async_wait_group_too_many,
            copy_16(words + 4 * T, in + 4 * T); asm volatile("cp.async.commit_group;" ::: "memory");
            asm volatile("cp.async.commit_group;" ::: "memory");
            asm volatile("cp.async.wait_group 2;" ::: "memory"); __syncthreads(); leave(out, words);)
BARE_KERNEL(cp_async_empty_groups,
            copy_16(words + 4 * T, in + 4 * T); asm volatile("cp.async.commit_group;" ::: "memory");
            asm volatile("cp.async.commit_group;" ::: "memory");
            asm volatile("cp.async.wait_group 1;" ::: "memory"); __syncthreads(); leave(out, words);)
BARE_KERNEL(cp_async_not_waited_for, copy_16(words + 4 * T, in + 4 * T); __syncthreads(); leave(out, words);)
BARE_KERNEL(cp_async_without_barrier,
            if (T < 32) copy_16(words + 4 * T, in + 4 * T);
            asm volatile("cp.async.wait_all;" ::: "memory"); leave(out, words);)
BARE_KERNEL(cp_async_with_barrier, if (T < 32) copy_16(words + 4 * T, in + 4 * T); wait_all(); leave(out, words);)
BARE_KERNEL(cp_async_source_overwritten,
            for (unsigned i = T; i < 128; i += 32) out[i] = i;
            __syncthreads(); copy_16(words + 4 * T, out + 4 * T);
            for (unsigned i = 0; i < 4; ++i) out[4 * T + i] = 7;
            wait_all(); leave(out, words);)

extern "C" __global__ void cp_async_4_strided(unsigned *out, const unsigned *in) {
    __shared__ unsigned words[32 * 32];
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(target(words + 32 * T)), "l"(in + T) : "memory");
    wait_all();
    out[T] = words[32 * T];
}

#define POLL(barrier, parity)                                                                              \
    asm volatile("{ .reg .pred p; AGAIN%=: mbarrier.try_wait.parity.shared.b64 p, [%0], %1;"                \
                 "@!p bra AGAIN%=; }" ::"r"(barrier), "r"(parity) : "memory")

BARE_KERNEL(cp_async_mbarrier_arrive,
            __shared__ __align__(8) unsigned long long barrier; const unsigned address = target(&barrier);
            if (T == 0) asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(address) : "memory");
            __syncthreads(); copy_16(words + 4 * T, in + 4 * T);
            asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(address) : "memory");
            POLL(address, 0); leave(out, words);)

BARE_KERNEL(bulk_copy_to_shared,
            __shared__ __align__(8) unsigned long long barrier; const unsigned address = target(&barrier);
            if (T == 0) {
                asm volatile("mbarrier.init.shared.b64 [%0], 1; fence.mbarrier_init.release.cluster;"
                             "fence.proxy.async.shared::cta;" ::"r"(address) : "memory");
                asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 512;"
                             "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%1], [%2], 512, [%0];"
                             ::"r"(address), "r"(target(words)), "l"(in) : "memory");
            }
            __syncthreads(); POLL(address, 0); leave(out, words);)

BARE_KERNEL(bulk_copy_to_global,
            for (unsigned i = T; i < 128; i += 32) words[i] = in[127 - i];
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); __syncthreads();
            if (T == 0) {
                asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 512; cp.async.bulk.commit_group;"
                             "cp.async.bulk.wait_group 0;" ::"l"(out), "r"(target(words)) : "memory");
            })

BARE_KERNEL(bulk_copy_odd_size,
            __shared__ __align__(8) unsigned long long barrier; const unsigned address = target(&barrier);
            if (T == 0) {
                asm volatile("mbarrier.init.shared.b64 [%0], 1; fence.proxy.async.shared::cta;" ::"r"(address) : "memory");
                asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %3;"
                             "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%1], [%2], %3, [%0];"
                             ::"r"(address), "r"(target(words)), "l"(in), "r"(blockDim.x * 4 + 4) : "memory");
            }
            __syncthreads(); POLL(address, 0); out[T] = words[T];)
