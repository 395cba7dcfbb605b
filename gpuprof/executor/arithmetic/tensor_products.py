# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What one tensor-core instruction multiplies, from registers to registers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gpuprof.executor.arithmetic.fragments import (
    GROUPS,
    Elements,
    Packed,
    leading,
    matrix_a,
    matrix_b,
    matrix_c,
    registers_of,
)
from gpuprof.executor.arithmetic.tensor_formats import FORMATS
from gpuprof.executor.arithmetic.tensor_sums import (
    bit_sum,
    by_warps,
    double_sum,
    eight_bit_sum,
    float_sum,
    integer_sum,
)
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes

_EIGHT_BIT = ("e4m3", "e5m2")
_INTEGERS = ("s8", "u8")
_FOUR_BIT = ("s4", "u4")
#: What can be done with bits, before those that are one are counted.
BITWISE = ("and", "xor")
#: Products that are modelled: shape, types of A and B, and types of accumulators.
_MODELLED: tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...] = (
    (("m16n8k8", "m16n8k16"), ("f16",), ("f16", "f32")),
    (("m16n8k8", "m16n8k16"), ("bf16",), ("f32",)),
    (("m16n8k4", "m16n8k8"), ("tf32",), ("f32",)),
    (("m16n8k32",), _EIGHT_BIT, ("f32",)),
    (("m8n8k16", "m16n8k16", "m16n8k32"), _INTEGERS, ("s32",)),
    (("m8n8k32", "m16n8k32", "m16n8k64"), _FOUR_BIT, ("s32",)),
    (("m8n8k128", "m16n8k128", "m16n8k256"), ("b1",), ("s32",)),
    (("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"), ("f64",), ("f64",)),
)
#: The elements of A and B, as they lie in registers.
_ELEMENTS: dict[str, Elements] = {
    **{name: np.dtype(f"u{form.item_bytes}") for name, form in FORMATS.items()},
    **{name: ARITHMETIC[name] for name in (*_INTEGERS, "f64")},
    **{name: Packed(4, signed=name == "s4") for name in _FOUR_BIT},
    "b1": Packed(1, signed=False),
}


@dataclass(frozen=True)
class Product:
    """D = A B + C, with 8 columns.

    Attributes:
        rows: Of A, C and D: 8 or 16.
        depth: Columns of A and rows of B.
        a: Element type of A, as PTX writes it.
        b: Element type of B.
        accumulator: That of C and D.
        saturates: Whether integer sums stop at the largest and smallest int32.
        bitwise: What is done with bits, one of `BITWISE`.
    """

    rows: int
    depth: int
    a: str
    b: str
    accumulator: str
    saturates: bool = False
    bitwise: str = ""

    @classmethod
    def of(
        cls, shape: str, a: str, b: str, accumulator: str, *, saturates: bool = False, bitwise: str = ""
    ) -> "Product | None":
        """Return the product of a shape such as `m16n8k16`; None when it is not modelled."""
        for shapes, factors, sums in _MODELLED:
            if shape in shapes and {a, b} <= {*factors} and accumulator in sums:
                rows, depth = int(shape[1:].split("n")[0]), int(shape.split("k")[1])
                return cls(rows, depth, a, b, accumulator, saturates, bitwise)
        return None

    @property
    def source(self) -> str:
        """The element type that the tensor core multiplies, as Nsight Compute sorts operations."""
        if self.a in _EIGHT_BIT:
            return "f16"
        return "i8" if self.a in (*_INTEGERS, *_FOUR_BIT) else self.a

    @property
    def instructions(self) -> int:
        """Tensor instructions that a warp executes: 8-bit floats and 4-bit integers take two on sm_90."""
        return 2 if self.a in (*_EIGHT_BIT, *_FOUR_BIT) else 1

    @property
    def operations(self) -> int:
        """Multiplications and additions of a warp."""
        return 2 * self.rows * GROUPS * self.depth

    @property
    def factor_register(self) -> np.dtype[Any]:
        """The type in which registers of A and B are read."""
        return ARITHMETIC["f64" if self.a == "f64" else "b32"]

    @property
    def sum_register(self) -> np.dtype[Any]:
        """The type in which registers of C and D are read and written."""
        return ARITHMETIC["b32" if self.accumulator == "f16" else self.accumulator]

    @property
    def register_counts(self) -> tuple[int, int, int]:
        """Registers that a lane gives of A, B and C."""
        halves = self.rows // GROUPS
        kept = _ELEMENTS[self.a]
        bits = kept.bits if isinstance(kept, Packed) else 8 * kept.itemsize
        tiles = self.depth * bits // (256 if self.a == "f64" else 128)
        return halves * tiles, tiles, halves * (1 if self.accumulator == "f16" else 2)

    def compute(self, a: Sequence[Lanes], b: Sequence[Lanes], c: Sequence[Lanes]) -> list[Lanes]:
        """Return the registers of D.

        Args:
            a: Registers of A, of `factor_register`.
            b: Registers of B.
            c: Registers of C, of `sum_register`.
        """
        shape = leading([*a, *b, *c])
        accumulator = ARITHMETIC[self.accumulator]
        total = by_warps(
            self._sum(),
            matrix_a(a, _ELEMENTS[self.a], self.rows, shape),
            matrix_b(b, _ELEMENTS[self.b], shape),
            matrix_c(c, accumulator, self.rows, shape),
        )
        return registers_of(total, self.sum_register, shape)

    @staticmethod
    def element(kind: str) -> np.dtype[Any]:
        """The type in which whole elements of A or B are held: unsigned bits, or integers."""
        kept = _ELEMENTS[kind]
        assert not isinstance(kept, Packed)
        return kept

    def sums(self, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        """Return A B + C of one instruction.

        Args:
            a: Elements of A: shape (k, m, warps).
            b: Elements of B: shape (k, n, warps).
            c: Of the accumulator's type: shape (m, n, warps).
        """
        return by_warps(self._sum(), a, b, c)

    def spread(self, a: Sequence[Lanes], b: Sequence[Lanes], c: Sequence[Lanes]) -> list[Lanes]:
        """Return all ones where an element of D depends on any bit that is one in these, else zeros.

        Args:
            a: Bits in the place of A's registers.
            b: Bits in the place of B's.
            c: Bits in the place of C's.
        """
        shape = leading([*a, *b, *c])
        factor, total = (np.dtype(f"u{self._item_bytes(kind)}") for kind in (self.a, self.accumulator))
        of_a = (matrix_a(a, factor, self.rows, shape) != 0).any(axis=0)
        of_b = (matrix_b(b, factor, shape) != 0).any(axis=0)
        depends = of_a[:, None] | of_b[None] | (matrix_c(c, total, self.rows, shape) != 0)
        ones = np.where(depends, ~total.type(0), total.type(0))
        return registers_of(ones, np.dtype(f"u{self.sum_register.itemsize}"), shape)

    @staticmethod
    def _item_bytes(kind: str) -> int:
        kept = _ELEMENTS.get(kind) or ARITHMETIC[kind]
        return 1 if isinstance(kept, Packed) else kept.itemsize

    def _sum(self) -> Any:
        if self.a == "f64":
            return double_sum
        if self.bitwise:
            return partial(bit_sum, exclusive=self.bitwise == "xor")
        if self.a in (*_INTEGERS, *_FOUR_BIT):
            return partial(integer_sum, saturates=self.saturates)
        form = eight_bit_sum if self.a in _EIGHT_BIT else float_sum
        return partial(form, a_format=FORMATS[self.a], b_format=FORMATS[self.b])
