// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "atomics"

[[family]]
name = "atom_{op}_{type}_{space}"
line = 'EACH2({name}, "{op}", "{type}", {space}, {type.args})'
rule = "atom.{op}.{type} on {space} memory: the old value comes back, the new one is as the plain operation's, or as the card says."
operands = ["{type}", "{type}"]
result = "{type}"
op = ["min", "max"]
type = ["u32", "s32", "u64", "s64"]
space = ["global", "shared"]

[[family]]
name = "atom_{op}_{type}_{space}"
line = 'EACH2({name}, "{op}", "{type}", {space}, {type.args})'
rule = "atom.{op}.{type} on {space} memory."
operands = ["{type}", "{type}"]
result = "{type}"
op = ["and", "or", "xor", "exch"]
type = ["b32", "b64"]
space = ["global", "shared"]

[[family]]
name = "atom_{op}_{type}_{space}"
line = 'EACH2({name}, "{op}", "{type}", {space}, {type.args})'
rule = "atom.{op}.u32 on {space} memory wraps at its operand: inc to 0, dec to it."
operands = ["{type}", "{type}"]
result = "{type}"
op = ["inc", "dec"]
type = ["u32"]
space = ["global", "shared"]

[[family]]
name = "atom_add_{type}_{space}"
line = 'EACH2({name}, "add", "{type}", {space}, {type.args})'
rule = "atom.add.{type} on {space} memory: subnormals, signed zeros, NaN patterns, wrapping."
operands = ["{type}", "{type}"]
result = "{type}"
type = ["u32", "s32", "u64", "f32", "f64"]
space = ["global", "shared"]

[[family]]
name = "atom_add_noftz_{type}_{space}"
line = 'EACH2({name}, "add.noftz", "{type}", {space}, {type.args})'
rule = "atom.add.noftz.{type} on {space} memory keeps subnormals."
operands = ["{type}", "{type}"]
result = "{type}"
type = ["f16", "bf16", "f16x2", "bf16x2"]
space = ["global", "shared"]

[[family]]
name = "red_add_{type}"
line = 'REDUCE({name}, "red.relaxed.gpu.global.add.{suffix}", {type.args})'
rule = "red.add of {type} in global memory has the same subnormals as atom."
operands = ["{type}", "{type}"]
result = "{type}"
type = ["f32"]
suffix = ["f32"]

[[family]]
name = "atom_cas_{type}_{space}"
line = 'COMPARE({name}, "{type}", {space}, {type.args})'
rule = "atom.cas.{type} on {space} memory stores where the old value is equal bit for bit."
operands = ["{type}", "{type}", "{type}"]
result = "{type}"
type = ["b16", "b32", "b64"]
space = ["global", "shared"]

[atom_cas_128_global]
rule = "atom.cas.b128 compares and stores sixteen bytes."
count = 4
block = 1
verdict = "ok"
expected = [11, 0, 22, 0]
[atom_exch_128_shared]
rule = "atom.exch.b128 on shared memory gives the old sixteen bytes."
count = 8
block = 1
verdict = "ok"
expected = [1, 2, 3, 4, 5, 6, 7, 8]
[red_vector_f32x4]
rule = "red.add.v4.f32 adds four floats."
count = 4
result = "f32"
block = 32
verdict = "ok"
expected = [32.0, 64.0, 96.0, 128.0]
[red_vector_f16x2_v2]
rule = "red.add.noftz.v2.f16x2 adds four halves."
count = 2
block = 8
verdict = "ok"
expected = ["48004800", "48004800"]
[atom_vector_f32x2]
rule = "atom.add.v2.f32 gives back two old floats."
count = 4
result = "f32"
block = 1
verdict = "ok"
expected = [0.0, 0.0, 1.0, 2.0]
[atomics_of_a_warp_on_one_word]
rule = "32 lanes that add to one word get 32 different old values, whose order is the card's."
count = 2
verdict = "ok"
expected = ["ffffffff", 32]
[atomics_of_blocks_on_one_word]
rule = "Blocks that add to one word lose nothing."
grid = 64
block = 256
count = 1
verdict = "ok"
expected = [16384]
[atomics_shared_histogram]
rule = "A histogram by shared atomics is exact."
count = 16
block = 256
verdict = "ok"
expected = [16]
[atomic_and_plain_access_race]
rule = "An atomic addition and a plain store by another warp to one word are a race."
block = 64
count = 1
verdict = "undefined"
faults = ["shared-memory race"]
[atomic_misaligned]
rule = "An atomic at an address that is no multiple of its size faults."
count = 4
block = 1
verdict = "fault"
faults = ["misaligned"]
*/

