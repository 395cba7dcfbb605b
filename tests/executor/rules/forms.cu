// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
block = 32
count = 32
verdict = "ok"

[load_128_bits]
chapter = "memory accesses"
rule = "ld.b128 and st.b128 move sixteen bytes as one register."
count = 128
inputs = [["u32", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]]]
[sink_of_an_unpacking]
chapter = "memory accesses"
rule = "A register of an unpacking move, or an element of a vector load, may be the sink _."
inputs = [["u32", [11, 12, 13, 14]]]
expected = [12, 14]
[four_halves_in_a_word]
chapter = "memory accesses"
rule = "mov.b64 packs four 16-bit registers, the first lowest."
[read_only_load_of_what_is_written]
chapter = "memory accesses"
rule = "ld.global.nc of what the same kernel wrote may find the old value."
verdict = "undefined"
faults = ["read-only load of what was written"]
[constant_past_the_end]
chapter = "memory accesses"
rule = "Reading far beyond the only constant variable."
risky = true
verdict = "undefined"
faults = ["out of bounds"]
[vector_atomic_off_by_eight]
chapter = "atomics"
rule = "A red of four floats at an address that is no multiple of 16 faults."
verdict = "fault"
faults = ["misaligned"]
[halves_by_cas_in_one_word]
chapter = "atomics"
rule = "64 lanes add to the two halves of a word by 16-bit compare-and-swap loops: nothing is lost."
block = 64
count = 2
expected = [528, 1552]
[exchange_passes_values_on]
chapter = "atomics"
rule = "Values that lanes exchange through one word all come out once: their sum is that of what went in."
count = 1
expected = [528]
[inc_wraps_over_a_warp]
chapter = "atomics"
rule = "32 lanes that atomicInc one word up to 4 leave 32 modulo 5, and get each old value equally often."
count = 2
expected = [2, 62]
[cas_of_a_warp_has_one_winner]
chapter = "atomics"
rule = "Of 32 lanes that compare-and-swap one word, one succeeds."
count = 1
expected = [1]
[atomic_of_another_scope_mixed]
chapter = "atomics"
rule = "Additions of block, device and system scope by one block to one word all count."
block = 96
count = 1
expected = [96]
[reduce_without_result]
chapter = "atomics"
rule = "atom with the sink _ as destination adds like red."
count = 1
expected = [496]
[two_predicates_of_a_comparison]
chapter = "integers and bits"
rule = "setp with two destinations gives the comparison and its negation, both combined with a third predicate."
count = 64
[logic_with_a_predicate]
chapter = "integers and bits"
rule = "lop3.or and lop3.and also combine whether their result is not 0 with a predicate."
count = 64
[carry_through_128_bits]
chapter = "integers and bits"
rule = "add.cc.u64 and addc.u64 add 128 bits, sub.cc and subc take them apart again."
count = 128
[carry_flag_kept_across_others]
chapter = "integers and bits"
rule = "Instructions without .cc between two with it leave the carry alone."
[selected_by_a_sign]
chapter = "integers and bits"
rule = "slct takes its second operand where the third is negative: -0.0 and NaN by .f32 too."
count = 8
inputs = [["f32", ["00000000", "80000000", "3f800000", "bf800000", "7fc00000", "ffc00000", "80000001", "ff800000"]]]
block = 8
[comparison_chained_through_predicates]
chapter = "integers and bits"
rule = "Predicates are combined, inverted and moved as values."
[conversion_of_narrow_registers]
chapter = "conversions"
rule = "cvt.s8 from a wider register takes its low byte and extends its sign; .sat clamps."
count = 96
[integer_to_float_by_direction]
chapter = "conversions"
rule = "cvt.rm and cvt.rp of a large u64 to f32 lie on both sides of it."
count = 64
[pm_event_in_between]
chapter = "special registers"
rule = "pmevent changes nothing."
[grid_dependency_control]
chapter = "special registers"
rule = "griddepcontrol in a launch that depends on nothing changes nothing."
[not_in_a_graph]
chapter = "special registers"
rule = "%current_graph_exec is 0 outside of a graph."
expected = [0]
[matrix_moved_in_registers]
chapter = "warp operations"
rule = "movmatrix transposes an 8 x 8 matrix of halves that a warp holds."
[bounds_of_two_dimensions]
chapter = "launch limits"
kernel = "bounded_64"
rule = "__launch_bounds__(64) holds for the product of a block's dimensions."
block = [8, 8, 1]
[bounds_of_two_dimensions_exceeded]
chapter = "launch limits"
kernel = "bounded_64"
rule = "8 x 16 threads are more than __launch_bounds__(64)."
block = [8, 16, 1]
verdict = "refused"
[grid_y_65535]
chapter = "launch limits"
kernel = "bounded_64"
rule = "65,535 blocks along y can be launched."
grid = [1, 65535, 1]
block = 1
*/

