# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Fences between threads and the copy engine: each fault with the kernel beside it that is right."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from bulk_sources import LOAD, STORED, cuda
from executor_harness import run_cuda, tells

from gpuprof.executor import FaultKind

#: Where a kernel writes what the copy engine is to see, and where it overwrites it.
WRITES, AGAIN, WAITED = "// writes", "// again", r"{\n.reg .pred p;\nAGAIN"


@dataclass(frozen=True)
class Pair:
    """A kernel that is right, and what makes it wrong: a text of it, and what comes in its place.

    In its body `t` is the thread, `tile` has 64 float4, and `b` two mbarriers. The wrong one is told with its
    kind, the text of its line, x of the thread, the byte of shared memory, and words; `expected` is what each
    element of the output is in the right one.
    """

    name: str
    body: str
    change: tuple[str, str]
    kind: FaultKind
    line: str
    thread: int
    address: int | None
    words: str
    expected: np.ndarray = field(default_factory=lambda: np.arange(256, dtype=np.float32))


WAIT_READ = 'asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");'
WAIT_ALL = 'asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");'
WRITE = "((float4 *)tile)[t] = make_float4(4 * t, 4 * t + 1, 4 * t + 2, 4 * t + 3); // writes"
SEND = f"if (t == 0) {{ store(out, tile, 1024); commit(); {WAIT_READ} }}"
FENCE, BARRIER = "proxy();", "__syncthreads();"
SET_UP = "if (t == 0) { init(b, 1); init(b + 1, 32); fence(); } __syncthreads();"
NO_FENCE = "no fence.proxy.async lies between"
GET = "if (t == 0) { expect(b, 1024); load(tile, in, 1024, b); } wait(b, 0);"
DOUBLED = 2 * np.arange(256, dtype=np.float32)
PROXY, COPY, RACE = FaultKind.PROXY, FaultKind.ASYNC_COPY, FaultKind.SHARED_RACE

