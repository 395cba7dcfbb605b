// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "state spaces"
block = 1
verdict = "ok"
shared = 4096

[[family]]
name = "dynamic_{align}_behind_{bytes}"
line = 'LAYOUT({name}, {bytes}, {align})'
rule = "A dynamic array aligned to {align} behind {bytes} static bytes, where the module has arrays aligned to 2,048."
count = 2
bytes = ["1", "4", "20", "64", "132", "1028"]
align = ["4", "16", "128", "1024", "2048"]

[two_dynamic_arrays]
rule = "Two dynamic arrays of different alignment start at their own, and overlap."
count = 4
[dynamic_beside_unused_static]
rule = "A static variable that the kernel does not name takes no room."
count = 2
[static_of_the_module]
rule = "A static variable outside of functions lies where a kernel's own would."
count = 2
[two_dynamic_arrays_overlap]
rule = "What is stored through one dynamic array is read through another."
count = 1
expected = [41]
[dynamic_last_byte]
rule = "The last byte of dynamic memory that was asked for can be used."
count = 1
expected = [9]
*/

#define KEEP(variable) asm volatile("" ::"l"(&variable) : "memory")

extern __shared__ __align__(4) char dynamic_4[];
extern __shared__ __align__(16) char dynamic_16[];
extern __shared__ __align__(128) char dynamic_128[];
extern __shared__ __align__(1024) char dynamic_1024[];
extern __shared__ __align__(2048) char dynamic_2048[];
__shared__ int named_elsewhere[60];

__device__ unsigned shared_address(const void *pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ unsigned total() {
    unsigned value;
    asm volatile("mov.u32 %0, %%total_smem_size;" : "=r"(value));
    return value;
}

#define LAYOUT(NAME, BYTES, ALIGN)                                                                         \
    extern "C" __global__ void NAME(unsigned *out) {                                                       \
        __shared__ char first[BYTES];                                                                      \
        KEEP(first);                                                                                       \
        out[0] = shared_address(dynamic_##ALIGN);                                                          \
        out[1] = total();                                                                                  \
    }

extern "C" __global__ void two_dynamic_arrays(unsigned *out) {
    __shared__ int first[5];
    KEEP(first);
    out[0] = shared_address(dynamic_16);
    out[1] = shared_address(dynamic_1024);
    out[2] = shared_address(first);
    out[3] = total();
}

extern "C" __global__ void dynamic_beside_unused_static(unsigned *out) {
    out[0] = shared_address(dynamic_16);
    out[1] = total();
}

extern "C" __global__ void static_of_the_module(unsigned *out) {
    named_elsewhere[threadIdx.x] = 17;
    out[0] = *static_cast<volatile int *>(named_elsewhere + threadIdx.x);
    out[1] = shared_address(named_elsewhere);
}

extern "C" __global__ void two_dynamic_arrays_overlap(unsigned *out) {
    __shared__ int first[5];
    KEEP(first);
    volatile unsigned *const words = reinterpret_cast<volatile unsigned *>(dynamic_16);
    words[(shared_address(dynamic_1024) - shared_address(dynamic_16)) / 4] = 41;
    out[0] = *reinterpret_cast<volatile unsigned *>(dynamic_1024);
}

extern "C" __global__ void dynamic_last_byte(unsigned *out) {
    volatile char *const bytes = dynamic_2048;
    unsigned size;
    asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(size));
    bytes[size - 1] = 9;
    out[0] = bytes[size - 1];
}