#define T threadIdx.x
#define KERNEL(NAME) extern "C" __global__ void NAME(unsigned *out)
#define KERNEL_OF(NAME) extern "C" __global__ void NAME(unsigned *out, const unsigned *in)
typedef unsigned long long u64;

KERNEL_OF(load_128_bits) {
    asm volatile("{ .reg .b128 q; ld.global.b128 q, [%1]; st.global.b128 [%0], q; }"
                 ::"l"(out + 4 * T), "l"(in + 4 * (T % 3)) : "memory");
}

KERNEL_OF(sink_of_an_unpacking) {
    u64 pair;
    unsigned high, last;
    asm volatile("ld.global.b64 %0, [%1];" : "=l"(pair) : "l"(in));
    asm volatile("mov.b64 {_, %0}, %1;" : "=r"(high) : "l"(pair));
    asm volatile("ld.global.v2.u32 {_, %0}, [%1];" : "=r"(last) : "l"(in + 2));
    out[T] = T % 2 ? last : high;
}

KERNEL(four_halves_in_a_word) {
    u64 word;
    unsigned short a = T, b = T * 3 + 1, c = ~T, d = T << 11;
    asm volatile("mov.b64 %0, {%1, %2, %3, %4};" : "=l"(word) : "h"(a), "h"(b), "h"(c), "h"(d));
    asm volatile("mov.b64 {%0, %1, %2, %3}, %4;" : "=h"(d), "=h"(c), "=h"(b), "=h"(a) : "l"(word));
    out[T] = static_cast<unsigned>(word >> 32) ^ static_cast<unsigned>(word) ^ a * 7 ^ b << 16;
}

KERNEL(read_only_load_of_what_is_written) {
    unsigned found;
    asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(found) : "l"(out + T) : "memory");
    out[T] = found + 1;
    asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(found) : "l"(out + T) : "memory");
    out[T] = found;
}

__constant__ unsigned few[4] = {1, 2, 3, 4};

KERNEL(constant_past_the_end) {
    out[T] = few[T * 16000 + (out[0] == 5)];
}

KERNEL(vector_atomic_off_by_eight) {
    asm volatile("red.global.add.v4.f32 [%0], {%1, %1, %1, %1};" ::"l"(out + 2), "f"(1.0f) : "memory");
}

KERNEL(halves_by_cas_in_one_word) {
    __shared__ unsigned short halves[2];
    if (T < 2)
        halves[T] = 0;
    __syncthreads();
    unsigned short *const mine = halves + T / 32;
    unsigned short expected = *static_cast<volatile unsigned short *>(mine), found;
    while ((found = atomicCAS(mine, expected, static_cast<unsigned short>(expected + T + 1))) != expected)
        expected = found;
    __syncthreads();
    if (T < 2)
        out[T] = halves[T];
}

KERNEL(exchange_passes_values_on) {
    __shared__ unsigned word, sum;
    word = sum = 0;
    __syncwarp();
    atomicAdd(&sum, atomicExch(&word, T + 1));
    __syncwarp();
    if (T == 0)
        out[0] = sum + word;
}

KERNEL(inc_wraps_over_a_warp) {
    __shared__ unsigned word, sum;
    word = sum = 0;
    __syncwarp();
    const unsigned before = atomicInc(&word, 4);
    atomicAdd(&sum, before);
    __syncwarp();
    if (T == 0)
        out[0] = word, out[1] = sum + 1;
}

KERNEL(cas_of_a_warp_has_one_winner) {
    __shared__ unsigned word;
    word = 0;
    __syncwarp();
    const bool won = atomicCAS(&word, 0, T + 1) == 0;
    const unsigned winners = __popc(__ballot_sync(~0u, won));
    if (won)
        out[0] = word == T + 1 ? winners : 99;
}

__device__ unsigned scoped;

KERNEL(atomic_of_another_scope_mixed) {
    if (T < 32)
        atomicAdd_block(&scoped, 1);
    else if (T < 64)
        atomicAdd(&scoped, 1);
    else
        atomicAdd_system(&scoped, 1);
    __syncthreads();
    if (T == 0)
        out[0] = atomicExch(&scoped, 0);
}

KERNEL(reduce_without_result) {
    __shared__ unsigned sum;
    sum = 0;
    __syncwarp();
    asm volatile("atom.shared.add.u32 _, [%0], %1;"
                 ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(&sum))), "r"(T) : "memory");
    __syncwarp();
    if (T == 0)
        out[0] = sum;
}

KERNEL(two_predicates_of_a_comparison) {
    unsigned is, is_not;
    asm volatile("{ .reg .pred p, q, r; setp.gt.u32 r, %2, 20; setp.lt.or.s32 p|q, %3, 3, r;"
                 "selp.u32 %0, 1, 0, p; selp.u32 %1, 1, 0, q; }"
                 : "=r"(is), "=r"(is_not) : "r"(T), "r"(static_cast<int>(T % 8) - 2));
    out[2 * T] = is;
    out[2 * T + 1] = is_not;
}

