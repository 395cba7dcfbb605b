# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Where an operand of `wgmma` lies in shared memory, as its 64-bit descriptor says.

An operand is made of cores of 8 rows by 16 bytes. Rows go along M or N where the matrix is stored along K,
the usual way, and along K where it is transposed. In a swizzled layout a row of 32, 64 or 128 bytes holds
several cores side by side, whose places the row's number permutes as tensor copies do.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_CORE_BYTES, _CORE_ROWS = 16, 8
#: Bytes of a row by the layout that a descriptor names; 16 where nothing is permuted.
_ROW_BYTES = np.array([16, 128, 64, 32])
#: Bits of an address that each layout permutes, counted in units of 16 bytes.
_PERMUTED = np.array([0, 7, 3, 1])


@dataclass(frozen=True)
class Descriptors:
    """What descriptors say, each an array of one shape.

    Attributes:
        start: Address of the first byte.
        leading: Bytes from one core, or row of cores, to the next along the dimension that is stored
            contiguously; see `addresses`.
        stride: The same along the other.
        layout: 0 for no permutation, 1, 2 and 3 for rows of 128, 64 and 32 bytes.
        offset: In which row of the pattern the matrix begins, where that is not the address's own.
    """

    start: NDArray[np.int64]
    leading: NDArray[np.int64]
    stride: NDArray[np.int64]
    layout: NDArray[np.int64]
    offset: NDArray[np.int64]

    @classmethod
    def of(cls, bits: NDArray[np.int64]) -> "Descriptors":
        """Take descriptors apart."""
        start, leading, stride = ((bits >> shift & 0x3FFF) << 4 for shift in (0, 16, 32))
        return cls(start, leading, stride, bits >> 62 & 3, bits >> 49 & 7)

    def addresses(self, rows: int, depth: int, item_bytes: int, *, transposed: bool) -> NDArray[np.int64]:
        """Return the byte at which each element begins.

        Args:
            rows: Elements along M or N.
            depth: Elements along K.
            item_bytes: Bytes of an element.
            transposed: Whether elements along M or N are neighbours, and not those along K.

        Returns:
            Shape (…, rows, depth), after that of the descriptors.
        """
        row_bytes = _ROW_BYTES[self.layout]
        start, leading, stride, pitch = (
            part[..., None, None] for part in (self.start, self.leading, self.stride, row_bytes)
        )
        plain = (self.layout == 0)[..., None, None]
        row, k = np.arange(rows)[:, None], np.arange(depth)[None]
        if transposed:
            along, byte = k, row * item_bytes
            core = byte // _CORE_BYTES
            cores = pitch // _CORE_BYTES
            # Cores of one row lie side by side; the next ones along the rows are `leading` apart.
            beside = core % cores * _CORE_BYTES + core // cores * leading
            far = np.where(plain, core * stride + along // _CORE_ROWS * leading, 0)
            place = np.where(plain, far, beside + along // _CORE_ROWS * stride)
        else:
            along, byte = row, k * item_bytes
            core = byte // _CORE_BYTES
            place = core * np.where(plain, leading, _CORE_BYTES) + along // _CORE_ROWS * stride
        address = start + place + along % _CORE_ROWS * pitch + byte % _CORE_BYTES
        permuted = _PERMUTED[self.layout][..., None, None]
        return np.asarray(address ^ (address >> 7 & permuted) << 4)
