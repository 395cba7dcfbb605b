# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What ptxas makes of recorded kernels: how their machine code differs from their PTX.

Usage: python benchmarks/machine_code.py FILE --ptxas PATH --nvdisasm PATH

FILE holds recorded answers of random kernels. For each, the opcodes that bear on counters are counted in the
PTX and in the machine code, and written where reasons in tests/executor/differential/known_differences.toml
find them. ptxas must be of the CUDA version that compiled the kernels for the card.
"""

import argparse
import json
import re
import subprocess
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import asking  # noqa: F401  (it finds the rooms of the tests)

from answers_file import load_answers  # isort: skip

OUTPUT = Path(__file__).parents[1] / "tests" / "executor" / "differential" / "random-machine-code.json"
#: Opcodes of machine code, and what they are in PTX.
_OPCODES = {
    "LDG": r"ld(\.volatile|\.relaxed\S*?|\.acquire\S*?)?\.global",
    "STG": r"st(\.volatile|\.relaxed\S*?|\.release\S*?)?\.global",
    "LDS": r"ld(\.volatile)?\.shared",
    "STS": r"st(\.volatile)?\.shared",
    "ATOMS": r"(atom|red)\.shared",
    "BAR": r"(bar|barrier)\.(cta\.)?(sync|arrive|red)",
    "FFMA": r"fma\.r\w+\.(ftz\.)?(sat\.)?f32",
    "DFMA": r"fma\.r\w+\.f64",
}
#: What else tells of a change that counters show.
_TELLING = ("CAS loop", "BREAK", "REDUX", "VOTE", "VOTEU", "LDGSTS", "LDGSTS.BYPASS P0", "LDG sunk")
#: Loads before the first branch: where machine code has fewer, some are done behind it, by who needs them.
_FIRST_LOADS = "first LDG"
_PTX_LINE = re.compile(r"^\s*(?:\{\s*)?(@!?%\w+\s+)?([a-z][\w.:]+)", re.MULTILINE)
_SASS_LINE = re.compile(r"^\s+/\*[0-9a-f]+\*/\s+(@!?U?P\w+ )?\s*([A-Z][\w.]*)([^;]*)", re.MULTILINE)


def in_ptx(ptx: str) -> Counter[str]:
    """Count instructions of PTX by the opcodes that they would be."""
    found: Counter[str] = Counter()
    for line in _PTX_LINE.finditer(ptx):
        found.update([opcode for opcode, name in _OPCODES.items() if re.match(name, line[2])])
    for line in _PTX_LINE.finditer(ptx.partition(".entry")[2]):
        if line[2].startswith("bra"):
            break
        found[_FIRST_LOADS] += bool(re.match(_OPCODES["LDG"], line[2]))
    return found


def in_machine_code(text: str, kernel: str) -> Counter[str]:
    """Count a kernel's opcodes; `@BAR` are those under a predicate, and subroutines are left out."""
    code = text.partition(f".text.{kernel}:")[2].partition("\n$__internal")[0]
    found: Counter[str] = Counter()
    branched = False
    for line in _SASS_LINE.finditer(code):
        opcode = line[2].partition(".")[0]
        found[opcode] += 1
        found[f"@{opcode}"] += bool(line[1])
        branched |= opcode in ("BRA", "BRX")
        found[_FIRST_LOADS] += opcode == "LDG" and not branched
        past_cache = opcode == "LDGSTS" and ".BYPASS" in line[2]
        found["LDGSTS.BYPASS P0"] += past_cache and line[3].rstrip().endswith(" P0")
        found["CAS loop"] += ".SPIN" in line[2] or (opcode == "ATOMS" and ".CAS" in line[2])
    return +found


def compared(name: str, ptx: str, ptxas: str, nvdisasm: str) -> dict[str, dict[str, int]]:
    """Compile a kernel, and return what is counted of both codes."""
    with tempfile.TemporaryDirectory() as scratch:
        source, cubin = Path(scratch, "kernel.ptx"), Path(scratch, "kernel.cubin")
        source.write_text(ptx)
        subprocess.run([ptxas, "-arch=sm_90", str(source), "-o", str(cubin)], check=True)
        shown = subprocess.run(
            [nvdisasm, "-c", "-ndf", str(cubin)], check=True, capture_output=True, text=True
        )
    kept = {*_OPCODES, *(f"@{opcode}" for opcode in _OPCODES), *_TELLING}
    text, code = in_ptx(ptx), in_machine_code(shown.stdout, name)
    code["LDG sunk"] = max(0, text.pop(_FIRST_LOADS, 0) - code[_FIRST_LOADS])
    return {"ptx": dict(text), "sass": {opcode: n for opcode, n in (+code).items() if opcode in kept}}


def main() -> None:
    """Parse and do."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="recorded answers")
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--nvdisasm", default="nvdisasm")
    options = parser.parse_args()
    answers = load_answers(options.file)["answers"]
    counted = {name: answer["ptx"] for name, answer in answers.items() if "counters" in answer}
    with ThreadPoolExecutor() as pool:
        jobs = {
            name: pool.submit(compared, name, ptx, options.ptxas, options.nvdisasm)
            for name, ptx in counted.items()
        }
        lines = [f"{json.dumps(name)}: {json.dumps(job.result())}" for name, job in jobs.items()]
    OUTPUT.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"Wrote {OUTPUT}: {len(lines)} kernels")


if __name__ == "__main__":
    main()
