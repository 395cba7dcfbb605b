# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How far off are modelled times? Every rung of every ladder at ten sizes, predicted, then beside a card's.

python benchmarks/model_errors.py count DIR [JOBS]          count every case on the executor, once
python benchmarks/model_errors.py predict DIR FILE          write modelled times of all counted cases as CSV
python benchmarks/model_errors.py table FILE RESULTS…       hold them against measured ones, of results files
                                                            or an …-errors.csv, by ladder and size; both go to
                                                            …-errors.csv beside …-predictions.csv
python benchmarks/model_errors.py samples DIR RESULTS.json… the same of their own cases, counted in DIR once,
                                                            for a minute at most, and where warps' cycles go
                                                            beside Nsight Compute's stalls

python benchmarks/model_errors.py measure RESULTS.csv      time every case on the GPU, in one worker process

Other sizes come last: --sizes=192,640; or, in place of the ladders, kernels that declare their operation, at
its default sizes: --kernels=DIR.

Predictions come from counts, machine code and a card's constants (gpuprof/devices/constants) alone, and are
committed before anybody compares them.
"""

import csv
import pickle
import signal
import statistics
import sys
import time
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from gpuprof.analysis.models import stalled
from gpuprof.backends.compiling import compile_kernel
from gpuprof.backends.sim.backend import SimBackend
from gpuprof.backends.sim.executed import played
from gpuprof.devices.cards import load_card
from gpuprof.devices.device import Device
from gpuprof.errors import CaseSkipped, GpuprofError
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.paths import ladder_of
from gpuprof.kernels.shape import choose, configure
from gpuprof.measure.case import Case
from gpuprof.measure.process import WorkerProcess
from gpuprof.measure.protocol import Open
from gpuprof.measure.session import run_cases
from gpuprof.problems.problem import Problem
from gpuprof.problems.sizes import parse_sizes
from gpuprof.reading import read_run
from gpuprof.records import replace
from gpuprof.results import Measurement
from gpuprof.sm_model import Modelled, NotModelled

CARDS = ("h200", "h100")
LADDERS = ("gemm", "transpose", "reduce", "softmax")
SIZES = (128, 256, 384, 512, 768, 1024, 1536, 2048, 4096, 8192)
KERNELS: list[Path] = []


def sizes_of(operation: str) -> list[int]:
    """Ten sizes: an edge where there are several dimensions, else as many elements as a square of it has."""
    return [size * size if operation == "reduce" else size for size in SIZES]


def _cases(device: Device) -> Iterator[tuple[str, Kernel, Kernel, Problem]]:
    """Operation, rung, the kernel that runs for it, and problem, the smallest first."""
    for path in KERNELS:
        ladder = ladder_of([path])
        for extents in parse_sizes(ladder.operation.default_sizes, ladder.operation.dimensions):
            for kernel in ladder.kernels:
                yield ladder.operation.name, kernel, kernel, Problem.of(ladder.operation, extents, "f32")
    for number in range(0 if KERNELS else len(SIZES)):
        for name in LADDERS:
            ladder = shipped_ladder(name)
            for rung in ladder.rungs:
                extents = (sizes_of(name)[number],) * len(ladder.operation.dimensions)
                problem = Problem.of(ladder.operation, extents, "f32", options=rung.options)
                with suppress(CaseSkipped):
                    yield name, rung, choose(rung, ladder.kernels, problem, device), problem


def _file(folder: Path, operation: str, rung: Kernel, problem: Problem) -> Path:
    return folder / f"{operation}-{rung.id}-{problem.label}.pickle"


def count(folder: Path, jobs: int) -> None:
    """Count every case once, and keep it with its machine code."""
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(jobs) as workers:
        for said in workers.map(partial(_count, folder), range(sum(1 for _ in _cases(load_card("h200"))))):
            if said:
                print(said, flush=True)


_backend = SimBackend(load_card("h200"))


def _count(folder: Path, number: int) -> str:
    """Count a case; say how long it took, or why it cannot be."""
    operation, rung, kernel, problem = next(
        case for at, case in enumerate(_cases(_backend.device)) if at == number
    )
    file, began = _file(folder, operation, rung, problem), time.process_time()
    if file.exists():
        return ""
    try:
        counted = _counted(kernel, problem, {})
    except GpuprofError as error:
        return f"{file.stem}: {error}"
    file.write_bytes(pickle.dumps(counted))
    return f"{file.stem}: {time.process_time() - began:.1f} s"


def _counted(kernel: Kernel, problem: Problem, params: Mapping[str, int]) -> tuple[Any, ...]:
    """What `played` is told of a case, but for the device."""
    shape = configure(kernel, problem, kernel.block, params, _backend.device)
    compiled = compile_kernel(shape, _backend.device.arch)
    if len(shape.launches) > 1:
        found = _backend._execute(shape, compiled, [None] * len(shape.launches))
    else:
        found = _backend.count(shape, compiled)
    launches, weights, results, watch = found.model.args  # type: ignore[attr-defined]
    # What names the blocks of a launch, and counts them by other kinds, cannot be pickled.
    del watch._index_of
    results = [replace(one, of_kinds=None) for one in results]
    return launches.case, launches.compiled, weights, results, watch


_COLUMNS = ("card", "operation", "kernel", "size", "modelled_us", "low_us", "high_us")


def predict(folder: Path, output: Path) -> None:
    """Write a row for each card and counted case: what the model says, or why it says nothing."""
    with output.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow([*_COLUMNS, "s", "reason"])
        for operation, rung, _, problem in _cases(load_card("h200")):
            kept_file = _file(folder, operation, rung, problem)
            if not kept_file.exists():
                continue
            counted = pickle.loads(kept_file.read_bytes())
            for card in CARDS:
                began = time.process_time()
                where = (card, operation, rung.id, problem.label)
                try:
                    found = played(load_card(card), *counted)
                except NotModelled as why:
                    rows.writerow((*where, *[""] * 4, str(why)))
                    continue
                ends = [f"{us:.4g}" for us in (found.us, found.low_us, found.high_us)]
                rows.writerow((*where, *ends, f"{time.process_time() - began:.1f}", ""))
            file.flush()


def measure(output: Path) -> None:
    """Write what each case takes on the first GPU; nothing of one that is not right there."""
    request = Open(device="0", seed=0, seconds_per_case=0.2, timeout_s=30.0, explain=False)
    worker = WorkerProcess(request)
    device = worker.opened.device
    card = next(card for card in CARDS if device.name.startswith(load_card(card).name))
    cases = [*_cases(device)]
    with output.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow((*_COLUMNS[:4], "measured_us", "reason"))

        def done(number: int, found: Measurement) -> None:
            operation, rung, _, problem = cases[number]
            cold = found.timing and found.timing.cold
            us = f"{cold.median_us:.6g}" if cold and found.outcome == "ok" else ""
            rows.writerow((card, operation, rung.id, problem.label, us, found.reason or ""))
            file.flush()

        asked = [Case.of(kernel, problem) for _, _, kernel, problem in cases]
        run_cases(dict(enumerate(asked)), worker, request, done)


def table(predictions: Path, results: Sequence[Path]) -> None:
    """Print the errors by ladder and size, of the cases that the model speaks of."""
    measured: dict[tuple[str, ...], float] = {}
    names = {load_card(card).name: card for card in CARDS}
    for path in results:
        if path.suffix == ".csv":
            with path.open(newline="", encoding="utf-8") as file:
                for row in filter(lambda row: row["measured_us"], csv.DictReader(file)):
                    where = tuple(row[name] for name in _COLUMNS[:4])
                    measured[where] = float(row["measured_us"])
            continue
        run = read_run(path)
        for case in run.cases:
            card = next((card for name, card in names.items() if run.devices[0].name.startswith(name)), "")
            if case.outcome == "ok" and not case.is_reference and case.timing and case.timing.cold:
                where = (card, case.problem.operation, case.kernel, case.problem.label)
                measured[where] = case.timing.cold.median_us
    found: dict[tuple[str, ...], list[tuple[float, ...]]] = defaultdict(list)
    silent: Counter[tuple[str, ...]] = Counter()
    fastest: dict[tuple[str, ...], float] = {}
    both = [[*_COLUMNS, "measured_us"]]
    with predictions.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            us = measured.get((row["card"], row["operation"], row["kernel"], row["size"]))
            where = row["card"], row["operation"], row["size"]
            silent[where] += us is not None and not row["modelled_us"]
            if us is not None:
                fastest[where] = min(us, fastest.get(where, us))
            if us is not None and row["modelled_us"]:
                found[where].append((us, *(float(row[name]) for name in both[0][4:7])))
                both.append([*(row[name] for name in both[0][:-1]), f"{us:.6g}"])
    with predictions.with_name(predictions.name.replace("predictions", "errors")).open(
        "w", newline="", encoding="utf-8"
    ) as file:
        csv.writer(file).writerows(both)
    print("| card | ladder | size | kernels | without | error, worst, rank, pick |")
    print("|---|---|--:|--:|--:|---|")
    for where, rows in found.items():
        print(f"| {' | '.join(where)} | {len(rows)} | {silent[where]} | {_errors(rows, fastest[where])} |")
    if not any(where[1] in LADDERS for where in found):
        print("\n| card | cases | mean | median | worst | inside |\n|---|--:|--:|--:|--:|--:|")
        for card in dict.fromkeys(where[0] for where in found):
            rows = [row for where, each in found.items() if where[0] == card for row in each]
            off = [row[1] / row[0] - 1 for row in rows]
            inside = sum(low <= us <= high for us, _, low, high in rows)
            means = " | ".join(f"{mean(map(abs, off)):.1%}" for mean in (statistics.mean, statistics.median))
            print(f"| {card} | {len(rows)} | {means} | {max(off, key=abs):+.0%} | {inside / len(rows):.0%} |")
        return
    print("\n| ladder | card | cases | below 1024 | from 1024 up | worst | rank | pick within 3 % | inside |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|")
    for operation in LADDERS:
        for card in CARDS:
            if any(where[:2] == (card, operation) for where in found):
                print(f"| {operation} | {card} {_summary(found, fastest, [card], [operation])}")
    print(f"| all | both {_summary(found, fastest, CARDS, LADDERS)}")


#: Reasons that a warp waits for, of both.
_STALLS = ("issue", "dependency", "latency", "barrier")
#: Seconds that a case of a sample may take to be counted.
_MOST_S = 60


def samples(folder: Path, results: Sequence[Path]) -> None:
    """Print how far off the cases of each file are, and shares of stalls, modelled and measured."""

    def late(*_: object) -> None:
        raise CaseSkipped("It takes more than a minute to count.")

    signal.signal(signal.SIGALRM, late)
    folder.mkdir(parents=True, exist_ok=True)
    stalls = [["kernel", "size", *(f"{name}{of}" for name in _STALLS for of in ("", "_ncu"))]]
    print("| results | cases | without | mean | median | worst |\n|---|--:|--:|--:|--:|--:|")
    for path in results:
        run = read_run(path)
        card = next(card for card in CARDS if run.devices[0].name.startswith(load_card(card).name))
        errors: list[float] = []
        silent = 0
        for case in run.cases:
            if case.outcome != "ok" or case.is_reference or not (case.timing and case.timing.cold):
                continue
            ladder, of = shipped_ladder(case.problem.operation), case.problem
            signal.alarm(_MOST_S)
            try:
                kernel = ladder.find(case.ran)
                problem = Problem.of(ladder.operation, [*of.sizes.values()], of.dtype, of.scalars, of.options)
                kept = folder / f"{of.operation}-{kernel.id}-{problem.label}-{of.dtype}.pickle"
                if "causal" in str(of.options):
                    kept = kept.with_stem(f"{kept.stem}-causal")
                if not kept.exists():
                    kept.write_bytes(pickle.dumps(_counted(kernel, problem, case.params)))
                found = played(load_card(card), *pickle.loads(kept.read_bytes()))
                errors.append(found.us / case.timing.cold.median_us - 1)
                if measured := stalled(case):
                    stalls.append([case.kernel, problem.label, *_stalls(found, measured)])
                print(f"{path.stem} {kept.stem} {errors[-1]:+.0%}", file=sys.stderr, flush=True)
            except GpuprofError:
                silent += 1
            finally:
                signal.alarm(0)
        off = sorted(map(abs, errors))
        if off:
            parts = f"{statistics.mean(off):.1%} | {statistics.median(off):.1%} | {max(errors, key=abs):+.0%}"
            print(f"| {path.stem} | {len(off)} | {silent} | {parts} |", flush=True)
    csv.writer(sys.stdout, lineterminator="\n").writerows(stalls)


def _stalls(found: Modelled, measured: Mapping[str, float]) -> Iterator[str]:
    """Percent of resident warps' cycles by reason, modelled and measured; memory is one reason."""
    parts: Counter[str] = Counter()
    for (_, reason), share in found.lines.items():
        parts["latency" if reason == "bandwidth" else reason] += share
    for name in _STALLS:
        for shares in (parts, measured):
            yield f"{100 * shares[name] / sum(shares.values()):.0f}"


