# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What CUDA provides to kernels as functions: `printf`, `malloc` and `free`, and the barrier of the grid."""

import struct

import numpy as np
import pytest
from executor_harness import cuda_program, run_cuda

from gpuprof.executor import GlobalMemory, launch
from gpuprof.executor.steps.system_calls import argument_sizes, formatted, offsets

OUT = np.zeros(32, np.int32)


def _bits(value: int, size: int) -> bytes:
    return (value % (1 << 8 * size)).to_bytes(size, "little")


@pytest.mark.parametrize(
    ("text", "arguments", "expected"),
    [
        ("%d|%i|%u", [-5, -6, -1], "-5|-6|4294967295"),
        ("%5d|%-5d|%05d|%+d|% d", [42, 42, 42, 42, 42], "   42|42   |00042|+42| 42"),
        ("%.3d|%6.3d|%06.3d", [5, 5, 5], "005|   005|   005"),
        ("%x|%#x|%X|%o|%#o|%#x", [255, 255, 255, 8, 8, 0], "ff|0xff|FF|10|010|0"),
        ("%lld|%llu|%lx", [-(1 << 40), 1 << 63, 1 << 40], "-1099511627776|9223372036854775808|10000000000"),
        ("%hd|%hhu|%hhd", [70000, 300, 200], "4464|44|-56"),
        (
            "%f|%.2f|%8.3f|%-8.1f|%+e",
            [1.5, 2.345, 3.0, 4.0, 12345.678],
            "1.500000|2.35|   3.000|4.0     |+1.234568e+04",
        ),
        ("%g|%G|%a", [1e-10, 1e20, 1.5], "1e-10|1E+20|0x1.8p+0"),
        ("%f|%F|%5.1f|%f", [np.inf, -np.inf, np.nan, -np.nan], "inf|-INF|  nan|-nan"),
        ("%c%c|%3c", [72, 105, 33], "Hi|  !"),
        ("%s|%6s|%-6s|%.2s", [0, 0, 0, 0], "word|  word|word  |wo"),
        ("%p|%p", [0x7F00, 0], "0x7f00|(nil)"),
        ("%*d|%-*d|%.*f", [6, 42, 4, 7, 2, 1.239], "    42|7   |1.24"),
        ("100%% of %d", [3], "100% of 3"),
        ("%y %", [], "%y %"),
        ("%+u|% x", [1, 2], "1|2"),
    ],
)
def test_formats_are_those_of_c(text, arguments, expected):
    sizes = argument_sizes(text)
    content = [
        struct.pack("<d", given) if isinstance(given, float) else _bits(given, size)
        for given, size in zip(arguments, sizes, strict=True)
    ]
    assert formatted(text, content, lambda address: "word") == expected


def test_arguments_lie_at_multiples_of_their_size():
    assert offsets("%d %f %d %c %s") == [0, 8, 16, 20, 24]


def test_much_text_is_cut_and_counted():
    source = """extern "C" __global__ void k(int *out) {
    for (int i = 0; i < 40; ++i) printf("%d\\n", i);
}"""
    _, result = run_cuda(source, OUT, block=(128, 1, 1))
    assert result.print_calls == 40 * 128
    assert len(result.printed.splitlines()) == 4096


def test_a_launch_that_is_begun_again_prints_once_and_takes_its_memory_once():
    """A second look at shared memory that is ordered by more than barriers; the heap is there, or is not."""
    source = """__device__ int *kept;
extern "C" __global__ void k(int *out) {
    __shared__ volatile int flag;
    if (threadIdx.x == 0) {
        if (kept) { out[2] = *kept; free(kept); }
        kept = (int *)malloc(3 << 20);
        out[0] = kept != 0;
        *kept = 5;
        printf("launch %d\\n", ++out[1]);
    }
    flag = 1;
    __syncthreads();
    out[3 + threadIdx.x] += flag;
}"""
    program, memory = cuda_program(source), GlobalMemory()
    out = memory.allocate(np.zeros(67, np.int32), "out")
    assert program.means.in_shared
    heaps = set()
    for number, before in ((1, 0), (2, 5)):
        result = launch(program, (1, 1, 1), (64, 1, 1), [out], memory)
        assert (result.printed, result.print_calls) == (f"launch {number}\n", 1)
        assert result.remarks == ("Of what malloc gave out, 3,145,728 bytes in 1 pieces are not freed",)
        assert out.array().tolist() == [1, number, before] + [number] * 64
        assert len(memory.heap.pieces) == 1
        heaps |= {buffer.address for buffer in memory.buffers if "heap" in buffer.name}
    assert len(heaps) == 1


@pytest.mark.parametrize(
    ("body", "least"),
    [
        ('if (out[t] == 7) printf("%d\\n", t);', False),
        ('if (t == 7) printf("%d\\n", t);', True),
        ("int *p = (int *)malloc(4); *p = t; out[t] = *p; free(p);", True),
        ("out[t] = ways[blockIdx.x](t);", False),
        ("out[t] = ways[t & 1](t);", True),
        ('asm volatile("red.global.add.noftz.f16 [%0], %1;" :: "l"(out + t), "h"((short)0));', True),
        ('asm volatile("red.global.add.noftz.f16x2 [%0], %1;" :: "l"(out + t), "r"(0));', False),
    ],
)
def test_a_card_may_count_more_accesses(body, least):
    source = f"""__device__ int once(int v) {{ return v; }}
__device__ int twice(int v) {{ return 2 * v; }}
__device__ int (*ways[2])(int) = {{once, twice}};
extern "C" __global__ void k(int *out) {{
    const int t = threadIdx.x;
    {body}
}}"""
    _, result = run_cuda(source, np.zeros(32, np.int32))
    assert result.least is least
