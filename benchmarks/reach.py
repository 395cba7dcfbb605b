# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the executor models of the kernels in a folder: how many decode fully, and what stops the others.

Usage: python benchmarks/reach.py FOLDER [--nvcc PATH] [-I FOLDER …] [--seconds N] [--json FILE]

Of each PTX file every kernel is decoded, nothing is run; with --nvcc, files of CUDA source are compiled too,
for sm_90, with the headers of their own folders and those of -I. A kernel decodes fully when every
instruction of it, and of all that it may call, is modelled. What does not compile within 20 s is left out
and counted.
"""

import argparse
import json
import re
import signal
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from gpuprof.executor import UnsupportedInstruction, load_program

_ENTRY = re.compile(r"\.entry\s+([\w$]+)")
_ARCH = "sm_90"
_COMPILE_S = 20


class _TooLong(Exception):
    """A kernel took longer than it may."""


def texts_of(folder: Path, nvcc: str | None, headers: list[Path]) -> Iterator[tuple[str, str]]:
    """Yield each file's name and PTX, empty where it does not compile."""
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".ptx":
            yield str(path.relative_to(folder)), path.read_text()
        elif path.suffix == ".cu" and nvcc:
            yield str(path.relative_to(folder)), ptx_of(path, nvcc, headers)


def ptx_of(path: Path, nvcc: str, headers: list[Path]) -> str:
    """Return the PTX of a CUDA source; empty where it does not compile."""
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "kernel.ptx"
        folders = [f"-I{folder}" for folder in (path.parent, *headers)]
        options = ["--ptx", f"-arch={_ARCH}", "-std=c++17", "-w", *folders, "-o", str(target)]
        try:
            subprocess.run([nvcc, *options, str(path)], check=True, capture_output=True, timeout=_COMPILE_S)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            return ""
        return target.read_text()


def missing(ptx: str, kernel: str, seconds: int) -> tuple[str, ...]:
    """Return what of a kernel is not modelled; empty when all is."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        return tuple(sorted({name for name, _ in load_program(ptx, kernel).unmodelled}))
    except UnsupportedInstruction as why:
        return (why.name,)
    except _TooLong:
        return (f"decoding in {seconds} s",)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _interrupt(*_: object) -> None:
    raise _TooLong


def main() -> None:
    """Decode, and print the two tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nvcc", help="the compiler, for files of CUDA source")
    parser.add_argument("-I", dest="headers", type=Path, action="append", default=[], help="more headers")
    parser.add_argument(
        "--seconds", type=int, default=120, help="processor time that decoding a kernel may take"
    )
    parser.add_argument("--json", type=Path, help="where to write what each kernel lacks")
    options = parser.parse_args()
    # Processor time: what else runs here must not decide.
    signal.signal(signal.SIGPROF, _interrupt)
    lacks: dict[str, dict[str, tuple[str, ...]]] = {}
    uncompiled = 0
    for name, ptx in texts_of(options.folder, options.nvcc, options.headers):
        uncompiled += not ptx
        lacks[name] = {k: missing(ptx, k, options.seconds) for k in dict.fromkeys(_ENTRY.findall(ptx))}
    if options.json:
        options.json.write_text(json.dumps(lacks, indent=1))
    kernels = [(name, kernel, what) for name, of in lacks.items() for kernel, what in of.items()]
    whole = sum(not what for *_, what in kernels)
    share = 100 * whole / max(1, len(kernels))
    print(f"{len(lacks) - uncompiled} files, {uncompiled} more do not compile")
    print(f"{whole} of {len(kernels)} kernels decode fully: {share:.1f} %\n")
    stopped: dict[str, int] = defaultdict(int)
    for *_, found in kernels:
        for what in found:
            stopped[what] += 1
    print("| not modelled | kernels |\n|---|---:|")
    for what, count in sorted(stopped.items(), key=lambda pair: (-pair[1], pair[0])):
        print(f"| `{what}` | {count} |")


if __name__ == "__main__":
    main()