KERNEL(logic_with_a_predicate) {
    unsigned a, b, p, q;
    asm volatile("{ .reg .pred x, y, z; setp.eq.u32 z, %7, 3; lop3.or.b32 %0|x, %4, %5, %6, 0x96, z;"
                 "lop3.and.b32 %1|y, %4, %5, %6, 0x80, !z; selp.u32 %2, 1, 0, x; selp.u32 %3, 1, 0, y; }"
                 : "=r"(a), "=r"(b), "=r"(p), "=r"(q) : "r"(T), "r"(T * 5 & 12), "r"(T >> 1), "r"(T % 5));
    out[2 * T] = a + (p << 16);
    out[2 * T + 1] = b + (q << 16);
}

KERNEL(carry_through_128_bits) {
    const u64 a = ~0ull - T % 3, b = T, c = T * 0x0123456789abcdefull, d = ~c >> T;
    u64 low, high, back_low, back_high;
    asm volatile("add.cc.u64 %0, %2, %3; addc.u64 %1, %4, %5;" : "=&l"(low), "=l"(high) : "l"(a), "l"(b), "l"(c), "l"(d));
    asm volatile("sub.cc.u64 %0, %2, %3; subc.u64 %1, %4, %5;"
                 : "=&l"(back_low), "=l"(back_high) : "l"(b), "l"(a), "l"(d), "l"(c));
    out[4 * T] = low;
    out[4 * T + 1] = high ^ high >> 32;
    out[4 * T + 2] = back_low;
    out[4 * T + 3] = back_high ^ back_high >> 32;
}

KERNEL(carry_flag_kept_across_others) {
    unsigned low, high, other;
    asm volatile("{ add.cc.u32 %0, %3, 0xfffffff0; mul.lo.u32 %2, %3, 7; add.u32 %2, %2, 0xffffffff; addc.u32 %1, %3, 0; }"
                 : "=&r"(low), "=r"(high), "=&r"(other) : "r"(T));
    out[T] = low ^ high << 8 ^ other << 16;
}

KERNEL_OF(selected_by_a_sign) {
    unsigned found;
    asm volatile("{ .reg .f32 f; mov.b32 f, %3; slct.u32.f32 %0, %1, %2, f; }"
                 : "=r"(found) : "r"(7), "r"(8), "r"(in[T]));
    out[T] = found;
}

KERNEL(comparison_chained_through_predicates) {
    unsigned found, given = T;
    asm volatile("{ .reg .pred p, q, r, s; setp.lt.u32 p, %1, 17; setp.eq.and.u32 q, %1, 9, p; xor.pred r, p, q;"
                 "not.pred s, r; or.pred s, s, q; and.pred r, r, s; mov.pred q, !s; @q add.u32 %1, %1, 100;"
                 "selp.u32 %0, %1, 5, s; @!r add.u32 %0, %0, %1; }" : "=&r"(found), "+r"(given));
    out[T] = found;
}

KERNEL(conversion_of_narrow_registers) {
    const int value = static_cast<int>(T * 37) - 500;
    int low, clamped, half;
    asm volatile("{ .reg .s8 b; cvt.s8.s32 b, %1; cvt.s32.s8 %0, b; }" : "=r"(low) : "r"(value));
    asm volatile("cvt.sat.s8.s32 %0, %1;" : "=r"(clamped) : "r"(value));
    asm volatile("{ .reg .u16 h; cvt.sat.u16.s32 h, %1; cvt.u32.u16 %0, h; }" : "=r"(half) : "r"(value * 200));
    out[3 * T] = low;
    out[3 * T + 1] = clamped;
    out[3 * T + 2] = half;
}

KERNEL(integer_to_float_by_direction) {
    const u64 value = 0x0123456789abcdefull << T % 7 | 1ull << (63 - T % 9);
    float down, up;
    asm volatile("cvt.rm.f32.u64 %0, %1;" : "=f"(down) : "l"(value));
    asm volatile("cvt.rp.f32.u64 %0, %1;" : "=f"(up) : "l"(value));
    out[2 * T] = __float_as_uint(down);
    out[2 * T + 1] = __float_as_uint(up);
}

KERNEL(pm_event_in_between) {
    asm volatile("pmevent 3;");
    out[T] = T;
}

KERNEL(grid_dependency_control) {
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    out[T] = T + 1;
}

KERNEL(not_in_a_graph) {
    u64 graph;
    asm volatile("mov.u64 %0, %%current_graph_exec;" : "=l"(graph));
    out[T] = graph | graph >> 32;
}

KERNEL(matrix_moved_in_registers) {
    unsigned found;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(found) : "r"(2 * T | (2 * T + 1) << 16));
    out[T] = found;
}

extern "C" __global__ void __launch_bounds__(64) bounded_64(unsigned *out) {
    out[T] = 1;
}
