# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Every stage of a search on a made-up GPU: what is timed how often, tied, kept and taken up again."""

import math
import threading
import time
from unittest.mock import Mock

import numpy as np
import pytest
from synthetic_times import TILES, landscape

import gpuprof.measure.side_by_side as sites
import gpuprof.tuning.card_search as card_search
import gpuprof.tuning.tuner as stages
from gpuprof.devices.cards import load_card
from gpuprof.errors import BackendUnavailable
from gpuprof.kernels.catalog import load_kernels
from gpuprof.kernels.paths import ladder_of
from gpuprof.measure.protocol import Opened, PlaceLost, Reach, Sized
from gpuprof.measure.request import Selection, make_request
from gpuprof.measure.run import Progress
from gpuprof.options import RunOptions
from gpuprof.reading import read_run
from gpuprof.records import replace
from gpuprof.results import Counter, Measurement, Timing, TimingPair
from gpuprof.store import ResultsFile
from gpuprof.tuning.space import Plan, Point, SearchSpace, find_earlier, make_space, read_budget
from gpuprof.tuning.tuner import Tuner

pytestmark = pytest.mark.deep

DEVICE = load_card("h200")
ROUNDS = 9


def point_of(case) -> Point:
    return Point.of(case.kernel, case.params, case.block)


class MadeUpGpu:
    """Stands in for workers, and remembers what it was asked to time."""

    def __init__(
        self, *, wrong: int = 0, stop_after: int | None = None, lost: str = "", how: type = BackendUnavailable
    ) -> None:
        self.land = landscape(2048, 3)
        points = [one.candidate.point for one in self.land.points]
        self.times = dict(zip(points, map(float, self.land.times_us), strict=True))
        self.built = {one.candidate.point: one.measurement for one in self.land.points}
        order = sorted(points, key=self.times.__getitem__)
        #: The fastest of all, which compute something else.
        self.wrong = set(order[:wrong])
        self.best_us = self.times[order[wrong]]
        self.batches: list[list] = []
        self.processes = self.counted_behind = 0
        self.random = np.random.default_rng(0)
        self.stop_after = stop_after
        #: The device that is lost at its second batch, as `--device` calls it.
        self.lost, self.how = lost, how
        #: Which devices were asked to time something, in order.
        self.asked: list[str] = []
        self._lock = threading.Lock()
        self.opened = Opened(DEVICE, "gpu", None, {"driver": "1"}, 10**12)

    def __call__(self, request, patience_s: float = 1.0, on_device: object = None) -> "MadeUpGpu":
        return self

    def ask(self, request, timeout_s: float):
        return DEVICE if isinstance(request, Reach) else Sized((1,) * len(request.problems))

    def tell(self, request) -> None:
        """Nothing is prepared."""

    def close(self) -> None:
        """Nothing is open."""

    def run_cases(self, cases, worker, request, on_done, more, on_counted=None, **_) -> None:
        self.processes += 1
        self.counted_behind += len(cases) if on_counted else 0
        while cases:
            with self._lock:
                self._run_cases(cases, request.device, on_done)
            cases = more()

    def _run_cases(self, cases, device: str, on_done) -> None:
        if device == self.lost and device in self.asked:
            raise self.how("It fell off the bus.")
        self.asked.append(device)
        self.batches.append([point_of(case) for case in cases.values() if not case.is_reference])
        for number, (index, case) in enumerate(cases.items()):
            if self.stop_after is not None and sum(map(len, self.batches[:-1])) + number >= self.stop_after:
                raise KeyboardInterrupt
            on_done(index, replace(self.measured(point_of(case)), device=case.device))

    def measured(self, point) -> Measurement:
        case = self.built[point]
        if point in self.wrong:
            return replace(case, outcome="incorrect", reason="It is wrong.")
        samples = tuple(self.times[point] * (1 + 0.001 * self.random.standard_normal(9)))
        middle = sorted(samples)[4]
        timing = Timing(middle, min(samples), max(samples), 0.001, (samples,))
        return replace(case, outcome="ok", reason=None, timing=TimingPair(timing, None))


