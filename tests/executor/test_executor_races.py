# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which accesses to shared memory race: the detector against the rule, applied to each pair of accesses.

Between two barriers two threads of a block may not touch the same byte, unless both only read, both are
atomic, or the second writes what it finds there. `__syncwarp` orders the threads of its warp.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
from each import each
from executor_harness import caught, line_of, run_cuda

from gpuprof.executor import FaultKind
from gpuprof.executor.lanes.cluster_layout import ClusterLayout
from gpuprof.executor.lanes.masks import Mask
from gpuprof.executor.memory.accesses import Access, Signal, Signals
from gpuprof.executor.memory.shared_memory import ChunkPattern, SharedMemory, SharedPattern
from gpuprof.executor.observers.race_detector import RaceDetector
from gpuprof.executor.observers.races import Interval
from gpuprof.executor.observers.touches import StampSets

SHARED_BYTES = 64
#: Few threads, so that they meet.
LANES = (0, 1, 2, 31)


@dataclass
class Step:
    """One access of some threads, as a detector is told of it; of a write also what it writes."""

    access: Access
    pattern: SharedPattern
    value: int = 0
    changed: np.ndarray | None = None

    def spans(self) -> Iterator[tuple[tuple[int, int, int], slice]]:
        """Block, warp and lane of each thread that takes part, and its bytes."""
        shape = (self.pattern.mask.blocks, self.pattern.mask.warps, 32)
        start = np.broadcast_to(self.pattern.address, shape)
        for block, warp, lane in np.argwhere(np.broadcast_to(self.pattern.mask.lanes, shape)):
            first = int(start[block, warp, lane])
            yield (int(block), int(warp), int(lane)), slice(first, first + self.pattern.size)

    def touched(self, block: int) -> Iterator[tuple[int, int, bool]]:
        """Thread, byte, and whether the thread changed what it found, of one block."""
        for place, span in self.spans():
            if place[0] == block:
                changed = self.changed is None or bool(self.changed[place])
                for byte in range(span.start, span.stop):
                    yield place[1] * 32 + place[2], byte, changed


@dataclass
class Rule:
    """The rule for one block, byte by byte and thread by thread."""

    block: int
    written: set[int] = field(default_factory=set)
    flying: set[int] = field(default_factory=set)
    #: Of each byte since the last barrier: by whom it was touched, how, and when.
    past: dict[int, list[tuple[int, Access, int]]] = field(default_factory=dict)
    synced: dict[int, int] = field(default_factory=dict)

    def judge(self, step: Step) -> FaultKind | None:
        """What is wrong with an access."""
        if step.access in (Access.SYNCWARP, Access.LANDED):
            return None
        touched = list(step.touched(self.block))
        reads = step.access is Access.READ
        if any(byte in self.flying for _, byte, _ in touched):
            return FaultKind.ASYNC_COPY
        if any(self._races(step.access, *one) for one in touched):
            return FaultKind.SHARED_RACE
        finds = reads or step.access is Access.ATOMIC
        if finds and any(byte not in self.written for _, byte, _ in touched):
            return FaultKind.UNINITIALISED_SHARED
        return None

    def _races(self, access: Access, thread: int, byte: int, changed: bool) -> bool:
        for earlier, how, when in self.past.get(byte, ()):
            ordered = earlier // 32 == thread // 32 and when < self.synced.get(thread // 32, 0)
            harmless = how is access and access in (Access.READ, Access.ATOMIC)
            harmless |= access is Access.WRITE and how is not Access.READ and not changed
            if earlier != thread and not ordered and not harmless:
                return True
        return False

    def remember(self, step: Step, time: int) -> None:
        """Take an access that is right into account."""
        if step.access is Access.SYNCWARP:
            (warp,) = np.flatnonzero(step.pattern.mask.active_warps[0])
            self.synced[int(warp)] = time
            return
        for thread, byte, _ in step.touched(self.block):
            self.past.setdefault(byte, []).append((thread, step.access, time))
            if step.access is Access.COPY:
                self.flying.add(byte)
            elif step.access is not Access.READ:
                self.written.add(byte)
            if step.access is Access.LANDED:
                self.flying.discard(byte)

    def barrier(self) -> None:
        """Everything so far is ordered."""
        self.past.clear()
        self.synced.clear()


