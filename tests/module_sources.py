# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels that double an array, by what their modules bring along."""

OPERATION = """
name = "double"
dimensions = ["n"]
default_sizes = "1000"
[arrays]
x.shape = ["n"]
y = { shape = ["n"], role = "out" }
[work]
bytes = "2 * n * real_bytes"
[check]
y = "2 * x"
equal = true
"""
KERNEL = """/*gpuprof
arguments = ["n", "x", "y"]
[launch]
block = [128]
grid = ["cdiv(n, block_x)"]
*/
__device__ int launches;
extern "C" __global__ void %s(int n, real *x, real *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    %s
}
"""
#: They bring more variables than a driver queues commands, and none of them is named by code.
HEADERS = "".join(
    f"#include <{name}>\n"
    for name in (
        *("cooperative_groups.h", "cub/block/block_reduce.cuh", "cuda/barrier", "cuda/pipeline"),
        *("cuda/semaphore", "cuda/std/chrono"),
    )
)
OF_HEADERS = """
    __shared__ real kept[128];
    cooperative_groups::thread_block block = cooperative_groups::this_thread_block();
    kept[threadIdx.x] = i < n ? x[i] : 0;
    cooperative_groups::sync(block);
    if (i < n) y[i] = 2 * kept[127 - (127 - threadIdx.x)];
"""
VARIABLES = """
struct Three { int a, b, c; };
__device__ unsigned char v1 = 7;
__device__ short v2 = 8;
__device__ int v4 = 9;
__device__ Three v12 = {1, 2, 3};
__device__ unsigned char v1000[1000] = {5};
__device__ double v8;
"""
#: Slow where it finds them as at first, which no launch leaves them.
ITS_OWN = """
    real sum = 0;
    if (blockIdx.x == 0 && v1 == 7 && v2 == 8 && v4 == 9 && v12.b == 2 && v12.c == 3 && v8 == 0
        && v1000[0] == 5 && v1000[1] == 0 && v1000[999] == 0)
        for (int k = 0; k < 300; ++k) sum = sum / 2 + k;
    if (i < n) y[i] = 2 * x[i] + (sum < 0);
    __syncthreads();
    if (i == 0) { ++v1; ++v2; ++v4; ++v12.b; ++v12.c; ++v8; ++v1000[0]; ++v1000[1]; ++v1000[999]; }
"""


def write_modules(folder):
    """A ladder of two: one whose headers bring variables, one with variables of its own."""
    (folder / "operation.toml").write_text(OPERATION)
    for name, body, before in (("headers", OF_HEADERS, HEADERS), ("variables", ITS_OWN, VARIABLES)):
        (folder / f"{name}.cu").write_text((KERNEL % (name, body)).replace("*/\n", "*/\n" + before, 1))
