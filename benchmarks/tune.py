# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How good a search is after few timings: against every point's time, and against other searches.

    python benchmarks/tune.py record FOLDER             on a GPU: times every point of the spaces
    python benchmarks/tune.py count FOLDER              anywhere: counts what recording had no time to count
    python benchmarks/tune.py replay FOLDER [--seeds N]  anywhere: replays every strategy on these times
    python benchmarks/tune.py live FOLDER [--seeds N]    on a GPU: searches that time each point anew

Recording writes one compressed file for each space, `FOLDER/SPACE.json.xz`, in some minutes each where there
are sixteen cores. Replaying prints a table in Markdown: for each strategy the share of the best time
that it reached, in the worst and in the middle of its runs, and in how many runs that was 98 % or more.
"""

import argparse
import random
import statistics
import time
from bisect import bisect_left, bisect_right
from pathlib import Path

from tune_live import live
from tune_strategies import Trace, strategies
from tune_table import SPACES, Recording, Table, count_rest, read_table, record

from gpuprof.comparison.tuned import value_of

#: Timings after which a search is looked at.
_MARKS = (5, 10, 20, 40)
_BUDGET = 20
_GOOD = 0.98
#: Orders in which points of equal bounds are looked at.
_DRAWS = 101


def reached(table: Table, trace: Trace, count: int) -> float:
    """The best time of all over the best of the first points of a trace; 0 where none of these has one."""
    times = [each for each in trace[:count] if each is not None]
    return table.best_us / min(times) if times else 0.0


def replay(table: Table, seeds: int, share: float, only: str) -> list[str]:
    """A Markdown table of one space.

    Args:
        table: The space.
        seeds: Runs of each search.
        share: Of the points, drawn anew for each run, that are left out.
        only: Searches whose names begin so.
    """
    timed = [point for point in table.points if point["time_us"]]
    near = sum(table.best_us / point["time_us"] >= _GOOD for point in timed)
    wrong = sum(point["outcome"] not in ("ok", None) for point in table.points)
    spent = ", ".join(f"{stage} {seconds:.0f} s" for stage, seconds in table.seconds.items())
    lines = [
        f"### {table.name}, {table.size}, {table.device.name}",
        "",
        f"{len(table.points):,} points can be launched, {len(timed):,} were timed, {wrong} are wrong;"
        f" {near} reach {_GOOD:.0%} of the best. Recorded in {sum(table.seconds.values()):.0f} s: {spent}."
        f" {_ranking(table)}",
        "",
        "| search | "
        + " | ".join(f"after {mark}" for mark in _MARKS)
        + f" | {_GOOD:.0%} after {_BUDGET} | a run |",
        "|:--|" + "--:|" * (len(_MARKS) + 2),
    ]
    landscapes = [table.without(share, seed) for seed in range(seeds)]
    for name, strategy in strategies():
        if not name.startswith(only):
            continue
        begun = time.process_time()
        traces = [strategy(each, max(_MARKS), seed) for seed, each in enumerate(landscapes)]
        cost = (time.process_time() - begun) / seeds
        runs = list(zip(landscapes, traces, strict=True))
        cells = []
        for mark in _MARKS:
            shares = [reached(each, trace, mark) for each, trace in runs]
            cells.append(f"{min(shares):.3f} / {statistics.median(shares):.3f}")
        good = sum(reached(each, trace, _BUDGET) >= _GOOD for each, trace in runs)
        lines.append(f"| {name} | {' | '.join(cells)} | {good} of {seeds} | {cost:.1f} s |")
    return [*lines, "", "Worst run / median run, as a share of the best time of all points."]


def _ranking(table: Table) -> str:
    """How well bounds alone rank points."""
    _, _, held = table.candidates
    both = [
        (bound, time_us)
        for one, time_us in held
        if (bound := value_of(one.measurement, "bound")) is not None and time_us is not None
    ]
    if len(both) < 3:
        return "Bounds are not recorded."
    fastest = min(time for _, time in both)
    # Bounds alone do not tell the order of equals: it is drawn.
    rng = random.Random(0)
    shares = []
    for _ in range(_DRAWS):
        rng.shuffle(both)
        lowest = sorted(both, key=lambda pair: pair[0])[:_BUDGET]
        shares.append(fastest / min(time for _, time in lowest))
    modelled = [
        (guess, time_us)
        for one, time_us in held
        if (guess := value_of(one.measurement, "model")) is not None and time_us is not None
    ]
    least = sorted(modelled)[:_BUDGET]
    return (
        f"Of {len(both):,} bounds the rank correlation with times is {_correlation(both):.2f}; the {_BUDGET}"
        f" lowest hold one of {statistics.median(shares):.3f} of the best of these (median over the orders of"
        f" equals). Of {len(modelled):,} modelled times it is {_correlation(modelled):.2f}, and"
        f" {fastest / min(time for _, time in least):.3f}."
    )


def _correlation(pairs: list[tuple[float, float]]) -> float:
    """The rank correlation of two figures."""
    one, other = map(_ranks, zip(*pairs, strict=True))
    return statistics.correlation(one, other)


def _ranks(values: tuple[float, ...]) -> list[float]:
    """The rank of each value; equals share their mean one."""
    order = sorted(values)
    return [(bisect_left(order, value) + bisect_right(order, value) - 1) / 2 for value in values]


def main() -> None:
    """Record or replay, as the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("record", "count", "replay", "live"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--spaces", default="gemm,transpose,softmax", help="of " + ",".join(SPACES))
    parser.add_argument("--device", default="0", help="the GPU's number")
    parser.add_argument("--limit", type=float, default=330.0, help="seconds of a space")
    parser.add_argument("--count", type=float, default=90.0, help="seconds of these for counting")
    parser.add_argument("--workers", type=int, help="processes that compile and count")
    parser.add_argument("--turns", type=Path, help="a file to lock while something is timed")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--without", type=float, default=0.0, help="share of the points that each run lacks")
    parser.add_argument("--only", default="", help="searches whose names begin so")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for name in given.spaces.split(","):
        path = given.folder / f"{name}.json.xz"
        if given.what == "record":
            how = Recording(given.device, given.limit, given.count, given.workers, given.turns)
            table = record(name, SPACES[name][1], how, path)
            timed = sum(1 for point in table.points if point["time_us"])
            counted = sum(1 for point in table.points if point["counters"])
            print(
                f"{path}: of {len(table.points):,} points {timed:,} timed, {counted:,} counted,"
                f" {sum(table.seconds.values()):.0f} s",
                flush=True,
            )
        elif path.exists() and given.what == "count":
            table = read_table(path)
            rest = [one for one, _ in table.candidates[2] if not one.measurement.executor_counters]
            table = count_rest(table, rest, given.count, given.workers)
            table.save(path)
            counted = sum(1 for point in table.points if point["counters"])
            print(f"{path}: {counted:,} of {len(table.points):,} points counted", flush=True)
        elif path.exists() and given.what == "live":
            for lived in live(read_table(path), given.device, given.seeds, _BUDGET):
                print(lived.line(), flush=True)
        elif path.exists():
            print(
                "\n".join(replay(read_table(path), given.seeds, given.without, given.only)),
                end="\n\n",
                flush=True,
            )


if __name__ == "__main__":
    main()
