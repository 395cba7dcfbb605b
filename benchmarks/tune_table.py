# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A space with the time of every point: recorded once on a GPU, read wherever a search is replayed."""

import fcntl
import json
import lzma
import random
import threading
import time
from collections import Counter as Tally
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from gpuprof.bounds import with_bounds
from gpuprof.comparison.tuned import value_of
from gpuprof.counters import COUNTERS
from gpuprof.devices.device import Device
from gpuprof.kernels.catalog import load_kernels, shipped_ladder
from gpuprof.measure.case import unmeasured
from gpuprof.measure.process import WorkerProcess
from gpuprof.measure.protocol import Open
from gpuprof.measure.request import Selection
from gpuprof.measure.session import run_cases
from gpuprof.problems.problem import Problem
from gpuprof.problems.sizes import parse_sizes
from gpuprof.records import replace
from gpuprof.results import Counter, Measurement, Model, Occupancy, Resources
from gpuprof.schema import from_json, to_json
from gpuprof.tuning.space import BuiltPoint, Candidate, Point, SearchSpace, make_space
from gpuprof.tuning.tuner import WorkerPool

FOLDER = Path(__file__).parent / "tuning"
#: The spaces, each with its kernels and its size. A search is designed by the first three; the others
#: are ladders and kernels that come with gpuprof, and tell whether it does as well elsewhere.
SPACES = {
    "gemm": ("gemm_tiles.cu", "2048"),
    "transpose": ("transpose_tiles.cu", "8192"),
    "softmax": ("softmax_rows.cu", "8192x4096"),
    "reduce": ("reduce", "67108864"),
    "splitk": ("gemm splitk", "1024"),
}
#: Kernel time of a point, and of each of the fastest when they are timed once more.
_SHORT_S, _LONG_S = 0.006, 0.25
_FASTEST = 48
#: Points that are timed between two looks at the clock: a process for each piece, whose arrays take seconds.
_PIECE = 400


class _KnownSpace(SearchSpace, frozen=True):
    """A space of which one size's candidates are known: searches of a replay need not look again."""

    known: tuple[list[Candidate], Tally[str]]

    def allowed(
        self, problem: Problem, device: Device, step: Callable[[], None] = lambda: None
    ) -> tuple[list[Candidate], Tally[str]]:
        """What was found before."""
        return list(self.known[0]), Tally(self.known[1])


@dataclass(frozen=True)
class Table:
    """A recorded space.

    Args:
        name: Of the space.
        size: As a user types it.
        device: What it was recorded on.
        points: Of each point that can be launched: `kernel`, `params`, `block`, `resources`, `occupancy`,
            `counters` by name (the value; at least that and on the busiest SM where these differ), `model`
            (the modelled time in microseconds, then the ends of its interval), `outcome`,
            `time_us`, and `short_us` as it was timed with all others; what is not known is None.
        seconds: What recording took, by stage.
    """

    name: str
    size: str
    device: Device
    points: list[dict[str, Any]]
    seconds: dict[str, float]

    def save(self, path: Path) -> None:
        """Write it, compressed."""
        document = {field.name: getattr(self, field.name) for field in fields(self)}
        document["device"] = to_json(self.device)
        path.write_bytes(lzma.compress(json.dumps(document, separators=(",", ":")).encode(), preset=9))

    @property
    def best_us(self) -> float:
        """The shortest time of all."""
        return min(point["time_us"] for point in self.points if point["time_us"])

    def without(self, share: float, seed: int) -> "Table":
        """The table without a share of its points, drawn by chance: another landscape of the same kind.

        What recording had no time for is left out too: nobody can say what a search would have made of it.
        """
        rng = random.Random(seed)
        points = [point for point in self.points if point["outcome"] and rng.random() >= share]
        fewer = replace(self, points=points)
        kept = {point_key(point) for point in points}
        space, problem, held = self.candidates
        # Read once: a hundred landscapes of one table share what is in them.
        fewer.__dict__["candidates"] = (
            space,
            problem,
            [each for each in held if _key_of(each[0].candidate.point) in kept],
        )
        return fewer

    @cached_property
    def candidates(self) -> tuple[SearchSpace, Problem, list[tuple[BuiltPoint, float | None]]]:
        """The space again, with what was recorded of each candidate: resources and bound, and its time."""
        space, problem = space_of(self.name, self.size)
        known = {point_key(point): point for point in self.points}
        found = []
        space = _KnownSpace(space.axes, space.allowed(problem, self.device))
        for candidate in space.known[0]:
            point = known.get(_key_of(candidate.point))
            if point is not None:
                measured = with_bounds(_measurement(candidate, point), self.device)
                found.append((BuiltPoint(candidate, measured), point["time_us"]))
        return space, problem, found