def _summary(
    found: dict[tuple[str, ...], list[tuple[float, ...]]],
    fastest: dict[tuple[str, ...], float],
    cards: Sequence[str],
    operations: Sequence[str],
) -> str:
    """Cells of a row: cases, mean absolute errors, the worst, median rank correlation, picks, inside."""
    of = {where: rows for where, rows in found.items() if where[0] in cards and where[1] in operations}
    errors: dict[bool, list[float]] = {True: [], False: []}
    for (_, operation, size), rows in of.items():
        large = int(size) >= (1024 * 1024 if operation == "reduce" else 1024)
        errors[large] += [abs(row[1] / row[0] - 1) for row in rows]
    every = [row for rows in of.values() for row in rows]
    inside = sum(low <= us <= high for us, _, low, high in every) / len(every)
    picks = sum(_loss(rows, fastest[where]) <= 1.03 for where, rows in of.items())
    worst = max(each for part in errors.values() for each in part)
    means = " | ".join(f"{statistics.mean(errors[large]):.1%}" for large in (False, True))
    rank = statistics.median(_rank(rows) for rows in of.values())
    return f"| {len(every)} | {means} | {worst:.0%} | {rank:.2f} | {picks} of {len(of)} | {inside:.0%} |"


def _loss(rows: Sequence[tuple[float, ...]], fastest: float) -> float:
    """How much longer the kernel that is modelled to be the fastest takes than the fastest of all."""
    return min(rows, key=lambda row: row[1])[0] / fastest


