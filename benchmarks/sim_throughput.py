# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Measure how long the executor takes for every rung of every ladder, and for a whole command.

Usage: python benchmarks/sim_throughput.py page FOLDER > docs/executor-speed.md
       python benchmarks/sim_throughput.py measure FILE
       python benchmarks/sim_throughput.py table BEFORE AFTER

`page` measures the version whose checkout FOLDER is (made by `git worktree add FOLDER COMMIT`), then this
one, and prints both side by side: by `measure`, for each with PYTHONPATH naming its folder, and `table`.
The machine should do nothing else meanwhile. Both versions execute the same PTX, and find their own modules
compiled to bytecode.
"""

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
from gpuprof.measure.plan import plan_cases
from gpuprof.measure.request import make_request

CARD = "h200"
#: A size that is run whole, and one of which a sample is.
SIZES: dict[str, tuple[tuple[int, ...], ...]] = {
    "gemm": ((128, 128, 128), (4096, 4096, 4096)),
    "transpose": ((128, 128), (4096, 4096)),
    "reduce": ((4096,), (4194304,)),
    "softmax": ((128, 128), (4096, 4096)),
}
INTRODUCTION = """# How fast the executor is

The executor as one {device}: whole commands, with an empty compile cache, in as many processes as there are
cores; then each rung of the shipped ladders, in seconds of CPU time without the compiler's. The last column
says how many times less the second version takes. A row that did not run says how it ended.

Made by `git worktree add BEFORE {before}` and `python benchmarks/sim_throughput.py page BEFORE`, on
{machine}.

What saves the time:

- Loads from shared memory that feed float32 arithmetic are played with it by machine code, and are counted
  and logged together where their addresses were met before (`steps/shared_loads.py`,
  `arithmetic/float_player.py`). A chain of multiply-adds keeps its sum in the CPU's registers.
- Accesses to global memory, and copies from there, that moved from one pass of a loop to the next by whole
  sectors or lines cost what they cost before. One comparison of their addresses proves it; nothing is counted
  again (`memory/coalescing.py`, `memory/landing.py`).
- Turns of a pipelined loop that are sure to do what turns before them did are not run in launches without
  values: that they count the same is proved by induction, for each block as far as it holds
  (`divergence/recurring_turns.py`, `divergence/moves.py`).
- Inputs are not copied into device memory unless a kernel changes them. Outputs are mapped from one file of
  poison, so that a sample of the blocks pays for the pages that it writes.
- References of elements that the last kernels were sampled at are kept.
- Decoding works with sets of basic blocks as numbers, from what post-dominates a branch to what every turn of
  a loop passes. All sizes of a kernel go to one worker process, which decodes it once, and no two compile the
  same kernel. A kernel that chooses another by size goes there too: what they share is executed once.
- What a pattern of shared addresses costs is remembered by the distances between its lanes: unrolled code
  has the same one again and again (`memory/banks.py`).
- Worker processes look for garbage rarely. Decoded kernels are very many objects, and all of them stay.
- nvdisasm takes half a second to begin. So it reads the machine code of all kernels that are compiled by then
  in one run (`machine_code/merged_cubins.py`).
- What is known of a set of lanes, from how many they are to where they access shared memory, stays known when
  they part and meet again (`divergence/strands.py`)."""


def main() -> None:
    """Do what the command line says."""
    match sys.argv[1:]:
        case ["page", folder]:
            _print_page(Path(folder))
        case ["measure", path]:
            result = {
                "machine": _machine(),
                "version": _version(),
                "commands": _commands(),
                "rungs": _rungs(),
            }
            Path(path).write_text(json.dumps(result, indent=1) + "\n")
        case ["table", before, after]:
            _print_table(*(json.loads(Path(path).read_text()) for path in (before, after)))
        case _:
            sys.exit(__doc__)


def _print_page(before: Path) -> None:
    """Measure another version and this one, each in a process of its own, and print both."""
    with tempfile.TemporaryDirectory() as folder:
        measured = []
        for checkout in (before.resolve(), Path(__file__).resolve().parents[1]):
            file = f"{folder}/{len(measured)}.json"
            environment = {**os.environ, "PYTHONPATH": str(checkout), "GPUPROF_CACHE_DIR": f"{folder}/ptx"}
            environment |= {"PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            command = [sys.executable, __file__, "measure", file]
            subprocess.run(command, env=environment, check=True, stdout=sys.stderr)
            measured.append(json.loads(Path(file).read_text()))
        _print_table(*measured)


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
    backend = SimBackend(load_card(CARD), seed=0)
    compiler = Compiler(backend.compile_arch)
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
        compiler.compile_ahead(kernel, shape)
        compiler(kernel, shape)
    except GpuprofError:
        return


def _print_table(before: dict[str, Any], after: dict[str, Any]) -> None:
    known = {"before": before["version"], "machine": after["machine"]}
    print(INTRODUCTION.format(device=load_card(CARD).name, **known))
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
