# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How far off are modelled times? Every rung of every ladder at ten sizes, predicted, then beside a card's.

python benchmarks/model_errors.py count DIR [JOBS]          count every case on the executor, once
python benchmarks/model_errors.py predict DIR FILE          write modelled times of all counted cases as CSV
python benchmarks/model_errors.py table FILE RESULTS.json…  hold them against measured ones, by ladder, size;
                                                            both go to model-errors.csv beside the file

Predictions come from counts, machine code and a card's constants (gpuprof/devices/constants) alone, and are
committed before anybody compares them. The counts need what the executor does not count yet: lines that a
request touches, and sectors that L1 holds. Both are watched here, of the first block of each batch, in an L1
cache that drops the least recently used.
"""

import csv
import math
import pickle
import statistics
import sys
import time
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gpuprof.backends.compiling import compile_kernel
from gpuprof.backends.sim.backend import SimBackend
from gpuprof.backends.sim.instructions import NoLink
from gpuprof.devices.cards import load_card
from gpuprof.devices.device import Device
from gpuprof.devices.occupancy import theoretical_occupancy
from gpuprof.errors import GpuprofError
from gpuprof.executor.steps.spaces import GlobalSpace
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.shape import choose, configure
from gpuprof.machine_code.weighing import Executed, weigh
from gpuprof.problems.problem import Problem
from gpuprof.reading import read_run
from gpuprof.sm_model import NotModelled, PlayedLaunch, TrafficSites, modelled, traffic_of
from gpuprof.sm_model.control_words import control_words

CARDS = ("h200", "h100")
LADDERS = ("gemm", "transpose", "reduce", "softmax")
SIZES = (128, 256, 384, 512, 768, 1024, 1536, 2048, 4096, 8192)
_L1_BYTES, _SECTOR, _LINE_SECTORS = 256 << 10, 5, 2
_WATCHED_SECTORS = 400_000


@dataclass
class Watch:
    """What the first block of each batch asks of global memory."""

    capacity: int = 0
    left: int = _WATCHED_SECTORS
    held: OrderedDict[int, None] = field(default_factory=OrderedDict)
    #: By source line and family: sectors, lines, sectors that L1 held.
    seen: dict[tuple[int, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def look(self, line: int, manner: str, address: Any, lanes: Any) -> None:
        """Note an access of one block: addresses and lanes, each of shape (warps, 32)."""
        if self.left <= 0 or not lanes.any():
            return
        row = np.nonzero(lanes)[0].astype(np.int64) << 42
        found = np.unique(row | (address[lanes] >> _SECTOR))
        seen = self.seen[line, "global_load" if manner == "READ" else "global_store"]
        seen["sectors"] += len(found)
        seen["lines"] += len(np.unique(found >> _LINE_SECTORS))
        self.left -= len(found)
        if manner == "READ":
            for sector in (found & ((1 << 42) - 1)).tolist():
                seen["hits"] += sector in self.held
                self.held[sector] = None
                self.held.move_to_end(sector)
            while len(self.held) > self.capacity:
                self.held.popitem(last=False)


class _Counting(SimBackend):
    """The executor, which keeps what it found of each launch."""

    found: list[dict[str, Any]]

    def _executed_case(
        self, kernel: Any, shape: Any, programs: Any, links: Any, results: Any, *rest: Any, **more: Any
    ) -> Any:
        self.found = []
        for link, result in zip(links, results, strict=True):
            if isinstance(link, NoLink):
                self.found.append({"reason": link.reason})
                continue
            counted = (result.block_warps, result.block_threads, result.block_parted)
            warps, threads, parted = (each.tolist() for each in counted)
            times = weigh(link, Executed(warps, threads, result.loop_iterations, parted))
            self.found.append({"code": link.code, "times": times, "sources": dict(link.sources)})
        return super()._executed_case(kernel, shape, programs, links, results, *rest, **more)


def sizes_of(operation: str) -> list[int]:
    """Ten sizes: an edge where there are several dimensions, else as many elements as a square of it has."""
    return [size * size if operation == "reduce" else size for size in SIZES]


def _cases(device: Device) -> Iterator[tuple[str, Kernel, Kernel, Problem]]:
    """Operation, rung, the kernel that runs for it, and problem, the smallest first."""
    for number in range(len(SIZES)):
        for name in LADDERS:
            ladder = shipped_ladder(name)
            for rung in ladder.rungs:
                extents = (sizes_of(name)[number],) * len(ladder.operation.dimensions)
                problem = Problem.of(ladder.operation, extents, "f32", options=rung.options)
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


_watch, _backend = Watch(), [_Counting(load_card("h200"), seed=0)]
_plain = GlobalSpace.count


def _watched(self: GlobalSpace, batch: Any, address: Any, mask: Any, *, in_turn: bool = False) -> Any:
    if self.request.site is not None:
        shape = (mask.warps, 32)
        lanes = np.broadcast_to(mask.lanes[0], shape)
        places = np.broadcast_to(address[0], shape) + self.request.offset
        _watch.look(self.request.line, self.request.manner.name, places, lanes)
    return _plain(self, batch, address, mask, in_turn=in_turn)


def _count(folder: Path, number: int) -> str:
    """Count a case; say how long it took, or why it cannot be."""
    operation, rung, kernel, problem = next(
        case for at, case in enumerate(_cases(_backend[0].device)) if at == number
    )
    file, began = _file(folder, operation, rung, problem), time.process_time()
    if file.exists():
        return ""
    GlobalSpace.count = _watched  # type: ignore[method-assign]
    try:
        kept = _counted(_backend[0], kernel, problem)
    except GpuprofError as error:
        return f"{file.stem}: {error}"
    file.write_bytes(pickle.dumps(kept))
    return f"{file.stem}: {time.process_time() - began:.1f} s"


def _counted(backend: _Counting, kernel: Kernel, problem: Problem) -> dict[str, Any]:
    device = backend.device
    shape = configure(kernel, problem, kernel.launch.block, {}, device)
    compiled = compile_kernel(kernel, shape, backend.compile_arch)
    launches = []
    for one in shape.launches:
        function, threads = compiled[one.entry], math.prod(one.block)
        shared = function.static_shared_bytes + one.dynamic_shared_bytes
        resident = theoretical_occupancy(
            device,
            threads_per_block=threads,
            registers_per_thread=function.registers_per_thread,
            shared_bytes_per_block=shared,
        ).blocks_per_sm
        words = control_words(function.cubin, function.entry)
        blocks = math.prod(one.grid)
        launches.append({"words": words, "blocks": blocks, "warps": -(-threads // 32), "resident": resident})
        if one is shape.largest:
            at_once = min(resident, math.ceil(blocks / device.sm_count))
            _watch.__dict__.update(Watch((_L1_BYTES // at_once - shared) >> _SECTOR).__dict__)
    if len(shape.launches) > 1:
        found = backend._execute(kernel, problem, shape, compiled, [None] * len(shape.launches))
    else:
        found = backend.count(kernel, problem, shape, compiled)
    for kept, launch in zip(backend.found, launches, strict=True):
        kept.update(launch)
    outputs = sum(spec.nbytes for spec in problem.outputs)
    return {
        "launches": backend.found,
        "lines": found.lines,
        "seen": dict(_watch.seen),
        "read_bytes": problem.min_bytes - outputs,
        "written_bytes": outputs,
    }


def _modelled(kept: dict[str, Any], device: Device) -> Any:
    for one in kept["launches"]:
        if "reason" in one:
            raise NotModelled(one["reason"])
    lines = {key: seen["lines"] / seen["sectors"] for key, seen in kept["seen"].items()}
    loads = {line: seen for (line, family), seen in kept["seen"].items() if family == "global_load"}
    hits = {line: seen["hits"] / seen["sectors"] for line, seen in loads.items()}
    sites = [
        TrafficSites(one["code"], [low for low, _ in one["times"]], one["sources"], lines, hits)
        for one in kept["launches"]
    ]
    traffic = traffic_of(sites, kept["lines"] or (), kept["read_bytes"], kept["written_bytes"])
    launches = [
        PlayedLaunch(
            *(one["code"], one["words"], one["times"], asked),
            *(one["blocks"], one["warps"], one["resident"]),
        )
        for one, asked in zip(kept["launches"], traffic, strict=True)
    ]
    return modelled(launches, device)


_REASONS = ("issue", "dependency", "memory", "barrier")


def predict(folder: Path, output: Path) -> None:
    """Write a row for each card and counted case: what the model says, or why it says nothing."""
    with output.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(
            ("card", "operation", "kernel", "size", "modelled_us", *_REASONS, "tail", "s", "reason")
        )
        for operation, rung, _, problem in _cases(load_card("h200")):
            kept_file = _file(folder, operation, rung, problem)
            if not kept_file.exists():
                continue
            kept = pickle.loads(kept_file.read_bytes())
            for card in CARDS:
                began = time.process_time()
                where = (card, operation, rung.id, problem.label)
                try:
                    found = _modelled(kept, load_card(card))
                except NotModelled as why:
                    rows.writerow((*where, *[""] * (len(_REASONS) + 2), "", str(why)))
                    continue
                shares = [f"{found.reasons.get(name, 0.0):.3f}" for name in _REASONS]
                took = time.process_time() - began
                rows.writerow((*where, f"{found.us:.4g}", *shares, f"{found.tail:.3f}", f"{took:.1f}", ""))
            file.flush()


def table(predictions: Path, results: Sequence[Path]) -> None:
    """Print the errors by ladder and size, of the cases that the model speaks of."""
    measured: dict[tuple[str, ...], float] = {}
    names = {load_card(card).name: card for card in CARDS}
    for path in results:
        run = read_run(path)
        for case in run.cases:
            card = next((card for name, card in names.items() if run.devices[0].name.startswith(name)), "")
            if case.outcome == "ok" and not case.is_reference and case.timing and case.timing.cold:
                where = (card, case.problem.operation, case.kernel, case.problem.label)
                measured[where] = case.timing.cold.median_us
    found: dict[tuple[str, ...], list[tuple[float, float]]] = defaultdict(list)
    silent: Counter[tuple[str, ...]] = Counter()
    both = [["card", "operation", "kernel", "size", "modelled_us", "measured_us"]]
    with predictions.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            us = measured.get((row["card"], row["operation"], row["kernel"], row["size"]))
            where = row["card"], row["operation"], row["size"]
            silent[where] += us is not None and not row["modelled_us"]
            if us is not None and row["modelled_us"]:
                found[where].append((us, float(row["modelled_us"])))
                both.append([*(row[name] for name in both[0][:-1]), f"{us:.6g}"])
    with predictions.with_name("model-errors.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(both)
    print("| card | ladder | size | kernels | without | error, worst, rank, pick |")
    print("|---|---|--:|--:|--:|---|")
    for where, pairs in found.items():
        print(f"| {' | '.join(where)} | {len(pairs)} | {silent[where]} | {_errors(pairs, 1)} |")
    ladders: dict[tuple[str, ...], list[tuple[float, float]]] = defaultdict(list)
    for (card, operation, _), pairs in found.items():
        ladders[card, operation] += pairs
    for where, pairs in ladders.items():
        errors = [abs(said / us - 1) for us, said in pairs]
        bias = statistics.median(said / us for us, said in pairs)
        print(f"{' '.join(where)}: {statistics.mean(errors):.1%} of {len(pairs)}, median ratio {bias:.2f}")


def _errors(rows: Sequence[tuple[float, ...]], by: int) -> str:
    """Mean absolute error, the worst, Spearman's rank correlation, and the pick's loss."""
    errors = [abs(row[by] / row[0] - 1) for row in rows]
    loss = min(rows, key=lambda row: row[by])[0] / min(row[0] for row in rows)
    ranks = [np.argsort(np.argsort([row[side] for row in rows])).tolist() for side in (0, by)]
    rank = f"{statistics.correlation(*ranks):.2f}" if len(rows) > 2 else "–"
    return f"{statistics.mean(errors):.0%}, {max(errors):.0%}, {rank}, {loss:.2f}x"


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["count", folder, *jobs]:
            count(Path(folder), int(jobs[0]) if jobs else 1)
        case ["predict", folder, output]:
            predict(Path(folder), Path(output))
        case ["table", predictions, *results] if results:
            table(Path(predictions), [Path(one) for one in results])
        case _:
            sys.exit(__doc__)
