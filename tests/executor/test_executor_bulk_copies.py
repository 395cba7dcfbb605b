# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Bulk copies: what they do, and the bugs that kernels make with them."""

import numpy as np
import pytest
from bulk_sources import LOAD, STORED, cuda, numbers
from executor_harness import KERNELS_BY_HAND, caught, line_of, run_cuda, tells

from gpuprof.executor import FaultKind

PIPELINE = KERNELS_BY_HAND["a ring of two stages"].text


def pipeline(wait="wait(b + last % 2, last / 2 & 1);", sync="__syncthreads();") -> str:
    return cuda(PIPELINE.replace("WAIT", wait).replace("SYNC", sync))


def test_a_ring_of_two_stages():
    data = numbers(7, 64, 4)
    arguments = {"scalars": (7,), "block": (64, 1, 1)}
    (_, out), result = run_cuda(pipeline(), data, np.zeros_like(data), **arguments)
    np.testing.assert_array_equal(out.array(), data[:, ::-1])
    assert result.counters["global_load_requests"] == 0
    assert result.counters["shared_load_requests"] == 14
    assert "global_store_requests" not in result.hidden
    for name in ("global_load_requests", "global_load_efficiency_pct", "shared_store_wavefronts"):
        assert result.hidden[name] == "no counter sees what the kernel's bulk copies move"


MISSED, UNSEEN = "is still in flight", "where a bulk copy arrived that it did not wait for"
LANE = """__device__ int lane() { int l; asm volatile("mov.u32 %0, %%laneid;" : "=r"(l)); return l; }\n"""
WAITED_BY = "if (WHO) wait(b + last % 2, last / 2 & 1);"


@pytest.mark.parametrize(
    ("change", "place", "kind", "line", "thread", "words"),
    [
        ({"wait": ""}, "63 - t", FaultKind.ASYNC_COPY, "// read", 0, MISSED),
        ({"sync": ""}, "63 - t", FaultKind.SHARED_RACE, LOAD, None, "starts a bulk copy to byte"),
        # Threads that did not wait themselves are named, also where others read the same.
        *(
            ({"wait": WAITED_BY.replace("WHO", who)}, place, FaultKind.ASYNC_COPY, "// read", first, UNSEEN)
            for place, who, first in (
                ("63 - t", "t < 40", 40),
                ("0", "t < 40", 40),
                ("0", "t % 32 != 5", 5),
                ("lane()", "t < 32", 32),
                ("lane()", "t % 32 < 30", 30),
                ("t / 32", "t != 33", 33),
                ("63 - t", "t < 62", 62),
            )
        ),
    ],
)
def test_what_a_ring_forgets(change, place, kind, line, thread, words):
    data = numbers(7, 64, 4)
    source = pipeline(**change).replace("63 - t", place).replace('extern "C"', f'{LANE}extern "C"')
    arguments = {"scalars": (7,), "block": (64, 1, 1)}
    fault = tells(source, kind, line, words, data, np.zeros_like(data), thread=thread, **arguments)
    assert words != MISSED or f"the copy that line {line_of(source, LOAD)} started" in fault.detail


ONE_COPY = KERNELS_BY_HAND["one bulk copy"].text


ALIGNED, OUTSIDE, FLYING = FaultKind.MISALIGNED, FaultKind.OUT_OF_BOUNDS, FaultKind.ASYNC_COPY
GET, WAIT = "load(tile, in, 512, &b);", "wait(&b, 0);"


