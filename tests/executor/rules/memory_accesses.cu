// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "memory accesses"

[uninitialised_shared_loaded_never_used]
rule = "Shared words that nothing was written to may be loaded where the value is never used."
verdict = "ok"
expected = [1]
[uninitialised_shared_selected_away]
rule = "An undefined value that a selection discards reaches nothing."
verdict = "ok"
expected = [2]
[uninitialised_shared_stored]
rule = "An undefined shared value that reaches an output is undefined."
verdict = "undefined"
faults = ["uninitialised shared read", "undefined value"]
[uninitialised_shared_branch]
rule = "A branch on an undefined shared value is undefined."
verdict = "undefined"
faults = ["uninitialised shared read", "undefined value"]
[uninitialised_register_unused]
rule = "A register without a value that only inactive paths use."
verdict = "ok"
expected = [3]
[load_vector_unaligned_global]
rule = "A 16-byte load from an address that is no multiple of 16 faults."
verdict = "fault"
faults = ["misaligned"]
[load_vector_unaligned_shared]
rule = "A 16-byte load from shared memory at no multiple of 16 faults."
verdict = "fault"
faults = ["misaligned"]
[store_word_unaligned_global]
rule = "A 4-byte store to an odd address faults."
verdict = "fault"
faults = ["misaligned"]
[store_word_unaligned_local]
rule = "A 4-byte store to local memory at an odd address faults."
verdict = "fault"
faults = ["misaligned"]
[load_half_unaligned_shared]
rule = "A 2-byte load from shared memory at an odd address faults."
verdict = "fault"
faults = ["misaligned"]
[store_past_the_end_by_one]
rule = "A store one element beyond an array breaks the rule, though the card has no array bounds."
verdict = "undefined"
faults = ["out of bounds"]
block = 33
[load_past_the_end_by_one]
rule = "A load one element beyond an array breaks the rule."
verdict = "undefined"
faults = ["out of bounds"]
inputs = [["u32", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32]]]
[load_before_the_start]
rule = "A load one element before an array breaks the rule."
verdict = "undefined"
faults = ["out of bounds"]
inputs = [["u32", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32]]]
[shared_past_the_end]
rule = "A store beyond the block's shared memory breaks the rule; the card rounds what it allots."
verdict = "undefined"
faults = ["out of bounds"]
[shared_far_past_the_end]
rule = "A store 64 KB beyond the block's shared memory faults."
verdict = "fault"
risky = true
faults = ["out of bounds"]
[null_load]
rule = "A load from address 0 faults."
verdict = "fault"
faults = ["out of bounds"]
[null_store_predicated_off]
rule = "A store that no lane executes touches nothing."
verdict = "ok"
expected = [4]
[local_past_the_end]
rule = "Indexing beyond a local array breaks the rule."
verdict = "undefined"
risky = true
faults = ["out of bounds"]
[load_sub_word_extends]
rule = "ld.s8 and ld.u8 extend into the register by sign and by zero."
verdict = "ok"
expected = ["ffffff80", "00000080", "ffff8000", "00008000"]
count = 4
block = 1
[store_sub_word_truncates]
rule = "st.u8 and st.u16 store the low bits and leave their neighbours."
verdict = "ok"
expected = ["a5a5a578", "5678a5a5"]
count = 2
block = 1
[vector_load_order]
rule = "A vector load puts ascending addresses into its registers in order."
verdict = "ok"
expected = [4, 3, 2, 1]
count = 4
block = 1
[constant_reads]
rule = "Constant memory gives its initial values, at a uniform and at another index in each lane."
verdict = "ok"
expected = [10, 11, 12, 13, 10, 11, 12, 13]
count = 8
block = 8
[module_variable_initial]
rule = "A module variable without a value starts as zero."
verdict = "ok"
expected = [0]
count = 1
block = 1
[stores_of_a_warp_to_one_word]
rule = "Lanes that store different values to one word in one instruction: one of them wins, undefined which."
verdict = "undefined"
faults = ["race", "global-memory race", "undefined"]
count = 1
[stores_of_a_warp_to_one_shared_word]
rule = "The same in shared memory."
verdict = "undefined"
faults = ["shared-memory race", "undefined"]
count = 1
[trap_reached]
rule = "trap ends the launch with an error."
verdict = "fault"
faults = ["trap"]
[trap_not_reached]
rule = "A trap that no thread reaches does nothing."
verdict = "ok"
expected = [5]
[brkpt_not_reached]
rule = "A breakpoint that no thread reaches does nothing."
verdict = "ok"
expected = [6]
[read_only_load]
rule = "ld.global.nc of what the kernel does not write is an ordinary load."
verdict = "ok"
counted = true
inputs = [["u32", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32]]]
[strided_loads]
rule = "Loads 8 bytes apart touch twice the sectors."
verdict = "ok"
counted = true
count = 16
block = 16
inputs = [["u32", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32]]]
[shared_bank_conflicts]
rule = "Words 2, 4, 8, 16 and 32 apart conflict in banks as often."
verdict = "ok"
counted = true
[endless_loop]
rule = "A loop without end never returns."
verdict = "fault"
risky = true
faults = ["endless loop"]
*/

