# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Are floors floors, and how tight? Measured times of every shipped kernel beside their bounds.

python benchmarks/floors.py measure DIR          on a GPU: time every case
python benchmarks/floors.py count DIR [CARD]     anywhere: count the same cases on the executor
python benchmarks/floors.py keep DIR FILE        both as one file: tests/bounds/measured-CARD.json.xz
python benchmarks/floors.py page FILE …          tightness and order, as Markdown tables
"""

import json
import lzma
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gpuprof.bounds import with_bounds
from gpuprof.devices.device import Device
from gpuprof.reading import read_run
from gpuprof.records import replace
from gpuprof.results import Measurement
from gpuprof.schema import from_json, to_json

#: What is measured: operation, and the sizes and further options of each command.
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("gemm", "--sizes", "128,256,384,512,1024,1536,2048,4096,260x388x132,1000x777x500,8192"),
    ("gemm", "--sizes", "512,2048", "--dtype", "f64"),
    ("transpose", "--sizes", "512,1024,2048,4096,8192,16384,1000x7777,4095x4097,64x262144"),
    ("transpose", "--sizes", "2048", "--block", "32x8,16x16,64x4,8x32"),
    ("transpose", "--sizes", "4096", "--dtype", "f64"),
    ("reduce", "--sizes", "4096,65536,1048576,16777216,268435456,100003"),
    ("softmax", "--sizes", "64x1024,1024,4096,8192,16x65536,33x777"),
)
_SECONDS = "0.05"
#: The executor counts them apart.
_ALONE = ("--reference", "none", "--no-lines")
#: Counts that a floor rests on.
_KEPT = (
    *("warp_instructions", "ffma_thread_instructions", "dfma_thread_instructions", "l1_passes"),
    *("global_load_sectors", "global_store_sectors", "async_copy_sectors", "global_atomic_sectors"),
    *("bulk_load_bytes", "bulk_store_bytes", "barriers"),
)


def measure(directory: Path) -> None:
    """Time every command on GPU 0, one after the other."""
    for number, command in enumerate(COMMANDS):
        _gpuprof(command, "0", directory / f"measured-{number}", "--seconds", _SECONDS, *_ALONE)


def count(directory: Path, card: str) -> None:
    """Count every command's cases on the executor, a size at a time, several at once."""
    jobs = []
    for number, (operation, _, sizes, *more) in enumerate(COMMANDS):
        for size in sizes.split(","):
            command = (operation, "--sizes", size, *more)
            jobs.append((command, f"sim:{card}", directory / f"counted-{number}-{size}"))
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2)) as pool:
        list(pool.map(lambda job: _gpuprof(*job), jobs))


def _gpuprof(command: tuple[str, ...], device: str, output: Path, *more: str) -> None:
    arguments = [sys.executable, "-m", "gpuprof", command[0], "--all", *command[1:]]
    subprocess.run([*arguments, "--device", device, "-q", "-o", str(output), *more], check=False)


def keep(directory: Path, file: Path) -> None:
    """Write what the floors test needs: of each case its problem, its time and its counts."""
    cases: list[dict[str, Any]] = []
    device: Device | None = None
    for number in range(len(COMMANDS)):
        measured = read_run(directory / f"measured-{number}" / "results.json")
        counted = [read_run(file) for file in directory.glob(f"counted-{number}-*/results.json")]
        device = device or measured.device
        held = {_key(case): case for run in counted for case in run.cases if case.outcome == "ok"}
        for case in measured.cases:
            same = held.get(_key(case))
            if case.outcome == "ok" and case.timing and case.timing.cold and same is not None:
                cases.append(_brief(case, same))
    assert device is not None
    text = json.dumps({"device": to_json(device), "cases": cases})
    file.write_bytes(lzma.compress(text.encode()))
    print(f"{len(cases)} cases")


def _key(case: Measurement) -> tuple[object, ...]:
    problem = case.problem
    options = tuple(sorted(problem.options.items()))
    return case.kernel, problem.label, problem.dtype, options, case.block, tuple(sorted(case.params.items()))


def _brief(case: Measurement, counted: Measurement) -> dict[str, Any]:
    assert case.timing
    assert case.timing.cold
    return {
        "kernel": case.kernel,
        "problem": to_json(counted.problem),
        "block": case.block,
        "grid": case.grid,
        "launches": len(case.launches),
        "median_us": case.timing.cold.median_us,
        "p05_us": case.timing.cold.p05_us,
        "event_floor_us": case.event_floor_us,
        "counters": {
            name: to_json(counter)
            for name, counter in counted.counters.items()
            if (name in _KEPT or name.startswith(("pipe_", "tensor_"))) and counter.value
        },
    }


def bounded(file: Path) -> Iterator[tuple[dict[str, Any], Measurement]]:
    """Each kept case, and its bounds as today's code reckons them."""
    kept = json.loads(lzma.decompress(file.read_bytes()))
    device = from_json(Device, kept["device"])
    for case in kept["cases"]:
        bare = from_json(
            Measurement,
            {
                "kernel": case["kernel"],
                "problem": case["problem"],
                "block": case["block"],
                "grid": case["grid"],
                "params": {},
                "outcome": "ok",
                "source_hash": "",
                "event_floor_us": case["event_floor_us"],
                "counters": case["counters"],
            },
        )
        yield case, with_bounds(replace(bare, launches=()), device)


def page(files: list[Path]) -> None:
    """Print how tight the floors are, and how well they put kernels in order."""
    for file in files:
        ratios: dict[tuple[str, str], list[float]] = defaultdict(list)
        orders: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
        above = 0
        for case, found in bounded(file):
            if found.bound_by is None:
                continue
            least = found.bounds[found.bound_by].least_us
            problem = found.problem
            where = f"{problem.operation} {problem.dtype}", problem.label
            above += case["median_us"] < least
            ratios[where].append(case["median_us"] / least)
            orders[where].append((least, case["median_us"]))
        print(f"\n{file.stem}: {sum(map(len, ratios.values()))} cases, {above} below their bound\n")
        print("| ladder | size | kernels | measured / bound: median | least | most | rank correlation |")
        print("|---|---|--:|--:|--:|--:|--:|")
        for where, found_ratios in ratios.items():
            print(
                f"| {where[0]} | {where[1]} | {len(found_ratios)} | {statistics.median(found_ratios):.2f}"
                f" | {min(found_ratios):.2f} | {max(found_ratios):.2f} | {_spearman(orders[where])} |"
            )


def _spearman(pairs: list[tuple[float, float]]) -> str:
    """Rank correlation of bounds and times, ties by their mean rank."""
    if len(pairs) < 3:
        return "–"
    ranks = [_ranks([pair[side] for pair in pairs]) for side in (0, 1)]
    if len(set(ranks[0])) < 2:
        return "all alike"
    return f"{statistics.correlation(*ranks):.2f}"


def _ranks(values: list[float]) -> list[float]:
    """Mean rank of each value; bounds within 1 % count as equal."""
    ordered = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(ordered):
        stop = start
        while stop < len(ordered) and values[ordered[stop]] <= values[ordered[start]] * 1.01:
            stop += 1
        for index in ordered[start:stop]:
            ranks[index] = (start + stop - 1) / 2
        start = stop
    return ranks


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["measure", directory]:
            measure(Path(directory))
        case ["count", directory, *card]:
            count(Path(directory), card[0] if card else "h200")
        case ["keep", directory, file]:
            keep(Path(directory), Path(file))
        case ["page", *files] if files:
            page([Path(file) for file in files])
        case _:
            sys.exit(__doc__)
