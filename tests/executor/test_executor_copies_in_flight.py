# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Copies in flight to one place, of every kind: faults of order with both lines, and right twins.

Neither within a group nor between groups does the PTX ISA order what asynchronous copies write: what is in
flight to a place must have landed before that place is read, written, or copied to again.
"""

import numpy as np
import pytest
from bulk_sources import HELPERS
from executor_harness import caught, run_cuda

from gpuprof.executor import FaultKind

COPIES = """
__device__ __forceinline__ void copy(void *to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at(to)), "l"(from) : "memory");
}
__device__ __forceinline__ void close() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ __forceinline__ void newest() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
__device__ __forceinline__ void track(u64 *b) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(at(b)) : "memory");
}
template <int N> __device__ __forceinline__ void stored() {
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory");
}
template <int N> __device__ __forceinline__ void stores_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}
"""
HEAD = """extern "C" __global__ void k(const float4 *in, float4 *out) {
    __shared__ __align__(128) float4 tile[8][32];
    __shared__ u64 b[2];
    const int t = threadIdx.x;
    if (t == 0) { init(b, 1); init(b + 1, 32); fence(); }
    __syncthreads();
"""


def source_of(body: str) -> str:
    """Return a kernel whose body has a statement a line: faults within helpers name the line of the call."""
    return HELPERS + COPIES + HEAD + body.replace("; ", ";\n") + "\n}"


BULK = "expect(b, 1024); load(tile[0], in, 512, b);"
CP_ASYNC = "copy(tile[0] + t, in + t);"
#: Right ones; what is replaced by what to make each wrong; and the kind of the fault.
PAIRS = {
    "two cp.async of different groups to one place": (
        f"{CP_ASYNC} close(); newest<0>(); copy(tile[0] + t, in + 32 + t); close(); newest<0>();"
        " out[t] = tile[0][t];",
        ("close(); newest<0>(); copy", "close(); copy"),
        FaultKind.ASYNC_COPY,
    ),
    "a read after waiting for all groups but one": (
        f"{CP_ASYNC} close(); copy(tile[1] + t, in + 32 + t); close(); newest<1>(); out[t] = tile[0][t];",
        ("copy(tile[1]", "copy(tile[0]"),
        FaultKind.ASYNC_COPY,
    ),
    "two cp.async of one group": (
        f"{CP_ASYNC} copy(tile[1] + t, in + 32 + t); close(); newest<0>(); out[t] = tile[0][t];",
        ("copy(tile[1]", "copy(tile[0]"),
        FaultKind.ASYNC_COPY,
    ),
    "lanes of one cp.async": (
        "copy(tile[0] + t % 16, in + t % 16); close(); newest<0>(); __syncwarp(); out[t] = tile[0][t % 16];",
        ("in + t % 16", "in + t"),
        FaultKind.SHARED_RACE,
    ),
    "an ordinary write while a cp.async is in flight": (
        f"{CP_ASYNC} close(); newest<0>(); tile[0][t].x = 1; out[t] = tile[0][t];",
        ("newest<0>(); tile", "tile"),
        FaultKind.ASYNC_COPY,
    ),
    "an ordinary write of another warp behind a barrier": (
        f"{CP_ASYNC} close(); newest<0>(); __syncthreads(); tile[0][31 - t].x = 1; __syncthreads();"
        " out[t] = tile[0][t];",
        ("newest<0>(); __syncthreads(); tile", "__syncthreads(); tile"),
        FaultKind.ASYNC_COPY,
    ),
    "four stages in four buffers, not five": (
        "for (int i = 0; i < 4; ++i) { copy(tile[i] + t, in + 32 * i + t); close(); } float4 sum = {};"
        " for (int i = 0; i < 12; ++i) { newest<3>(); __syncthreads(); sum.x += tile[i % 4][31 - t].x;"
        " __syncthreads(); if (i + 4 < 12) copy(tile[i % 4] + t, in + 32 * (i % 8) + t); close(); }"
        " out[t] = sum;",
        (
            "newest<3>(); __syncthreads(); sum.x += tile[i % 4][31 - t].x;"
            " __syncthreads(); if (i + 4 < 12) copy(tile[i % 4] + t, in + 32 * (i % 8) + t); close(); }",
            "if (i + 4 < 12) copy(tile[i % 4] + t, in + 32 * (i % 8) + t); close();"
            " newest<4>(); __syncthreads(); sum.x += tile[i % 4][31 - t].x; __syncthreads(); }",
        ),
        FaultKind.ASYNC_COPY,
    ),
    "a cp.async after one that an mbarrier tracks": (
        f"{CP_ASYNC} track(b + 1); wait(b + 1, 0); copy(tile[0] + t, in + 32 + t); close(); newest<0>();"
        " out[t] = tile[0][t];",
        ("wait(b + 1, 0); copy", "copy"),
        FaultKind.ASYNC_COPY,
    ),
    "two bulk copies": (
        f"if (t == 0) {{ {BULK} load(tile[1], in + 32, 512, b); }} wait(b, 0); out[t] = tile[0][t];",
        ("load(tile[1]", "load(tile[0]"),
        FaultKind.ASYNC_COPY,
    ),
    "bulk copies of several lanes": (
        "if (t == 0) expect(b, 1024); __syncwarp(); if (t < 2) load(tile[t], in + 32 * t, 512, b);"
        " wait(b, 0); out[t] = tile[0][t];",
        ("load(tile[t]", "load(tile[0] + t"),
        FaultKind.SHARED_RACE,
    ),
    "a bulk copy to where a cp.async is in flight": (
        f"{CP_ASYNC} close(); newest<0>(); proxy(); __syncthreads(); if (t == 0) {{ expect(b, 512);"
        " load(tile[0], in, 512, b); } wait(b, 0); out[t] = tile[0][t];",
        ("close(); newest<0>(); proxy", "close(); proxy"),
        FaultKind.ASYNC_COPY,
    ),
    "a cp.async to where a bulk copy is in flight": (
        f"if (t == 0) {{ expect(b, 512); load(tile[0], in, 512, b); }} wait(b, 0); {CP_ASYNC} close();"
        " newest<0>(); out[t] = tile[0][t];",
        ("wait(b, 0); copy", "copy"),
        FaultKind.ASYNC_COPY,
    ),
    "a bulk store of what a bulk copy brings": (
        "if (t == 0) { expect(b, 512); load(tile[0], in, 512, b); wait(b, 0); store(out, tile[0], 512);"
        " commit(); stored<0>(); }",
        ("wait(b, 0); store", "store"),
        FaultKind.ASYNC_COPY,
    ),
    "a bulk store of what cp.async brings": (
        f"{CP_ASYNC} close(); newest<0>(); proxy(); __syncthreads(); if (t == 0) {{"
        " store(out, tile[0], 512); commit(); stored<0>(); }",
        ("close(); newest<0>(); proxy", "close(); proxy"),
        FaultKind.ASYNC_COPY,
    ),
    "a bulk copy over what a bulk store reads": (
        "tile[0][t] = in[t]; proxy(); __syncthreads(); if (t == 0) { store(out, tile[0], 512); commit();"
        " stores_read<0>(); expect(b, 512); load(tile[0], in + 32, 512, b); wait(b, 0); }",
        ("stores_read<0>(); expect", "expect"),
        FaultKind.ASYNC_COPY,
    ),
    "a cp.async over what a bulk store reads": (
        "tile[0][t] = in[t]; proxy(); __syncthreads(); if (t == 0) { store(out, tile[0], 512); commit();"
        " stores_read<0>(); copy(tile[0], in + 32); close(); newest<0>(); }",
        ("stores_read<0>(); copy", "copy"),
        FaultKind.ASYNC_COPY,
    ),
    "an ordinary write of what a bulk copy reads": (
        "if (t == 0) { expect(b, 512); load(tile[0], in, 512, b); } wait(b, 0); out[t] = tile[0][t];"
        " ((float4 *)in)[t].x = 1;",
        (
            "wait(b, 0); out[t] = tile[0][t]; ((float4 *)in)[t].x = 1;",
            "if (t == 0) ((float4 *)in)[t].x = 1; wait(b, 0); out[t] = tile[0][t];",
        ),
        FaultKind.ASYNC_COPY,
    ),
    "a bulk store over what a bulk copy reads": (
        "tile[0][t] = in[t]; proxy(); __syncthreads(); if (t == 0) { expect(b, 512);"
        " load(tile[1], out, 512, b); wait(b, 0); store(out, tile[0], 512); commit(); stored<0>(); }",
        ("wait(b, 0); store(out, tile[0], 512);", "store(out, tile[0], 512); wait(b, 0);"),
        FaultKind.ASYNC_COPY,
    ),
    "an ordinary read of what a bulk store writes": (
        "tile[0][t] = in[t]; proxy(); __syncthreads(); if (t == 0) { store(out, tile[0], 512); commit();"
        " stored<0>(); } __syncthreads(); ((float4 *)in)[t] = out[31 - t]; __syncthreads();"
        " if (t == 0) stored<0>();",
        ("commit(); stored<0>(); }", "commit(); stores_read<0>(); }"),
        FaultKind.ASYNC_COPY,
    ),
    "two bulk stores to one place": (
        "tile[0][t] = in[t]; tile[1][t] = in[32 + t]; proxy(); __syncthreads(); if (t == 0) {"
        " store(out, tile[0], 512); commit(); stored<0>(); store(out, tile[1], 512); commit();"
        " stored<0>(); }",
        ("stored<0>(); store(out, tile[1]", "store(out, tile[1]"),
        FaultKind.ASYNC_COPY,
    ),
    "a bulk copy of what a bulk store writes": (
        "tile[0][t] = in[t]; proxy(); __syncthreads(); if (t == 0) { store(out, tile[0], 512); commit();"
        " stored<0>(); expect(b, 512); load(tile[1], out, 512, b); } wait(b, 0);",
        ("stored<0>(); expect", "stores_read<0>(); expect"),
        FaultKind.ASYNC_COPY,
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_right_kernels_run(name):
    body, _, _ = PAIRS[name]
    data = np.arange(1024, dtype=np.float32)
    (_, out), _ = run_cuda(source_of(body), data, np.full(128, -1, np.float32))
    assert (out.array() != -1).any()


@pytest.mark.parametrize("name", PAIRS)
def test_wrong_twins_are_told_with_both_lines(name):
    body, (old, new), kind = PAIRS[name]
    assert body.count(old) == 1
    source = source_of(body.replace(old, new))
    fault = caught(source, np.arange(1024, dtype=np.float32), np.zeros(128, np.float32))
    assert fault.kind is kind, fault
    if kind is FaultKind.ASYNC_COPY:
        line = int(fault.detail.rpartition(" line ")[2].split()[0])
        started = source.splitlines()[line - 1]
        assert "cp.async" in started or "copy" in started or "load" in started, started
        assert fault.source_line
