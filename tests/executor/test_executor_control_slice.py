# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Grids whose blocks build on each other: their control slice counts what they count, without the values."""

import re
from pathlib import Path

import numpy as np
import pytest
from bulk_sources import CLUSTER_HELPERS, HELPERS
from cuda_sources import kernel_table
from executor_harness import compile_cuda

from gpuprof.executor import (
    FaultKind,
    GlobalMemory,
    KernelFault,
    SliceRun,
    TooMuchWork,
    ValuelessElements,
    ValueNeeded,
    launch,
    load_program,
)

pytestmark = pytest.mark.deep

SOURCES = {
    name: (HELPERS + CLUSTER_HELPERS) * row.told.get("bulk", False) + row.text
    for name, row in kernel_table(Path(__file__).parent / "waiting.cu").items()
}
RANDOM = np.random.default_rng(5)


def floats(count: int) -> np.ndarray:
    return RANDOM.normal(size=count).astype(np.float32)


def nothing(count: int) -> np.ndarray:
    return np.full(count, np.nan, dtype=np.float32)


def zeros(count: int) -> np.ndarray:
    return np.zeros(count, dtype=np.int32)


#: What the stream of tiles takes; some blocks have several tiles to themselves.
STREAM = ([floats(40 * 32 * 64), zeros(16), nothing(40 * 64)], (40,), (11, 1, 1), 2)
SENT = ([floats(6 * 64), nothing(6 * 64)], (), (6, 1, 1), 1)
#: Source, arrays and numbers that it takes, the grid, and which of the arrays is the output.
CASES = {
    "last block": (
        SOURCES["last block"],
        [floats(6 * 4 * 24 * 64), nothing(6 * 4 * 64), zeros(6), nothing(6 * 64)],
        (),
        (6, 4, 1),
        3,
    ),
    # More blocks than run together with values.
    "many blocks": (
        SOURCES["last block"],
        [floats(260 * 4 * 24 * 64), nothing(260 * 4 * 64), zeros(260), nothing(260 * 64)],
        (),
        (260, 4, 1),
        3,
    ),
    "look back": (
        SOURCES["look back"],
        [floats(9 * 64), nothing(9), zeros(9), nothing(9 * 64)],
        (),
        (9, 1, 1),
        3,
    ),
    "queue": (SOURCES["queue"], [floats(23 * 64), zeros(1), nothing(23 * 64)], (23,), (4, 1, 1), 2),
    "grid barrier": (
        SOURCES["grid barrier"],
        [floats(7 * 64), nothing(7 * 64), zeros(1), nothing(7 * 64)],
        (),
        (7, 1, 1),
        3,
    ),
    "lock": (SOURCES["lock"], [floats(9 * 64), zeros(1), np.zeros(64, np.float32)], (), (9, 1, 1), 2),
    "stream": (SOURCES["stream"], *STREAM),
    "packed": (
        SOURCES["packed"],
        [floats(90 * 65), nothing(90 * 64), zeros(1), nothing(3 * 64)],
        (90,),
        (40, 1, 1),
        3,
    ),
    "whole numbers": (
        SOURCES["whole numbers"],
        [floats(5 * 64), zeros(1), zeros(5 * 64)],
        (),
        (5, 1, 1),
        2,
    ),
    "cluster": (SOURCES["cluster"], [floats(15 * 8 * 64), nothing(15 * 64)], (), (15, 1, 1), 1),
    "sent": (SOURCES["sent"], *SENT),
    "sent, and nothing decides": (re.sub(r"(?<!int )(?<!&)rounds(?! =)", "theirs", SOURCES["sent"]), *SENT),
    "copy engine": (
        SOURCES["copy engine"],
        [floats(5 * 64), zeros(5), np.zeros(64, np.float32)],
        (),
        (5, 1, 1),
        2,
    ),
}


