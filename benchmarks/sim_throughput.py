# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Measure how long the executor takes for every rung of every ladder, and for a whole command.

Usage: python benchmarks/sim_throughput.py measure FILE
       python benchmarks/sim_throughput.py data FILE > docs/data/executor-speed.csv
       python benchmarks/sim_throughput.py table BEFORE AFTER

`table` holds two files beside each other: of another version, measured with PYTHONPATH naming its checkout
(`git worktree add FOLDER COMMIT`), and of this one. The machine should do nothing else meanwhile.
"""

import csv
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import gpuprof
from gpuprof.backends.sim.backend import SimBackend
from gpuprof.devices.cards import load_card
from gpuprof.errors import GpuprofError
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.kernels.shape import configure
from gpuprof.measure.case import Case, resolve
from gpuprof.measure.execute import Compiler, measure_case
from gpuprof.measure.request import make_request, plan_cases

CARD = "h200"
#: A size that is run whole, and one of which a sample is.
SIZES: dict[str, tuple[tuple[int, ...], ...]] = {
    "gemm": ((128, 128, 128), (4096, 4096, 4096)),
    "transpose": ((128, 128), (4096, 4096)),
    "reduce": ((4096,), (4194304,)),
    "softmax": ((128, 128), (4096, 4096)),
}


def main() -> None:
    """Do what the command line says."""
    match sys.argv[1:]:
        case ["measure", path]:
            result = {
                "machine": _machine(),
                "version": _version(),
                "commands": _commands(),
                "rungs": _rungs(),
            }
            Path(path).write_text(json.dumps(result, indent=1) + "\n")
        case ["data", path]:
            _print_data(json.loads(Path(path).read_text())["rungs"])
        case ["table", before, after]:
            _print_table(*(json.loads(Path(path).read_text()) for path in (before, after)))
        case _:
            sys.exit(__doc__)


def _version() -> str:
    """The commit of the version that is measured."""
    checkout = Path(gpuprof.__file__).parents[1]
    command = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _machine() -> str:
    return f"{os.cpu_count()} cores, Python {platform.python_version()}, NumPy {np.__version__}"


def _commands() -> dict[str, dict[str, float]]:
    """Wall and CPU seconds, and the memory in MiB of the largest process, of each ladder's command."""
    found = {}
    # What is imported is compiled to bytecode by now, as it is where a package is installed.
    small = [sys.executable, "-m", "gpuprof", "gemm", "-k", "naive", "--sizes", "16", "--device", "sim"]
    with tempfile.TemporaryDirectory() as folder:
        # Elsewhere, since `-m` looks in the current folder first.
        subprocess.run([*small, "--quiet", "-o", folder], check=True, stdout=subprocess.DEVNULL, cwd=folder)
    for name, sizes in SIZES.items():
        listed = ",".join("x".join(map(str, dict.fromkeys(size))) for size in sizes)
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "GPUPROF_CACHE_DIR": f"{folder}/cache"}
            command = [sys.executable, "-m", "gpuprof", name, "--all", "--sizes", listed]
            command += ["--device", f"sim:{CARD}", "--timeout", "600", "--quiet", "-o", f"{folder}/out"]
            start = time.perf_counter()
            process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, cwd=folder)
            _, _, used = os.wait4(process.pid, 0)  # with what its workers used
            wall = time.perf_counter() - start
        found[f"gpuprof {name} --all --sizes {listed}"] = {
            "wall_s": wall,
            "cpu_s": used.ru_utime + used.ru_stime,
            "peak_mib": used.ru_maxrss / 1024,
        }
    return found


def _rungs() -> list[dict[str, Any]]:
    backend = SimBackend(load_card(CARD))
    compiler = Compiler(backend.device.arch)
    found = []
    for name, sizes in SIZES.items():
        for case in plan_cases(make_request(shipped_ladder(name), sizes=sizes)):
            _compile(case, backend, compiler)
            start = time.process_time()
            measurement, _ = measure_case(case, backend, compiler)
            seconds = time.process_time() - start
            size = "x".join(map(str, dict.fromkeys(case.problem.sizes)))
            row = {"ladder": name, "kernel": measurement.kernel, "size": size}
            found.append({**row, "outcome": measurement.outcome, "seconds": seconds})
            print(f"{name} {measurement.kernel} {size}: {seconds:.2f} s", file=sys.stderr)
    return found


def _compile(case: Case, backend: SimBackend, compiler: Compiler) -> None:
    """Compile ahead, so that it is not counted; what is wrong with a case is told when it is measured."""
    try:
        resolved, kernel = resolve(case, backend.device)
        shape = configure(kernel, resolved.problem, resolved.block, resolved.params, backend.device)
        compiler.compile_ahead(shape)
        compiler(shape)
    except GpuprofError:
        return


def _print_data(rungs: list[dict[str, Any]]) -> None:
    """Every rung with the seconds of CPU time that it took, as CSV."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("ladder", "kernel", "size", "outcome", "cpu_s"))
    for row in rungs:
        seconds = f"{row['seconds']:.2f}" if row["outcome"] == "ok" else ""
        writer.writerow((row["ladder"], row["kernel"], row["size"], row["outcome"], seconds))


def _print_table(before: dict[str, Any], after: dict[str, Any]) -> None:
    print(f"{before['version']} and {after['version']}, on {after['machine']}.")
    print("\n| command | | before | after | |\n|---|---|---|---|---|")
    for command, new in after["commands"].items():
        old = before["commands"][command]
        for key, title in (("wall_s", "seconds"), ("cpu_s", "seconds of CPU"), ("peak_mib", "peak MiB")):
            cells = [title, f"{old[key]:.1f}", f"{new[key]:.1f}", f"{old[key] / new[key]:.1f} x"]
            print(f"| `{command}` | {' | '.join(cells)} |")
    old_rows = {(row["ladder"], row["kernel"], row["size"]): row for row in before["rungs"]}
    print("\n| ladder | kernel | size | before | after | |\n|---|---|---|---|---|---|")
    for new in after["rungs"]:
        old = old_rows.get((new["ladder"], new["kernel"], new["size"]))
        faster = ""
        if old and old["outcome"] == new["outcome"] == "ok":
            faster = f"{old['seconds'] / new['seconds']:.1f} x"
        shown = [_shown(old), _shown(new), faster]
        print(f"| {new['ladder']} | {new['kernel']} | {new['size']} | {' | '.join(shown)} |")


def _shown(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    return f"{row['seconds']:.2f}" if row["outcome"] == "ok" else row["outcome"]


if __name__ == "__main__":
    main()
