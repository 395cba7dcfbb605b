# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How far off are modelled times? Committed results of a card beside the model, the estimate and the bounds.

python benchmarks/model_errors.py count DIR        count the cases of samples/ on the executor, once
python benchmarks/model_errors.py predict DIR FILE write the modelled times, from the counts alone
python benchmarks/model_errors.py table FILE       hold them against the measured ones, by ladder and size

The counts need what the executor does not count yet: lines that a request touches, and sectors that L1 holds.
Both are watched here, of the first block of each batch, in an L1 cache that drops the least recently used.
"""

import csv
import math
import pickle
import statistics
import sys
import time
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from accuracy_cases import ROOT

from gpuprof.backends.compiling import compile_kernel
from gpuprof.backends.sim.backend import SimBackend
from gpuprof.backends.sim.instructions import NoLink
from gpuprof.devices.cards import load_card
from gpuprof.devices.device import Device
from gpuprof.errors import GpuprofError
from gpuprof.executor.steps.spaces import GlobalSpace
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.kernels.shape import configure
from gpuprof.machine_code.weighing import Executed, weigh
from gpuprof.problems.problem import Problem
from gpuprof.reading import read_run
from gpuprof.results import Measurement
from gpuprof.sm_model import NotModelled, PlayedLaunch, TrafficSites, modelled, traffic_of
from gpuprof.sm_model.control_words import control_words
from gpuprof.tuning.estimate import estimated_us

#: Results of an H200, and the largest first extent of a case.
SAMPLES = (
    "transpose-h200",
    "transpose-sizes-h200",
    "softmax-h200",
    "reduce-h200",
    "gemm-h200",
    "gemm-sizes-h200",
)
_MOST = {"transpose": 8192, "softmax": 8192, "reduce": 16777216, "gemm": 4096}
_L1_BYTES, _SECTOR, _LINE_SECTORS = 256 << 10, 5, 2
_WATCHED_SECTORS = 400_000
#: A kernel that changed since executes another number of instructions.
_SAME = 0.005


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

    def _instructions(self, links: Any, results: Any) -> Any:
        self.found = []
        for link, result in zip(links, results, strict=True):
            if isinstance(link, NoLink):
                self.found.append({"reason": link.reason})
                continue
            counted = (result.block_warps, result.block_threads, result.block_parted)
            warps, threads, parted = (each.tolist() for each in counted)
            times = weigh(link, Executed(warps, threads, result.loop_turns, parted))
            self.found.append({"code": link.code, "times": times, "sources": dict(link.sources)})
        return super()._instructions(links, results)


def _cases() -> Iterator[tuple[str, Device, Measurement]]:
    for name in SAMPLES:
        run = read_run(ROOT / "samples" / f"{name}.json")
        for case in run.cases:
            first = next(iter(case.problem.sizes.values()))
            fits = first <= _MOST[case.problem.operation]
            if case.outcome == "ok" and not case.is_reference and case.timing and case.timing.cold and fits:
                yield name, run.devices[0], case


def _file(folder: Path, case: Measurement) -> Path:
    block = "x".join(map(str, case.block or ()))
    return folder / f"{case.problem.operation}-{case.kernel}-{case.problem.label}-{block}.pickle"


def count(folder: Path) -> None:
    """Count every case once, and keep it with its machine code."""
    folder.mkdir(parents=True, exist_ok=True)
    backend, watch = _Counting(load_card("h200"), seed=0), Watch()
    plain = GlobalSpace.count

    def watched(self: GlobalSpace, batch: Any, address: Any, mask: Any, *, in_turn: bool = False) -> Any:
        if self.request.site is not None:
            shape = (mask.warps, 32)
            lanes = np.broadcast_to(mask.lanes[0], shape)
            places = np.broadcast_to(address[0], shape) + self.request.offset
            watch.look(self.request.line, self.request.manner.name, places, lanes)
        return plain(self, batch, address, mask, in_turn=in_turn)

    GlobalSpace.count = watched  # type: ignore[method-assign]
    for _, _, case in _cases():
        file, began = _file(folder, case), time.process_time()
        if file.exists():
            continue
        try:
            kept = _counted(backend, case, watch)
        except GpuprofError as error:
            print(f"{file.stem}: {error}", flush=True)
            continue
        file.write_bytes(pickle.dumps(kept))
        print(f"{file.stem}: {time.process_time() - began:.1f} s", flush=True)


def _counted(backend: _Counting, case: Measurement, watch: Watch) -> dict[str, Any]:
    ladder = shipped_ladder(case.problem.operation)
    kernel = ladder.find(case.kernel)
    sizes = tuple(case.problem.sizes.values())
    problem = Problem.of(ladder.operation, sizes, case.problem.dtype, options=kernel.options)
    shape = configure(kernel, problem, case.block, case.params, backend.device)
    compiled = compile_kernel(kernel, shape, backend.compile_arch)
    assert case.occupancy is not None
    grid = math.prod(shape.largest.grid)
    resident = min(case.occupancy.blocks_per_sm, math.ceil(grid / backend.device.sm_count))
    shared = compiled[shape.largest.entry].static_shared_bytes + shape.largest.dynamic_shared_bytes
    fresh = Watch((_L1_BYTES // resident - shared) >> _SECTOR)
    watch.__dict__.update(fresh.__dict__)
    if len(shape.launches) > 1:
        found = backend._execute(kernel, problem, shape, compiled, [None] * len(shape.launches))
    else:
        found = backend.count(kernel, problem, shape, compiled)
    for one, kept in zip(shape.launches, backend.found, strict=True):
        function = compiled[one.entry]
        words = control_words(function.cubin, function.entry)
        kept.update(words=words, grid=one.grid, block=one.block)
    executed = found.counters["warp_instructions"].value
    return {"launches": backend.found, "lines": found.lines, "executed": executed, "seen": dict(watch.seen)}


def _modelled(case: Measurement, kept: dict[str, Any], device: Device) -> float:
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
    outputs = case.problem.output_bytes or 0
    traffic = traffic_of(sites, kept["lines"] or (), case.problem.min_bytes - outputs, outputs)
    assert case.occupancy is not None
    launches = [
        PlayedLaunch(
            *(one["code"], one["words"], one["times"], asked),
            *(math.prod(one["grid"]), math.ceil(math.prod(one["block"]) / 32), case.occupancy.blocks_per_sm),
        )
        for one, asked in zip(kept["launches"], traffic, strict=True)
    ]
    return modelled(launches, device).us


def predict(folder: Path, output: Path) -> None:
    """Write a row for each case: what the model says, or why it says nothing; and what else is known."""
    with output.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("results", "kernel", "size", "modelled_us", "estimate_us", "bound_us", "reason"))
        for name, device, case in _cases():
            kept_file = _file(folder, case)
            if not kept_file.exists() or case.bound_by is None:
                continue
            kept = pickle.loads(kept_file.read_bytes())
            before = case.executor_counters["warp_instructions"].value
            if before is None or abs(kept["executed"] - before) > _SAME * before:
                continue
            shape = SimpleNamespace(launches=[SimpleNamespace(**one) for one in kept["launches"]])
            point = cast("Any", SimpleNamespace(candidate=SimpleNamespace(shape=shape), measurement=case))
            us, reason = "", ""
            try:
                us = f"{_modelled(case, kept, device):.4g}"
            except NotModelled as why:
                reason = str(why)
            bound = case.bounds[case.bound_by].least_us
            others = f"{estimated_us(point, device):.4g}", f"{bound:.4g}"
            rows.writerow((name, case.kernel, case.problem.label, us, *others, reason))
            file.flush()


def table(predictions: Path) -> None:
    """Print the errors by ladder and size, of the cases that the model speaks of."""
    measured = {}
    for name, _, case in _cases():
        assert case.timing
        assert case.timing.cold
        measured[name, case.kernel, case.problem.label] = case.timing.cold.median_us
    found: dict[tuple[str, str], list[tuple[float, ...]]] = defaultdict(list)
    silent: Counter[tuple[str, str]] = Counter()
    with predictions.open(newline="") as file:
        for row in csv.DictReader(file):
            where = row["results"], row["size"]
            silent[where] += not row["modelled_us"]
            if row["modelled_us"]:
                us = measured[row["results"], row["kernel"], row["size"]]
                found[where].append(
                    (us, *(float(row[f"{by}_us"]) for by in ("modelled", "estimate", "bound")))
                )
    print("| results | size | kernels | without | modelled | estimate | highest bound |")
    print("|---|---|--:|--:|---|---|---|")
    for where, rows in found.items():
        cells = " | ".join(_errors(rows, by) for by in (1, 2, 3))
        print(f"| {where[0]} | {where[1]} | {len(rows)} | {silent[where]} | {cells} |")


def _errors(rows: Sequence[tuple[float, ...]], by: int) -> str:
    """Mean absolute error, the worst, Spearman's rank correlation, and the pick's loss."""
    errors = [abs(row[by] / row[0] - 1) for row in rows]
    loss = min(rows, key=lambda row: row[by])[0] / min(row[0] for row in rows)
    ranks = [np.argsort(np.argsort([row[side] for row in rows])).tolist() for side in (0, by)]
    rank = f"{statistics.correlation(*ranks):.2f}" if len(rows) > 2 else "–"
    return f"{statistics.mean(errors):.0%}, {max(errors):.0%}, {rank}, {loss:.2f}x"


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["count", folder]:
            count(Path(folder))
        case ["predict", folder, output]:
            predict(Path(folder), Path(output))
        case ["table", predictions]:
            table(Path(predictions))
        case _:
            sys.exit(__doc__)
