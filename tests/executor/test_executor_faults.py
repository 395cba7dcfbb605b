# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels with one planted bug each: every checker catches its own, at the right line and thread."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from cuda_sources import kernel_table
from executor_harness import caught, cuda_program, line_of, refused, run_cuda, run_ptx, tells

from gpuprof.errors import CaseSkipped
from gpuprof.executor import (
    FaultKind,
    GlobalMemory,
    KernelFault,
    LaunchRefused,
    UnsupportedInstruction,
    launch,
)

FLOATS = np.zeros(64, dtype=np.float32)

PLANTED = kernel_table(Path(__file__).parent / "faults.cu")


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_told(name):
    text, told = PLANTED[name].text, PLANTED[name].told
    arrays = [FLOATS] * told.get("arrays", 1)
    fault = tells(
        text, FaultKind[told["kind"]], "// planted", told.get("words", ""), *arrays, **told.get("launch", {})
    )
    for place, where in told.get("place", {}).items():
        assert getattr(fault, place) == (tuple(where) if place != "address" else where)


@pytest.mark.parametrize(
    ("statement", "verb"),
    [("table[threadIdx.x] = 1", "writes"), ("atomicAdd(table + threadIdx.x, 1u)", "updates")],
)
def test_what_is_read_only_is_neither_stored_to_nor_updated(statement, verb):
    source = f"""extern "C" __global__ void k(unsigned *table, unsigned *out) {{
    if (threadIdx.x < 40) out[threadIdx.x] = table[threadIdx.x];
    if (threadIdx.x >= 40) {statement}; // planted
}}"""
    program, memory = cuda_program(source), GlobalMemory()
    table = memory.allocate(np.zeros(64, np.uint32), "table", read_only=True)
    out = memory.allocate(np.zeros(64, np.uint32), "out")
    with pytest.raises(KernelFault) as raised:
        launch(program, (1, 1, 1), (64, 1, 1), [table, out], memory)
    fault = raised.value
    assert (fault.kind, fault.thread) == (FaultKind.READ_ONLY, (40, 0, 0))
    assert fault.source_line == line_of(source, "planted")
    assert fault.detail.startswith(f"{verb} 4 bytes of global memory")
    assert fault.detail.endswith("of table, element 40 of 64")
    assert not table.array().any()


@pytest.mark.parametrize("kind", ["float", "float2", "float4", "unsigned char"])
def test_storing_what_is_there_to_what_is_read_only_is_no_fault(kind):
    """The content stays as it is, so that a card shows nothing wrong with such a kernel; NaN included."""
    source = f"""extern "C" __global__ void k({kind} *table, {kind} *out) {{
    out[threadIdx.x] = table[threadIdx.x];
    __syncthreads();
    table[threadIdx.x] = out[threadIdx.x];
}}"""
    program, memory = cuda_program(source), GlobalMemory()
    content = np.full(64 * 4, np.nan, np.float32)
    table = memory.allocate(content, "table", read_only=True)
    out = memory.allocate(np.zeros(64 * 4, np.float32), "out")
    launch(program, (1, 1, 1), (64, 1, 1), [table, out], memory)
    np.testing.assert_array_equal(table.array(), content)


@pytest.mark.parametrize("changes", [False, True])
def test_an_update_of_what_is_read_only_may_leave_it_as_it_is(changes):
    """Whole blocks update one element each, as a lock is tried: read by `atomicAdd(lock, 0)`, then taken."""
    source = f"""extern "C" __global__ void k(int *lock, int *out) {{
    if (threadIdx.x == 0) {{
        out[blockIdx.x] = atomicAdd(lock + blockIdx.x % 2, 0) + atomicCAS(lock + 1, 9, 1);
        atomicCAS(lock + blockIdx.x % 2, {int(not changes)}, 1); // planted
    }}
}}"""
    program, memory = cuda_program(source), GlobalMemory()
    lock = memory.allocate(np.array([0, 7], np.int32), "lock", read_only=True)
    out = memory.allocate(np.zeros(6, np.int32), "out")
    grid, arguments = (6, 1, 1), [lock, out]
    if changes:
        with pytest.raises(KernelFault) as raised:
            launch(program, grid, (64, 1, 1), arguments, memory)
        fault = raised.value
        assert (fault.kind, fault.block, fault.thread) == (FaultKind.READ_ONLY, (0, 0, 0), (0, 0, 0))
        assert fault.detail.endswith("of lock, element 0 of 2")
    else:
        launch(program, grid, (64, 1, 1), arguments, memory)
        assert out.array().tolist() == [7, 14] * 3
    assert lock.array().tolist() == [0, 7]


