# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Record what a card counted of GEMM kernels, with what their instructions are reckoned from.

Usage: python benchmarks/ladder_counts.py RESULTS... -k KERNEL[,KERNEL...] [-o FILE]

RESULTS are of `gpuprof gemm --ncu` on the card; NVRTC must be of the version that compiled there. The file
holds machine code as nvdisasm prints it, its PTX, what the executor counted by blocks of the PTX, and what
the card counted in each run: tests/executor/test_ladder_counts.py reckons the one from the other.
"""

import argparse
import hashlib
from pathlib import Path
from typing import Any

from accuracy_cases import ROOT
from recording import save_answers

from gpuprof.backends.compiling import compile_kernel
from gpuprof.backends.sim.backend import SimBackend
from gpuprof.backends.sim.launching import device_memory, launches_of
from gpuprof.counters import PIPES
from gpuprof.devices.cards import load_card
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.kernels.shape import configure
from gpuprof.machine_code.disassembler import disassemble
from gpuprof.problems.problem import Problem
from gpuprof.reading import read_run
from gpuprof.results import Measurement
from gpuprof.toolchain.nvrtc import nvrtc_version

OUTPUT = ROOT / "tests" / "executor" / "machine_code" / "ladder-h200.json.xz"
_NAMES = ("warp_instructions", *(f"pipe_{pipe}_instructions" for pipe in PIPES))


def _record(backend: SimBackend, case: Measurement, answers: dict[str, dict[str, Any]]) -> dict[str, Any]:
    ladder = shipped_ladder("gemm")
    kernel = ladder.find(case.kernel)
    if kernel.source_hash != case.source_hash:
        raise SystemExit(f"{case.kernel} is another kernel than the one that was counted.")
    problem = Problem.of(ladder.operation, tuple(case.problem.sizes.values()), case.problem.dtype)
    shape = configure(kernel, problem, case.block, case.params, backend.device)
    compiled = compile_kernel(shape, backend.device.arch)
    (function,) = compiled.values()
    launches = launches_of(backend.decoded, shape, compiled, backend.samples(shape))
    (program,) = launches.programs.values()
    memory, buffers = device_memory(shape, backend.references_of(problem).inputs, None)
    (result,) = launches.run(memory, buffers)
    listing = program.listing
    blocks = {"warps": result.block_warps, "threads": result.block_threads, "parted": result.block_parted}
    code = f"code {hashlib.sha256(function.cubin).hexdigest()[:16]}"
    answers[code] = {
        "entry": function.entry,
        "ptx": function.ptx,
        "listing": disassemble(function.cubin),
        "places": listing.places,
        "loops": {
            header: [loop.entries, sorted(loop.body), sorted(loop.each_iteration)]
            for header, loop in listing.loops.items()
        },
        "waits": sorted(listing.waits),
    }
    counted = {name: each.tolist() for name, each in blocks.items()}
    # Of these kernels all lanes of a warp make as many iterations.
    turns = {
        header: {made: entries for (made,), entries in each.items()}
        for header, each in result.loop_iterations.items()
    }
    return {"code": code, **counted, "turns": turns, "counters": []}


def main() -> None:
    """Parse and do."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("-k", dest="kernels", required=True)
    parser.add_argument("-o", dest="output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    backend, answers = SimBackend(load_card("h200")), dict[str, dict[str, Any]]()
    about = {}
    for run in map(read_run, options.results):
        about = {name: run.environment.get(name, "") for name in ("nvrtc", "ncu", "driver")}
        installed = "{}.{}".format(*nvrtc_version())
        if installed != about["nvrtc"]:
            raise SystemExit(f"The card's code is of NVRTC {about['nvrtc']}, and this is {installed}.")
        for case in run.cases:
            if case.kernel not in options.kernels.split(",") or not case.counters:
                continue
            key = f"{case.kernel} {'x'.join(map(str, case.problem.sizes.values()))}"
            if key not in answers:
                print(key, flush=True)
                answers[key] = _record(backend, case, answers)
            answers[key]["counters"].append({name: case.counters[name].value for name in _NAMES})
    save_answers(options.output, {"card": "NVIDIA H200", **about}, answers)
    print(f"Wrote {options.output}, {options.output.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