PAIRS = [
    Pair(
        "writers fence before the barrier",
        f"{WRITE} {FENCE} {BARRIER} {SEND}",
        (FENCE, ""),
        *(PROXY, STORED, 0, 0, NO_FENCE),
    ),
    Pair(
        "the thread that stores fences behind the barrier",
        f"{WRITE} {BARRIER} if (t == 0) proxy(); {SEND}",
        ("if (t == 0) proxy();", "if (t == 1) proxy();"),
        *(PROXY, STORED, 0, 0, NO_FENCE),
    ),
    Pair(
        "all writers fence, not only the one that stores",
        f"{WRITE} {FENCE} {BARRIER} {SEND}",
        (FENCE, "if (t == 0) proxy();"),
        *(PROXY, STORED, 0, 16, NO_FENCE),
    ),
    Pair(
        "the fence follows the write",
        f"{WRITE} {FENCE} {BARRIER} {SEND}",
        (f"{WRITE} {FENCE}", f"{FENCE} {WRITE}"),
        *(PROXY, STORED, 0, 0, NO_FENCE),
    ),
    Pair(
        "a fence for shared memory, not for global memory",
        f"{WRITE} {FENCE} {BARRIER} {SEND}",
        (FENCE, 'asm volatile("fence.proxy.async.global;" ::: "memory");'),
        *(PROXY, STORED, 0, 0, NO_FENCE),
    ),
    Pair(
        "threads of one warp meet by __syncwarp",
        f"if (t < 32) {{ {WRITE} {FENCE} __syncwarp(); if (t == 5) {{ store(out, tile, 512); commit();"
        f" {WAIT_READ} }} }} else ((float4 *)out)[t] = make_float4(4 * t, 4 * t + 1, 4 * t + 2, 4 * t + 3);",
        (FENCE, ""),
        *(PROXY, STORED, 5, 0, NO_FENCE),
    ),
    Pair(
        "writers arrive at an mbarrier for which the thread that stores waits",
        f"{SET_UP} if (t < 32) {{ tile[t] = in[t]; tile[t + 32] = in[t + 32]; {FENCE} arrive(b + 1); }}"
        f" if (t == 32) {{ wait(b + 1, 0); store(out, tile, 1024); commit(); {WAIT_READ} }}",
        (f"{FENCE} arrive(b + 1);", "arrive(b + 1); proxy();"),
        *(PROXY, STORED, 32, 0, NO_FENCE),
    ),
    Pair(
        "warps meet at a barrier of their own",
        f'{WRITE} {FENCE} asm volatile("bar.sync 1, 64;" ::: "memory"); {SEND}',
        (FENCE, ""),
        *(PROXY, STORED, 0, 0, NO_FENCE),
    ),
    Pair(
        "the second tile needs a fence of its own",
        f"{WRITE} {FENCE} {BARRIER} {SEND.replace(WAIT_READ, WAIT_ALL)} {BARRIER}"
        f" tile[t].x *= 2; tile[t].y *= 2; tile[t].z *= 2; tile[t].w *= 2; {FENCE}{BARRIER} {SEND}",
        (f"{FENCE}{BARRIER}", BARRIER),
        *(PROXY, STORED, 0, 0, NO_FENCE),
        expected=DOUBLED,
    ),
    Pair(
        "what a bulk copy brought is changed in place",
        f"{SET_UP} {GET} tile[t].x *= 2; tile[t].y *= 2; tile[t].z *= 2; tile[t].w *= 2;"
        f" {FENCE} {BARRIER} {SEND}",
        (FENCE, ""),
        *(PROXY, STORED, 0, 0, NO_FENCE),
        expected=DOUBLED,
    ),
    Pair(
        "an atomic operation writes too",
        f"{WRITE} {FENCE} {BARRIER} if (t == 0) atomicAdd(&tile[3].y, 0.0f); proxy(); {BARRIER} {SEND}",
        ("proxy(); __syncthreads(); if", "__syncthreads(); if"),
        *(PROXY, STORED, 0, 52, NO_FENCE),
    ),
    Pair(
        "a bulk copy overwrites what threads wrote",
        f"{SET_UP} tile[t] = make_float4(0, 0, 0, 0); {FENCE} {BARRIER} {GET} ((float4 *)out)[t] = tile[t];",
        (FENCE, ""),
        *(PROXY, LOAD, 0, 0, NO_FENCE),
    ),
    Pair(
        "an mbarrier needs no fence, but an order, before a copy counts for it",
        f"{SET_UP} {GET} ((float4 *)out)[t] = tile[t];".replace("fence();", "").replace("t == 0", "t == 5"),
        ("__syncthreads();", "if (t < 32) __syncwarp();"),
        *(RACE, WAITED, 32, 1024, "uses the mbarrier at"),
    ),
    Pair(
        "the fence of mbarriers is for nothing else",
        f"{SET_UP} {WRITE} {FENCE} {BARRIER} {SEND}",
        (f"{WRITE} {FENCE}", f"{WRITE} fence();"),
        *(PROXY, STORED, 0, 0, NO_FENCE),
    ),
    Pair(
        "the source is overwritten only when it has been read",
        f"{WRITE} {FENCE} {BARRIER} {SEND} {BARRIER} tile[t].x = 0; // again",
        (WAIT_READ + " }", "}"),
        *(COPY, AGAIN, 0, 0, "still reads"),
    ),
    Pair(
        "the thread that overwrites is ordered with the one that waited",
        f"{WRITE} {FENCE} {BARRIER} {SEND} {BARRIER} tile[t].x = 0; // again",
        (f"{BARRIER} tile[t].x = 0;", "tile[t].x = 0;"),
        *(RACE, AGAIN, 1, 16, "which thread (0, 0, 0) read"),
    ),
    Pair(
        "nobody ends while a copy reads",
        f"{WRITE} {FENCE} {BARRIER} {SEND}",
        (WAIT_READ, ""),
        *(COPY, STORED, 0, None, "ends without waiting for its bulk copy"),
    ),
    Pair(
        "a copy is committed before it is waited for",
        f"{WRITE} {FENCE} {BARRIER} {SEND}",
        ("commit();", ""),
        *(COPY, STORED, 0, None, "ends without waiting for its bulk copy"),
    ),
]


def source_of(body: str) -> str:
    lines = body
    for statement in (WRITE, "tile[t].x = 0; // again"):
        lines = lines.replace(statement, f"\n{statement}\n")
    return cuda(f"""extern "C" __global__ void k(const float4 *in, float4 *out) {{
    __shared__ __align__(128) struct {{ float4 tile[64]; u64 b[2]; }} all;
    float4 *const tile = all.tile;
    u64 *const b = all.b;
    const int t = threadIdx.x;
    {lines}
}}""")


def run(body: str) -> np.ndarray:
    data = np.arange(256, dtype=np.float32)
    (_, out), _ = run_cuda(source_of(body), data, np.full(256, -1, np.float32), block=(64, 1, 1))
    return out.array()


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_right_kernel_runs(pair):
    np.testing.assert_array_equal(run(pair.body), pair.expected)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_wrong_one_is_told_with_line_thread_and_byte(pair):
    before, after = pair.change
    assert pair.body.count(before) >= 1
    source = source_of(after.join(pair.body.rsplit(before, 1)))
    arrays = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    told = pair.kind, pair.line, pair.words
    assert tells(source, *told, *arrays, thread=pair.thread, block=(64, 1, 1)).address == pair.address