@pytest.mark.parametrize(
    ("load", "wait", "kind", "line", "words"),
    [
        ("load((char *)tile + 8, in, 512, &b);", WAIT, ALIGNED, LOAD, "of shared memory, which is not a"),
        ("load(tile, (char *)in + 4, 512, &b);", WAIT, ALIGNED, LOAD, "which is not a multiple of 16"),
        ("load(tile, in, 500, &b);", WAIT, ALIGNED, LOAD, "of 500 bytes"),
        ("load(tile, in, 4096, &b);", WAIT, OUTSIDE, LOAD, "copies 4096 bytes at byte 0 of shared memory"),
        ("load(tile, in + 1, 512, &b);", WAIT, OUTSIDE, LOAD, "past the end of array 0: element 128 of 128"),
        (
            "load(tile + 127, in, 32, &b);",
            WAIT,
            OUTSIDE,
            LOAD,
            "at byte 2032 of shared memory, which has 2056",
        ),
        ("load(tile - 1, in, 16, &b);", WAIT, OUTSIDE, LOAD, "copies 16 bytes at byte -16 of shared memory"),
        ("load(tile, in, -16, &b);", WAIT, OUTSIDE, LOAD, "copies -16 bytes at byte 0 of shared memory"),
        (f"{GET} load(tile + 31, in, 16, &b);", WAIT, FLYING, LOAD, "to byte 496 of"),
        (
            f"{GET} tile[3].x = 1;",
            "",
            FLYING,
            "// load",
            "writes byte 48 of shared memory, to which the copy that",
        ),
        # A wait that is asked once, and not again, has not waited.
        (GET, "test(&b, 0);", FLYING, "out[t] = tile[t]", "reads byte 0"),
    ],
)
def test_wrong_copies(load, wait, kind, line, words):
    source = cuda(ONE_COPY.replace("LOAD", load).replace("WAIT", wait))
    tells(source, kind, line, words, numbers(32, 4), np.zeros((32, 4), np.float32), thread=0)


STORE = KERNELS_BY_HAND["bulk stores of one tile"].text


def store_source(before="__syncthreads();", wait="READ", after="__syncthreads();") -> str:
    wait = wait.replace("READ", 'asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");')
    return cuda(STORE.replace("BEFORE", before).replace("WAIT", wait).replace("AFTER", after))


def test_copies_to_global_memory():
    (out,), result = run_cuda(store_source(), np.zeros((3, 64, 4), np.float32), block=(64, 1, 1))
    expected = np.zeros((3, 64, 4), np.float32)
    expected[..., 0], expected[..., 1] = np.arange(3)[:, None], np.arange(64)
    np.testing.assert_array_equal(out.array(), expected)
    assert out.written_mask().all()
    assert {"global_store_sectors", "shared_load_wavefronts"} <= set(result.hidden)
    assert "global_load_requests" not in result.hidden


LANES_COPY = cuda("""#define IN const float4 *
extern "C" __global__ void k(IN a, IN b, float4 *c, float4 *d, int bytes) {
    __shared__ __align__(128) float4 tile[64];
    __shared__ u64 bar;
    const int t = threadIdx.x;
    if (t == 0) { init(&bar, 1); fence(); expect(&bar, 4 * bytes); }
    __syncthreads();
    if (t < 4)
        load(tile + t * 16, (t & 1 ? b : a) + t / 2 * 16 + blockIdx.x, bytes, &bar); // load
    wait(&bar, 0);
    proxy();
    if (t < 4) {
        store((t & 1 ? d : c) + t / 2 * 16, tile + t * 16, bytes); // store
        commit();
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}""")


def test_copy_beyond_one_of_several_arrays_names_the_block_the_thread_and_the_array():
    a, zeros = numbers(32, 4), np.zeros((32, 4), np.float32)
    for target, line, words, place, grid, thread in (
        (zeros, LOAD, "reads global memory", "element 128 of 128, array 0[32, 0] of 32 x 4", 2, 2),
        (zeros[:31], STORED, "writes global memory", "element 124 of 124, array 3[31, 0] of 31 x 4", 1, 3),
    ):
        arguments = {"scalars": (256,), "grid": (grid, 1, 1), "thread": thread}
        fault = tells(LANES_COPY, FaultKind.OUT_OF_BOUNDS, line, words, a, a, zeros, target, **arguments)
        assert fault.block == (grid - 1, 0, 0)
        assert place in fault.detail


def test_copy_to_constants_is_refused():
    source = cuda("""__constant__ float4 table[4];
extern "C" __global__ void k() {
    __shared__ __align__(128) float4 tile[4];
    tile[threadIdx.x] = make_float4(1, 2, 3, 4);
    proxy();
    __syncthreads();
    if (threadIdx.x == 2)
        store((void *)(table + 1), tile, 16);
}""")
    fault = caught(source, block=(4, 1, 1))
    assert (fault.kind, fault.thread) == (FaultKind.READ_ONLY, (2, 0, 0))
    assert "writes global memory by a bulk copy" in fault.detail
    assert fault.detail.endswith("of table, byte 16 of 64")
