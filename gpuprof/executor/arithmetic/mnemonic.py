# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A PTX mnemonic taken apart, and what an arithmetic instruction is lowered to."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import Struct

from gpuprof.executor.lanes.scalars import ARITHMETIC

#: Computes one result from the operands of one instruction.
Compute = Callable[..., Any]

#: Types that only `cvt` knows; their bits travel in registers of `.bNN`.
_ONLY_CONVERTED = ("tf32", "e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "e2m1x2", "ue8m0x2")
#: Two integers in a register of `.b32`.
_PAIRS = ("u16x2", "s16x2")
ROUNDINGS = ("rn", "rz", "rm", "rp")


class Mnemonic(Struct, frozen=True):
    """An opcode such as `mad.lo.s32`: its base name, its types in order, and everything else as flags."""

    base: str
    flags: tuple[str, ...]
    types: tuple[str, ...]

    @classmethod
    def of(cls, opcode: tuple[str, ...]) -> "Mnemonic":
        rest = opcode[1:]
        types = tuple(part for part in rest if part in ARITHMETIC or part in (*_ONLY_CONVERTED, *_PAIRS))
        return cls(opcode[0], tuple(part for part in rest if part not in types), types)

    def has(self, flag: str) -> bool:
        return flag in self.flags

    def flags_any(self, *flags: str) -> bool:
        return bool({*flags} & {*self.flags})

    @property
    def type(self) -> str:
        """The type of an instruction that has only one; of others the asker knows too little."""
        if len(self.types) != 1:
            raise NotInTable
        return self.types[0]

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's form of `type`."""
        return ARITHMETIC[self.type]

    @property
    def is_float(self) -> bool:
        """True for f32 and f64, which have their own arithmetic."""
        return self.types[-1] in ("f32", "f64")

    @property
    def rounding(self) -> str:
        """The rounding mode of the result; round to nearest even when none is written."""
        return next((flag for flag in self.flags if flag in ROUNDINGS), "rn")


@dataclass(frozen=True)
class Lowered:
    """What an arithmetic instruction does.

    `compute` and `second` take the sources, each of the dtype stated. `second` gives the boolean second
    result, where there is one: the other predicate of `setp`, or the carry of `add.cc`.
    """

    compute: Compute
    sources: tuple[np.dtype[Any], ...]
    second: Compute | None = None


class NotInTable(Exception):
    """The table has the opcode, but not with these modifiers."""


def of_one_type(op: Mnemonic, compute: Compute, count: int) -> Lowered:
    """Lower to a function of `count` operands that all have the instruction's own type, as has the result."""
    return Lowered(compute, (op.dtype,) * count)