class MadeUpPool:
    """Compiles and counts without either."""

    def __init__(self, gpu: MadeUpGpu) -> None:
        self.gpu = gpu
        self.counted = self.compiled = 0
        #: What each stage was given.
        self.seconds: list[float] = []
        counts = (one.measurement for one in gpu.land.counted())
        self.counts = dict(zip(gpu.times, counts, strict=True))

    def __call__(self, *_: object) -> "MadeUpPool":
        return self

    def __enter__(self) -> "MadeUpPool":
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def build(self, cases, on_done, until) -> int:
        self.compiled += len(cases)
        self.seconds.append(until - time.monotonic())
        for index, case in enumerate(cases):
            known = self.gpu.built.get(point_of(case))
            if known is not None:
                on_done(index, known)
            else:
                on_done(index, replace(self.any, resources=None, reason="It does not fit."))
        return len(cases)

    @property
    def any(self) -> Measurement:
        return next(iter(self.gpu.built.values()))

    def count(self, built, on_done, until) -> int:
        self.counted += len(built)
        self.seconds.append(until - time.monotonic())
        for index, (case, _) in enumerate(built):
            on_done(index, self.counts[point_of(case)])
        return len(built)


@pytest.fixture(scope="module", autouse=True)
def looked_through_once():
    """The points of a size on a device take a second to look through, and are the same for every search."""
    allowed, kept = SearchSpace.allowed, {}

    def once(space, problem, device, step=lambda: None):
        key = space.count, problem.label, problem.dtype, device.name
        if key not in kept:
            kept[key] = allowed(space, problem, device)
        found, ruled_out = kept[key]
        for _ in found:
            step()
        return [*found], ruled_out.copy()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SearchSpace, "allowed", once)
        yield


@pytest.fixture
def made_up(monkeypatch):
    """Puts a made-up GPU in the place of the real one."""

    def put(**how) -> MadeUpGpu:
        gpu = MadeUpGpu(**how)
        monkeypatch.setattr(sites, "HERE", gpu)
        monkeypatch.setattr(card_search, "run_cases", gpu.run_cases)
        gpu.pool = MadeUpPool(gpu)
        monkeypatch.setattr(stages, "WorkerPool", gpu.pool)
        return gpu

    return put


def plan(points: int = 20, device: str = "0", seconds: float | None = None) -> Plan:
    ladder = ladder_of([TILES])
    request = make_request(ladder, [], [(2048, 2048, 2048)])
    space = make_space([Selection(load_kernels(TILES).kernels[0])], named=True)
    return Plan(request, space, RunOptions(device=device, rounds=ROUNDS), points, seconds)


def searched(wanted: Plan, path=None, *, goes_on=False, **how):
    """Search, and keep what is found in a file."""
    if path is not None:
        how.setdefault("keep", lambda run: ResultsFile(path, run, replace=True))
    if goes_on:
        how["earlier"] = lambda empty: find_earlier(path, empty)
    with Tuner(wanted, Progress(), **how) as tuner:
        return tuner.search()


@pytest.mark.parametrize(
    ("points", "seconds", "most"), [(20, None, 120.0), (3, None, 18.0), (20, 1000.0, 120.0), (20, 90.0, 36.0)]
)
def test_a_budget_bounds_what_prepares_too(made_up, points, seconds, most):
    gpu = made_up()
    searched(plan(points, seconds=seconds))
    compiling, counting = gpu.pool.seconds[:2]
    assert 0.7 * most < counting <= most
    assert 0.9 * min(2 * most, 0.4 * (seconds or math.inf)) < compiling <= 2 * most


def test_time_that_is_over_leaves_an_answer(made_up):
    made_up()
    assert searched(plan(seconds=1e-3)).tuning.sizes[0].evaluated == 1


