# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a straight piece of code computes, as text that is the same however it is written.

Signs are moved outward as far as they go, and what may be swapped is sorted. `(x0*x1)` is a rounded product,
`[x0+x1]` a rounded sum, and `<x0*x1+x2>` rounds once.
"""

import struct
from dataclasses import dataclass

from gpuprof.executor.program.ptx import Function, Imm, Instruction, Mem, Reg

_MULTIPLY_ADDS = {"fma": (False, False), "fms": (False, True), "fnma": (True, False), "fnms": (True, True)}


@dataclass(frozen=True, order=True)
class Value:
    """An expression, and whether it stands with a minus."""

    text: str
    minus: bool = False

    def __neg__(self) -> "Value":
        return Value(self.text, not self.minus)

    def __str__(self) -> str:
        return f"-{self.text}" if self.minus else self.text


def product(a: Value, b: Value, marks: str = "") -> Value:
    """Return a product, rounded; `marks` tell how, beside to nearest."""
    first, second = sorted((a.text, b.text))
    return Value(f"({first}*{second}){marks}", a.minus != b.minus)


def total(a: Value, b: Value, marks: str = "") -> Value:
    """Return a sum, rounded; one with zero is a value with its sign changed, or moved."""
    for value, other in ((a, b), (b, a)):
        if value.text == "0":
            return other
    a, b = sorted((a, b))
    return Value(f"[{a.text}{'-' if a.minus != b.minus else '+'}{b.text}]{marks}", a.minus)


def multiply_add(a: Value, b: Value, c: Value, marks: str = "") -> Value:
    """Return a product and an addend, rounded once."""
    first, second = sorted((a.text, b.text))
    minus = a.minus != b.minus
    sign = "-" if c.minus != minus and c.text != "0" else "+"
    return Value(f"<{first}*{second}{sign}{c.text}>{marks}", minus)


def constant(value: float) -> Value:
    """Return a number; a zero has no sign here."""
    return Value(f"{abs(value):.9g}", value < 0)


def of_function(function: Function, size: int) -> dict[int, str]:
    """Return what a kernel stores, by number: each is an expression of the values x0, x1 … that it loads.

    The function is a straight piece of code, perhaps contracted; `size` is that of a value in memory, in
    bytes.
    """
    values: dict[str, Value] = {}
    stored: dict[int, str] = {}

    def of(operand: object) -> Value:
        if isinstance(operand, Imm):
            pattern = operand.bits.to_bytes(operand.width // 8, "little")
            return constant(struct.unpack("<f" if operand.width == 32 else "<d", pattern)[0])
        assert isinstance(operand, Reg)
        return values[operand.name]

    for item in function.body:
        if not isinstance(item, Instruction):
            continue
        name, marks = item.opcode[0], "".join(f".{x}" for x in item.opcode[1:-1] if x in ("ftz", "sat"))
        if name == "ld" and "global" in item.opcode:
            target, source = item.operands
            assert isinstance(source, Mem)
            values[target.name] = Value(f"x{source.offset // size}")
        elif name == "st":
            target, source = item.operands
            assert isinstance(target, Mem)
            stored[target.offset // size] = str(of(source))
        elif name == "mul" and item.opcode[-1] != "u32":
            values[item.operands[0].name] = product(*map(of, item.operands[1:]), marks)
        elif name in ("add", "sub") and item.opcode[-1] != "s64":
            a, b = map(of, item.operands[1:])
            values[item.operands[0].name] = total(a, b if name == "add" else -b, marks)
        elif name in _MULTIPLY_ADDS:
            a, b, c = map(of, item.operands[1:])
            minus_product, minus_addend = _MULTIPLY_ADDS[name]
            values[item.operands[0].name] = multiply_add(
                -a if minus_product else a, b, -c if minus_addend else c, marks
            )
        elif (
            name in ("neg", "mov")
            and isinstance(item.operands[1], Reg)
            and (value := values.get(item.operands[1].name)) is not None
        ):
            values[item.operands[0].name] = -value if name == "neg" else value
    return stored
