# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Runs of identical code, taken down to what a verdict rests on: one entry for each round of each case.

    python benchmarks/recorded.py --history samples/ --write benchmarks/recorded-h200.json.xz
    python benchmarks/recorded.py RESULTS … --write FILE.json.xz

`--history` takes every version of the results files of a folder that its repository holds: the same kernels,
measured on other days and other cards. RESULTS are files or folders, for example of many plain runs:

    for run in $(seq 40); do gpuprof gemm -k SOME --json runs/$run.json; done

What is a case only once is left out, and so is what differs in its source or in how it was timed.
"""

import argparse
import json
import lzma
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from gpuprof.comparison.judging import Times, times_of
from gpuprof.errors import GpuprofError
from gpuprof.reading import read_run
from gpuprof.results import Measurement, Run

FILES = sorted(Path(__file__).parent.glob("recorded-*.json.xz"))
#: Stretches that the samples of a round are cut into, in the order taken.
PARTS = 4


@dataclass(frozen=True)
class Round:
    """One round of a case.

    Args:
        run: When its run began.
        median_us: Median of its samples.
        parts_us: The same of each stretch of them.
        error: Standard error of the median, as a share.
    """

    run: str
    median_us: float
    parts_us: tuple[float, ...]
    error: float
    event_us: float

    def times(self, part: int | None = None) -> Times:
        """As a verdict takes it: the round, or one stretch of it."""
        time = self.median_us if part is None else self.parts_us[part]
        error = self.error * (1 if part is None else len(self.parts_us) ** 0.5)
        return Times((time,), error, self.event_us)


Cases = dict[str, list[Round]]


def taken_down(runs: Iterable[Run]) -> Cases:
    """The rounds of every case that runs on GPUs hold at least twice."""
    found: dict[str, dict[tuple[str, int], Round]] = defaultdict(dict)
    for run in runs:
        for case in run.cases if run.backend == "gpu" else ():
            for number, taken in enumerate(_rounds(run, case)):
                found[_name(run, case)].setdefault((run.created_utc, number), taken)
    return {name: list(rounds.values()) for name, rounds in sorted(found.items()) if len(rounds) > 1}


def read(path: Path) -> Cases:
    """What was written."""
    held = json.loads(lzma.decompress(path.read_bytes()))
    return {
        name: [Round(**{**one, "parts_us": tuple(one["parts_us"])}) for one in rounds]
        for name, rounds in held.items()
    }


def write(cases: Cases, path: Path) -> None:
    """Write it, packed."""
    held = {name: [asdict(one) for one in rounds] for name, rounds in cases.items()}
    path.write_bytes(lzma.compress(json.dumps(held, separators=(",", ":")).encode(), preset=9))


def _rounds(run: Run, case: Measurement) -> Iterator[Round]:
    times = times_of(case)
    if not times.medians_us:
        return
    assert case.timing is not None
    assert case.timing.cold is not None
    for samples in filter(None, case.timing.cold.rounds_us):
        each = -(-len(samples) // PARTS)
        parts = [samples[start : start + each] for start in range(0, len(samples), each)]
        middles = tuple(round(median(part), 4) for part in parts)
        yield Round(
            run.created_utc,
            round(median(samples), 4),
            middles,
            round(times.error, 6),
            times.event_us,
        )


def _name(run: Run, case: Measurement) -> str:
    shape = (
        "x".join(map(str, case.block)),
        *(f"{name}={value}" for name, value in sorted(case.params.items())),
    )
    how = "" if case.event_pair_us is None else "events taken off"
    identity = (
        case.kernel,
        case.problem.label,
        case.problem.dtype,
        *shape,
        (case.source_hash or "library")[:8],
    )
    return " ".join(filter(None, (run.devices[case.device].name, *map(str, identity), how)))


def _read_all(paths: Iterable[Path]) -> Iterator[Run]:
    for path in paths:
        for file in sorted(path.rglob("*.json")) if path.is_dir() else [path]:
            try:
                yield read_run(file)
            except GpuprofError:
                continue


def _history(folder: Path) -> Iterator[Run]:
    def git(*arguments: str) -> bytes:
        return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True).stdout

    with tempfile.TemporaryDirectory() as held:
        for commit in git("log", "--format=%h", "--", "*.json").decode().split():
            for name in git("ls-tree", "--name-only", commit, "./").decode().split():
                if name.endswith(".json"):
                    file = Path(held, f"{commit}-{Path(name).name}")
                    file.write_bytes(git("show", f"{commit}:./{name}"))
        yield from _read_all([Path(held)])


def main() -> None:
    """Take down and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", nargs="*", type=Path, metavar="RESULTS")
    parser.add_argument("--history", type=Path, metavar="FOLDER")
    parser.add_argument("--write", type=Path, required=True, metavar="FILE")
    arguments = parser.parse_args()
    runs = [*_read_all(arguments.results), *(_history(arguments.history) if arguments.history else ())]
    cases = taken_down(runs)
    write(cases, arguments.write)
    print(f"{len(cases)} cases, {sum(map(len, cases.values()))} rounds, {arguments.write.stat().st_size:,} B")


if __name__ == "__main__":
    main()
