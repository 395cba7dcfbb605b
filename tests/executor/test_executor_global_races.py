# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Races on global memory: between which accesses they are looked for, and which loads are only guesses."""

import re
from pathlib import Path

import numpy as np
import pytest
from cuda_sources import kernel_table
from executor_harness import caught, cuda_program, line_of, run_cuda
from race_pairs import N

from gpuprof.executor import FaultKind, GlobalMemory, KernelFault, choose_blocks, launch

pytestmark = pytest.mark.deep

OVERLAP = """extern "C" __global__ void k(float *c, int step, float by) {
    c[blockIdx.x * step + threadIdx.x] = blockIdx.x * by; // planted
}"""


def test_fault_names_array_element_threads_and_lines():
    fault = caught(OVERLAP, np.zeros(N, np.float32), scalars=(63, 1.0), grid=(4, 1, 1), block=(64, 1, 1))
    line = line_of(OVERLAP, "planted")
    assert (fault.source_line, fault.block, fault.thread) == (line, (1, 0, 0), (0, 0, 0))
    assert fault.detail == (
        "writes element 63 of array 0, which thread (63, 0, 0) of block (0, 0, 0) writes"
        f" in line {line} with another value, and nothing orders them"
    )


def test_same_value_from_several_threads_is_no_race():
    (out,), _ = run_cuda(OVERLAP, np.ones(N, np.float32), scalars=(0, 0.0), grid=(4, 1, 1), block=(64, 1, 1))
    assert not out.array()[:64].any()


@pytest.mark.parametrize("block", [64, 1024])
def test_blocks_of_different_batches_race_too(block):
    fault = caught(
        OVERLAP, np.zeros(1 << 18, np.float32), scalars=(0, 1.0), grid=(2048, 1, 1), block=(block, 1, 1)
    )
    assert fault.kind is FaultKind.GLOBAL_RACE


def test_a_race_between_blocks_that_did_not_run_is_not_looked_for():
    memory, program = GlobalMemory(), cuda_program(OVERLAP)
    c = memory.allocate(np.zeros(1 << 16, np.float32), "c")
    sample = choose_blocks((1000, 1, 1), 3)
    launch(program, (1000, 1, 1), (64, 1, 1), [c, 63, 1.0], memory, blocks=sample)
    with pytest.raises(KernelFault):
        launch(program, (1000, 1, 1), (64, 1, 1), [c, 63, 1.0], memory)


def test_launches_are_ordered():
    source = """extern "C" __global__ void k(int *to, const int *from, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = from[i] + from[(i + 65) % n];
}"""
    memory, program = GlobalMemory(), cuda_program(source)
    one, two = (memory.allocate(np.ones(512, np.int32), name) for name in ("one", "two"))
    for to, given in ((two, one), (one, two), (two, one)):
        launch(program, (8, 1, 1), (64, 1, 1), [to, given, 512], memory)
    assert (two.array() == 8).all()
    assert two.written_mask().all()
    with pytest.raises(KernelFault, match="global-memory race"):
        launch(program, (8, 1, 1), (64, 1, 1), [two, two, 512], memory)


def test_what_lanes_store_before_they_part_and_after_is_judged_by_the_time_it_happened():
    source = """extern "C" __global__ void k(int *c) {
    c[threadIdx.x] = 1; // early
    c[threadIdx.x ^ 32] = 2; // planted
    __syncthreads();
    c[64 + threadIdx.x] = 3;
}"""
    fault = caught(source, np.zeros(128, np.int32), block=(64, 1, 1))
    assert fault.source_line == line_of(source, "planted")
    assert f"in line {line_of(source, 'early')} " in fault.detail


def test_a_pointer_that_comes_from_memory_may_point_anywhere():
    source = """extern "C" __global__ void k(int **table, const int *x) {
    table[blockIdx.x & 1][threadIdx.x] = x[threadIdx.x] + blockIdx.x; // planted
}"""
    program, memory = cuda_program(source), GlobalMemory()
    out, x = (memory.allocate(np.zeros(64, np.int32), name) for name in ("out", "x"))
    table = memory.allocate(np.array([out.address, out.address + 128], np.int64), "table")
    launch(program, (2, 1, 1), (32, 1, 1), [table, x], memory)
    with pytest.raises(KernelFault, match=f"line {line_of(source, 'planted')}: .*element 0 of out"):
        launch(program, (3, 1, 1), (32, 1, 1), [table, x], memory)


