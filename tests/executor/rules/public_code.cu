// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "met in public code"

[reserved_for_tiles]
rule = "%reserved_smem_offset_1 is where the system keeps what tiles of several warps share."
kernel = "reserved_for_tiles"
block = 1
count = 1
[tile_barrier]
rule = "Warps of a tile tell each other by bits of a word in the system's shared memory that they have come."
block = 256
count = 256
verdict = "ok"
expected = [3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6,
    5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5,
    4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4]
[guarded_table]
rule = "A jump by a table whose predicate does not hold goes on."
count = 32
verdict = "ok"
expected = [10, 7, 20, 7]
[video_absolute_differences]
rule = "vabsdiff4.add adds the absolute differences of four bytes to a sum."
operands = ["u32", "u32", "u32"]
[video_sums]
rule = "vadd2 adds halves; a carry does not leave its half."
operands = ["u32", "u32"]
[video_saturated]
rule = "vsub4.s32.s32.s32.sat keeps each difference of bytes between -128 and 127."
operands = ["u32", "u32"]
[video_means]
rule = "vavrg2 rounds the mean of an odd sum away from zero."
operands = ["u32", "u32"]
[inverse_root_of_doubles]
rule = "rsqrt.approx.f64 is refined to nearly all bits, of subnormals too."
result = "f64"
operands = ["f64"]
ulps = 1
*/

extern "C" __global__ void inverse_root_of_doubles(double *out, double *a) {
    asm volatile("rsqrt.approx.f64 %0, %1;" : "=d"(out[threadIdx.x]) : "d"(a[threadIdx.x]));
}

extern "C" __global__ void reserved_for_tiles(unsigned *out) {
    asm volatile("mov.u32 %0, %%reserved_smem_offset_1;" : "=r"(out[0]));
}

// Each warp of a tile of four leaves its number, and reads that of the warp opposite.
extern "C" __global__ void tile_barrier(unsigned *out) {
    unsigned long long scratch;
    asm volatile("{ .reg .u32 start; .reg .u64 wide; mov.u32 start, %%reserved_smem_offset_1;"
                 " cvt.u64.u32 wide, start; cvta.shared.u64 %0, wide; }" : "=l"(scratch));
    unsigned *word = (unsigned *)(scratch + 12);
    volatile unsigned *slots = (unsigned *)(scratch + 32);
    const unsigned warp = threadIdx.x / 32, bit = 1u << warp, tile = 0xfu << (warp / 4 * 4);
    if (threadIdx.x % 32 == 0)
        asm volatile("red.and.release.cta.b32 [%0], %1;" ::"l"(word), "r"(~bit) : "memory");
    __syncthreads();
    unsigned seen = 0;
    if (threadIdx.x % 32 == 0) {
        slots[2 * warp] = warp;
        asm volatile("atom.or.acq_rel.cta.b32 %0, [%1], %2;" : "=r"(seen) : "l"(word), "r"(bit) : "memory");
        while ((seen & tile) != tile)
            asm volatile("ld.acquire.cta.u32 %0, [%1];" : "=r"(seen) : "l"(word) : "memory");
    }
    __syncwarp();
    out[threadIdx.x] = slots[2 * (warp ^ 3)];
}

extern "C" __global__ void guarded_table(unsigned *out) {
    unsigned result = 7;
    asm volatile("{\n"
                 ".reg .pred p; .reg .u32 odd, index;\n"
                 "and.b32 odd, %1, 1;\n"
                 "setp.eq.u32 p, odd, 0;\n"
                 "shr.u32 index, %1, 1;\n"
                 "and.b32 index, index, 1;\n"
                 "table: .branchtargets first, second;\n"
                 "@p brx.idx index, table;\n"
                 "bra end;\n"
                 "first: mov.u32 %0, 10;\n"
                 "bra end;\n"
                 "second: mov.u32 %0, 20;\n"
                 "end:\n"
                 "}" : "+r"(result) : "r"(threadIdx.x));
    out[threadIdx.x] = result;
}

extern "C" __global__ void video_absolute_differences(unsigned *out, unsigned *a, unsigned *b, unsigned *c) {
    const int i = threadIdx.x;
    asm volatile("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(out[i]) : "r"(a[i]), "r"(b[i]), "r"(c[i]));
}

extern "C" __global__ void video_sums(unsigned *out, unsigned *a, unsigned *b) {
    const int i = threadIdx.x;
    asm volatile("vadd2.u32.u32.u32 %0, %1, %2, %3;" : "=r"(out[i]) : "r"(a[i]), "r"(b[i]), "r"(0));
}

extern "C" __global__ void video_saturated(unsigned *out, unsigned *a, unsigned *b) {
    const int i = threadIdx.x;
    asm volatile("vsub4.s32.s32.s32.sat %0, %1, %2, %3;" : "=r"(out[i]) : "r"(a[i]), "r"(b[i]), "r"(0));
}

extern "C" __global__ void video_means(unsigned *out, unsigned *a, unsigned *b) {
    const int i = threadIdx.x;
    asm volatile("vavrg2.s32.s32.s32 %0, %1, %2, %3;" : "=r"(out[i]) : "r"(a[i]), "r"(b[i]), "r"(0));
}
