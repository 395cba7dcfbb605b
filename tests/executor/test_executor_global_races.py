# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Races on global memory: between which accesses they are looked for, and which loads are only guesses."""

import re
from pathlib import Path

import numpy as np
import pytest
from cuda_sources import kernel_table
from executor_harness import caught, cuda_program, line_of, run_cuda

from gpuprof.executor import FaultKind, GlobalMemory, KernelFault, choose_blocks, launch
from gpuprof.executor.memory.thread_order import ThreadOrder
from gpuprof.executor.observers.global_races import Shadow

pytestmark = pytest.mark.deep

OVERLAP = """extern "C" __global__ void k(float *c, int step, float by) {
    c[blockIdx.x * step + threadIdx.x] = blockIdx.x * by; // planted
}"""


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


def test_what_other_warps_did_is_asked_of_once_a_warp(monkeypatch):
    source = """extern "C" __global__ void k(int *sum, int *met, int *out) {
    if (threadIdx.x % 32 == 0)
        atomicAdd(sum, 1); // planted
    if (met) {
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(met, 1);
            while (*(volatile int *)met < gridDim.x)
                ;
            __threadfence();
        }
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = *sum;
}"""
    blocks, warps = 8, 16
    memory, program = GlobalMemory(), cuda_program(source)
    total, met = (memory.allocate(np.zeros(1, np.int32), name) for name in ("total", "met"))
    out = memory.allocate(np.zeros(blocks * warps * 32, np.int32), "out")
    asked, ordered = [], ThreadOrder.ordered

    def counted(self, stamps, *others):
        asked.append(len(stamps))
        return ordered(self, stamps, *others)

    monkeypatch.setattr(ThreadOrder, "ordered", counted)
    launch(program, (blocks, 1, 1), (warps * 32, 1, 1), [total, met, out], memory, cooperative=True)
    assert (out.array() == blocks * warps).all()
    # Each thread with each of the atomic operations would be 32 times as many.
    assert max(asked) < 2 * (blocks * warps) ** 2
    with pytest.raises(KernelFault, match=f"line {line_of(source, 'planted')}.*global-memory race"):
        launch(program, (blocks, 1, 1), (warps * 32, 1, 1), [total, 0, out], memory, cooperative=True)


COUNT, THREADS = 52, 48

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


def test_what_loads_for_nothing_met_is_no_race_to_make(monkeypatch):
    source = """extern "C" __global__ void k(int *a) {
        const int i = blockIdx.x * 32 + threadIdx.x % 32;
        const int v = a[i];
        asm volatile("{.reg .pred p; setp.ne.s32 p, %2, 0; @p st.global.s32 [%0], %1;}"
            :: "l"(a + i), "r"(v + 1), "r"(int(threadIdx.x < 32)) : "memory");
    }"""
    made = []
    monkeypatch.setattr(Shadow, "_race", lambda *met, **how: made.append(met))
    (got,), _ = run_cuda(source, np.zeros(128, np.int32), block=(64, 1, 1), grid=(4, 1, 1))
    assert got.array().tolist() == [1] * 128
    assert not made


def test_what_a_load_met_stands_where_it_did_when_bytes_are_accessed_since():
    source = """extern "C" __global__ void k(int *a) {
        asm volatile("{.reg .pred p; setp.eq.s32 p, %1, 0; @p st.global.s32 [%0 + 32], 7;}"
            :: "l"(a), "r"(blockIdx.x) : "memory");
        const int v = a[8];
        asm volatile("{.reg .pred p; .reg .b32 c; ld.global.s8 c, [%0 + 64]; setp.ne.s32 p, %2, 0;"
            "@p st.global.s32 [%0], %1;}" :: "l"(a), "r"(v + 1), "r"(blockIdx.x) : "memory");
    }"""
    fault = caught(source, np.zeros(32, np.int32), block=(1, 1, 1), grid=(2, 1, 1))
    assert fault.kind is FaultKind.GLOBAL_RACE
    assert "element 8" in fault.detail


@pytest.mark.parametrize(
    ("first", "stores", "races"),
    [
        ("0", "i < 8", False),  # one warp, of whose lanes some load the same
        ("0", "i < 32", False),
        ("32", "i >= 32 && i < 40", False),
        ("32", "i < 8", True),  # the other warp stores what it has made of it
        ("0", "i < 8 || i == 63", True),
    ],
)
@pytest.mark.parametrize("summed", ["v + __shfl_xor_sync(~0u, v, 1)", "__reduce_add_sync(~0u, v)"])
def test_what_a_shuffle_passes_on_is_loaded_for_the_whole_warp(summed, first, stores, races):
    source = f"""extern "C" __global__ void k(int *a, int *out) {{
        const int i = threadIdx.x;
        const int v = a[i % 8];
        const int sum = {summed};
        asm volatile("{{.reg .pred p; setp.ne.s32 p, %2, 0; @p st.global.s32 [%0], %1;}}"
            :: "l"(i < 40 ? a + i % 8 : out), "r"(sum), "r"(int({stores})) : "memory");
        asm volatile("{{.reg .pred p; setp.eq.s32 p, %2, 0; @p st.global.s32 [%0], %1;}}"
            :: "l"(out + 1), "r"(sum), "r"(i ^ {first}) : "memory");
    }}"""
    words = np.ones(8, np.int32), np.zeros(8, np.int32)
    if races:
        fault = caught(source, *words, block=(64, 1, 1))
        assert fault.kind is FaultKind.GLOBAL_RACE
    else:
        (got, _), _ = run_cuda(source, *words, block=(64, 1, 1))
        assert len({*got.array().tolist()}) == 1
