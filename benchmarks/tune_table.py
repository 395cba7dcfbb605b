# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A space with the time of every point: recorded once on a GPU, read wherever a search is replayed."""

import json
import lzma
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from gpuprof.devices.device import Device
from gpuprof.kernels.catalog import load_kernels
from gpuprof.measure.case import unmeasured
from gpuprof.measure.process import WorkerProcess
from gpuprof.measure.protocol import Open, OpenExecutor
from gpuprof.measure.request import Selection
from gpuprof.measure.session import SessionOptions, run_cases
from gpuprof.problems.problem import Problem
from gpuprof.problems.sizes import parse_sizes
from gpuprof.results import Bound, Measurement, Occupancy, Resources
from gpuprof.schema import from_json, to_json
from gpuprof.tuning.crew import Crew
from gpuprof.tuning.features import Built
from gpuprof.tuning.space import Candidate, Space, Wanted, make_space
from gpuprof.tuning.ties import bound_of, time_of

FOLDER = Path(__file__).parent / "tuning"
#: The spaces, each with its size.
SPACES = {
    "gemm": ("gemm_tiles.cu", "2048"),
    "transpose": ("transpose_tiles.cu", "8192"),
    "softmax": ("softmax_rows.cu", "8192x4096"),
}
#: Kernel time of a point, and of each of the fastest when they are timed once more.
_SHORT_S, _LONG_S = 0.006, 0.25
_FASTEST = 48


@dataclass(frozen=True)
class _KnownSpace(Space):
    """A space of which one size's candidates are known: searches of a replay need not look again."""

    known: tuple[list[Candidate], Counter[str]]

    def allowed(self, problem: Problem, device: Device) -> tuple[list[Candidate], Counter[str]]:
        """What was found before."""
        return list(self.known[0]), Counter(self.known[1])


@dataclass(frozen=True)
class Table:
    """A recorded space.

    Args:
        name: Of the space.
        size: As a user types it.
        device: What it was recorded on.
        points: Of each point that can be launched: `params`, `resources`, `occupancy`, `bound_us`, `outcome`
            and `time_us`; what is not known is None.
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
        kept = {_key(point["params"]) for point in points}
        space, problem, held = self.candidates
        # Read once: a hundred landscapes of one table share what is in them.
        fewer.__dict__["candidates"] = (
            space,
            problem,
            [each for each in held if _key(dict(each[0].point.params)) in kept],
        )
        return fewer

    @cached_property
    def candidates(self) -> tuple[Space, Problem, list[tuple[Candidate, Measurement, float | None]]]:
        """The space again, with what was recorded of each candidate: resources and bound, and its time."""
        space, problem = space_of(self.name, self.size)
        known = {_key(point["params"]): point for point in self.points}
        found = []
        space = _KnownSpace(space.axes, space.allowed(problem, self.device))
        for candidate in space.known[0]:
            point = known.get(_key(dict(candidate.point.params)))
            if point is not None:
                found.append((candidate, _measurement(candidate, point), point["time_us"]))
        return space, problem, found


def read_table(path: Path) -> Table:
    """Read what `Table.save` wrote."""
    document = json.loads(lzma.decompress(path.read_bytes()))
    return Table(**{**document, "device": from_json(Device, document["device"])})


def space_of(name: str, size: str) -> tuple[Space, Problem]:
    """One of the benchmark's spaces, and what its points compute."""
    file = load_kernels(FOLDER / SPACES[name][0])
    (extents,) = parse_sizes(size, file.operation.dimensions)
    problem = Problem.of(file.operation, extents, "f32", {}, {})
    return make_space([Selection(file.kernels[0])], Wanted(), named=True), problem


def record(name: str, size: str, device: str, limit_s: float, count_s: float) -> Table:
    """Compile, count and time every point of a space.

    Args:
        name: Of the space.
        size: As a user types it.
        device: The GPU's number.
        limit_s: When to begin no further point.
        count_s: How long to count points before they are timed.
    """
    begun = time.monotonic()
    seconds: dict[str, float] = {}
    space, problem = space_of(name, size)
    worker = WorkerProcess(Open(device, None, 0, _SHORT_S))
    opened = worker.opened
    worker.close()
    candidates, _ = space.allowed(problem, opened.device)
    built: dict[int, Built] = {}
    with Crew(OpenExecutor(opened.device, 0)) as crew:

        def done(index: int, measurement: Measurement) -> None:
            if measurement.resources is not None and measurement.occupancy is not None:
                built[index] = Built(candidates[index], measurement)

        crew.build([one.case for one in candidates], done, begun + limit_s)
        seconds["compiling"] = _lap(begun, seconds)
        order = sorted(built)

        def counted(number: int, measurement: Measurement) -> None:
            built[order[number]] = replace(built[order[number]], measurement=measurement)

        cases = [(built[index].candidate.case, built[index].measurement) for index in order]
        crew.count(cases, counted, time.monotonic() + count_s)
    seconds["counting"] = _lap(begun, seconds)
    timed = _timed([candidates[index].case for index in order], device, _SHORT_S, begun + limit_s)
    seconds["timing"] = _lap(begun, seconds)
    known = {number: us for number, case in timed.items() if (us := time_of(case)) is not None}
    fastest = sorted(known, key=known.__getitem__)[:_FASTEST]
    again = _timed([candidates[order[number]].case for number in fastest], device, _LONG_S, float("inf"))
    timed |= {fastest[place]: case for place, case in again.items()}
    seconds["the fastest again"] = _lap(begun, seconds)
    points = []
    for number, index in enumerate(order):
        case, own = timed.get(number), built[index]
        resources, occupancy = own.measurement.resources, own.measurement.occupancy
        points.append(
            {
                "params": dict(own.candidate.point.params),
                "resources": to_json(resources),
                "occupancy": to_json(occupancy),
                "bound_us": bound_of(own.measurement),
                "outcome": case.outcome if case else None,
                "time_us": time_of(case) if case else None,
            }
        )
    return Table(name, size, opened.device, points, seconds)


def _timed(cases: list[Any], device: str, seconds: float, until: float) -> dict[int, Measurement]:
    """What came of each case, as far as time allowed."""
    found: dict[int, Measurement] = {}
    lock = threading.Lock()
    request = Open(device, None, 0, seconds)
    # In pieces, so that the time limit is looked at between them.
    for start in range(0, len(cases), 200):
        if time.monotonic() > until:
            break

        def done(index: int, measurement: Measurement, start: int = start) -> None:
            with lock:
                found[start + index] = measurement

        options = SessionOptions(request, 30.0, 120.0, explain=False)
        run_cases(cases[start : start + 200], WorkerProcess(request), options, lambda index: None, done)
    return found


def _lap(begun: float, before: dict[str, float]) -> float:
    return time.monotonic() - begun - sum(before.values())


def _key(params: dict[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(params.items()))


def _measurement(candidate: Candidate, point: dict[str, Any]) -> Measurement:
    case = unmeasured(candidate.case, candidate.case.kernel, "skipped", None, "read from a table")
    case = replace(
        case,
        resources=from_json(Resources, point["resources"]),
        occupancy=from_json(Occupancy, point["occupancy"]),
    )
    if point["bound_us"] is None:
        return case
    return replace(
        case, bounds={"recorded": Bound(point["bound_us"], "recorded", "recorded")}, bound_by="recorded"
    )