def read_table(path: Path) -> Table:
    """Read what `Table.save` wrote."""
    document = json.loads(lzma.decompress(path.read_bytes()))
    return Table(**{**document, "device": from_json(Device, document["device"])})


def space_of(name: str, size: str) -> tuple[SearchSpace, Problem]:
    """One of the benchmark's spaces, and what its points compute."""
    source, *kernels = SPACES[name][0].split()
    ladder = load_kernels(FOLDER / source) if source.endswith(".cu") else shipped_ladder(source)
    chosen = [kernel for kernel in ladder.kernels if not kernels or kernel.id in kernels]
    (extents,) = parse_sizes(size, ladder.operation.dimensions)
    problem = Problem.of(ladder.operation, extents, "f32", {}, {})
    return make_space([*map(Selection, chosen)], named=len(chosen) == 1), problem


@dataclass(frozen=True)
class Recording:
    """How a space is recorded.

    Args:
        device: The GPU's number.
        limit_s: When to begin no further point.
        count_s: How long to count points before they are timed.
        workers: Processes that compile and count; None for one on each core.
        turns: A file that is locked while something is timed, so that what prepares another space meanwhile
            waits for its turn; None where nothing else runs.
    """

    device: str = "0"
    limit_s: float = 330.0
    count_s: float = 90.0
    workers: int | None = None
    turns: Path | None = None

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Have the GPU alone."""
        if self.turns is None:
            yield
            return
        with self.turns.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def record(name: str, size: str, how: Recording, path: Path) -> Table:
    """Compile, count and time every point of a space.

    Args:
        name: Of the space.
        size: As a user types it.
        how: On what, and for how long.
        path: Where the table is kept; what comes last is only more exact.
    """
    begun = time.monotonic()
    seconds: dict[str, float] = {}
    space, problem = space_of(name, size)
    with how.turn():
        worker = WorkerProcess(Open(device=how.device, arch=None, seed=0, seconds_per_case=_SHORT_S))
        device = worker.opened.device
        worker.close()
    seconds["opening"] = _lap(begun, seconds)
    candidates, _ = space.allowed(problem, device)
    # Time may not suffice for all, and whatever drifts meanwhile has nothing to do with their values.
    random.Random(0).shuffle(candidates)
    built: dict[int, BuiltPoint] = {}
    with WorkerPool(device, Open(), how.workers) as pool:

        def done(index: int, measurement: Measurement) -> None:
            if measurement.resources is not None and measurement.occupancy is not None:
                built[index] = BuiltPoint(candidates[index], measurement)

        pool.build([one.case for one in candidates], done, begun + how.limit_s)
        seconds["compiling"] = _lap(begun, seconds)
        counts = _counted(pool, list(built.values()), how.count_s)
    seconds["counting"] = _lap(begun, seconds)
    with how.turn():
        seconds["waiting"] = _lap(begun, seconds)
        points = [_point(one) | counts.get(one.candidate.point, {}) for one in built.values()]
        cases = [one.candidate.case for one in built.values()]
        timed = _timed(cases, how.device, _SHORT_S, begun + how.limit_s)
        seconds["timing"] = _lap(begun, seconds)
        known = {number: us for number, case in timed.items() if (us := value_of(case, "time")) is not None}
        for number, case in timed.items():
            us = value_of(case, "time")
            points[number] |= {"outcome": case.outcome, "time_us": us, "short_us": us}
        Table(name, size, device, points, dict(seconds)).save(path)
        fastest = sorted(known, key=known.__getitem__)[:_FASTEST]
        again = _timed([cases[number] for number in fastest], how.device, _LONG_S, float("inf"))
        seconds["the fastest again"] = _lap(begun, seconds)
    for place, case in again.items():
        points[fastest[place]] |= {"outcome": case.outcome, "time_us": value_of(case, "time")}
    table = Table(name, size, device, points, seconds)
    table.save(path)
    return table


def count_rest(table: Table, rest: Sequence[BuiltPoint], count_s: float, workers: int | None) -> Table:
    """The table with the counts of points that recording had no time to count: they need no GPU.

    Args:
        table: The table.
        rest: These points.
        count_s: For how long.
        workers: As of `Recording`.
    """
    counted = {point_key(point): point for point in table.points}
    with WorkerPool(table.device, Open(), workers) as pool:
        pool.build([one.candidate.case for one in rest], lambda *_: None, time.monotonic() + count_s)
        for point, found in _counted(pool, rest, count_s).items():
            counted[_key_of(point)].update(found)
    return replace(table, points=list(counted.values()))


def _counted(pool: WorkerPool, built: Sequence[BuiltPoint], count_s: float) -> dict[Point, dict[str, Any]]:
    """What a table holds of counts and models, by point, as far as time allows."""
    found: dict[Point, dict[str, Any]] = {}

    def counted(number: int, measurement: Measurement) -> None:
        if measurement.executor_counters:
            model = measurement.model
            found[built[number].candidate.point] = {
                "counters": _plain(measurement.executor_counters),
                "model": model and [model.median_us, model.low_us, model.high_us],
            }

    cases = [(one.candidate.case, one.measurement) for one in built]
    pool.count(cases, counted, time.monotonic() + count_s)
    return found


def _plain(counters: Mapping[str, Counter]) -> dict[str, Any]:
    """Counts as a table holds them: those that are known and not 0."""
    return {
        name: [one.value, one.is_least, one.busiest_sm] if one.is_least or one.busiest_sm else one.value
        for name, one in counters.items()
        if one.value
    }


def _point(one: BuiltPoint) -> dict[str, Any]:
    """A point as a table holds it, before it is timed."""
    point, measurement = one.candidate.point, one.measurement
    return {
        "kernel": point.kernel,
        "params": dict(point.params),
        "block": point.block,
        "resources": to_json(measurement.resources),
        "occupancy": to_json(measurement.occupancy),
        "counters": None,
        "model": None,
        "outcome": None,
        "time_us": None,
        "short_us": None,
    }


def _timed(cases: list[Any], device: str, seconds: float, until: float) -> dict[int, Measurement]:
    """What came of each case, as far as time allowed."""
    found: dict[int, Measurement] = {}
    lock = threading.Lock()
    request = Open(
        device=device,
        seed=0,
        seconds_per_case=seconds,
        timeout_s=30.0,
        compile_timeout_s=120.0,
        explain=False,
    )
    for start in range(0, len(cases), _PIECE):
        if time.monotonic() > until:
            break

        def done(index: int, measurement: Measurement, start: int = start) -> None:
            with lock:
                found[start + index] = measurement

        piece = dict(enumerate(cases[start : start + _PIECE]))
        run_cases(piece, WorkerProcess(request), request, done)
    return found


def _lap(begun: float, before: dict[str, float]) -> float:
    return time.monotonic() - begun - sum(before.values())


def point_key(point: Mapping[str, Any]) -> tuple[Any, ...]:
    """What tells a table's points apart."""
    return point["kernel"], tuple(point["params"].items()), tuple(point["block"])


def _key_of(point: Point) -> tuple[Any, ...]:
    return point.kernel, point.params, tuple(point.block)


def _measurement(candidate: Candidate, point: dict[str, Any]) -> Measurement:
    case = unmeasured(candidate.case, candidate.case.kernel, "skipped", None, "read from a table")
    case = replace(
        case,
        resources=from_json(Resources, point["resources"]),
        occupancy=from_json(Occupancy, point["occupancy"]),
    )
    if point["counters"] is None:
        return case
    return replace(
        case,
        outcome="ok",
        executor_counters=dict(map(_counter, point["counters"].items())),
        model=Model(*point["model"]) if point["model"] else None,
    )


def _counter(named: tuple[str, Any]) -> tuple[str, Counter]:
    name, held = named
    value, is_least, busiest = held if isinstance(held, list) else (held, False, None)
    return name, Counter(value, COUNTERS[name].unit, "sim", is_least=is_least, busiest_sm=busiest)
