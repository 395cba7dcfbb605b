# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Ways to search a recorded space: gpuprof's own, at random, and others' where they are installed.

Each asks for one point after the other and is told its time; a trace is those times in order, None for a
point that has none.
"""

import contextlib
import io
import json
import random
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tune_table import Table

from gpuprof.records import replace
from gpuprof.results import Measurement, Timing, TimingPair
from gpuprof.tuning.card_search import BATCH, FIRST_BATCH, SizeSearch
from gpuprof.tuning.space import USUAL_POINTS, Point
from gpuprof.tuning.tuner import COUNTED, ROUND

Trace = list[float | None]
Strategy = Callable[[Table, int, int], Trace]


#: Points that a search counts of its space, where time suffices.
_COUNTED = COUNTED * USUAL_POINTS


def search_of(table: Table, seed: int, *, counts: int = _COUNTED) -> SizeSearch:
    """gpuprof's search of a table's space: all is compiled, and so many points that it asks for are counted.

    A point whose counts were not recorded stands for one that cannot be counted.
    """
    space, problem, held = table.candidates
    search = SizeSearch(space, problem, table.device, seed, timed=True)
    known = {one.candidate.point: one for one, _ in held}
    for candidate in search.candidates:
        if candidate.point in known:
            uncounted = replace(known[candidate.point].measurement, bounds={}, bound_by=None, model=None)
            search.built(candidate, uncounted)
    search.begin(0)
    for begun in range(0, counts, ROUND):
        for built in search.to_count(min(ROUND, counts - begun)):
            search.counted(built.candidate.point, known[built.candidate.point].measurement)
        search.rank()
    return search


def own(table: Table, budget: int, seed: int, *, counts: int = _COUNTED) -> Trace:
    """gpuprof's search, as `gpuprof tune` runs it."""
    search = search_of(table, seed, counts=counts)
    times = {one.candidate.point: (one.measurement, time) for one, time in table.candidates[2]}
    trace: Trace = []
    batch = FIRST_BATCH
    while cases := search.next_cases(budget, batch):
        for case in cases:
            point = Point.of(case.kernel, case.params, case.block)
            measurement, time = times[point]
            trace.append(time)
            search.tell(point, _told(measurement, time))
        batch = BATCH
    return trace


def at_random(table: Table, budget: int, seed: int) -> Trace:
    """Points in random order, of those that can be launched."""
    order = [point["time_us"] for point in table.points]
    random.Random(seed).shuffle(order)
    return order[:budget]


def optuna_tpe(table: Table, budget: int, seed: int) -> Trace:
    """Optuna's default sampler over the same lists of values; points that cannot run are told as pruned."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    times = {_key(values_of(table, point)): point["time_us"] for point in table.points}
    values = _values(table)
    trace: Trace = []
    seen: set[tuple[int, ...]] = set()
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    # What constraints rule out costs it no timing, and a point that it asks for twice neither.
    for _ in range(100 * budget):
        if len(trace) >= budget:
            break
        trial = study.ask()
        key = tuple(trial.suggest_categorical(name, each) for name, each in values.items())
        time = times.get(key)
        if time is None:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            study.tell(trial, time)
        if key in times and key not in seen:
            seen.add(key)
            trace.append(time)
    return trace


def kernel_tuner(strategy: str) -> Strategy:
    """One of Kernel Tuner's strategies, in its simulation mode on the recorded times."""

    def search(table: Table, budget: int, seed: int) -> Trace:
        import kernel_tuner as tuner
        import numpy as np

        random.seed(seed)
        np.random.seed(seed)
        values = _values(table)
        times = {_key(values_of(table, point)): point["time_us"] for point in table.points}
        names = list(values)

        def allowed(params: dict[str, int]) -> bool:
            return times.get(tuple(params[name] for name in names)) is not None

        with (
            tempfile.TemporaryDirectory() as folder,
            contextlib.redirect_stdout(io.StringIO()),
            warnings.catch_warnings(action="ignore"),
        ):
            cache = Path(folder, "cache.json")
            cache.write_text(json.dumps(_cache_file(table, values)), encoding="utf-8")
            results, _ = tuner.tune_kernel(
                "recorded",
                "",
                (1,),
                [],
                values,
                restrictions=allowed,
                strategy=strategy,
                strategy_options={"max_fevals": budget},
                simulation_mode=True,
                cache=str(cache),
                quiet=True,
            )
        found = [result["time"] for result in results]
        return [each if isinstance(each, float) else None for each in found][:budget]

    return search


def strategies() -> Iterator[tuple[str, Strategy]]:
    """Those that can run here, by name."""
    yield "gpuprof tune", own
    for counts in (_COUNTED // 2, 0):  # as two cores have time for, and as if nothing could be counted
        yield f"gpuprof tune, {counts} counted", partial(own, counts=counts)
    yield "random", at_random
    if find_spec("optuna"):
        yield "Optuna, TPE", optuna_tpe
    if find_spec("kernel_tuner"):
        for name in ("bayes_opt", "genetic_algorithm", "greedy_ils"):
            yield f"Kernel Tuner, {name}", kernel_tuner(name)


def _told(case: Measurement, time: float | None) -> Measurement:
    """A case as a GPU would have measured it."""
    if time is None:
        return replace(case, outcome="incorrect", reason="no time is recorded")
    timing = Timing(time, time, time, None, ((time,),))
    return replace(case, outcome="ok", timing=TimingPair(timing, None))


def _values(table: Table) -> dict[str, list[int]]:
    """Values of each parameter that differ between points."""
    points = [values_of(table, point) for point in table.points]
    return {name: sorted({point[name] for point in points}) for name in points[0]}


def values_of(table: Table, point: Mapping[str, Any]) -> dict[str, int]:
    """A point as integers by name, alike for all: its kernel, its block and every parameter of any kernel."""
    names = dict.fromkeys(name for one in table.points for name in one["params"])
    kernels = sorted({one["kernel"] for one in table.points})
    values = {name: point["params"].get(name, 0) for name in names}
    block = dict(zip(("block_x", "block_y"), point["block"], strict=False))
    return {**values, "kernel": kernels.index(point["kernel"]), **block}


def _key(params: dict[str, int]) -> tuple[int, ...]:
    return tuple(params.values())


def _cache_file(table: Table, values: dict[str, list[int]]) -> dict[str, object]:
    """The recorded times as Kernel Tuner keeps them."""
    zero = dict.fromkeys(
        ("compile_time", "verification_time", "benchmark_time", "strategy_time", "framework_time"), 0.0
    )
    return {
        "device_name": table.device.name,
        "kernel_name": "recorded",
        "problem_size": [1],
        "tune_params_keys": list(values),
        "tune_params": values,
        "objective": "time",
        "cache": {
            ",".join(map(str, values_of(table, point).values())): {
                **values_of(table, point),
                "time": point["time_us"],
                "times": [point["time_us"]],
                "timestamp": "2000-01-01T00:00:00",
                **zero,
            }
            for point in table.points
            if point["time_us"] is not None
        },
    }