#define QUALIFIED_global "global"
#define QUALIFIED_shared "shared"
#define ADDRESS_global(pointer) reinterpret_cast<unsigned long long>(pointer)
#define ADDRESS_shared(pointer) __cvta_generic_to_shared(pointer)

// Every thread has a word of its own: what is left of it, then the old value where that is not the first operand.
#define EACH2(NAME, OP, TYPE, SPACE, D, MOVE, BYTES)                                                        \
    extern "C" __global__ void NAME(char *out, const char *first, const char *second) {                     \
        __shared__ __align__(16) char staged[8 * 1024];                                                     \
        char *const cell = QUALIFIED_##SPACE[0] == 's' ? staged + threadIdx.x * BYTES : out + threadIdx.x * BYTES; \
        asm volatile("{ .reg ." D " a, b, old; ld.global." MOVE " a, [%2]; ld.global." MOVE " b, [%3];"      \
                     "st." QUALIFIED_##SPACE "." MOVE " [%1], a;"                                            \
                     "atom." QUALIFIED_##SPACE "." OP "." TYPE " old, [%1], b;"                              \
                     "ld." QUALIFIED_##SPACE "." MOVE " a, [%1]; st.global." MOVE " [%0], a; }"              \
                     :: "l"(out + threadIdx.x * BYTES), "l"(ADDRESS_##SPACE(cell)),                         \
                        "l"(first + threadIdx.x * BYTES), "l"(second + threadIdx.x * BYTES) : "memory");    \
    }

#define REDUCE(NAME, OP, D, MOVE, BYTES)                                                                    \
    extern "C" __global__ void NAME(char *out, const char *first, const char *second) {                     \
        asm volatile("{ .reg ." D " a, b; ld.global." MOVE " a, [%1]; ld.global." MOVE " b, [%2];"           \
                     "st.global." MOVE " [%0], a;" OP " [%0], b; }"                                         \
                     :: "l"(out + threadIdx.x * BYTES),                                                     \
                        "l"(first + threadIdx.x * BYTES), "l"(second + threadIdx.x * BYTES) : "memory");    \
    }

#define COMPARE(NAME, TYPE, SPACE, D, MOVE, BYTES)                                                          \
    extern "C" __global__ void NAME(char *out, const char *first, const char *second, const char *third) {  \
        __shared__ __align__(16) char staged[8 * 1024];                                                     \
        char *const cell = QUALIFIED_##SPACE[0] == 's' ? staged + threadIdx.x * BYTES : out + threadIdx.x * BYTES; \
        asm volatile("{ .reg ." D " a, b, c, old; ld.global." MOVE " a, [%2]; ld.global." MOVE " b, [%3];"   \
                     "ld.global." MOVE " c, [%4]; st." QUALIFIED_##SPACE "." MOVE " [%1], a;"                \
                     "atom." QUALIFIED_##SPACE ".cas." TYPE " old, [%1], b, c;"                              \
                     "ld." QUALIFIED_##SPACE "." MOVE " a, [%1]; st.global." MOVE " [%0], a; }"              \
                     :: "l"(out + threadIdx.x * BYTES), "l"(ADDRESS_##SPACE(cell)),                         \
                        "l"(first + threadIdx.x * BYTES), "l"(second + threadIdx.x * BYTES),                \
                        "l"(third + threadIdx.x * BYTES) : "memory");                                       \
    }

extern "C" __global__ void atom_cas_128_global(unsigned long long *out) {
    out[0] = 1;
    out[1] = 2;
    asm volatile("{ .reg .b128 c, v, old; .reg .b64 x, y; mov.u64 x, 1; mov.u64 y, 2; mov.b128 c, {x, y};"
                 "mov.u64 x, 11; mov.u64 y, 22; mov.b128 v, {x, y}; atom.global.cas.b128 old, [%0], c, v; }"
                 ::"l"(out) : "memory");
}

extern "C" __global__ void atom_exch_128_shared(unsigned *out) {
    __shared__ __align__(16) unsigned words[4];
    for (int i = 0; i < 4; ++i)
        words[i] = i + 1;
    asm volatile("{ .reg .b128 v, old; .reg .b64 x, y; mov.u64 x, 0x600000005; mov.u64 y, 0x800000007;"
                 "mov.b128 v, {x, y}; atom.shared.exch.b128 old, [%1], v; mov.b128 {x, y}, old;"
                 "st.global.v2.b64 [%0], {x, y}; }"
                 ::"l"(out), "l"(__cvta_generic_to_shared(words)) : "memory");
    for (int i = 0; i < 4; ++i)
        out[4 + i] = words[i];
}

extern "C" __global__ void red_vector_f32x4(float *out) {
    if (threadIdx.x < 4)
        out[threadIdx.x] = 0;
    __syncthreads();
    asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};"
                 ::"l"(out), "f"(1.0f), "f"(2.0f), "f"(3.0f), "f"(4.0f) : "memory");
}

