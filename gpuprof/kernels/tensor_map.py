# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Tensor maps: how a kernel's header tells the copy engine to cut boxes out of a matrix.

A tensor map is a kernel argument of 128 opaque bytes. Each backend makes its own from the description here.
"""

from dataclasses import dataclass
from math import prod

from gpuprof.copy_engine import GRANULE_BYTES, MOST_BOX_ELEMENTS
from gpuprof.errors import CaseSkipped
from gpuprof.problems.dtypes import ELEMENT_TYPES
from gpuprof.problems.problem import Problem


@dataclass(frozen=True, slots=True)
class TensorMapSpec:
    """What a header says of one tensor map.

    Args:
        array: The array that it describes.
        box: Expressions for the elements of one copy: along a row, then rows.
        swizzle_bytes: Width of the pattern in which a row's 16-byte pieces are permuted; 0 for none.
    """

    array: str
    box: tuple[str, str]
    swizzle_bytes: int = 0


@dataclass(frozen=True, slots=True)
class TensorMap:
    """One tensor map of a launch; a box that leaves the matrix is filled up with zeros.

    Args:
        argument: The kernel argument that it is passed as.
        array: The array that it describes.
        extents: Elements of a row, and rows.
        box: Elements of one copy along a row, and its rows.
        item_bytes: Bytes of an element.
        swizzle_bytes: As in `TensorMapSpec`.
    """

    argument: str
    array: str
    extents: tuple[int, int]
    box: tuple[int, int]
    item_bytes: int
    swizzle_bytes: int

    @property
    def row_bytes(self) -> int:
        """Bytes from one row to the next."""
        return self.extents[0] * self.item_bytes


def make_tensor_map(argument: str, spec: TensorMapSpec, box: tuple[int, int], problem: Problem) -> TensorMap:
    """The tensor map of a launch.

    Args:
        argument: The kernel argument.
        spec: What the header says.
        box: Its box, evaluated.
        problem: Gives the array's extents.

    Raises:
        CaseSkipped: The copy engine cannot do it; the message says which of its limits is broken.
    """
    array = problem.array(spec.array)
    *outer, columns = array.shape
    rows = prod(outer)
    made = TensorMap(
        argument, spec.array, (columns, rows), box, ELEMENT_TYPES[array.dtype].nbytes, spec.swizzle_bytes
    )
    if made.row_bytes % GRANULE_BYTES:
        raise CaseSkipped(
            f"The copy engine needs rows that start at multiples of {GRANULE_BYTES} bytes; those of"
            f" {spec.array} are {made.row_bytes} bytes apart."
        )
    if not all(1 <= extent <= MOST_BOX_ELEMENTS for extent in box):
        raise CaseSkipped(
            f"The box of {argument} is {box[0]}x{box[1]} elements; the copy engine takes 1 to"
            f" {MOST_BOX_ELEMENTS} along each axis."
        )
    width = box[0] * made.item_bytes
    if width % GRANULE_BYTES or (spec.swizzle_bytes and width > spec.swizzle_bytes):
        limit = f", at most {spec.swizzle_bytes}" if spec.swizzle_bytes else ""
        raise CaseSkipped(
            f"A row of the box of {argument} has {width} bytes; it must be a multiple of"
            f" {GRANULE_BYTES}{limit}."
        )
    return made