def test_a_whole_search_times_few_points_and_the_closest_often(made_up):
    gpu = made_up()
    run = searched(plan())
    (tuned,) = run.tuning.sizes
    assert tuned.by == "time"
    assert tuned.evaluated == 20
    assert len({point for batch in gpu.batches for point in batch}) == 20
    # Ten points were counted for each that was timed, each of them once, the most promising among them.
    assert gpu.pool.counted == 200 < len(gpu.times)
    best = tuned.ties[0]
    times = {case.outcome for case in run.cases}
    assert times == {"ok"}
    fastest = run.cases[0]
    assert dict(fastest.params) == dict(best.params)
    assert gpu.best_us / fastest.timing.cold.median_us > 0.95
    # The closest met in rounds, forwards and backwards; the others were timed once or twice.
    rounds = [len(case.timing.cold.rounds_us) for case in run.cases]
    assert max(rounds) in (1, ROUNDS)
    # One process explores, one measures the best, and each round has its own.
    assert gpu.processes == 1 + max(rounds)
    assert gpu.batches[0][0] == next(iter(gpu.times))
    finals = gpu.batches[-(ROUNDS - 1) :]
    assert finals[0] == finals[1][::-1] or max(rounds) == 1
    assert tuned.ruled_out["It does not fit."] == tuned.combinations - sum(
        count for reason, count in tuned.ruled_out.items() if reason != "It does not fit."
    ) - len(gpu.times)


def test_what_was_counted_to_be_ranked_is_not_counted_again_when_it_is_among_the_best(made_up, monkeypatch):
    gpu = made_up()
    counts = {"warp_instructions": Counter(7.0, "instructions", "sim", "simulated")}
    known = {point: replace(case, executor_counters=counts) for point, case in gpu.pool.counts.items()}
    monkeypatch.setattr(gpu.pool, "counts", known)
    run = searched(plan())
    assert gpu.counted_behind == 0
    assert run.cases[0].executor_counters == counts
    assert run.cases[0].timing is not None
    gpu = made_up()
    monkeypatch.setattr(gpu.pool, "count", lambda *_: 0)
    searched(plan())
    assert gpu.counted_behind > 0


def test_wrong_points_are_findings_and_do_not_use_the_budget_up(made_up):
    gpu = made_up(wrong=5)
    run = searched(plan(12))
    (tuned,) = run.tuning.sizes
    right = [case for case in run.cases if case.outcome == "ok"]
    assert len(right) == 12
    assert tuned.evaluated == len(run.cases) >= 12
    assert all(case.reason == "It is wrong." for case in run.cases[len(right) :])
    assert not gpu.wrong & {Point(one.kernel, tuple(one.params.items()), one.block) for one in tuned.ties}
    assert run.complete


def test_a_search_that_was_stopped_goes_on(made_up, tmp_path):
    path = tmp_path / "results.json"
    stopped = made_up(stop_after=9)
    run = searched(plan(), path)
    assert not run.complete
    assert len(run.cases) == 9
    assert run.tuning.sizes[0].ties
    assert len(read_run(path).cases) == 9
    assert len(stopped.batches) == 3
    kernel = load_kernels(TILES).kernels[0]
    known = {Point(kernel.id, tuple(case.params.items()), kernel.block) for case in run.cases}
    again = made_up()
    run = searched(plan(), path, goes_on=True)
    assert run.complete
    assert len(run.cases) == 20
    explored = [point for batch in again.batches for point in batch][:11]
    assert not known & set(explored)
    assert len(read_run(path).cases) == 20


def test_ties_hold_all_that_rounds_cannot_tell_apart(made_up):
    gpu = made_up()
    best = min(gpu.times.values())
    for point in gpu.times:
        gpu.times[point] = best
    run = searched(plan(8))
    (tuned,) = run.tuning.sizes
    assert len(tuned.ties) == 4
    assert {len(case.timing.cold.rounds_us) for case in run.cases} == {1, ROUNDS}


@pytest.mark.parametrize(
    ("text", "points", "seconds"), [("40", 40, None), ("90s", 20, 90.0), ("7,1.5s", 7, 1.5), ("2s,3", 3, 2.0)]
)
def test_budgets(text, points, seconds):
    assert read_budget(text) == (points, seconds)


