// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "special registers"
block = 32
verdict = "ok"
count = 3

[[family]]
name = "shared_sizes_{bytes}"
line = 'SIZES({name}, {bytes})'
rule = "%total_smem_size, %aggr_smem_size and %dynamic_smem_size with {bytes} static bytes and no dynamic ones."
bytes = ["1", "127", "128", "129", "1000", "20000"]

[[family]]
name = "shared_sizes_{bytes}_and_1000"
line = 'SIZES({name}, {bytes})'
rule = "%total_smem_size, %aggr_smem_size and %dynamic_smem_size with {bytes} static bytes and 1,000 dynamic ones."
shared = 1000
bytes = ["1", "24", "25", "128"]

[shared_sizes_none]
rule = "The same of a kernel without shared memory."
[multiprocessors]
rule = "%nsmid of this card, and whether %gridid is 0."
count = 2
block = 1
[clock_forms]
rule = "%clock and %clock_hi are the halves of %clock64, as far as they were read together."
count = 1
block = 1
expected = [1]
[timer_halves]
rule = "%globaltimer_hi is the upper half of %globaltimer, which advances in units of its own."
count = 1
block = 1
expected = [1]
*/

#define STORE(place, name) asm volatile("mov.u32 %0, %%" name ";" : "=r"(out[place]))

#define SIZES(NAME, BYTES)                                                                                 \
    extern "C" __global__ void NAME(unsigned *out) {                                                       \
        __shared__ char first[BYTES];                                                                      \
        asm volatile("" ::"l"(&first) : "memory");                                                         \
        STORE(0, "total_smem_size");                                                                       \
        STORE(1, "aggr_smem_size");                                                                        \
        STORE(2, "dynamic_smem_size");                                                                     \
    }

extern "C" __global__ void shared_sizes_none(unsigned *out) {
    STORE(0, "total_smem_size");
    STORE(1, "aggr_smem_size");
    STORE(2, "dynamic_smem_size");
}

extern "C" __global__ void multiprocessors(unsigned *out) {
    unsigned long long grid;
    STORE(0, "nsmid");
    asm volatile("mov.u64 %0, %%gridid;" : "=l"(grid));
    out[1] = grid == 0;
}

extern "C" __global__ void clock_forms(unsigned *out) {
    unsigned low, high;
    unsigned long long before, after;
    asm volatile("mov.u64 %0, %%clock64;\n\tmov.u32 %1, %%clock;\n\tmov.u32 %2, %%clock_hi;\n\tmov.u64 %3, %%clock64;"
                 : "=l"(before), "=r"(low), "=r"(high), "=l"(after)::"memory");
    const unsigned long long between = static_cast<unsigned long long>(high) << 32 | low;
    out[0] = before < after && (before >> 32 != after >> 32 || (before < between && between < after));
}

extern "C" __global__ void timer_halves(unsigned *out) {
    unsigned low, high;
    unsigned long long before, after;
    asm volatile("mov.u64 %0, %%globaltimer;\n\tmov.u32 %1, %%globaltimer_lo;\n\tmov.u32 %2, %%globaltimer_hi;"
                 "\n\tmov.u64 %3, %%globaltimer;" : "=l"(before), "=r"(low), "=r"(high), "=l"(after)::"memory");
    const unsigned long long between = static_cast<unsigned long long>(high) << 32 | low;
    out[0] = before <= after && (before >> 32 != after >> 32 || (before <= between && between <= after));
}