class Case:
    """A kernel with what it is given."""

    def __init__(self, source: str, arrays: list[np.ndarray], numbers: tuple, grid, output: int) -> None:
        self.program = load_program(compile_cuda(source), "k")
        self.arrays, self.numbers, self.grid, self.output = arrays, numbers, grid, output

    def fresh(self):
        """Device memory as it is before, and the buffers in it."""
        memory = GlobalMemory()
        return memory, [memory.allocate(array, f"array {i}") for i, array in enumerate(self.arrays)]

    def run(self, **how):
        """Run it; return what it counted, and the output."""
        memory, buffers = self.fresh()
        result = launch(self.program, self.grid, (64, 1, 1), [*buffers, *self.numbers], memory, **how)
        return result, buffers[self.output]

    def sliced(self, slice_steps=1e9):
        """Run its control slice alone."""
        return self.run(sliced=SliceRun(slice_steps, ValuelessElements()))


@pytest.fixture(params=CASES, scope="module")
def case(request):
    return Case(*CASES[request.param])


def test_a_control_slice_counts_what_its_kernel_counts(case):
    whole, _ = case.run()
    result, output = case.sliced()
    assert result.counters == whole.counters
    assert result.lines == whole.lines
    assert result.busiest == whole.busiest
    # How often threads look whether others have come is a matter of time.
    blocks = case.program.blocks
    loops = [range(first, last + 1) for last, block in enumerate(blocks) for first in block.back_edges]
    polling = {number for loop in loops for number in loop}
    timed = sorted(set(range(len(blocks))) - polling)
    np.testing.assert_array_equal(result.block_warps[timed], whole.block_warps[timed])
    assert result.lane_instructions == whole.lane_instructions
    assert result.exact_sample
    assert output.written_mask().all()
    np.testing.assert_array_equal(output.array(), case.arrays[case.output])  # no value moved


def test_a_flag_that_is_never_set_is_a_hang_with_its_place():
    with pytest.raises(KernelFault) as caught:
        Case(SOURCES["stream with a block that tells nobody"], *STREAM).sliced()
    fault = caught.value
    assert fault.kind is FaultKind.ENDLESS
    assert (fault.block, fault.thread) == ((5, 0, 0), (0, 0, 0))
    assert "while" in SOURCES["stream"].splitlines()[fault.source_line - 1]


@pytest.mark.parametrize("wrong", ["with a flag before the data", "without a fence"])
def test_a_flag_that_does_not_order_is_a_race(wrong):
    with pytest.raises(KernelFault) as caught:
        Case(SOURCES[f"stream {wrong}"], *STREAM).run()
    assert caught.value.kind is FaultKind.GLOBAL_RACE
    assert "array 2" in caught.value.detail


def test_a_tile_that_nobody_stores_is_missing_from_the_trace():
    _, output = Case(SOURCES["stream without a tile"], *STREAM).sliced()
    stored = output.written_mask().reshape(40, 64)
    assert np.flatnonzero(~stored.all(axis=1)).tolist() == [30]


DECIDED = """
extern "C" __global__ void k(const float *in, float *out) {
    __shared__ float turned[64];
    const int t = threadIdx.x;
    turned[63 - t] = in[blockIdx.x * 64 + t];
    __syncthreads();
    float x = turned[t];
    while (x < 1.0f)
        x += 0.25f;
    out[blockIdx.x * 64 + t] = x;
}
"""


def test_a_value_in_shared_memory_that_decides_how_often_a_loop_turns_stops_the_launch():
    case = Case(DECIDED, [floats(3 * 64), nothing(3 * 64)], (), (3, 1, 1), 1)
    with pytest.raises(ValueNeeded, match="line 7 reads an element of shared memory"):
        case.sliced()


PASSED_ON = """
extern "C" __global__ void k(const float *in, float *between, volatile int *flag, float *out) {
    const int t = threadIdx.x;
    if (blockIdx.x == 0) {
        between[t] = in[t] * 2;
        __threadfence();
        __syncthreads();
        if (t == 0)
            *flag = 1;
        return;
    }
    while (*flag == 0)
        ;
    __threadfence();
    out[t] = ((volatile float *)between)[t] > 0 ? sqrtf(in[t]) / 3 : 0;
    if (((volatile float *)between)[t] > 1)
        out[t + 64] = 1;
}
"""


def test_a_value_that_another_block_computed_and_that_decides_where_to_go_stops_the_launch():
    case = Case(PASSED_ON, [floats(64), nothing(64), zeros(1), nothing(128)], (), (2, 1, 1), 3)
    with pytest.raises(ValueNeeded, match="line 15 reads an element of array 1"):
        case.sliced()


