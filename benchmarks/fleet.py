# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A simulated fleet: how many planted outliers are found, how many healthy cards named, how fast the page is.

    python benchmarks/fleet.py [--cards 1000] [--rounds 1 3 5 8] [--page FLEET.html]
    python benchmarks/fleet.py --files          # 1,000 results files, read by the command, page included
    python benchmarks/fleet.py --fleets 20      # so many fleets of each number of rounds, taken together
    python benchmarks/fleet.py --small 4000     # so many cards, in fleets of 2, of 3 and of 8

The cards run the cases of a recorded run. Their times follow the model of benchmarks/verdict_noise.py, whose
spreads were seen on an H200, and an offset a card.
"""

import argparse
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from verdict_noise import KINDS, Kind

from gpuprof.comparison.fleet import FleetBuilder, FleetRuns
from gpuprof.reading import read_run
from gpuprof.records import replace
from gpuprof.report.fleet_text import fleet_page
from gpuprof.results import Clocks, ClockState, Measurement, Run, TimingPair, dumps
from gpuprof.statistics import joined, summarise

SAMPLE = Path(__file__).parents[1] / "samples" / "gemm-h200.json"
#: Standard deviation between healthy cards: long kernels of two recorded sessions differ by 0.15 to 0.21 %.
CARDS = 0.002
#: One card of so many is planted, with each of the faults below in turn.
ONE_IN = 50
SLOWDOWN = 0.02
ROUNDS = (1, 3, 5, 8)
RACK = 8
#: Fleets of as few cards as one machine has.
SMALL = (2, 3, 8)


@dataclass(frozen=True)
class Fault:
    """What is wrong with a planted card.

    Args:
        name: In tables.
        part: What binds the cases that it slows down; empty for all.
        clock: Factor of the SM clock that its run reads.
    """

    name: str
    part: str = ""
    clock: float = 1.0


FAULTS = (
    Fault("all cases, the clock is low", clock=1 - SLOWDOWN),
    Fault("all cases, for no reason that is read"),
    Fault("cases that issue slots bind", part="issue"),
)


def kind_of(case: Measurement, rng: random.Random) -> Kind:
    """One of the model's kinds that take about as long."""
    assert case.timing is not None
    assert case.timing.cold is not None
    middle = case.timing.cold.median_us
    within = [kind for kind in KINDS if (kind.time_us < 25) == (middle < 25)]
    if middle >= 25:
        within = [kind for kind in within if (kind.time_us < 100) == (middle < 100)]
    return replace(rng.choice(within), time_us=middle)


def base_run() -> Run:
    """The recorded run without what a fleet does not look at."""
    run = read_run(SAMPLE)
    kept = [
        replace(case, lines=None, counters={}, executor_counters={})
        for case in run.cases
        if case.outcome == "ok" and case.timing is not None and not case.is_reference
    ]
    return replace(run, cases=tuple(kept))


def card_run(
    base: Run, kinds: Mapping[int, Kind], number: int, rounds: int, fault: Fault | None, draw: str = ""
) -> Run:
    """What one card would have written."""
    rng = random.Random(f"{number} {rounds}{draw}")
    own = math.exp(rng.gauss(0, CARDS))
    cases = []
    for index, case in enumerate(base.cases):
        slow = fault is not None and fault.part in ("", case.bound_by)
        times = kinds[index].rounds(rounds, rng, own * (1 + SLOWDOWN * slow))
        cold = joined([summarise([time]) for time in times])
        state = ClockState(
            round(1980 * (fault.clock if fault else 1.0)), 3201, 45 + round(rng.gauss(0, 3)), 400.0, ()
        )
        cases.append(replace(case, timing=TimingPair(cold, None), clocks=Clocks(state, state)))
    labels = {"host": f"node{number // RACK:03}", "card": f"card{number:04}", "rack": f"r{number // 64:02}"}
    return replace(base, cases=tuple(cases), labels=labels)


def simulated(cards: int, rounds: int, fleet: int = 0) -> tuple[FleetRuns, dict[str, Fault]]:
    """One of any number of fleets, and the faults that were planted, by the card."""
    base = base_run()
    kinds = kinds_of(base, fleet)
    draw = f" {fleet}" if fleet else ""
    planted = {}
    builder = FleetBuilder(base.tool)
    for number in range(cards):
        fault = fault_of(number)
        if fault is not None:
            planted[f"card{number:04}"] = fault
        builder.add(card_run(base, kinds, number, rounds, fault, draw), f"card{number:04}/results.json")
    return builder.fleet(), planted


def kinds_of(base: Run, fleet: int = 0) -> dict[int, Kind]:
    """One of the model's kinds for each case of a run, by the case's number."""
    rng = random.Random(fleet)
    return {index: kind_of(case, rng) for index, case in enumerate(base.cases)}