extern "C" __global__ void red_vector_f16x2_v2(unsigned *out) {
    if (threadIdx.x < 2)
        out[threadIdx.x] = 0;
    __syncthreads();
    asm volatile("red.relaxed.gpu.global.add.noftz.v2.f16x2 [%0], {%1, %1};" ::"l"(out), "r"(0x3c003c00) : "memory");
}

extern "C" __global__ void atom_vector_f32x2(float *out) {
    for (int i = 0; i < 4; ++i)
        out[i] = 0;
    float x, y;
    asm volatile("atom.relaxed.gpu.global.add.v2.f32 {%0, %1}, [%2], {%3, %4};"
                 : "=f"(x), "=f"(y) : "l"(out + 2), "f"(1.0f), "f"(2.0f) : "memory");
    out[0] = x;
    out[1] = y;
}

extern "C" __global__ void atomics_of_a_warp_on_one_word(unsigned *out) {
    if (threadIdx.x < 2)
        out[threadIdx.x] = 0;
    __syncwarp();
    const unsigned old = atomicAdd(out + 1, 1);
    atomicOr(out, 1u << old);
}

__device__ unsigned grand_total;

extern "C" __global__ void atomics_of_blocks_on_one_word(unsigned *out) {
    atomicAdd(&grand_total, 1);
    __threadfence();
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) {
        static __device__ unsigned finished;
        last = atomicAdd(&finished, 1) == gridDim.x - 1;
        if (last)
            finished = 0;
    }
    __syncthreads();
    if (last && threadIdx.x == 0)
        out[0] = atomicExch(&grand_total, 0);
}

extern "C" __global__ void atomics_shared_histogram(unsigned *out) {
    __shared__ unsigned bins[16];
    if (threadIdx.x < 16)
        bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[threadIdx.x * 7 % 16], 1);
    __syncthreads();
    if (threadIdx.x < 16)
        out[threadIdx.x] = bins[threadIdx.x];
}

extern "C" __global__ void atomic_and_plain_access_race(unsigned *out) {
    __shared__ volatile unsigned word;
    if (threadIdx.x == 0)
        word = 0;
    __syncthreads();
    if (threadIdx.x < 32)
        atomicAdd(const_cast<unsigned *>(&word), 1);
    else if (threadIdx.x == 40)
        word = 1000;
    __syncthreads();
    if (threadIdx.x == 0)
        out[0] = word;
}

extern "C" __global__ void atomic_misaligned(unsigned *out) {
    asm volatile("red.global.add.u32 [%0], 1;" ::"l"(reinterpret_cast<char *>(out) + 2) : "memory");
}