def _rank(rows: Sequence[tuple[float, ...]]) -> float:
    """Spearman's correlation of measured and modelled times: equal ones share their ranks' mean."""
    ranks = []
    for side in (0, 1):
        us = sorted(row[side] for row in rows)
        ranks.append([bisect_left(us, row[side]) + bisect_right(us, row[side]) for row in rows])
    return statistics.correlation(*ranks)


def _errors(rows: Sequence[tuple[float, ...]], fastest: float) -> str:
    """Mean absolute error, the worst, Spearman's rank correlation, and the pick's loss."""
    errors = [abs(row[1] / row[0] - 1) for row in rows]
    rank = f"{_rank(rows):.2f}" if len(rows) > 2 else "–"
    return f"{statistics.mean(errors):.0%}, {max(errors):.0%}, {rank}, {_loss(rows, fastest):.2f}x"


if __name__ == "__main__":
    if sys.argv[-1].startswith("--kernels="):
        KERNELS = sorted(Path(sys.argv.pop().partition("=")[2]).glob("*.cu"))
    if sys.argv[-1].startswith("--sizes="):
        SIZES = tuple(map(int, sys.argv.pop().partition("=")[2].split(",")))
    match sys.argv[1:]:
        case ["count", folder, *jobs]:
            count(Path(folder), int(jobs[0]) if jobs else 1)
        case ["measure", output]:
            measure(Path(output))
        case ["predict", folder, output]:
            predict(Path(folder), Path(output))
        case ["samples", folder, *results] if results:
            samples(Path(folder), [Path(one) for one in results])
        case ["table", predictions, *results] if results:
            table(Path(predictions), [Path(one) for one in results])
        case _:
            sys.exit(__doc__)