@pytest.mark.parametrize(
    ("warps", "index", "sync", "reader", "writer"),
    [
        (1, "0", "", 1, "thread (0, 0, 0)"),
        (1, "5", "", 0, "thread (5, 0, 0)"),
        (2, "0", "", 1, "thread (0, 0, 0)"),
        (2, "0", "__syncwarp();", 32, "thread (0, 0, 0)"),
        (2, "threadIdx.x % 32", "", 32, "thread (0, 0, 0)"),
        (2, "threadIdx.x % 32", "__syncwarp();", 32, "thread (0, 0, 0)"),
        (2, "40", "", 0, "thread (40, 0, 0)"),
    ],
)
@pytest.mark.parametrize("waits", [False, True], ids=["barriers", "mbarriers"])
def test_read_by_all_names_another_thread_than_the_writer(warps, index, sync, reader, writer, waits):
    own = "threadIdx.x < 32" if "%" in index else f"threadIdx.x == {index}"
    waiting = """__shared__ unsigned long long bar;
    const unsigned at = (unsigned)__cvta_generic_to_shared(&bar);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at) : "memory");
    __syncthreads();"""
    source = f"""extern "C" __global__ void k(float *out) {{
    __shared__ float tile[64];
    {waiting if waits else ""}
    if ({own}) tile[threadIdx.x] = threadIdx.x;
    {sync}
    asm volatile("" ::: "memory"); // or a thread would keep what it wrote
    out[threadIdx.x] = tile[{index}]; // planted
}}"""
    fault = caught(source, FLOATS, block=(32 * warps, 1, 1))
    assert (fault.kind, fault.source_line) == (FaultKind.SHARED_RACE, line_of(source, "planted"))
    assert fault.thread == (reader, 0, 0)
    assert f"which {writer} of block (0, 0, 0) writes" in fault.detail


@pytest.mark.parametrize("block", [0, 1, 2])
def test_block_whose_barrier_nobody_completes_is_named_among_others(block):
    source = """extern "C" __global__ void k(float *out, int wrong) {
    if (blockIdx.x == wrong && threadIdx.x < 64) {
        asm volatile("bar.sync 1;"); // planted
        out[96 * blockIdx.x + threadIdx.x] = 1;
    }
    __syncthreads();
    out[96 * blockIdx.x + threadIdx.x] += 1;
}"""
    floats = np.zeros(3 * 96, np.float32)
    fault = caught(source, floats, scalars=(block,), grid=(3, 1, 1), block=(96, 1, 1))
    assert (fault.kind, fault.source_line) == (FaultKind.BARRIER, line_of(source, "planted"))
    assert (fault.block, fault.thread) == ((block, 0, 0), (64, 0, 0))


def test_what_is_not_modelled_is_skipped_and_named():
    source = """extern "C" __device__ int elsewhere(int);
extern "C" __global__ void k(int *out) {
    if (out[0])
        out[0] = elsewhere(1); // planted
}"""
    options = ("--relocatable-device-code=true",)
    run_cuda(source, np.zeros(1, np.int32), options=options)
    with pytest.raises(UnsupportedInstruction) as error:
        run_cuda(source, np.ones(1, np.int32), options=options)
    assert isinstance(error.value, CaseSkipped)
    assert error.value.name == "call of elsewhere"
    assert error.value.line == line_of(source, "planted")
    assert error.value.reached_by == ((0, 0, 0), (0, 0, 0))


@pytest.mark.parametrize(
    ("grid", "block"),
    [
        ((1, 1, 1), (1, 1, 65)),
        ((2**31, 1, 1), (32, 1, 1)),
        ((1, 65536, 1), (32, 1, 1)),
        ((1, 1, 0), (32, 1, 1)),
        ((1, 1, 1), (1025, 1, 1)),
        ((1, 1, 1), (32, 33, 1)),
        ((1, 1, 1), (32, 1, 0)),
    ],
)
def test_an_impossible_launch_is_refused(grid, block):
    source = 'extern "C" __global__ void k(int *out) { out[0] = 1; }'
    with pytest.raises(LaunchRefused, match="cannot be launched"):
        run_cuda(source, np.zeros(1, np.int32), grid=grid, block=block)


def test_registers_of_the_driver_are_not_modelled():
    source = """extern "C" __global__ void k(unsigned *out) {
    asm volatile("mov.u32 %0, %%envreg0;" : "=r"(out[threadIdx.x])); // planted
}"""
    error = refused(cuda_program(source), 0)
    assert (error.name, error.line) == ("%envreg0", 2)


def test_faults_travel_between_processes():
    fault = caught('extern "C" __global__ void k(int *out) { out[100] = 1; }', np.zeros(1, np.int32))
    for error in (fault, UnsupportedInstruction("tex", 3), LaunchRefused("no", fix="yes")):
        copy = pickle.loads(pickle.dumps(error))
        assert (str(copy), vars(copy)) == (str(error), vars(error))


def test_more_local_memory_than_a_thread_has_is_refused():
    text = ".visible .entry k()\n{\n.local .b8 s[SIZE];\nret;\n}\n"
    run_ptx(text.replace("SIZE", "524288"))
    with pytest.raises(LaunchRefused, match="needs 614,400 bytes of local memory for each thread"):
        run_ptx(text.replace("SIZE", "614400"))