class History:
    """Random accesses, told to a detector and judged by the rule, until either finds something wrong."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.blocks, self.warps = (int(n) for n in self.rng.integers(1, 4, size=2))
        self.rules = [Rule(block) for block in range(self.blocks)]
        self.content = np.zeros((self.blocks, SHARED_BYTES), np.uint8)
        self.flying: list[SharedPattern] = []
        self.signals = Signals()
        self.found: list[tuple[int, FaultKind]] = []

        def report(kind, _detail, line, _position, _address):
            self.found.append((line, kind))

        shared, layout = SharedMemory(self.blocks, SHARED_BYTES), ClusterLayout(warps=self.warps)
        interval = Interval(shared, 4, report, layout, lambda position: (position, (0, 0, 0)))
        self.detector = RaceDetector(shared, interval, report)

    def play(self) -> tuple[tuple[int, FaultKind] | None, ...]:
        """What the detector reports first, and what the rule finds: which access, and its kind."""
        expected = None
        if self.rng.random() < 0.9:
            self._tell(self._initial(), 0)
            self._barrier()
        for time in range(1, 60):
            if self.rng.random() < 0.08:
                self._barrier()
                continue
            step = self._draw()
            wrong = [kind for rule in self.rules if (kind := rule.judge(step))]
            if wrong and self.rng.random() < 0.9:
                continue  # most are left out, so that a history gets long
            self._tell(step, time)
            if wrong:
                order = (FaultKind.ASYNC_COPY, FaultKind.SHARED_RACE, FaultKind.UNINITIALISED_SHARED)
                expected = (time, min(wrong, key=order.index))
                break
        self.detector.settle()
        return (self.found[0] if self.found else None), expected

    def _tell(self, step: Step, time: int) -> None:
        if step.access is Access.SYNCWARP:
            signal = self.signals.of(step.pattern.mask.active_warps, (0, 0))
            self.detector.synchronise(step.access, signal, time)
        else:
            self.detector.record(step.access, step.pattern, time, step.changed)
        for rule in self.rules:
            rule.remember(step, time)
        if step.access is Access.WRITE:
            for (block, _, _), span in step.spans():
                self.content[block, span] = step.value
        elif step.access is Access.COPY:
            self.flying.append(step.pattern)
        elif step.access is Access.LANDED:
            self.flying.remove(step.pattern)

    def _barrier(self) -> None:
        self.detector.settle()
        for rule in self.rules:
            rule.barrier()

    def _initial(self) -> Step:
        index = np.arange(32).reshape(1, 1, 32) % (SHARED_BYTES // 16)
        return Step(Access.WRITE, self._pattern(index, index == np.arange(32), 16))

    def _pattern(self, index: np.ndarray, lanes: np.ndarray, size: int) -> SharedPattern:
        mask = Mask(lanes, self.blocks, self.warps)
        return SharedPattern(index.astype(np.int64) * size, 0, mask, size, SHARED_BYTES, load=False)

    def _draw(self) -> Step:
        choice = self.rng.random()
        if choice < 0.15:
            warp = np.arange(self.warps).reshape(1, -1, 1) == self.rng.integers(self.warps)
            lanes = np.broadcast_to(warp, (1, self.warps, 32))
            return Step(Access.SYNCWARP, self._pattern(np.zeros((1, 1, 1)), lanes, 4))
        if self.flying and choice < 0.25:
            return Step(Access.LANDED, self.flying[0])
        access = (Access.READ, Access.WRITE, Access.ATOMIC, Access.COPY)[
            self.rng.choice(4, p=[0.45, 0.3, 0.2, 0.05])
        ]
        size = int(self.rng.choice([4, 4, 8, 16]))
        pattern = self._pattern(self._index(SHARED_BYTES // size), self._lanes(), size)
        if access is Access.COPY and pattern.collides:
            access = Access.READ
        step = Step(access, pattern)
        if access is Access.WRITE:
            step.value = int(self.rng.integers(1, 3))
            step.changed = np.zeros((self.blocks, self.warps, 32), dtype=bool)
            for place, span in step.spans():
                step.changed[place] = (self.content[place[0], span] != step.value).any()
        return step

    def _index(self, slots: int) -> np.ndarray:
        """One slot for all lanes, or any for each, told apart by blocks and warps or not."""
        blocks, warps, lanes = (int(self.rng.choice([1, n])) for n in (self.blocks, self.warps, 32))
        return self.rng.integers(slots, size=(blocks, warps, lanes))

    def _lanes(self) -> np.ndarray:
        """All lanes, one, or some of few; in all blocks or in some."""
        style = self.rng.choice(["all", "one", "some", "some of some blocks"], p=[0.15, 0.45, 0.2, 0.2])
        if style == "all":
            return np.ones((1, *self.rng.choice([(1, 1), (self.warps, 32)])), dtype=bool)
        blocks = self.blocks if style == "some of some blocks" else 1
        lanes = np.zeros((blocks, self.warps, 32), dtype=bool)
        if style == "one":
            lanes[0, self.rng.integers(self.warps), self.rng.choice(LANES)] = True
        else:
            lanes[:, :, LANES] = self.rng.random((blocks, self.warps, len(LANES))) < 0.4
            lanes[0, 0, 0] = True
        return lanes


@each(seed=range(80))
def test_detector_finds_what_the_rule_finds(seed):
    found, expected = History(seed).play()
    assert found == expected


@pytest.mark.parametrize("blocks", [2, 4])
def test_race_names_a_block_whose_values_differ(blocks):
    source = """extern "C" __global__ void k(int *out) {
    __shared__ int tile[64];
    tile[threadIdx.x] = 7;
    tile[threadIdx.x ^ 32] = blockIdx.x == 1 && threadIdx.x == 45 ? 8 : 7; // planted
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x];
}"""
    fault = caught(source, np.zeros(64, np.int32), grid=(blocks, 1, 1), block=(64, 1, 1))
    assert (fault.kind, fault.source_line) == (FaultKind.SHARED_RACE, line_of(source, "planted"))
    assert (fault.block, fault.thread, fault.address) == ((1, 0, 0), (45, 0, 0), 4 * (45 ^ 32))


def test_what_was_right_with_equal_values_is_judged_again_with_others():
    source = """extern "C" __global__ void k(int *out, int steps, int bad) {
    __shared__ int tile[64];
    #pragma unroll 1
    for (int i = 0; i < steps; ++i) {
        tile[threadIdx.x] = 7;
        tile[threadIdx.x ^ 32] = i == bad ? 8 : 7; // planted
        __syncthreads();
        out[threadIdx.x] += tile[threadIdx.x];
        __syncthreads();
    }
}"""
    (out,), _ = run_cuda(source, np.zeros(64, np.int32), scalars=(6, 6), block=(64, 1, 1))
    assert (out.array() == 42).all()
    fault = caught(source, np.zeros(64, np.int32), scalars=(6, 4), block=(64, 1, 1))
    assert (fault.kind, fault.source_line) == (FaultKind.SHARED_RACE, line_of(source, "planted"))


def test_signal_tells_blocks_apart_where_its_threads_or_its_copy_do():
    same, apart = np.ones((1, 2, 32), dtype=bool), np.ones((3, 1, 1), dtype=bool)
    length = np.full((1, 1, 1), 16)
    of_all, of_each = (
        ChunkPattern(0 * length, length, Mask(lanes, 3, 2), SHARED_BYTES) for lanes in (same, apart)
    )
    for lanes in (same, apart):
        for copy, least in ((None, 1), (of_all, 1), (of_each, 3)):
            assert Signal(1, lanes, (0, 0), copy).leading == max(len(lanes), least)


def test_copies_of_nothing_leave_no_stamps():
    """Boxes of all blocks that are judged may lie outside their array."""
    sets = StampSets(2)
    assert sets.add(np.zeros((0, 2), np.int64)).tolist() == []
    assert len(sets.rows) == 1