def test_a_search_of_something_else_says_what_differs(made_up, tmp_path):
    path = tmp_path / "results.json"
    made_up()
    run = searched(plan(6), path)
    assert find_earlier(path, run) == run.cases
    changed = replace(run.kernels[0], source_hash="0")
    for other, words in (
        (replace(run, kernels=(changed,)), "the source of gemm_tiles has changed"),
        (replace(run, asked={**run.asked, "seed": "1"}), "--seed was 0, now it is 1"),
        (replace(run, asked={**run.asked, "dtype": "f64"}), "--dtype was f32, now it is f64"),
        (replace(run, environment={"driver": "2"}), "driver was 1, now it is 2"),
    ):
        assert find_earlier(path, other) == f"it holds another search: {words}"


def test_what_is_known_survives_a_stop_before_it_is_taken_up(made_up, tmp_path, monkeypatch):
    path, held = tmp_path / "results.json", []

    def keep(run):
        file = ResultsFile(path, run, replace=True)
        held.append(len(read_run(path).cases))  # what a kill at this moment leaves
        return file

    made_up()
    known = searched(plan(6), keep=keep).cases
    made_up()
    monkeypatch.setattr(MadeUpPool, "build", Mock(side_effect=KeyboardInterrupt))
    run = searched(plan(6), path, goes_on=True, keep=keep)
    assert not run.complete
    assert run.cases == known == read_run(path).cases
    assert held == [0, 6]


def test_devices_of_one_kind_are_searched_each_for_itself_and_compiled_for_once(made_up):
    alone = made_up()
    searched(plan(8))
    gpu = made_up()
    run = searched(plan(8, "0,1"))
    assert (gpu.pool.compiled, gpu.pool.counted) == (alone.pool.compiled, alone.pool.counted)
    assert [tuned.device for tuned in run.tuning.sizes] == [0, 1]
    assert len(run.devices) == 2
    assert [place.selector for place in run.places] == ["0", "1"]
    for tuned in run.tuning.sizes:
        assert tuned.evaluated == 8
        assert tuned.ties
        assert sum(case.device == tuned.device for case in run.cases) == 8
    assert [case.device for case in run.cases] == [0] * 8 + [1] * 8
    assert {*gpu.asked} == {"0", "1"}


def test_a_device_that_is_lost_costs_only_its_own_points(made_up):
    made_up(lost="1")
    run = searched(plan(12, "0,1"))
    assert run.complete
    first, second = run.tuning.sizes
    assert (first.evaluated, second.evaluated) == (12, card_search.FIRST_BATCH)
    assert second.ties  # the best until then
    assert [place.lost for place in run.places] == [None, "It fell off the bus"]


def test_the_only_device_that_is_lost_ends_the_search(made_up):
    made_up(lost="0")
    with pytest.raises(BackendUnavailable, match="fell off"):
        searched(plan(12))


def test_the_only_place_of_a_cluster_that_is_lost_leaves_what_was_found(made_up):
    made_up(lost="0", how=PlaceLost)
    run = searched(plan(12))
    (tuned,) = run.tuning.sizes
    assert tuned.evaluated == card_search.FIRST_BATCH
    assert [place.lost for place in run.places] == ["It fell off the bus"]


def test_a_search_on_several_devices_goes_on(made_up, tmp_path):
    path = tmp_path / "results.json"
    made_up(stop_after=15)
    assert not searched(plan(12, "0,1"), path).complete
    known = len(read_run(path).cases)
    gpu = made_up()
    run = searched(plan(12, "0,1"), path, goes_on=True)
    assert run.complete
    assert [tuned.evaluated for tuned in run.tuning.sizes] == [12, 12]
    assert sum(map(len, gpu.batches[: len(gpu.asked)])) >= 24 - known
    assert len(read_run(path).cases) == 24
    other = searched(plan(2, "1,0"))
    assert find_earlier(path, other).endswith(
        "the device was NVIDIA H200 (GPU 0), now it is NVIDIA H200 (GPU 1)"
    )