def fault_of(number: int) -> Fault | None:
    """What is planted in a card of a large fleet."""
    return FAULTS[number // ONE_IN % len(FAULTS)] if number % ONE_IN == ONE_IN // 2 else None


def read_files(cards: int, rounds: int) -> None:
    """Write a results file a card, and have the command read them all and write the page."""
    base = replace(base_run(), complete=True)
    kinds = kinds_of(base)
    with tempfile.TemporaryDirectory(prefix="gpuprof-fleet-") as name:
        folder = Path(name)
        for number in range(cards):
            run = card_run(base, kinds, number, rounds, fault_of(number))
            (folder / f"card{number:04}.json").write_text(dumps(run), encoding="utf-8")
        size = sum(path.stat().st_size for path in folder.iterdir())
        begin = time.process_time()
        for path in folder.iterdir():
            read_run(path)
        reading = time.process_time() - begin
        command = [sys.executable, "-m", "gpuprof", "fleet", name, "--html", f"{name}/fleet.html", "--quiet"]
        begin = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - begin
        whole = usage.ru_utime + usage.ru_stime
        memory = usage.ru_maxrss / 1024
    print(
        f"{cards:,} files of {rounds} rounds, {size / 1e6:.0f} MB: the command takes {wall:.1f} s with the"
        f" page, {whole:.1f} s of all cores together and {memory:.0f} MiB; one process reads them in"
        f" {reading:.1f} s; status {os.waitstatus_to_exitcode(status)}; load {os.getloadavg()[0]:.1f}"
    )


def small_fleets(cards: int, rounds: Sequence[int]) -> None:
    """How often a healthy card of a small fleet is named, and one that is 2 % slow is found."""
    base = base_run()
    kinds = kinds_of(base)
    print("| Cards | Rounds | Healthy cards named | 2 % in all cases of one card found | Others named |")
    print("|--:|--:|--:|--:|--:|")
    for size in SMALL:
        for count in rounds:
            false = found = others = 0
            fleets = cards // size
            for fleet in range(fleets):
                own = [card_run(base, kinds, number, count, None, f" {fleet}") for number in range(size)]
                slow = card_run(base, kinds, 0, count, FAULTS[1], f" {fleet}")
                false += len(named_of(own))
                named = named_of([slow, *own[1:]])
                found += "card0000" in named
                others += len(named - {"card0000"})
            share = 100 * false / (fleets * size)
            print(
                f"| {size} | {count} | {false} of {fleets * size:,} ({share:.2f} %) | {found} of {fleets:,}"
                f" | {others} |",
                flush=True,
            )


def named_of(runs: Sequence[Run]) -> set[str]:
    """The cards of a fleet that are called outliers for certain."""
    builder = FleetBuilder(base_run().tool)
    for number, run in enumerate(runs):
        builder.add(run, f"card{number:04}/results.json")
    return {outlier.card for outlier in builder.fleet().confirmed}


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cards", type=int, default=1000)
    parser.add_argument("--rounds", type=int, nargs="+", default=ROUNDS)
    parser.add_argument("--fleets", type=int, default=1, help="fleets of each number of rounds (1)")
    parser.add_argument("--page", type=Path, help="keep the page of the last fleet")
    parser.add_argument("--files", action="store_true", help="read as many results files with the command")
    parser.add_argument(
        "--small", type=int, metavar="CARDS", help="fleets of 2, 3 and 8 cards, so many in all"
    )
    arguments = parser.parse_args()
    if arguments.files:
        read_files(arguments.cards, arguments.rounds[0])
        return
    if arguments.small:
        small_fleets(arguments.small, arguments.rounds)
        return
    page = large_fleets(arguments.cards, arguments.rounds, arguments.fleets)
    if arguments.page:
        arguments.page.write_text(page, encoding="utf-8")


def large_fleets(cards: int, rounds: Sequence[int], fleets: int) -> str:
    """Print what is found in fleets of each number of rounds, and what it costs; the page of the last one."""
    heads = [f"2 % in {fault.name}" for fault in FAULTS]
    print(f"| Rounds | {' | '.join(heads)} | Healthy cards named | Judged in | Page | Rendered in |")
    print(f"|--:|{'--:|' * (len(FAULTS) + 4)}")
    for count in rounds:
        judged = rendered = 0.0
        found, held, false, healthy = [0] * len(FAULTS), [0] * len(FAULTS), 0, 0
        for number in range(fleets):
            begin = time.process_time()
            fleet, planted = simulated(cards, count, number)
            judged += time.process_time() - begin
            begin = time.process_time()
            page = fleet_page(fleet)
            rendered += time.process_time() - begin
            named = {outlier.card for outlier in fleet.confirmed}
            for index, fault in enumerate(FAULTS):
                ill = {card for card, has in planted.items() if has is fault}
                found[index] += len(ill & named)
                held[index] += len(ill)
            false += len(named - planted.keys())
            healthy += cards - len(planted)
        shares = [f"{one:,} of {all_:,}" for one, all_ in zip(found, held, strict=True)]
        print(
            f"| {count} | {' | '.join(shares)} | {false} of {healthy:,} | {judged / fleets:.1f} s"
            f" | {len(page.encode()) / 1e6:.2f} MB | {rendered / fleets:.1f} s |",
            flush=True,
        )
    return page


if __name__ == "__main__":
    main()
