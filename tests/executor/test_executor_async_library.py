# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Asynchronous copies as CUDA's own library makes them: right kernels run, and what is left out is found."""

import functools
from dataclasses import dataclass

import numpy as np
import pytest
from executor_harness import compile_cuda

from gpuprof.executor import FaultKind, GlobalMemory, KernelFault, launch, load_program
from gpuprof.toolchain.cuda_headers import find_cuda_headers

HEAD = """#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
using Barrier = cuda::barrier<cuda::thread_scope_block>;
using All = cuda::aligned_size_t<16>;
"""
BEGIN = """extern "C" __global__ void NAME(const float4 *in, float *out, int n) {
    __shared__ alignas(128) float4 tile[2][64];
    auto block = cg::this_thread_block();
    const int t = threadIdx.x;
    float sum = 0;
"""
READ = "sum += tile[i % 2][63 - t].x;"
TAIL = "out[t] = sum; }"
SET_UP = """__shared__ Barrier bar[2];
if (t == 0) { init(bar, block.size()); init(bar + 1, block.size()); }
block.sync();
"""
PIPELINE = "__shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;\n"
BLOCK_PIPELINE = f"""{PIPELINE}auto pipe = cuda::make_pipeline(block, &state);
for (int i = 0, ahead = 0; i < n; ++i) {{
    for (; ahead < n && ahead < i + 2; ++ahead) {{
        pipe.producer_acquire();
        cuda::memcpy_async(block, tile[ahead % 2], in + 64 * ahead, All(1024), pipe);
        pipe.producer_commit();
    }}
    pipe.consumer_wait();
    {READ}
    pipe.consumer_release();
}}
{TAIL}"""
ROLE = "t < 64 ? cuda::pipeline_role::consumer : cuda::pipeline_role::producer"
PARTITIONED = f"""{PIPELINE}auto pipe = cuda::make_pipeline(block, &state, {ROLE});
if (t >= 64) {{
    for (int i = 0; i < n; ++i) {{
        pipe.producer_acquire();
        for (int j = t - 64; j < 64; j += 32)
            cuda::memcpy_async(tile[i % 2] + j, in + 64 * i + j, All(16), pipe);
        pipe.producer_commit();
    }}
}} else {{
    for (int i = 0; i < n; ++i) {{
        pipe.consumer_wait();
        {READ}
        pipe.consumer_release();
    }}
    {TAIL}
}}"""
WAITED, RACE, COPY = FaultKind.MBARRIER, FaultKind.SHARED_RACE, FaultKind.ASYNC_COPY
UNWRITTEN = FaultKind.UNINITIALISED_SHARED


@dataclass(frozen=True)
class Kernel:
    """A right kernel, and what is replaced by what to make it wrong, with the faults that it then may be."""

    body: str
    wrong: tuple[tuple[str, str, tuple[FaultKind, ...]], ...]
    threads: int = 64


KERNELS = {
    "one stage and a barrier": Kernel(
        f"""{SET_UP}for (int i = 0; i < n; ++i) {{
    cuda::memcpy_async(block, tile[i % 2], in + 64 * i, All(1024), bar[0]);
    bar[0].arrive_and_wait();
    {READ}
    block.sync();
    cuda::memcpy_async(block, tile[i % 2], in + 64 * i, All(1024), bar[0]);
    bar[0].arrive_and_wait();
    block.sync();
}}
{TAIL}""",
        (
            ("bar[0].arrive_and_wait();\n    sum", "(void)bar[0].arrive();\n    sum", (COPY, UNWRITTEN)),
            (f"{READ}\n    block.sync();", READ, (RACE,)),
            ("block.sync();\nfor", "\nfor", (RACE, WAITED)),
            (READ, f"{READ} tile[i % 2][t].x = 0;", (FaultKind.PROXY, RACE)),
        ),
    ),
    "a pipeline of the block": Kernel(
        BLOCK_PIPELINE,
        (
            ("pipe.consumer_wait();", "", (COPY, UNWRITTEN)),
            ("pipe.producer_acquire();", "", (RACE, COPY)),
            (f"{READ}\n    pipe.consumer_release();", f"pipe.consumer_release();\n    {READ}", (RACE, COPY)),
            ("pipe.consumer_release();", "", (WAITED, FaultKind.ENDLESS)),
        ),
    ),
    "producers and consumers": Kernel(
        PARTITIONED,
        (("pipe.consumer_wait();", "", (COPY, UNWRITTEN)), ("pipe.producer_acquire();", "", (RACE, COPY))),
        threads=96,
    ),
    "a pipeline of each thread": Kernel(
        BLOCK_PIPELINE.replace(PIPELINE, "")
        .replace("block, &state", "")
        .replace("wait();", "wait(); block.sync();")
        .replace("release();", "release(); block.sync();"),
        (
            ("pipe.consumer_wait();", "", (COPY, UNWRITTEN)),
            ("release(); block.sync();", "release();", (RACE,)),
            ("ahead < i + 2", "ahead < i + 3", (COPY,)),
        ),
    ),
}
#: All kernels, right ones and wrong ones, by name and number: the headers are compiled once.
RIGHT = -1
BODIES = {(name, RIGHT): kernel.body for name, kernel in KERNELS.items()} | {
    (name, number): kernel.body.replace(old, new)
    for name, kernel in KERNELS.items()
    for number, (old, new, _) in enumerate(kernel.wrong)
}
TILES = 5


@functools.cache
def compiled() -> list[str]:
    """The PTX of each kernel."""
    options = find_cuda_headers(13).options
    if not options:
        pytest.skip("needs CUDA's headers")
    kernels = (BEGIN.replace("NAME", f"k{i}") + body for i, body in enumerate(BODIES.values()))
    head, *entries = compile_cuda(HEAD + "\n".join(kernels), options).split(".visible .entry ")
    return [f"{head}.visible .entry {entry}" for entry in entries]


def run(name: str, number: int) -> bool:
    """Run a kernel, and tell whether its results are right."""
    place = list(BODIES).index((name, number))
    ptx = next(text for text in compiled() if f".entry k{place}(" in text)
    data = np.arange(TILES * 64 * 4, dtype=np.float32).reshape(TILES, 64, 4)
    memory = GlobalMemory()
    given, out = memory.allocate(data, "in"), memory.allocate(np.zeros(64, np.float32), "out")
    block = (KERNELS[name].threads, 1, 1)
    launch(load_program(ptx, f"k{place}"), (1, 1, 1), block, [given, out, TILES], memory)
    return bool((out.array() == data[:, ::-1, 0].sum(axis=0)).all())


@pytest.mark.parametrize("name", KERNELS)
def test_right_kernels_run(name):
    assert run(name, RIGHT)


@pytest.mark.parametrize(("name", "number"), [key for key in BODIES if key[1] != RIGHT])
def test_what_is_left_out_is_found(name, number):
    old, _, kinds = KERNELS[name].wrong[number]
    assert KERNELS[name].body.count(old) == 1
    with pytest.raises(KernelFault) as caught:
        run(name, number)
    assert caught.value.kind in kinds, caught.value
