# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Ask ptxas which products and sums it contracts, and write down what it answers.

Usage: python benchmarks/contraction.py --ptxas PATH --nvdisasm PATH [--check]

Compiles the kernels of tests/executor/contraction for sm_90 and reads the machine code: of straight kernels
what each store holds, as an expression; of branching ones how many instructions of each kind there are; of
the others whether product and sum became one. The answers go to tests/executor/contraction/ptxas.json.
--check compares with what stands there instead, for another version of ptxas.
"""

import argparse
import json
import re
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "executor" / "contraction"
sys.path[:0] = [str(ROOT), str(FOLDER)]

from contraction_kernels import (  # noqa: E402
    TYPES,
    branching_kernels,
    form_kernels,
    module,
    parted_kernels,
    straight_kernels,
)
from expressions import Value, constant, multiply_add, product, total  # noqa: E402

OUTPUT = FOLDER / "ptxas.json"
_SECTION = re.compile(r"^\.text\.(\w+):$", re.MULTILINE)
_LINE = re.compile(r"^\s+/\*[0-9a-f]{4}\*/\s+(@!?U?P\w+ )?\s*([A-Z][\w.]*)\s*(.*?)\s*;", re.MULTILINE)
_OFFSET = re.compile(r"\[[^\[\]]*?(?:\+(0x[0-9a-f]+))?\]$")
_REGISTER = re.compile(r"(-?)(\|?)(U?R(?:\d+|Z))(?:\.reuse)?(?:\.H0_H0)?\|?(?:\.reuse)?(?:\.H0_H0)?$")
_COUNTED = ("FFMA", "FMUL", "FADD")

#: One instruction of machine code: its opcode and its operands.
Code = list[tuple[str, list[str]]]


def machine_code(kernels: dict[str, str], ptxas: str, nvdisasm: str) -> dict[str, Code]:
    """Compile kernels; return the machine code of each."""
    with tempfile.TemporaryDirectory() as scratch:
        source, cubin = Path(scratch, "kernels.ptx"), Path(scratch, "kernels.cubin")
        source.write_text(module(kernels))
        subprocess.run([ptxas, "-arch=sm_90", str(source), "-o", str(cubin)], check=True)
        shown = subprocess.run(
            [nvdisasm, "-c", "-ndf", str(cubin)], check=True, capture_output=True, text=True
        )
    parts = _SECTION.split(shown.stdout)
    found = {}
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        own = text.partition("\n$__internal")[0]
        found[name] = [(line[2], [x.strip() for x in line[3].split(",")]) for line in _LINE.finditer(own)]
    return {name: found[name] for name in kernels}


def stored(code: Code, kind: str) -> dict[int, str]:
    """Return what a kernel without branches stores, by number, as expressions."""
    size, _ = TYPES[kind]
    values: dict[str, Value] = {}

    def of(operand: str) -> Value:
        if (found := _REGISTER.match(operand)) is None:
            return constant(float(operand))
        minus, bars, name = found.groups()
        value = constant(0) if name.endswith("Z") else values[name]
        if bars:
            raise ValueError(f"a size, {operand}, where none was asked for")
        return -value if minus else value

    expressions: dict[int, str] = {}
    for opcode, operands in code:
        base, *words = opcode.split(".")
        marks = "".join(f".{word.lower()}" for word in words if word in ("FTZ", "SAT"))
        if base == "LDG":
            for byte, register in _moved(opcode, operands[1], operands[0]):
                values[register] = Value(f"x{byte // size}")
        elif base == "STG":
            for byte, register in _moved(opcode, operands[0], operands[-1]):
                if byte % size == 0:
                    expressions[byte // size] = str(values[register])
        elif base in ("FMUL", "DMUL", "HMUL2"):
            values[operands[0]] = _scaled(product(*map(of, operands[1:]), marks), words)
        elif base in ("FADD", "DADD", "HADD2"):
            values[operands[0]] = total(*map(of, operands[1:]), marks)
        elif base in ("FFMA", "DFMA", "HFMA2"):
            values[operands[0]] = _multiply_add(operands[1:], of, marks, packed=base == "HFMA2")
        elif base == "EXIT":
            break
    return expressions


def _scaled(value: Value, words: Iterable[str]) -> Value:
    """A product that FMUL scales by a power of two is one times that."""
    scale = next((word for word in words if re.fullmatch(r"[MD]\d", word)), "")
    factor = float(scale[1:]) if scale[:1] == "M" else 1 / float(scale[1:] or 1)
    return product(value, constant(factor)) if scale else value


def _multiply_add(operands: list[str], of: Callable[[str], Value], marks: str, *, packed: bool) -> Value:
    """One that has a factor 1 is a sum, and one of halves that adds -0 a product."""
    if packed and operands[:2] == ["-RZ", "RZ"]:  # a constant of f32, by its halves
        low, high = struct.pack("<e", float(operands[3])), struct.pack("<e", float(operands[2]))
        return constant(struct.unpack("<f", low + high)[0])
    if packed and len(operands) == 4:  # a factor of two halves
        a, first, second, addend = operands
        assert first == second == "1", f"a factor {first}, {second}"
        return total(of(a), of(addend), marks)
    a, b, c = map(of, operands)
    if packed and operands[2].startswith("-RZ"):
        return product(a, b, marks)
    return multiply_add(a, b, c, marks)


def contracted(code: Code) -> bool:
    """Tell whether the product of x4 and x5 is part of a multiply-add."""
    holding: dict[int, str] = {}
    for opcode, operands in code:
        if opcode.startswith("LDG.E"):
            for byte, register in _moved(opcode, operands[1], operands[0]):
                holding.setdefault(byte, register)
    factors = {holding[16], holding[20]}
    kinds = {
        opcode
        for opcode, operands in code
        if opcode in ("FMUL", "FFMA")
        and {operand.removesuffix(".reuse").lstrip("-") for operand in operands[1:3]} == factors
    }
    if len(kinds) != 1:
        raise ValueError(f"the product is part of {kinds or 'nothing'}")
    return kinds == {"FFMA"}


def _moved(opcode: str, address: str, register: str) -> Iterator[tuple[int, str]]:
    """Yield the words that an instruction moves: their place in bytes, and their registers."""
    first = int(_OFFSET.search(address)[1] or "0", 16)
    words = 4 if ".128" in opcode else 2 if ".64" in opcode else 1
    for i in range(words):
        yield first + 4 * i, f"R{int(register[1:]) + i}"


def answers(ptxas: str, nvdisasm: str) -> dict[str, dict]:
    """Return what ptxas makes of every kernel."""
    told: dict[str, dict] = {}
    for key, kernels in (("straight", straight_kernels()), ("forms", form_kernels())):
        codes = machine_code({name: text for name, (_, text) in kernels.items()}, ptxas, nvdisasm)
        told[key] = {name: stored(code, kernels[name][0]) for name, code in codes.items()}
    counts = {
        name: Counter(opcode.partition(".")[0] for opcode, _ in code)
        for name, code in machine_code(branching_kernels(), ptxas, nvdisasm).items()
    }
    told["branching"] = {name: [count[opcode] for opcode in _COUNTED] for name, count in counts.items()}
    parted = parted_kernels()
    codes = machine_code({name: text for name, (_, text) in parted.items()}, ptxas, nvdisasm)
    told["between"] = {parted[name][0]: contracted(code) for name, code in codes.items()}
    return json.loads(json.dumps(told))


def main() -> None:
    """Parse and do."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--nvdisasm", default="nvdisasm")
    parser.add_argument(
        "--check", action="store_true", help="compare with what stands there, and write nothing"
    )
    options = parser.parse_args()
    version = subprocess.run([options.ptxas, "--version"], check=True, capture_output=True, text=True).stdout
    release = re.search(r"V([\d.]+)", version)[1]
    told = answers(options.ptxas, options.nvdisasm)
    if options.check:
        before = json.loads(OUTPUT.read_text())
        differing = [
            f"{key} {name}"
            for key, rows in told.items()
            for name, row in rows.items()
            if before[key].get(name) != row
        ]
        print("\n".join(differing) or f"ptxas {release} answers as {before['ptxas']} did")
        sys.exit(bool(differing))
    parts = [f'"ptxas": {json.dumps(release)}']
    for key, rows in told.items():
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
        parts.append(f"{json.dumps(key)}: {{\n{lines}\n}}")
    OUTPUT.write_text("{" + ",\n".join(parts) + "}\n")
    print(f"Wrote {OUTPUT}: {sum(map(len, told.values()))} kernels")


if __name__ == "__main__":
    main()
