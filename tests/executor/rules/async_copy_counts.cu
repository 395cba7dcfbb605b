// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "asynchronous copies"
count = 1024
block = 32
counted = true
verdict = "ok"
inputs = [["u32", [
    11, 48, 85, 122, 159, 196, 233, 19, 56, 93, 130, 167, 204, 241, 27, 64, 101, 138, 175, 212, 249, 35, 72, 109, 146,
    183, 220, 6, 43, 80, 117, 154, 191, 228, 14, 51, 88, 125, 162, 199, 236, 22, 59, 96, 133, 170, 207, 244, 30, 67,
    104, 141, 178, 215, 1, 38, 75, 112, 149, 186, 223, 9, 46, 83, 120, 157, 194, 231, 17, 54, 91, 128, 165, 202, 239,
    25, 62, 99, 136, 173, 210, 247, 33, 70, 107, 144, 181, 218, 4, 41, 78, 115, 152, 189, 226, 12, 49, 86, 123, 160,
    197, 234, 20, 57, 94, 131, 168, 205, 242, 28, 65, 102, 139, 176, 213, 250, 36, 73, 110, 147, 184, 221, 7, 44, 81,
    118, 155, 192, 229, 15, 52, 89, 126, 163, 200, 237, 23, 60, 97, 134, 171, 208, 245, 31, 68, 105, 142, 179, 216, 2,
    39, 76, 113, 150, 187, 224, 10, 47, 84, 121, 158, 195, 232, 18, 55, 92, 129, 166, 203, 240, 26, 63, 100, 137, 174,
    211, 248, 34, 71, 108, 145, 182, 219, 5, 42, 79, 116, 153, 190, 227, 13, 50]]]

[[family]]
name = "counts_{size}_{lengths}_{layout}"
line = 'COUNT({name}, {size}, {lengths}({size}), {layout}({size}))'
rule = "What a cp.async of {size} bytes counts, lengths by {lengths}, addresses by {layout}."
size = ["4", "8"]
lengths = ["whole", "none", "every_other", "first_half", "one_lane", "all_but_one", "one_byte"]
layout = ["in_a_row", "rows_of_8", "from_one", "to_one_bank"]

[[family]]
name = "counts_{size}_{lengths}_{layout}"
line = 'COUNT({name}, {size}, {lengths}({size}), {layout}({size}))'
rule = "What a cp.async of {size} bytes counts, lengths by {lengths}, addresses by {layout}."
size = ["16"]
lengths = ["none", "every_other", "first_half", "one_lane", "all_but_one", "every_fourth_zero", "one_byte"]
layout = ["in_a_row", "rows_of_8", "padded_rows", "from_one", "backwards", "shifted"]

[[family]]
name = "counts_guarded_{size}_{guard}_{lengths}"
line = 'GUARDED({name}, {size}, {guard}, {lengths}({size}))'
rule = "What a cp.async of {size} bytes counts where {guard} lanes run it, lengths by {lengths}."
size = ["4", "16"]
guard = ["odd", "low", "single"]
lengths = ["whole", "none", "first_half"]
*/

#define T threadIdx.x

__device__ unsigned target(const void *pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// How many of SIZE bytes a lane reads.
__device__ unsigned whole(unsigned size) { return size; }
__device__ unsigned none(unsigned) { return 0; }
__device__ unsigned every_other(unsigned size) { return T % 2 ? size : 0; }
__device__ unsigned first_half(unsigned size) { return T < 16 ? size : 0; }
__device__ unsigned one_lane(unsigned size) { return T == 13 ? size : 0; }
__device__ unsigned all_but_one(unsigned size) { return T == 13 ? 0 : size; }
__device__ unsigned every_fourth_zero(unsigned size) { return T % 4 == 3 ? 0 : size; }
__device__ unsigned one_byte(unsigned) { return 1; }

struct Places {
    unsigned from, to;
};

// Where a lane's piece comes from and goes, in bytes.
__device__ Places in_a_row(unsigned size) { return {T * size, T * size}; }
__device__ Places rows_of_8(unsigned size) { return {T / 8 * 192 + T % 8 * size, T * size}; }
__device__ Places padded_rows(unsigned size) { return {T * size, T / 8 * (8 * size + 16) + T % 8 * size}; }
__device__ Places from_one(unsigned size) { return {0, T * size}; }
__device__ Places backwards(unsigned size) { return {(31 - T) * size, T * size}; }
__device__ Places shifted(unsigned size) { return {T * size + 16, T * size}; }
__device__ Places to_one_bank(unsigned size) { return {T * size, T * 128}; }

__device__ bool odd() { return T % 2; }
__device__ bool low() { return T < 11; }
__device__ bool single() { return T == 5; }

#define KERNEL(NAME, SIZE, LENGTH, PLACES, ...)                                                            \
    extern "C" __global__ void NAME(unsigned *out, const unsigned *in) {                                   \
        __shared__ __align__(128) unsigned words[1024];                                                    \
        for (unsigned i = T; i < 1024; i += 32)                                                            \
            words[i] = 9000 + i;                                                                           \
        __syncthreads();                                                                                   \
        const unsigned length = LENGTH;                                                                    \
        const Places places = PLACES;                                                                      \
        const unsigned to = target(words) + places.to;                                                     \
        const char *const from = reinterpret_cast<const char *>(in) + places.from;                         \
        __VA_ARGS__                                                                                        \
            asm volatile("cp.async." CACHE_##SIZE ".shared.global [%0], [%1], " #SIZE ", %2;"              \
                         ::"r"(to), "l"(from), "r"(length) : "memory");                                    \
        asm volatile("cp.async.wait_all;" ::: "memory");                                                   \
        __syncthreads();                                                                                   \
        for (unsigned i = T; i < 1024; i += 32)                                                            \
            out[i] = words[i];                                                                             \
    }

#define CACHE_4 "ca"
#define CACHE_8 "ca"
#define CACHE_16 "cg"
#define COUNT(NAME, SIZE, LENGTH, PLACES) KERNEL(NAME, SIZE, LENGTH, PLACES, )
#define GUARDED(NAME, SIZE, GUARD, LENGTH) KERNEL(NAME, SIZE, LENGTH, in_a_row(SIZE), if (GUARD()))