def test_volatile_words_of_other_blocks_that_no_fence_orders_are_remarked_on():
    text = """extern "C" __global__ void k(int *out) {
    volatile int *parts = out + 1;
    parts[blockIdx.x] = blockIdx.x; // stores
    FENCE
    if (atomicAdd(out + 9, 1) == gridDim.x - 1)
        out[0] = parts[0] + parts[1] + parts[2]; // reads
}"""
    _, fenced = run_cuda(
        text.replace("FENCE", "__threadfence();"), np.zeros(16, np.int32), grid=(8, 1, 1), block=(1, 1, 1)
    )
    assert not fenced.remarks
    _, result = run_cuda(text.replace("FENCE", ""), np.zeros(16, np.int32), grid=(8, 1, 1), block=(1, 1, 1))
    assert result.remarks == (
        f"undefined: line {line_of(text, '// reads')} reads as volatile what another block stores in line"
        f" {line_of(text, '// stores')} (thread (0, 0, 0) of block (7, 0, 0)),"
        " and no __threadfence orders the two",
    )


COUNT, THREADS = 300, 128

ROWS = kernel_table(Path(__file__).parent / "guesses.cu")
TOTALS = [name for name, row in ROWS.items() if "type" in row.told]
#: `// meets` marks both lines.
RACES = [name for name, row in ROWS.items() if "// meets" in row.text]


def made(name: str, space: str) -> tuple[str, np.dtype]:
    row, frame = ROWS[name], ROWS[f"totals in {space} memory"]
    source = frame.told["before"] + frame.text.replace("BODY", row.text).replace("TYPE", row.told["type"])
    return source, np.dtype(row.told["dtype"])


@pytest.mark.parametrize(
    ("name", "space", "blocks"),
    [(name, "global", 3) for name in TOTALS]
    + [(name, "shared", 1) for name in TOTALS if "__ldcg" not in ROWS[name].text],
)
def test_guess_that_a_swap_checks_is_no_race(name, space, blocks):
    source, kind = made(name, space)
    values = np.random.default_rng(1).integers(0, 50, COUNT).astype(kind)
    # Four words, so that the shorts' own words end inside the array.
    shape = {"grid": (blocks, 1, 1), "block": (THREADS, 1, 1)}
    (totals, _), _ = run_cuda(source, np.zeros(4, kind), values, scalars=(COUNT,), **shape)
    assert totals.array()[:3].tolist() == [values[i::3].sum() for i in range(3)]


def test_the_word_may_lie_behind_another_address():
    source = """extern "C" __global__ void k(int *a, int n) {
        int old = a[1], seen;
        do
            old = atomicCAS(&a[1], seen = old, seen + 2);
        while (old != seen);
        atomicAdd(&a[0], 1);
    }"""
    (words,), _ = run_cuda(source, np.zeros(2, np.int32), scalars=(0,), grid=(3, 1, 1), block=(64, 1, 1))
    assert words.array().tolist() == [192, 384]


@pytest.mark.parametrize("name", RACES)
def test_guess_that_nothing_checks_is_a_race(name):
    source = ROWS[name].text
    words = np.zeros(4, np.int32)
    fault = caught(source, words, words, scalars=(64,), grid=(2, 1, 1), block=(32, 1, 1))
    assert fault.kind is FaultKind.GLOBAL_RACE
    marked = {number for number, line in enumerate(source.splitlines(), 1) if "// meets" in line}
    assert {fault.source_line, int(re.search(r"in line (\d+)", fault.detail)[1])} <= marked, fault


@pytest.mark.parametrize(
    ("place", "stores", "after", "races"),
    [
        ("i % n", "i < n", "", False),
        ("(i + 1) % n", "i < n", "", True),
        ("i % n", "i <= n", "", True),
        ("i % n", "i < n", "if (v > 1000) a[n] = 1;", True),
        ("i % n", "i < n", "a[n + __popc(__ballot_sync(~0u, v & 1)) / 64] = 3;", True),
    ],
)
@pytest.mark.parametrize("before", ["", "for (int twice = 0; twice < 2; ++twice) {"])
def test_a_lane_whose_store_is_guarded_away_has_loaded_for_nothing(before, place, stores, after, races):
    source = f"""extern "C" __global__ void k(int *a, int n) {{
        const int i = threadIdx.x;
        {before}
        const int v = a[{place}];
        asm volatile("{{.reg .pred p; setp.ne.s32 p, %2, 0; @p st.global.s32 [%0], %1;}}"
            :: "l"(a + i % n), "r"(v + 1), "r"(int({stores})) : "memory");
        {after}
        {before and "}"}
    }}"""
    words = np.zeros(16, np.int32)
    if races:
        fault = caught(source, words, scalars=(8,), block=(32, 1, 1))
        assert fault.kind is FaultKind.GLOBAL_RACE
    else:
        (got,), _ = run_cuda(source, words, scalars=(8,), block=(32, 1, 1))
        assert got.array().tolist() == [2 if before else 1] * 8 + [0] * 8
