# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Turns of a loop that are passed over count what they would; where that is not sure, they are run."""

import numpy as np
import pytest
from executor_harness import compile_cuda
from waiting_sources import ring

from gpuprof.executor import GlobalMemory, GridLaunch, TooMuchWork, choose_elements, load_program
from gpuprof.executor.divergence import recurring_turns
from gpuprof.executor.divergence.recurring_turns import RecurringTurns

pytestmark = pytest.mark.deep

#: Turns of each block: many, few, some that leave in the middle of a period, and one that makes none.
TURNS = (200, 200, 37, 3, 0, 199, 101, 160)
SAME = (200,) * 4

#: What threads do in a turn where every period costs the same.
EVEN = {
    "nothing": ring(),
    "four stages": ring(stages=4),
    "five stages": ring(stages=5),
    "a rare warp": ring("if (t / 32 == i % 2) sum += row[t ^ 1];"),
    "a counter that is doubled": ring("sum += row[(c * 6 & 3) + t];"),
    "a counter of 64 bits": ring("if (c % 4 == 1) sum += row[t + 1];", counter="long long", step="3"),
    "a counter that goes down": ring("if (c & 1) sum += row[t + 2];", first="1000", step="-1"),
    "a barrier": ring("__syncthreads(); sum += row[63 - t];"),
    "part of a warp": ring("if (t % 3 == 0) sum += row[t * 2 & 63];"),
    "a shuffle": ring("if (__shfl_xor_sync(~0u, b, 1) % 2) sum += row[t + 3];"),
}
#: And where periods that look alike are followed by others.
UNEVEN = {
    "a turn of its own": ring("if (i == 77) sum += row[t * 2];"),
    "from some turn on": ring("if (i >= 91) sum += row[t * 2];"),
    "until some turn": ring("if (t < 32 && i <= 57) sum += row[t * 2];"),
    "conflicts that grow": ring("sum += row[(t * (i / 40)) & 127];"),
    "a counter that wraps around": ring(
        "if (c < 100u) sum += row[t * 2];", counter="unsigned", first="~0u - 80u"
    ),
    "a wide counter that wraps": ring(
        "sum += row[(t * (int)((unsigned long long)c >> 31)) & 127];", counter="unsigned", first="2147483600u"
    ),
    "a product of counters": ring("sum += row[(t * ((i * i >> 12) & 7)) & 127];"),
    "bits of a counter": ring("if (i & 64) sum += row[t * 2];"),
    "a counter's sign": ring("if ((c >> 31) == 0) sum += row[t * 2];", first="-90"),
    "the larger of two": ring("sum += row[(t * max(1, i - 120)) & 127];"),
    "a shuffle of what moves": ring("if (__shfl_xor_sync(~0u, c, 1) / 64) sum += row[t + 3];"),
    "blocks that differ": ring("if (i == 60 + 20 * (b & 3)) sum += row[t * 2];"),
    "quotients": ring("if (i / 7 == 11) sum += row[t * 2];"),
    "remainders of long": ring("if (i % 61 == 60) sum += row[t * 2];"),
}


class Case:
    """A pipeline."""

    def __init__(self, source: str, turns: tuple[int, ...]) -> None:
        self.program = load_program(compile_cuda(source), "k", with_skeleton=True)
        self.turns = turns
        self.launch = GridLaunch(self.program, (len(turns), 1, 1), (64, 1, 1))

    def fresh(self):
        """Device memory, and what the kernel is given."""
        memory = GlobalMemory()
        arrays = {
            "in": np.random.default_rng(3).normal(size=max(self.turns) * 128).astype(np.float32),
            "turns": np.array(self.turns, np.int32),
            "flags": np.zeros(len(self.turns), np.int32),
            "out": np.full(len(self.turns) * 64, np.nan, np.float32),
        }
        return memory, [memory.allocate(array, name) for name, array in arrays.items()]

    def counted(self):
        """Run it without values; return what it counts, and who did what when."""
        memory, buffers = self.fresh()
        result, trace = self.launch.without_values(buffers, memory, 1e9)
        when = [
            trace.maps[buffer.address].times_of(b) for buffer in buffers[2:] for b in range(len(self.turns))
        ]
        return result, trace, when, buffers[3].address

    def verified(self, trace, output: int):
        """Run a sample with values; return what it stores."""
        memory, buffers = self.fresh()
        sample = choose_elements(trace, [output])
        found = self.launch.with_values(buffers, memory, sample).maps[output].stored() > 0
        return np.where(found, buffers[3].array(), 0)


@pytest.fixture
def passed(monkeypatch) -> list[int]:
    """How many periods of each block are passed over, by proof."""
    found: list[int] = []
    repeat = recurring_turns._Proof.repeat

    def counting(self, periods, *others):
        found.append(int(periods.max()))
        repeat(self, periods, *others)

    monkeypatch.setattr(recurring_turns._Proof, "repeat", counting)
    return found


def executed(monkeypatch, case: Case):
    """What a case counts when every turn is run."""
    with monkeypatch.context() as context:
        context.setattr(RecurringTurns, "come", lambda *_: False)
        return case.counted()


def assert_same(found, expected) -> None:
    (result, _, when, _), (other, _, times, _) = found, expected
    assert result.counters == other.counters
    assert result.lines == other.lines
    assert result.busiest == other.busiest
    assert result.lane_instructions == other.lane_instructions
    np.testing.assert_array_equal(result.block_warps, other.block_warps)
    np.testing.assert_array_equal(result.block_threads, other.block_threads)
    np.testing.assert_array_equal(result.block_parted, other.block_parted)
    assert when == times


@pytest.mark.parametrize("turns", [SAME, TURNS], ids=["alike", "apart"])
@pytest.mark.parametrize("body", EVEN)
def test_turns_that_are_passed_over_count_what_they_would(monkeypatch, passed, body, turns):
    case = Case(EVEN[body], turns)
    found = case.counted()
    assert max(passed) > 1
    assert_same(found, executed(monkeypatch, case))


@pytest.mark.parametrize("turns", [SAME, TURNS], ids=["alike", "apart"])
@pytest.mark.parametrize("body", UNEVEN)
def test_a_turn_that_differs_is_run(monkeypatch, body, turns):
    case = Case(UNEVEN[body], turns)
    assert_same(case.counted(), executed(monkeypatch, case))


def test_what_is_stored_after_turns_that_were_passed_over_is_right(passed):
    case = Case(EVEN["nothing"], SAME)
    _, trace, _, output = case.counted()
    passed.clear()
    _, buffers = case.fresh()
    rows = buffers[0].array().reshape(-1, 128)[:, :64]
    found = case.verified(trace, output).reshape(-1, 64)
    stored = found.any(axis=1)
    assert stored.any()
    for block in np.flatnonzero(stored):
        expected = np.float32(0)
        for row in rows[: case.turns[block]]:
            expected = expected + row
        np.testing.assert_array_equal(found[block], expected)


def test_turns_that_are_passed_over_are_no_work(passed):
    case = Case(EVEN["nothing"], SAME)
    memory, buffers = case.fresh()
    steps = case.launch.without_values(buffers, memory, 1e9)[0].lane_instructions
    assert passed
    memory, buffers = case.fresh()
    assert case.launch.without_values(buffers, memory, steps / 4)[0].lane_instructions == steps
    memory, buffers = case.fresh()
    with pytest.raises(TooMuchWork):
        case.launch.without_values(buffers, memory, steps / 100)
