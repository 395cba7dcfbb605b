# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Print how fast the executor runs the shipped kernels, in lane-instructions per second.

Usage: python benchmarks/sim_throughput.py [KERNEL ...]
"""

import re
import sys
import time
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import numpy as np
from cuda.bindings import nvrtc

from gpuprof.executor import GlobalMemory, LaunchResult, choose_blocks, launch, load_program

KERNELS = Path(__file__).parents[1] / "gpuprof" / "kernels"


@dataclass(frozen=True)
class Workload:
    """One row: a kernel at a size; `sample` blocks of its grid, or all of them."""

    kernel: str
    size: int
    block: tuple[int, int]
    options: tuple[str, ...] = ()
    shared_bytes: int = 0
    sample: int | None = None


WORKLOADS = [
    *(
        Workload(f"gemm/{name}", size, block, options, shared(size), sample)
        for size, sample in ((128, None), (4096, 4))
        for name, block, options, shared in (
            ("naive", (32, 32), (), lambda n: 0),
            ("smem_panel", (32, 32), (), lambda n: 256 * n),
            ("smem_tiled", (32, 32), (), lambda n: 8192),
            ("reg_2x1", (32, 16), ("-DTILE=32",), lambda n: 0),
        )
        if not (name == "smem_panel" and size > 512)
    ),
    *(
        Workload(f"transpose/{path.stem}", 2048, (16, 16))
        for path in sorted((KERNELS / "transpose").glob("*.cu"))
        if path.stem.startswith(("copy_", "naive_", "unroll4_", "diagonal_"))
    ),
]


def compiled(source: str, options: list[str]) -> str:
    """Return the PTX of a CUDA source."""
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], [])
    flags = [b"--gpu-architecture=sm_90", b"-lineinfo", b"--std=c++17", *(o.encode() for o in options)]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(flags), flags)
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(f"NVRTC: {status}")
    _, size = nvrtc.nvrtcGetPTXSize(program)
    text = b" " * size
    nvrtc.nvrtcGetPTX(program, text)
    return text.rstrip(b"\0").decode()


def run(work: Workload) -> tuple[float, float, LaunchResult]:
    """Return (seconds to decode, seconds to run, result)."""
    kind, name = work.kernel.split("/")
    source = (KERNELS / f"{work.kernel}.cu").read_text()
    x, y = work.block
    ptx = compiled(source, ["-Dreal=float", f"-DBLOCK_X={x}", f"-DBLOCK_Y={y}", *work.options])
    n, memory = work.size, GlobalMemory()
    values = np.random.default_rng(0).random((n, n), dtype=np.float32)
    if kind == "gemm":
        a, b, c = (memory.allocate(values, label) for label in "ABC")
        arguments, tile = [n, n, n, 1.0, a, b, 0.0, c], (x, 32)
    else:
        arguments = [n, n, memory.allocate(values, "in"), memory.allocate(values, "out")]
        tile = (x * (4 if re.match("unroll4", name) else 1), y)
    grid = (ceil(n / tile[0]), ceil(n / tile[1]), 1)
    blocks = choose_blocks(grid, work.sample) if work.sample else "all"
    start = time.perf_counter()
    program = load_program(ptx, name)
    decoded = time.perf_counter()
    result = launch(program, grid, (x, y, 1), arguments, memory, work.shared_bytes, blocks)
    return decoded - start, time.perf_counter() - decoded, result


def main() -> None:
    """Run all workloads, or those whose kernel is named."""
    chosen = set(sys.argv[1:])
    print(f"{'kernel':26} {'size':>5} {'blocks':>13} {'decode ms':>9} {'run ms':>8} {'1e9 lane-instr/s':>17}")
    for work in WORKLOADS:
        if chosen and work.kernel.split("/")[1] not in chosen:
            continue
        decode, seconds, result = run(work)
        blocks = f"{result.sampled_blocks}/{result.total_blocks}"
        rate = result.lane_instructions / seconds / 1e9
        times = f"{decode * 1e3:9.1f} {seconds * 1e3:8.1f}"
        print(f"{work.kernel:26} {work.size:5} {blocks:>13} {times} {rate:17.2f}")


if __name__ == "__main__":
    main()