#define T threadIdx.x
#define KERNEL(NAME) extern "C" __global__ void NAME(unsigned *out)
#define KERNEL_OF(NAME) extern "C" __global__ void NAME(unsigned *out, const unsigned *in)

__device__ unsigned shared_at(const void *pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

KERNEL(uninitialised_shared_loaded_never_used) {
    __shared__ volatile unsigned words[64];
    words[T] = 1;
    __syncwarp();
    const unsigned unused = words[T + 32];
    asm volatile("" ::"r"(unused));
    out[T] = words[T];
}

KERNEL(uninitialised_shared_selected_away) {
    __shared__ volatile unsigned words[64];
    words[T] = 2;
    __syncwarp();
    const unsigned other = words[T + 32], own = words[T];
    unsigned chosen;
    asm volatile("{ .reg .pred p; setp.lt.u32 p, %3, 32; selp.b32 %0, %1, %2, p; }" : "=r"(chosen) : "r"(own), "r"(other), "r"(T));
    out[T] = chosen;
}

KERNEL(uninitialised_shared_stored) {
    __shared__ volatile unsigned words[64];
    words[T] = 1;
    __syncwarp();
    out[T] = words[T + 32];
}

KERNEL(uninitialised_shared_branch) {
    __shared__ volatile unsigned words[64];
    words[T] = 1;
    __syncwarp();
    if (words[T + 32] == 12345)
        out[T ^ 1] = 1;
    else
        out[T] = 2;
}

KERNEL(uninitialised_register_unused) {
    unsigned value;
    asm volatile("{ .reg .b32 never, chosen; .reg .pred p; setp.gt.u32 p, %1, 99; mov.b32 chosen, 3;"
                 "@p mov.b32 chosen, never; mov.b32 %0, chosen; }" : "=r"(value) : "r"(T));
    out[T] = value;
}

KERNEL(load_vector_unaligned_global) {
    unsigned x, y, z, w;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(out + 1) : "memory");
    out[T] = x + y + z + w;
}

KERNEL(load_vector_unaligned_shared) {
    __shared__ __align__(16) unsigned words[64];
    words[T] = words[T + 32] = T;
    __syncwarp();
    unsigned x, y, z, w;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
                 : "r"(shared_at(words) + 8) : "memory");
    out[T] = x + y + z + w;
}

KERNEL(store_word_unaligned_global) {
    asm volatile("st.global.u32 [%0], 1;" ::"l"(reinterpret_cast<char *>(out) + 1) : "memory");
}

KERNEL(store_word_unaligned_local) {
    volatile unsigned words[4];
    words[0] = T;
    asm volatile("st.u32 [%0], 1;" ::"l"((char *)words + 1) : "memory");
    out[T] = words[0];
}

KERNEL(load_half_unaligned_shared) {
    __shared__ unsigned words[32];
    words[T] = T;
    __syncwarp();
    unsigned short half;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(half) : "r"(shared_at(words) + 1) : "memory");
    out[T] = half;
}

KERNEL(store_past_the_end_by_one) {
    out[T] = T;
}

