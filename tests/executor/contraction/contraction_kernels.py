# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels that tell what ptxas contracts, as PTX: random ones, and one for each that may part two.

Only the standard library is used. `benchmarks/contraction.py` asks ptxas about all of them.
"""

import random
from collections.abc import Iterator
from pathlib import Path

#: Bytes of a value, by type, and the type of its registers.
TYPES = {
    "f32": (4, "f32"),
    "f64": (8, "f64"),
    "f16": (2, "b16"),
    "bf16": (2, "b16"),
    "f16x2": (4, "b32"),
    "bf16x2": (4, "b32"),
}
_HEAD = """.version 8.7
.target sm_90
.address_size 64
"""
_KERNEL = """.visible .entry {name}(.param .u64 in, .param .u64 out)
{{
    .reg .pred %p<8>;
    .reg .b16 %h<8>;
    .reg .b32 %r<16>;
    .reg .b64 %rd<16>;
    .reg .f64 %d<8>;
    .reg .{register} %x<20>;
    .reg .{register} %t<400>;
    ld.param.u64 %rd1, [in];
    ld.param.u64 %rd2, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 256;
    add.s64 %rd1, %rd1, %rd3;
    add.s64 %rd2, %rd2, %rd3;
{body}
    ret;
}}
"""
_INPUTS = 6
#: What branching kernels assign to.
_VARIABLES = 12


def module(kernels: dict[str, str]) -> str:
    """Return one PTX text of several kernels."""
    return _HEAD + "".join(kernels.values())


def kernel(name: str, kind: str, lines: list[str], inputs: int, outputs: list[str]) -> str:
    """Return a kernel that loads `%x0` and on, runs lines, and stores registers."""
    size, register = TYPES[kind]
    loads = [f"ld.global.{register} %x{i}, [%rd1+{i * size}];" for i in range(inputs)]
    stores = [f"st.global.{register} [%rd2+{i * size}], {name};" for i, name in enumerate(outputs)]
    body = "\n".join(f"    {line}" for line in (*loads, *lines, *stores))
    return _KERNEL.format(name=name, register=register, body=body)


def straight_kernels() -> dict[str, tuple[str, str]]:
    """Return kernels without branches, with their types: random expressions of every type, by name."""
    found = {}
    for kind in ("f32", "f32.ftz", "f64", "f16x2", "bf16x2"):
        for seed in range(120 if kind == "f32" else 50):
            rng = random.Random(f"{kind} {seed}")
            name = f"{kind.replace('.', '_')}_{seed}"
            found[name] = (kind.partition(".")[0], _straight(rng, name, kind))
    return found


def _straight(rng: random.Random, name: str, kind: str) -> str:
    kind, _, ftz = kind.partition(".")
    flush = f".{ftz}" if ftz else ""
    opcodes = ["mul"] * 6 + ["add"] * 5 + ["sub"] * 4 + ["fma.rn", "mul.rn", "add.rn"]
    # `neg` of a packed or flushed value may be an instruction of its own.
    opcodes += ["neg", "mov"] if kind in ("f32", "f64") and not ftz else []
    known = [f"%x{i}" for i in range(_INPUTS)]
    lines, made, read = [], [], set()
    for i in range(rng.randint(4, 14)):
        opcode = rng.choice(opcodes)
        count = {"fma.rn": 3, "neg": 1, "mov": 1}.get(opcode, 2)
        operands = [rng.choice(known[-6:] if rng.random() < 0.6 else known) for _ in range(count)]
        if kind == "f32" and count == 2 and rng.random() < 0.05:
            operands[rng.randrange(2)] = rng.choice(("0f40400000", "0fBFC00000"))
        suffix = "" if opcode == "mov" else flush
        lines.append(f"{opcode}{suffix}.{kind} %t{i}, {', '.join(operands)};")
        made.append(f"%t{i}")
        known.append(f"%t{i}")
        read |= {*operands}
    outputs = [register for register in made if register not in read]
    outputs += rng.sample(made, min(len(made), 2))
    return kernel(name, kind, lines, _INPUTS, [*dict.fromkeys(outputs)])


#: Small kernels of every type: what is done with the product `%t0`, and perhaps the product `%t1`.
FORMS = {
    "sum": ["add %t2, %t0, %x4"],
    "sum_swapped": ["add %t2, %x4, %t0"],
    "product_minus": ["sub %t2, %t0, %x4"],
    "minus_product": ["sub %t2, %x4, %t0"],
    "two_products": ["add %t2, %t0, %t1"],
    "two_products_swapped": ["add %t2, %t1, %t0"],
    "two_products_minus": ["sub %t2, %t0, %t1"],
    "two_products_minus_swapped": ["sub %t2, %t1, %t0"],
    "chain": ["add %t3, %t0, %t1", "add %t2, %t3, %x4"],
    "other_use": ["mul %t3, %t0, %x5", "add %t4, %t0, %x4", "fma.rn %t2, %t3, %t4, %x1"],
    "addend_of_fma": ["fma.rn %t3, %x4, %x5, %t0", "add %t4, %t0, %x4", "fma.rn %t2, %t3, %t4, %x1"],
    "twice_the_product": ["add %t2, %t0, %t0"],
    "rounded_sum": ["add.rn %t2, %t0, %x4"],
}


def form_kernels() -> dict[str, tuple[str, str]]:
    """Return kernels of one idea each, with their types, by name."""
    found = {}
    for kind in TYPES:
        for form, sums in FORMS.items():
            lines = ["mul %t0, %x0, %x1", "mul %t1, %x2, %x3", *sums]
            typed = [line.replace(" ", f".{kind} ", 1) + ";" for line in lines]
            name = f"{form}_{kind}"
            found[name] = (kind, kernel(name, kind, typed, _INPUTS, ["%t2"]))
    return found


def branching_kernels() -> dict[str, str]:
    """Return random kernels with branches, loops, barriers and registers that are written again, by name.

    A third of the products of some have a constant factor, and are read from deeper inside too.
    """
    found = {}
    for title, constants in (("branches", 0.0), ("constants", 0.3)):
        for seed in range(150):
            rng = random.Random(f"{title} {seed}")
            name = f"{title}_{seed}"
            lines = ["ld.global.u32 %r2, [%rd1+128];", *_Branches(rng, constants).lines(depth=3)]
            found[name] = kernel(name, "f32", lines, _VARIABLES, [f"%x{i}" for i in range(_VARIABLES)])
    return found


class _Branches:
    """Random statements on the variables `%x0` and on, in which nothing is computed twice or in vain."""

    def __init__(self, rng: random.Random, constants: float) -> None:
        self.rng, self.constants = rng, constants
        #: Products with a constant that can be read where lines are made now.
        self.far: list[str] = []
        self.labels = self.temporaries = self.loops = 0
        self.seen: set[tuple[str, ...]] = set()

    def lines(self, depth: int) -> Iterator[str]:
        """Yield lines; those deeper are inside branches."""
        seen_before = len(self.far)
        for _ in range(self.rng.randint(2, 5)):
            choice = self.rng.random()
            if depth == 0 or choice < 0.6:
                yield from self._assignment()
            elif choice < 0.8:
                yield from self._branch(depth)
            elif choice < 0.87 and self.loops < 3:
                yield from self._loop(depth)
            elif choice < 0.93:
                yield "bar.sync 0;"
            else:
                place, value = self.rng.randrange(64, 250, 4), self.rng.randrange(_VARIABLES)
                yield f"st.global.f32 [%rd2+{place}], %x{value};"
        del self.far[seen_before:]

    def _assignment(self) -> Iterator[str]:
        variables = [f"%x{i}" for i in range(_VARIABLES)]
        target = self.rng.choice(variables)
        unread: list[str] = []
        for _ in range(self.rng.randint(1, 4)):
            result = f"%t{self.temporaries}"
            opcode, *operands = self._operation([*variables, *unread * 4])
            yield f"{opcode}.f32 {result}, {', '.join(operands)};"
            if operands[1].startswith("0f"):
                self.far.append(result)
            unread = [name for name in unread if name not in operands or self.rng.random() < 0.3] + [result]
            self.temporaries += 1
        for name in unread:
            opcode = self.rng.choice(("add", "sub", "mul"))
            operands = self.rng.sample([name, target], 2)
            yield f"{opcode}.f32 {target}, {', '.join(operands)};"

    def _operation(self, known: list[str]) -> tuple[str, ...]:
        while True:
            opcode = self.rng.choice(("mul", "mul", "mul", "add", "sub", "fma.rn"))
            operands = [self.rng.choice(known) for _ in range(3 if opcode == "fma.rn" else 2)]
            if self.far and self.rng.random() < (0.05 if opcode in ("mul", "fma.rn") else 0.5):
                operands[self.rng.randrange(len(operands))] = self.rng.choice(self.far)
            if opcode == "mul" and self.constants and self.rng.random() < self.constants:
                operands[1] = f"0f{0x3FA0_0000 + 0x1000 * self.temporaries:08X}"
            found = (opcode.replace("sub", "add"), *sorted(operands[:2]), *operands[2:])
            if found not in self.seen:
                self.seen.add(found)
                return (opcode, *operands)

    def _label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def _condition(self) -> Iterator[str]:
        # What ptxas cannot know: of two equal conditions it would leave out one.
        yield "ld.volatile.global.u32 %r3, [%rd1+132];"
        yield "setp.ne.s32 %p1, %r3, 0;"

    def _branch(self, depth: int) -> Iterator[str]:
        after, otherwise = self._label(), self._label()
        yield from self._condition()
        if self.rng.random() < 0.4:
            yield f"@%p1 bra {otherwise};"
            yield from self.lines(depth - 1)
            yield "bar.sync 1;"
            yield f"bra.uni {after};"
            yield f"{otherwise}:"
        else:
            yield f"@%p1 bra {after};"
        yield from self.lines(depth - 1)
        # Without one, ptxas may move the end of a branch to where it is common to both.
        yield "bar.sync 2;"
        yield f"{after}:"

    def _loop(self, depth: int) -> Iterator[str]:
        counter, begin = f"%r{10 + self.loops}", self._label()
        self.loops += 1
        yield f"mov.u32 {counter}, %r2;"
        yield f"{begin}:"
        yield '.pragma "nounroll";'
        yield from self.lines(depth - 1)
        yield "bar.sync 3;"
        yield f"sub.s32 {counter}, {counter}, 1;"
        yield f"setp.ne.s32 %p2, {counter}, 0;"
        yield f"@%p2 bra {begin};"


_BETWEEN = (Path(__file__).parent / "between.ptx").read_text().splitlines()[3:]


def parted_kernels() -> dict[str, tuple[str, str]]:
    """Return kernels with an instruction between a product and its sum, with that instruction, by name."""
    found = {}
    setup = [
        "ld.global.v2.u32 {%r2, %r3}, [%rd1+128];",
        "ld.global.v2.u64 {%rd5, %rd6}, [%rd1+144];",
        "cvt.u16.u32 %h1, %r2;",
        "cvt.u16.u32 %h2, %r3;",
        "cvt.rn.f64.s64 %d1, %rd5;",
        "setp.ne.s32 %p1, %r2, %r3;",
    ]
    for number, line in enumerate(_BETWEEN):
        name = f"between_{number}"
        lines = [*setup, "mul.f32 %t0, %x4, %x5;", line, "add.f32 %t1, %t0, %t9;"]
        # What it takes is stored too: else nothing tells which registers hold it.
        found[name] = (line, kernel(name, "f32", lines, _INPUTS, ["%t1"]))
    return found
