# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Atomic operations made of a plain load and a compare-and-swap: what the load finds is a guess, and no race.

Only the swap's own comparison excuses the load: guesses about another word, for another operation, beside
plain stores, or of another width than the swap stay races.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from cuda_sources import kernel_table
from executor_harness import caught, run_cuda

from gpuprof.executor import FaultKind

pytestmark = pytest.mark.deep

N, THREADS = 300, 128

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
    values = np.random.default_rng(1).integers(0, 50, N).astype(kind)
    # Four words, so that the shorts' own words end inside the array.
    shape = {"grid": (blocks, 1, 1), "block": (THREADS, 1, 1)}
    (totals, _), _ = run_cuda(source, np.zeros(4, kind), values, scalars=(N,), **shape)
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
