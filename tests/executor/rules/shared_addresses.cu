// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "state spaces"
count = 1
block = 1

[static_base]
rule = "The first static variable lies at the start of the shared window, after what the driver reserves."
[static_base_aligned_4096]
rule = "A static variable that asks for 4,096 bytes gets the alignment that the card's base gives."
[static_base_aligned_16384]
rule = "A static variable that asks for 16,384 bytes gets the alignment that the card's base gives."
shared = 0
[dynamic_base]
rule = "Dynamic shared memory alone starts where static memory would."
shared = 4096
[dynamic_after_static]
rule = "Dynamic shared memory follows static memory at its own alignment."
shared = 4096
[dynamic_after_odd_static]
rule = "Dynamic shared memory of 16-byte elements follows 3 static bytes at the next multiple of 16."
shared = 4096
[dynamic_aligned_1024_after_static]
rule = "Dynamic shared memory that asks for 1,024 bytes follows static memory."
shared = 4096
[dynamic_base_without_bytes]
rule = "Dynamic shared memory of no bytes still has an address."
[static_variables_apart]
rule = "Several static variables do not overlap and keep their alignments; their order is ptxas' choice."
count = 3
[static_base_xor]
rule = "Addresses from the base combine by XOR as the card's base makes them."
[shared_base_or_1024]
rule = "`base | 1024` is the base itself where the base has that bit."
[shared_window_of_generic]
rule = "The low word of a generic shared address is its offset within the window."
[shared_generic_upper_alike]
rule = "Two generic shared addresses have the same upper word, which is not 0."
verdict = "ok"
expected = [1]
[shared_pointer_is_not_null]
rule = "The generic address of the first shared byte is not a null pointer."
verdict = "ok"
expected = [1]
[shared_space_pointer_zero]
rule = "The address of the first static byte within the shared space, compared with 0."
[local_pointer_is_not_null]
rule = "The generic address of a local variable is not a null pointer."
verdict = "ok"
expected = [1]
[local_offset]
rule = "The address of the only local array within the local space."
[isspacep_shared]
rule = "isspacep tells a generic shared address from local, global and constant ones."
verdict = "ok"
expected = [1]
[isspacep_local]
rule = "isspacep tells a generic local address from shared, global and constant ones."
verdict = "ok"
expected = [2]
[isspacep_global]
rule = "isspacep tells a global address from shared, local and constant ones."
verdict = "ok"
expected = [4]
[isspacep_const]
rule = "isspacep tells a generic constant address, which may be global too."
[constant_offset]
rule = "The address of the only constant variable within the constant space."
[local_bytes_are_private]
rule = "Local memory of two threads at the same generic address holds different values."
verdict = "ok"
block = 32
count = 32
expected = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31]
[generic_shared_round_trip]
rule = "cvta.to.shared undoes cvta.shared, and a generic load finds what a shared store wrote."
verdict = "ok"
expected = [77]
[total_smem_size_static]
rule = "%total_smem_size counts static memory, with what the driver reserves or without, in units of its own."
[total_smem_size_dynamic]
rule = "%total_smem_size counts static and dynamic memory."
shared = 1000
[dynamic_smem_size]
rule = "%dynamic_smem_size is what the launch asked for."
shared = 1000
verdict = "ok"
expected = [1000]
[dynamic_smem_size_unaligned]
rule = "%dynamic_smem_size is not rounded up."
kernel = "dynamic_smem_size"
shared = 1001
[total_smem_size_none]
rule = "%total_smem_size of a kernel without shared memory."
*/

#define KEEP(variable) asm volatile("" ::"l"(&variable) : "memory")