def test_more_steps_than_allowed_stop_the_launch():
    with pytest.raises(TooMuchWork):
        Case(SOURCES["stream"], *STREAM).sliced(1e5)


def test_what_inputs_decide_is_followed():
    source = DECIDED.replace("turned[t]", "in[blockIdx.x * 64 + t]")
    case = Case(source, [floats(3 * 64), nothing(3 * 64)], (), (3, 1, 1), 1)
    whole, _ = case.run()
    result, _ = case.sliced()
    assert result.counters == whole.counters
    assert result.counters["branch_divergent_warps"] > 0


TURNS = """
extern "C" __global__ void k(const float *in, float *out) {{
    __shared__ float tile[4096];
    const int t = threadIdx.x, b = blockIdx.x;
    for (int i = t; i < 4096; i += 64)
        tile[i] = in[i];
    __syncthreads();
    float sum = 0;
    int at = 2 * t + {};
    const float *p = tile + at;
    #pragma unroll 1
    for (int i = 0; i < 9 + 5 * b; ++i) {{
        sum += tile[at] + tile[at + 3];
        {}
    }}
    out[b * 64 + t] = sum;
}}
"""
#: How a loop moves on where it reads, and who leaves it.
MOVES = {
    "by a period": "at += 32;",
    "by what does not divide one": "at += 5;",
    "by as much as each block says": "at += 1 + b % 4 * 8;",
    "by as much as each lane says": "at += t % 3;",
    "by something else in each turn": "at = (at * 5 + i) & 1023;",
    "apart from the other warp": "at += t < 32 ? 3 : 32;",
    "until blocks leave": "at += 32; if (i == 2 * b + 1) break;",
    "until lanes leave": "at += 32; if (i > t % 7 + b) break;",
    "only in some lanes": "if (t % 5 < i) at += 4;",
    "only in some blocks": "for (int j = 0; j < (b + i) % 3; ++j) { sum += *p; p += 4; } sum += *p;",
    "with a warp that comes later": "if (i > 3 || t < 32) sum += tile[at + 6 * t]; at += 32;",
}


@pytest.mark.parametrize("start", ["0", "b % 3 * 7"])
@pytest.mark.parametrize("how", MOVES)
def test_a_loop_that_moves_an_address_on_counts_what_it_costs(how, start):
    case = Case(TURNS.format(start, MOVES[how]), [floats(4096), nothing(7 * 64)], (), (7, 1, 1), 1)
    whole, _ = case.run()
    result, _ = case.sliced()
    assert result.counters == whole.counters
    assert result.lines == whole.lines
    assert result.counters["shared_load_bank_conflicts"] > 0


@pytest.mark.parametrize(
    ("how", "kind"),
    [
        ("sum += *p; p += 640;", FaultKind.OUT_OF_BOUNDS),
        (
            "for (int j = 0; j < (b + i) % 3; ++j) { sum += *p; p += 256; } sum += *p;",
            FaultKind.OUT_OF_BOUNDS,
        ),
        ("float2 x = *(float2 *)p; sum += x.x * x.y; p += 1;", FaultKind.MISALIGNED),
        ("float2 x = *(float2 *)p; sum += x.x * x.y; p += b;", FaultKind.MISALIGNED),
    ],
)
def test_an_address_that_a_loop_moves_where_it_must_not_be_is_the_fault_that_it_is(how, kind):
    case = Case(TURNS.format(0, how), [floats(4096), nothing(7 * 64)], (), (7, 1, 1), 1)
    faults = []
    for run in (case.run, case.sliced):
        with pytest.raises(KernelFault) as caught:
            run()
        faults.append(caught.value)
    assert faults[0].kind is faults[1].kind is kind
    assert str(faults[0]) == str(faults[1])


def test_textures_have_no_control_slice():
    text = 'extern "C" __global__ void k(unsigned long long texture, float *out) {{ *out = 1; {} }}'
    read = "out[threadIdx.x] += tex1Dfetch<float>(texture, threadIdx.x);"
    found = [load_program(compile_cuda(text.format(each)), "k") for each in ("", read)]
    assert [program.deciding is None for program in found] == [False, True]
