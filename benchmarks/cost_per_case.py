# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a case costs in runs of 100 to 1,600 cases that are compiled only, each with code of its own.

    python benchmarks/cost_per_case.py                  # 100, 200, 400, 800 and 1,600 cases
    python benchmarks/cost_per_case.py --cases 50,100

Every run is made twice, with a compile cache that the smaller runs have filled: the first time it compiles
what they did not have, the second time nothing. Processor time is counted, of gpuprof and its workers: other
work on the machine hardly changes it.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

#: Values of the parameter that each kernel file is compiled for.
_VALUES = 50
_HEADER = """/*gpuprof
title = "Copy {number}"
problem = "transpose"
arguments = ["nx", "ny", "in", "out"]
[launch]
block = [16, 16]
grid = ["cdiv(nx, block_x)", "cdiv(ny, block_y)"]
[parameters]
STEP = 1
*/
extern "C" __global__ void copy_{number}(int nx, int ny, const real *in, real *out)
{{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < nx && y < ny)
        out[(size_t)x * ny + y] = in[(size_t)y * nx + x] + (real)(STEP * {number} * 0);
}}
"""


def run(folder: Path, cases: int, output: str) -> tuple[float, float, int]:
    """Compile so many cases.

    Args:
        folder: Where the kernels are and the cache is.
        cases: How many: a multiple of 50.
        output: The folder to write.

    Returns:
        Processor time in seconds, the largest process's memory in MiB, and the results file's size in bytes.

    Raises:
        RuntimeError: The run fails.
    """
    values = "|".join(map(str, range(1, _VALUES + 1)))
    names = [f"{folder}/copy_{number}.cu:STEP={values}" for number in range(cases // _VALUES)]
    command = [sys.executable, "-m", "gpuprof", "transpose", "-k", ",".join(names), "--sizes", "64"]
    process = subprocess.Popen(
        [*command, "--device", "none", "-q", "-o", str(folder / output)],
        env={**os.environ, "GPUPROF_CACHE_DIR": str(folder / "cache")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)  # with what its workers used, which it has waited for
    if status:
        raise RuntimeError(errors.decode())
    size = (folder / output / "results.json").stat().st_size
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, size


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", default="100,200,400,800,1600", help="how many, rising, multiples of 50")
    counts = [int(text) for text in parser.parse_args(arguments).cases.split(",")]
    print(
        "| cases | new code | s, compiling it | ms a new case | s, all cached | ms a case | MiB"
        " | results, KB a case |\n|--:|--:|--:|--:|--:|--:|--:|--:|"
    )
    with tempfile.TemporaryDirectory(prefix="gpuprof-cost-") as name:
        folder = Path(name)
        for number in range(max(counts) // _VALUES):
            (folder / f"copy_{number}.cu").write_text(_HEADER.format(number=number))
        before = 0
        for cases in counts:
            cold, _, _ = run(folder, cases, f"cold-{cases}")
            warm, most, size = run(folder, cases, f"warm-{cases}")
            new = cases - before
            print(
                f"| {cases:,} | {new:,} | {cold:.1f} | {1e3 * (cold - warm) / new:.0f} | {warm:.1f}"
                f" | {1e3 * warm / cases:.1f} | {most:.0f} | {size / cases / 1e3:.1f} |",
                flush=True,
            )
            before = cases
    return 0


if __name__ == "__main__":
    sys.exit(main())
