# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Grids whose blocks build on each other: counted without values, and verified by a few of their blocks."""

import numpy as np
import pytest
import waiting_sources as sources
from executor_harness import compile_cuda

from gpuprof.executor import (
    ClosedSample,
    FaultKind,
    GlobalMemory,
    GridLaunch,
    KernelFault,
    TooMuchWork,
    ValueNeeded,
    choose_elements,
    launch,
    load_program,
    skeleton_launch,
)
from gpuprof.executor.closed_sample import BlockPart

pytestmark = pytest.mark.deep

RANDOM = np.random.default_rng(5)


def floats(count: int) -> np.ndarray:
    return RANDOM.normal(size=count).astype(np.float32)


def nothing(count: int) -> np.ndarray:
    return np.full(count, np.nan, dtype=np.float32)


def zeros(count: int) -> np.ndarray:
    return np.zeros(count, dtype=np.int32)


#: What the stream of tiles takes; some blocks have several tiles to themselves.
STREAM = ([floats(40 * 32 * 64), zeros(16), nothing(40 * 64)], (40,), (11, 1, 1), 2)
#: Source, arrays and numbers that it takes, the grid, and which of the arrays is the output.
CASES = {
    "last block": (
        sources.LAST_BLOCK,
        [floats(6 * 4 * 24 * 64), nothing(6 * 4 * 64), zeros(6), nothing(6 * 64)],
        (),
        (6, 4, 1),
        3,
    ),
    # More blocks than run together with values.
    "many blocks": (
        sources.LAST_BLOCK,
        [floats(260 * 4 * 24 * 64), nothing(260 * 4 * 64), zeros(260), nothing(260 * 64)],
        (),
        (260, 4, 1),
        3,
    ),
    "look back": (
        sources.LOOK_BACK,
        [floats(9 * 64), nothing(9), zeros(9), nothing(9 * 64)],
        (),
        (9, 1, 1),
        3,
    ),
    "queue": (sources.QUEUE, [floats(23 * 64), zeros(1), nothing(23 * 64)], (23,), (4, 1, 1), 2),
    "grid barrier": (
        sources.GRID_BARRIER,
        [floats(7 * 64), nothing(7 * 64), zeros(1), nothing(7 * 64)],
        (),
        (7, 1, 1),
        3,
    ),
    "lock": (sources.LOCK, [floats(9 * 64), zeros(1), np.zeros(64, np.float32)], (), (9, 1, 1), 2),
    "stream": (sources.stream(), *STREAM),
    "packed": (
        sources.PACKED,
        [floats(90 * 65), nothing(90 * 64), zeros(1), nothing(3 * 64)],
        (90,),
        (40, 1, 1),
        3,
    ),
    "copy engine": (
        sources.COPIED,
        [floats(5 * 64), zeros(5), np.zeros(64, np.float32)],
        (),
        (5, 1, 1),
        2,
    ),
}


class Case:
    """A kernel with what it is given."""

    def __init__(self, source: str, arrays: list[np.ndarray], numbers: tuple, grid, output: int) -> None:
        self.program = load_program(compile_cuda(source), "k", with_skeleton=True)
        self.arrays, self.numbers, self.grid, self.output = arrays, numbers, grid, output
        self.launch = GridLaunch(self.program, grid, (64, 1, 1))

    def fresh(self):
        """Device memory as it is before, and the buffers in it."""
        memory = GlobalMemory()
        return memory, [memory.allocate(array, f"array {i}") for i, array in enumerate(self.arrays)]

    def whole(self):
        """Run it as it is."""
        memory, buffers = self.fresh()
        result = launch(self.program, self.grid, (64, 1, 1), [*buffers, *self.numbers], memory)
        return result, buffers[self.output].array().copy()

    def traced(self):
        """Run it without values."""
        memory, buffers = self.fresh()
        result, trace = self.launch.without_values([*buffers, *self.numbers], memory, 1e9)
        return result, trace, buffers

    def sampled(self):
        """Run a closed sample; return the output, and which of its elements are finished."""
        _, trace, buffers = self.traced()
        address = buffers[self.output].address
        sample = choose_elements(trace, [address])
        memory, buffers = self.fresh()
        done = self.launch.with_values([*buffers, *self.numbers], memory, sample).maps[address]
        finished = (
            (done.stored() == trace.maps[address].stored()) & (done.stored() > 0) & ~done.stored_hollow()
        )
        return buffers[self.output].array(), finished, sample


@pytest.fixture(params=CASES, scope="module")
def case(request):
    return Case(*CASES[request.param])


def test_a_skeleton_counts_what_its_kernel_counts(case):
    whole, _ = case.whole()
    result, trace, buffers = case.traced()
    assert result.counters == whole.counters
    assert result.lines == whole.lines
    assert result.busiest == whole.busiest
    timed = list(case.program.timed)
    np.testing.assert_array_equal(result.block_warps[timed], whole.block_warps[timed])
    assert result.lane_instructions == whole.lane_instructions
    assert result.exact_sample
    assert (trace.maps[buffers[case.output].address].stored() > 0).all()
    np.testing.assert_array_equal(buffers[case.output].array(), case.arrays[case.output])  # no value moved


def test_a_closed_sample_finishes_what_the_whole_grid_computes(case):
    _, expected = case.whole()
    got, finished, sample = case.sampled()
    assert finished.any()
    np.testing.assert_array_equal(got[finished], expected[finished])
    assert len(sample.parts) <= np.prod(case.grid)


