# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What `mma.sp` multiplies: of each four neighbours in a row of A two are stored, and a word tells which.

Of tf32 one in two is stored, by the same words: its half of four bits names both 16-bit halves of an element.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpuprof.executor.arithmetic.fragments import (
    GROUPS,
    LANES,
    leading,
    matrix_a,
    matrix_b,
    matrix_c,
    registers_of,
)
from gpuprof.executor.arithmetic.tensor_products import Product
from gpuprof.executor.lanes.masks import WARP
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes

_ROWS = 16
#: The depths of each type of elements.
_DEPTHS = {"f16": (16, 32), "bf16": (16, 32), "tf32": (8, 16), "s8": (32, 64), "u8": (32, 64)}
#: Bits that say which elements of a group are stored, and the groups that one word has of each of its rows.
_GROUP_BITS, _GROUPS_OF_WORD = 4, 8


@dataclass(frozen=True)
class SparseProduct:
    """D = A B + C with 16 rows and 8 columns.

    Attributes:
        dense: The same product where A has all of its elements.
    """

    dense: Product

    @classmethod
    def of(
        cls, shape: str, a: str, b: str, accumulator: str, *, saturates: bool = False
    ) -> "SparseProduct | None":
        """Return the product of a shape such as `m16n8k32`; None when it is not modelled."""
        narrow, depth = shape.partition("k")[::2]
        known = Product.of(f"m16n8k{min(_DEPTHS.get(a, (0,)))}", a, b, accumulator, saturates=saturates)
        if narrow != "m16n8" or known is None or int(depth) not in _DEPTHS[a]:
            return None
        return cls(Product(_ROWS, int(depth), a, b, accumulator, saturates))

    def compute(
        self, a: Sequence[Lanes], b: Sequence[Lanes], c: Sequence[Lanes], words: Lanes, selector: int
    ) -> list[Lanes]:
        """Return the registers of D.

        Args:
            a: Registers of A.
            b: Registers of B.
            c: Registers of C.
            words: What tells which elements of A are stored.
            selector: Whose words count.
        """
        dense, shape = self.dense, leading([*a, *b, *c, words])
        stored = matrix_a(a, dense.element(dense.a), _ROWS, shape)
        of_b = matrix_b(b, dense.element(dense.b), shape)
        of_c = matrix_c(c, ARITHMETIC[dense.accumulator], _ROWS, shape)
        warps = of_c.shape[-1]
        # Every row has a B of its own: the rows take turns like warps.
        column = np.arange(GROUPS)[None, :, None, None]
        chosen = of_b[self._depths(words, selector, shape)[:, None], column, np.arange(warps)]
        total = dense.sums(
            stored.reshape(len(stored), 1, -1),
            chosen.reshape(len(stored), GROUPS, -1),
            np.ascontiguousarray(of_c.transpose(1, 0, 2)).reshape(1, GROUPS, -1),
        )
        rows = total.reshape(GROUPS, _ROWS, warps).transpose(1, 0, 2)
        return registers_of(np.ascontiguousarray(rows), dense.sum_register, shape)

    def _depths(self, words: Lanes, selector: int, shape: tuple[int, int]) -> Lanes:
        """Return the number along K of each stored element: shape (stored, rows, warps)."""
        dense = self.dense
        spread = np.broadcast_to(words, (*shape, WARP)).view(np.uint32).reshape(-1, GROUPS, LANES)
        groups = dense.depth // (2 if dense.a == "tf32" else 4)
        nibbles = spread[..., None] >> np.arange(0, 32, _GROUP_BITS, dtype=np.uint32) & np.uint32(15)
        if dense.a in ("s8", "u8"):  # lanes have rows g and g + 8 in turn, each with all bits of a word
            lanes = 2 * selector + np.arange(2) if groups == _GROUPS_OF_WORD else np.arange(LANES)
            found = nibbles[:, :, lanes].reshape(len(spread), GROUPS, -1, 2, _GROUPS_OF_WORD)
            by_row = found.transpose(3, 1, 2, 4, 0)
        else:  # the halves of a word are of rows g and g + 8
            count = groups * 2 // _GROUPS_OF_WORD
            lanes = count * selector + np.arange(count)
            found = nibbles[:, :, lanes].reshape(len(spread), GROUPS, count, 2, _GROUPS_OF_WORD // 2)
            by_row = found.transpose(3, 1, 2, 4, 0)
        nibble = by_row.reshape(_ROWS, groups, -1).astype(np.intp)
        first = np.arange(groups)[:, None]
        if dense.a == "tf32":
            depths = (2 * first + (nibble >> 3))[:, :, None]
        else:
            depths = np.stack([4 * first + (nibble & 3), 4 * first + (nibble >> 2)], axis=2)
        return depths.reshape(_ROWS, -1, nibble.shape[-1]).transpose(1, 0, 2)