__device__ unsigned shared_address(const void *pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

extern "C" __global__ void static_base(unsigned *out) {
    __shared__ int first[16];
    KEEP(first);
    out[0] = shared_address(first);
}

extern "C" __global__ void static_base_aligned_4096(unsigned *out) {
    __shared__ __align__(4096) int first[1024];
    KEEP(first);
    out[0] = shared_address(first);
}

extern "C" __global__ void static_base_aligned_16384(unsigned *out) {
    __shared__ __align__(16384) int first[4096];
    KEEP(first);
    out[0] = shared_address(first);
}

extern __shared__ char dynamic_bytes[];
extern __shared__ __align__(16) float4 dynamic_vectors[];
extern __shared__ __align__(1024) char dynamic_aligned[];

extern "C" __global__ void dynamic_base(unsigned *out) {
    out[0] = shared_address(dynamic_bytes);
}

extern "C" __global__ void dynamic_base_without_bytes(unsigned *out) {
    out[0] = shared_address(dynamic_bytes);
}

extern "C" __global__ void dynamic_after_static(unsigned *out) {
    __shared__ int first[5];
    KEEP(first);
    out[0] = shared_address(dynamic_bytes);
}

extern "C" __global__ void dynamic_after_odd_static(unsigned *out) {
    __shared__ char first[3];
    KEEP(first);
    out[0] = shared_address(dynamic_vectors);
}

extern "C" __global__ void dynamic_aligned_1024_after_static(unsigned *out) {
    __shared__ int first[5];
    KEEP(first);
    out[0] = shared_address(dynamic_aligned);
}

extern "C" __global__ void static_variables_apart(unsigned *out) {
    __shared__ char bytes[3];
    __shared__ double doubles[4];
    __shared__ __align__(128) int words[7];
    KEEP(bytes);
    KEEP(doubles);
    KEEP(words);
    out[0] = shared_address(bytes);
    out[1] = shared_address(doubles);
    out[2] = shared_address(words);
}

extern "C" __global__ void static_base_xor(unsigned *out) {
    __shared__ __align__(2048) int tiles[1024];
    KEEP(tiles);
    out[0] = (shared_address(tiles) ^ 2048) - shared_address(tiles);
}

extern "C" __global__ void shared_base_or_1024(unsigned *out) {
    __shared__ int first[512];
    KEEP(first);
    out[0] = (shared_address(first) | 1024) - shared_address(first);
}

extern "C" __global__ void shared_window_of_generic(unsigned *out) {
    __shared__ int first[16];
    KEEP(first);
    out[0] = static_cast<unsigned>(reinterpret_cast<unsigned long long>(first)) - shared_address(first);
}

extern "C" __global__ void shared_generic_upper_alike(unsigned *out) {
    __shared__ int first[16], second[2048];
    KEEP(first);
    KEEP(second);
    const unsigned long long one = reinterpret_cast<unsigned long long>(first);
    const unsigned long long two = reinterpret_cast<unsigned long long>(second);
    out[0] = one >> 32 == two >> 32 && one >> 32 != 0;
}

extern "C" __global__ void shared_pointer_is_not_null(unsigned *out) {
    __shared__ int first[16];
    KEEP(first);
    unsigned long long address = reinterpret_cast<unsigned long long>(first);
    asm volatile("" : "+l"(address));
    out[0] = address != 0;
}

extern "C" __global__ void shared_space_pointer_zero(unsigned *out) {
    __shared__ int first[16];
    KEEP(first);
    unsigned address = shared_address(first);
    asm volatile("" : "+r"(address));
    out[0] = address == 0;
}

extern "C" __global__ void local_pointer_is_not_null(unsigned *out) {
    int array[4];
    KEEP(array);
    unsigned long long address = reinterpret_cast<unsigned long long>(array);
    asm volatile("" : "+l"(address));
    out[0] = address != 0;
}

extern "C" __global__ void local_offset(unsigned *out) {
    int array[4];
    KEEP(array);
    out[0] = static_cast<unsigned>(__cvta_generic_to_local(array));
}

__device__ unsigned spaces(const void *pointer) {
    unsigned found;
    asm volatile("{ .reg .pred p; .reg .b32 t; mov.u32 %0, 0;"
                 "isspacep.shared p, %1; selp.u32 t, 1, 0, p; or.b32 %0, %0, t;"
                 "isspacep.local p, %1; selp.u32 t, 2, 0, p; or.b32 %0, %0, t;"
                 "isspacep.global p, %1; selp.u32 t, 4, 0, p; or.b32 %0, %0, t;"
                 "isspacep.const p, %1; selp.u32 t, 8, 0, p; or.b32 %0, %0, t; }"
                 : "=&r"(found) : "l"(pointer));
    return found;
}

__constant__ int constant_words[4] = {5, 6, 7, 8};

extern "C" __global__ void isspacep_shared(unsigned *out) {
    __shared__ int first[16];
    KEEP(first);
    out[0] = spaces(first);
}

extern "C" __global__ void isspacep_local(unsigned *out) {
    int array[4];
    KEEP(array);
    out[0] = spaces(array);
}

extern "C" __global__ void isspacep_global(unsigned *out) {
    out[0] = spaces(out);
}

extern "C" __global__ void isspacep_const(unsigned *out) {
    out[0] = spaces(constant_words);
}

extern "C" __global__ void constant_offset(unsigned *out) {
    out[0] = static_cast<unsigned>(__cvta_generic_to_constant(constant_words));
}

extern "C" __global__ void local_bytes_are_private(unsigned *out) {
    volatile unsigned array[4];
    array[threadIdx.x % 4] = threadIdx.x;
    out[threadIdx.x] = array[threadIdx.x % 4];
}

extern "C" __global__ void generic_shared_round_trip(unsigned *out) {
    __shared__ unsigned word;
    const unsigned address = shared_address(&word);
    asm volatile("st.shared.u32 [%0], 77;" ::"r"(address) : "memory");
    unsigned long long generic;
    asm volatile("{ .reg .b64 t; cvt.u64.u32 t, %1; cvta.shared.u64 %0, t; }" : "=l"(generic) : "r"(address));
    asm volatile("ld.u32 %0, [%1];" : "=r"(out[0]) : "l"(generic) : "memory");
}

#define SPECIAL(name) asm volatile("mov.u32 %0, %%" name ";" : "=r"(value))

extern "C" __global__ void total_smem_size_static(unsigned *out) {
    __shared__ int first[25];
    KEEP(first);
    unsigned value;
    SPECIAL("total_smem_size");
    out[0] = value;
}

extern "C" __global__ void total_smem_size_dynamic(unsigned *out) {
    __shared__ int first[25];
    KEEP(first);
    dynamic_bytes[0] = 1;
    unsigned value;
    SPECIAL("total_smem_size");
    out[0] = value;
}

extern "C" __global__ void dynamic_smem_size(unsigned *out) {
    unsigned value;
    SPECIAL("dynamic_smem_size");
    out[0] = value;
}

extern "C" __global__ void total_smem_size_none(unsigned *out) {
    unsigned value;
    SPECIAL("total_smem_size");
    out[0] = value;
}