def test_what_the_copy_engine_took_from_others_is_computed_with_values():
    case = Case(*CASES["packed"])
    _, trace, _ = case.traced()
    assert trace.overlooks
    _, _, sample = case.sampled()
    assert len(sample.parts) == 40
    assert all(part.ahead == 0 or part.early > 0 for part in sample.parts)
    assert not Case(*CASES["copy engine"]).traced()[1].overlooks  # it took what was there before the launch


def test_blocks_that_go_far_keep_the_others_waiting_in_no_batch(monkeypatch):
    case, together = Case(*CASES["packed"]), []
    begin = skeleton_launch._AsFarAsWanted.begin
    monkeypatch.setattr(
        skeleton_launch._AsFarAsWanted,
        "begin",
        lambda guide, batch, *rest: (together.append(batch.blocks), begin(guide, batch, *rest)),
    )
    case.sampled()
    assert sum(together) == 40
    assert max(together) >= 37
    assert 2 <= len(together) <= 12


@pytest.mark.parametrize(
    ("horizons", "expected"),
    [
        ([10] * 30, [30]),
        ([10] * 30 + [1000], [30, 1]),
        ([1000] + [10] * 30, [1, 30]),
        ([10, 400, 10_000], [1, 1, 1]),
        ([10] * 12, [1] * 12),
        ([10] * 20 + [12] * 20, [40]),
        ([2**i for i in range(60)], None),
    ],
)
def test_blocks_run_together_that_come_about_as_far(horizons, expected):
    parts = tuple(BlockPart(block, horizon, 0, 0) for block, horizon in enumerate(horizons))
    batches = skeleton_launch._batches(ClosedSample(parts))
    assert sorted(part.block for batch in batches for part in batch) == list(range(len(horizons)))
    assert [batch[0].block for batch in batches] == sorted(batch[0].block for batch in batches)
    assert len(batches) <= 12
    if expected:
        assert [len(batch) for batch in batches] == expected


def test_elements_that_blocks_share_are_sampled_and_such_that_are_one_blocks_own():
    _, finished, sample = Case(sources.stream(), *STREAM).sampled()
    tiles = finished.reshape(40, 64).all(axis=1)
    shares = 40 * 32 * np.arange(12) // 11  # where each block begins
    split = np.isin(np.arange(40), shares[shares % 32 != 0] // 32)
    assert tiles[split].any()
    assert tiles[~split].any()
    assert len(sample.parts) <= 3
    assert any(
        0 < part.ahead <= part.horizon for part in sample.parts
    )  # most of a block's way needs no values


def stream_fault(call, **wrong) -> KernelFault:
    with pytest.raises(KernelFault) as caught:
        getattr(Case(sources.stream(**wrong), *STREAM), call)()
    return caught.value


def test_a_flag_that_is_never_set_is_a_hang_with_its_place():
    fault = stream_fault("traced", told="t == 0 && blockIdx.x != 4")
    assert fault.kind is FaultKind.ENDLESS
    assert (fault.block, fault.thread) == ((5, 0, 0), (0, 0, 0))
    assert "while" in sources.stream().splitlines()[fault.source_line - 1]


@pytest.mark.parametrize(
    "wrong", [{"early": True}, {"fence": ""}], ids=["a flag before the data", "no fence"]
)
def test_a_flag_that_does_not_order_is_a_race(wrong):
    fault = stream_fault("sampled", **wrong)
    assert fault.kind is FaultKind.GLOBAL_RACE
    assert "array 2" in fault.detail


def test_a_tile_that_nobody_stores_is_missing_from_the_trace():
    _, trace, buffers = Case(sources.stream(stored="tile != 30"), *STREAM).traced()
    stores = trace.maps[buffers[2].address].stored().reshape(40, 64)
    assert np.flatnonzero((stores == 0).any(axis=1)).tolist() == [30]


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
        case.traced()


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
        case.traced()


def test_more_steps_than_allowed_stop_the_launch():
    case = Case(sources.stream(), *STREAM)
    memory, buffers = case.fresh()
    with pytest.raises(TooMuchWork):
        case.launch.without_values([*buffers, *case.numbers], memory, 1e5)


def test_what_inputs_decide_is_followed():
    source = DECIDED.replace("turned[t]", "in[blockIdx.x * 64 + t]")
    case = Case(source, [floats(3 * 64), nothing(3 * 64)], (), (3, 1, 1), 1)
    whole, _ = case.whole()
    result, _, _ = case.traced()
    assert result.counters == whole.counters
    assert result.counters["branch_divergent_warps"] > 0


@pytest.mark.parametrize(
    ("limits", "statement"),
    [
        ("__cluster_dims__(2, 1, 1)", ""),
        ("", "out[threadIdx.x] += tex1Dfetch<float>(texture, threadIdx.x);"),
    ],
    ids=["clusters of several blocks", "textures"],
)
def test_what_is_not_followed_has_no_skeleton(limits, statement):
    text = 'extern "C" __global__ void {} k(unsigned long long texture, float *out) {{ *out = 1; {} }}'
    plain = compile_cuda(text.format("", ""))
    assert load_program(plain, "k", with_skeleton=True).has_skeleton
    ptx = compile_cuda(text.format(limits, statement))
    assert not load_program(ptx, "k", with_skeleton=True).has_skeleton
