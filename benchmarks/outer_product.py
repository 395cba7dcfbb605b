# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How fast the inner loop of a GEMM on CUDA cores can be: nothing but FMAs and the loads that feed them.

    python benchmarks/outer_product.py     on a GPU: cycles for one k of a warp's tile, in Markdown

Two warps a scheduler multiply a column of TM values by a row of TN, as `streamk` does, with no copy, no
barrier and no C. VALUES operands are loaded anew for each k, WIDTH at once; the others stay in registers.
"""

import ctypes

import numpy as np

from gpuprof.backends.gpu.context import Arguments, DeviceBuffer, GpuContext, LoadedModule
from gpuprof.backends.gpu.driver import call, driver, query_device
from gpuprof.toolchain.cache import compile_entries_cached
from gpuprof.toolchain.nvrtc import compiler_options

#: Rows and columns of a thread's sums; of what is loaded for one k, how many values, and how many at once.
TILES = ((12, 16), (8, 16), (8, 8))
LOADS = ((28, 4), (28, 2), (28, 1), (24, 4), (16, 4), (16, 2), (16, 1), (12, 4))
THREADS = 256
TURNS = 4000
#: Values of k in the text of the loop.
UNROLLED = 8
SHARED_BYTES = 1 << 16

SOURCE = """
static __device__ __forceinline__ void load(float *v, unsigned address)
{
    if (WIDTH == 4)
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "r"(address) : "memory");
    else if (WIDTH == 2)
        asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v[0]), "=f"(v[1]) : "r"(address) : "memory");
    else
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v[0]) : "r"(address) : "memory");
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    outer_product(float *out, long long *cycles, int turns)
{
    extern __shared__ __align__(16) float shared[];
    for (int i = threadIdx.x; i < SHARED_BYTES / 4; i += THREADS)
        shared[i] = i * 1e-6f;
    __syncthreads();
    const int lane = threadIdx.x % 32;
    const unsigned base = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned a_row = base + (lane % 2 + lane / 8 * 2) * 16;
    const unsigned b_row = base + 8192 + (threadIdx.x / 32 * 4 + lane / 2 % 4) * 16;
    float a[2][TM], b[2][TN], sum[TM][TN] = {};
#pragma unroll
    for (int i = 0; i < 2 * TM; ++i)
        a[i / TM][i % TM] = shared[lane + i];
#pragma unroll
    for (int j = 0; j < 2 * TN; ++j)
        b[j / TN][j % TN] = shared[lane + j];
    __syncthreads();
    const long long begin = clock64();
#pragma unroll 1
    for (int turn = 0; turn < turns; ++turn) {
#pragma unroll
        for (int k = 0; k < UNROLLED; ++k) {
#pragma unroll
            for (int i = 0; i < VALUES; i += WIDTH)
                if (i < TM)
                    load(&a[(k + 1) % 2][i], a_row + i * 32 + k * 64);
                else
                    load(&b[(k + 1) % 2][i - TM], b_row + (i - TM) * 16 + k * 64);
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) {
                    const int j_snake = i % 2 ? TN - 1 - j : j;
                    sum[i][j_snake] += a[k % 2][i] * b[k % 2][j_snake];
                }
        }
    }
    const long long end = clock64();
    float total = 0;
#pragma unroll
    for (int i = 0; i < TM * TN; ++i)
        total += sum[i / TN][i % TN];
    out[blockIdx.x * THREADS + threadIdx.x] = total;
    if (threadIdx.x == 0)
        cycles[blockIdx.x] = end - begin;
}
"""


def main() -> None:
    """Measure all of it on GPU 0."""
    context, device = GpuContext(0), query_device(0)
    out, cycles = DeviceBuffer(4 * THREADS * device.sm_count), DeviceBuffer(8 * device.sm_count)
    pointers = (ctypes.c_void_p(buffer.address) for buffer in (out, cycles))
    arguments = Arguments([*pointers, ctypes.c_int(TURNS)])
    found = np.zeros(device.sm_count, np.int64)
    print("| sums | values loaded | at once | cycles | of the peak |\n|:--|--:|--:|--:|--:|")
    for (rows, columns), (values, width) in ((tile, load) for tile in TILES for load in LOADS):
        if values > rows + columns:
            continue
        macros = {
            **{"TM": rows, "TN": columns, "VALUES": values, "WIDTH": width},
            **{"THREADS": THREADS, "UNROLLED": UNROLLED, "SHARED_BYTES": SHARED_BYTES},
        }
        options = compiler_options(device.arch, [(name, str(value)) for name, value in macros.items()])
        compiled = compile_entries_cached(SOURCE, "outer_product.cu", ("outer_product",), options)[0]
        function = LoadedModule(compiled.cubin, "outer_product").function("outer_product")
        function.reserve_shared(SHARED_BYTES, 0, device.shared_bytes_per_block_optin)
        for _ in range(3):
            extents = (device.sm_count, 1, 1), (THREADS, 1, 1)
            function.launch(*extents, SHARED_BYTES, context.stream, arguments)
            context.synchronize()
        call("reading", driver().cuMemcpyDtoH(found.ctypes.data, cycles.address, found.nbytes))
        # A scheduler has two of the eight warps.
        each = float(np.median(found)) / TURNS / UNROLLED / 2
        share = rows * columns / each
        print(f"| {rows}x{columns} | {values} | {width} | {each:.1f} | {100 * share:.1f} % |", flush=True)


if __name__ == "__main__":
    main()
