# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which atomics of recorded kernels ptxas lets one lane do for its warp.

Usage: python benchmarks/merged_atomics.py [--ptxas PATH]

Compiles the PTX that cards were asked with, and writes the lines of it where machine code merges an atomic
operation, for the tests and for docs/executor-accuracy.md. ptxas must be of the CUDA version that compiled
the kernels for the card.
"""

import argparse
import json
import re
import subprocess
import tempfile
from pathlib import Path

import asking  # noqa: F401  (it finds the rooms of the tests)

from answers_file import load_answers  # isort: skip

from gpuprof.machine_code.disassembler import disassemble
from gpuprof.machine_code.linking import merged_atomics
from gpuprof.machine_code.sass import read_machine_code

TESTS = Path(__file__).parents[1] / "tests" / "executor"
OUTPUT = TESTS / "hardware" / "merged-atomics.json"
_RECORDED = (
    TESTS / "public_style" / "answers-h200.json.xz",
    TESTS / "differential" / "random-h200.json.xz",
)
_GLOBAL_ATOMIC = re.compile(r"^\s*(?:@!?%\w+\s+)?(?:atom|red)\.(?!shared)", re.MULTILINE)


def listing(ptx: str, ptxas: str) -> str:
    """Return what ptxas makes of PTX, disassembled."""
    with tempfile.TemporaryDirectory() as scratch:
        source, cubin = Path(scratch, "kernel.ptx"), Path(scratch, "kernel.cubin")
        source.write_text(ptx)
        command = [ptxas, "-arch=sm_90", "-lineinfo", str(source), "-o", str(cubin)]
        subprocess.run(command, check=True)
        return disassemble(cubin.read_bytes())


def main() -> None:
    """Parse and do."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ptxas", default="ptxas")
    options = parser.parse_args()
    listings: dict[str, str] = {}
    found: dict[str, list[int]] = {}
    for path in _RECORDED:
        for name, answer in load_answers(path)["answers"].items():
            ptx = answer.get("ptx", "")
            if not _GLOBAL_ATOMIC.search(ptx):
                continue
            if ptx not in listings:
                listings[ptx] = listing(ptx, options.ptxas)
            if lines := merged_atomics(read_machine_code(listings[ptx], name)):
                found[name] = sorted(lines)
    OUTPUT.write_text(json.dumps(found, indent=1) + "\n")
    print(f"Wrote {OUTPUT}: {len(found)} kernels")


if __name__ == "__main__":
    main()
