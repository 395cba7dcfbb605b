# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels as the public writes them, right and wrong, and what each backend makes of them: one row each.

A folder of `public_style` with an operation is a ladder, and so is each kernel file of the others, whose
headers declare theirs. What is to be said of a kernel stands below its header, as `cheat_corpus` reads it;
nothing where it is right. `// <- here` marks the lines that the executor may name. From the shell, for the
executor or a device:

    python tests/public_corpus.py [sim | NUMBER] [WORD of a kernel's path …]
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cheat_corpus import Verdict, verdicts_in
from problem_support import measured

import gpuprof
from gpuprof.kernels.kernel import Kernel, Ladder
from gpuprof.kernels.paths import ladder_of
from gpuprof.problems.problem import Problem
from gpuprof.problems.sizes import parse_sizes
from gpuprof.results import Measurement

FOLDER = Path(__file__).parent / "public_style"
RIGHT = Verdict("ok", "")


def families() -> list[Path]:
    """The folders."""
    return sorted(path for path in FOLDER.iterdir() if path.is_dir())


@cache
def ladders(family: Path) -> tuple[Ladder, ...]:
    """A folder's, in the order of their kernels' names."""
    one = (family / "operation.toml").is_file()
    return tuple(ladder_of([path]) for path in ([family] if one else sorted(family.glob("*.cu"))))


def verdict(kernel: Kernel, backend: str) -> Verdict:
    return verdicts_in(kernel.source).get(backend, RIGHT)


@dataclass(frozen=True)
class Row:
    """What came of one kernel on one backend, or was known to come."""

    kernel: Kernel
    expected: Verdict
    found: Measurement
    seconds: float = 0

    @property
    def why_not_known(self) -> str:
        """Why the outcome is not known before; empty where it is."""
        return self.expected.words if self.expected.outcome == "any" else ""

    @property
    def complaint(self) -> str:
        """What is not as it should be; empty where all is."""
        if not self.expected.fits(self.found):
            return f"{self.kernel.id}: {self.found.outcome}, not {self.expected.outcome}: {self.found.reason}"
        marked = {n for n, line in enumerate(self.kernel.source.splitlines(), 1) if "// <- here" in line}
        if marked and self.found.explanation is not None and self.found.explanation.line not in marked:
            return f"{self.kernel.id}: another line: {self.found.reason}"
        return ""


def executed(family: Path, words: tuple[str, ...] = ("",)) -> Iterator[Row]:
    """Run a folder's kernels on the executor, in this process."""
    for ladder in ladders(family):
        (sizes,) = parse_sizes(ladder.operation.default_sizes, ladder.operation.dimensions)
        for kernel in ladder.kernels:
            if any(word in f"{family.name}/{kernel.id}/" for word in words):
                began = time.perf_counter()
                measurement = measured(kernel, Problem.of(ladder.operation, sizes), kernel.block)
                yield Row(kernel, verdict(kernel, "executor"), measurement, time.perf_counter() - began)


def on_device(family: Path, device: int, words: tuple[str, ...] = ("",)) -> Iterator[Row]:
    """Run a folder's kernels on a device, in worker processes that some of them may lose."""
    for ladder in ladders(family):
        where = family if (family / "operation.toml").is_file() else family / ladder.kernels[0].file_name
        kernels = [k.id for k in ladder.kernels if any(word in f"{family.name}/{k.id}" for word in words)]
        options = {"kernels": kernels, "device": device, "explain": False, "seconds_per_case": 0.01}
        for case in gpuprof.profile(where, timeout_s=20, **options) if kernels else ():
            kernel = ladder.find(case.kernel)
            yield Row(kernel, verdict(kernel, "gpu"), case.record)


def main(device: str = "sim", *words: str) -> None:
    for family in families():
        wanted = words or ("",)
        rows = executed(family, wanted) if device == "sim" else on_device(family, int(device), wanted)
        for row in rows:
            said = f"{family.name}/{row.kernel.id:24} {row.found.outcome:10} {row.seconds:5.1f} s"
            print(said, row.complaint or (row.found.reason or "")[:60], flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