KERNEL_OF(load_past_the_end_by_one) {
    out[T] = in[T + 1];
}

KERNEL_OF(load_before_the_start) {
    out[T] = in[static_cast<int>(T) - 1];
}

KERNEL(shared_past_the_end) {
    __shared__ volatile unsigned words[32];
    words[T] = T;
    __syncwarp();
    words[T + blockDim.x / 32] = 5;
    __syncwarp();
    out[T] = words[0];
}

KERNEL(shared_far_past_the_end) {
    __shared__ unsigned words[32];
    words[T] = T;
    asm volatile("st.shared.u32 [%0], 1;" ::"r"(shared_at(words) + 65536 * 4) : "memory");
    out[T] = words[0];
}

KERNEL(null_load) {
    unsigned value;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(0ull) : "memory");
    out[T] = value;
}

KERNEL(null_store_predicated_off) {
    asm volatile("{ .reg .pred p; setp.gt.u32 p, %1, 99; @p st.global.u32 [%0], 1; }" ::"l"(0ull), "r"(T) : "memory");
    out[T] = 4;
}

KERNEL(local_past_the_end) {
    volatile unsigned words[4];
    words[T % 4] = T;
    words[T + 4] = 7;
    out[T] = words[T % 4];
}

KERNEL(load_sub_word_extends) {
    __shared__ unsigned word;
    word = 0x80008080u;
    int s8, s16;
    unsigned u8, u16;
    asm volatile("ld.shared.s8 %0, [%4]; ld.shared.u8 %1, [%4]; ld.shared.s16 %2, [%4+2]; ld.shared.u16 %3, [%4+2];"
                 : "=r"(s8), "=r"(u8), "=r"(s16), "=r"(u16) : "r"(shared_at(&word)) : "memory");
    out[0] = s8, out[1] = u8, out[2] = s16, out[3] = u16;
}

KERNEL(store_sub_word_truncates) {
    asm volatile("st.global.u8 [%0], %1; st.global.u16 [%0+6], %1;" ::"l"(out), "r"(0x12345678) : "memory");
}

KERNEL(vector_load_order) {
    __shared__ __align__(16) unsigned words[4];
    for (int i = 0; i < 4; ++i)
        words[i] = i + 1;
    unsigned x, y, z, w;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "r"(shared_at(words)) : "memory");
    out[0] = w, out[1] = z, out[2] = y, out[3] = x;
}

__constant__ unsigned constants[4] = {10, 11, 12, 13};

KERNEL(constant_reads) {
    out[T] = constants[T % 4];
}

__device__ unsigned untouched[4];

KERNEL(module_variable_initial) {
    out[0] = *(volatile unsigned *)&untouched[2];
}

KERNEL(stores_of_a_warp_to_one_word) {
    out[0] = T;
}

KERNEL(stores_of_a_warp_to_one_shared_word) {
    __shared__ volatile unsigned word;
    word = T;
    __syncwarp();
    if (T == 0)
        out[0] = word;
}

KERNEL(trap_reached) {
    if (T == 5)
        asm volatile("trap;");
    out[T] = 1;
}

KERNEL(trap_not_reached) {
    if (T == 500)
        asm volatile("trap;");
    out[T] = 5;
}

KERNEL(brkpt_not_reached) {
    if (T == 500)
        asm volatile("brkpt;");
    out[T] = 6;
}

KERNEL_OF(read_only_load) {
    unsigned value;
    asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(value) : "l"(in + T));
    out[T] = value + 1;
}

KERNEL_OF(strided_loads) {
    out[T] = in[2 * T];
}

KERNEL(shared_bank_conflicts) {
    __shared__ volatile unsigned words[32 * 32];
    for (unsigned i = T; i < 1024; i += 32)
        words[i] = i;
    __syncthreads();
    unsigned sum = 0;
    for (unsigned stride = 1; stride <= 32; stride *= 2)
        sum += words[T * stride % 1024];
    out[T] = sum;
}

KERNEL(endless_loop) {
    volatile unsigned *const word = out;
    while (word[T] != 1234567)
        ;
}
