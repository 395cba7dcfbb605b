# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Global memory: allocations placed as the driver places them, with gaps that belong to nobody."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.memory.windows import CONSTANT_BYTES, CONSTANT_WINDOW

#: The driver aligns every allocation so; another alignment would change sector counts.
_ALIGNMENT = 256
#: Bytes between two allocations that no pointer may touch.
_GUARD = 4096
_FIRST_ADDRESS = 0x7000_0000_0000
#: What is so many bytes away from an array was computed of no address of it.
_FAR = 1 << 40
#: Bytes of the widest access.
_WIDEST = 32

#: NumPy types that move up to 32 bytes at once, for vector loads and stores.
_MOVED: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
    8: np.dtype(np.uint64),
    16: np.dtype(np.complex128),
    32: np.dtype("V32"),
}


def moved_dtype(size: int) -> np.dtype[Any]:
    """Return a type of `size` bytes to gather and scatter with: one element for a whole vector access."""
    return _MOVED[size]


class Buffer:
    """One allocation: a kernel argument, and the content before and after.

    It `adopts` content that becomes its memory and is nobody else's any more. Otherwise that is copied; of a
    read-only buffer (constants and parameters) not before something changes it all the same, as an atomic
    operation may. It is `combined` once an atomic operation changed it, so that its content is several
    blocks' work, and `loaded` once a kernel read from it. Where not all bytes may be accessed, `allotted`
    says which, one element each, padded for accesses that end behind it.
    """

    def __init__(
        self, address: int, content: NDArray[Any], name: str, *, read_only: bool, adopts: bool = False
    ) -> None:
        self.address = address
        self.name = name
        self.size = content.nbytes
        self.read_only = read_only
        self.combined = self.loaded = False
        self.allotted: NDArray[np.bool_] | None = None
        self._dtype = content.dtype
        self._shape = content.shape
        self._bytes = np.ascontiguousarray(content).reshape(-1).view(np.uint8)
        self._borrowed = read_only and not adopts
        if self.size % _WIDEST or not (read_only or adopts):
            # Padded, so that a view of any access size reaches the last byte.
            padded = np.zeros(-(-self.size // _WIDEST) * _WIDEST, dtype=np.uint8)
            padded[: self.size] = self._bytes
            self._bytes, self._borrowed = padded, False
        self._views: dict[int, NDArray[Any]] = {}
        self._written: NDArray[np.bool_] | None = None
        self._written_before: NDArray[np.bool_] | None = None

    @property
    def item_bytes(self) -> int:
        return self._dtype.itemsize

    def begin_launch(self) -> None:
        """From now on, `written_now` tells what another launch writes."""
        if self._written is not None:
            before = self._written_before
            self._written_before = self._written if before is None else before | self._written
            self._written = None

    def refill(self, content: NDArray[Any]) -> None:
        """Put content of the same size back, as if no kernel had run."""
        self._own()
        self._bytes[: self.size] = np.ascontiguousarray(content).reshape(-1).view(np.uint8)
        self._written = self._written_before = None
        self.combined = False

    def holds(self, low: int, high: int) -> bool:
        """Tell whether every byte from `low` to `high` (exclusive) is its own."""
        return self.address <= low and high <= self.address + self.size

    def array(self) -> NDArray[Any]:
        """Return the current content, as a view in the dtype and shape that was allocated."""
        return self._bytes[: self.size].view(self._dtype).reshape(self._shape)

    def written_now(self, elements: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return of elements whether this launch has stored to them."""
        if self._written is None:
            return np.zeros(elements.shape, dtype=np.bool_)
        return np.asarray(self._written[elements])

    def written_mask(self) -> NDArray[np.bool_]:
        """Return which elements a kernel has stored to since the allocation."""
        parts = [part for part in (self._written, self._written_before) if part is not None]
        if not parts:
            return np.zeros(self._shape, dtype=np.bool_)
        written = parts[0] if len(parts) == 1 else parts[0] | parts[1]
        return written[: self.size // self._dtype.itemsize].reshape(self._shape)

    @property
    def changed(self) -> bool:
        """Whether a kernel has stored to it since the allocation, or changed it by an atomic operation."""
        return self.combined or bool(self.written_mask().any())

    @property
    def written_bytes(self) -> int:
        """How many bytes belong to elements that a kernel has stored to."""
        return 0 if self._written is None else int(np.count_nonzero(self._written)) * self._dtype.itemsize

    def elements_at(self, place: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], int]:
        """Return the elements that accesses touch at places in units of their size, and how many each."""
        item = self.item_bytes
        if size <= item:
            return (place if size == item else place * size // item), 1
        each = size // item
        return (place[:, None] * each + np.arange(each)).reshape(-1), each

    def place(self, byte: int) -> tuple[str, int]:
        """Return what a message calls one of its bytes, and the address of that."""
        return f"element {byte // self.item_bytes} of {self.name}", self.address + byte

    def described(self, byte: int) -> str:
        """Return where a byte in or beside it lies, after `reads 4 bytes`: the element, and its index."""
        word = "element" if self.item_bytes > 1 else "byte"
        element, count = byte // self.item_bytes, self.size // self.item_bytes
        if byte < 0:
            return f"before the start of {self.name}: {word} {element}"
        index = ""
        if len(self._shape) > 1 and count:
            # Behind the end it goes on along the first dimension.
            row, within = divmod(element, count // self._shape[0])
            place = (row, *np.unravel_index(within, self._shape[1:]))
            extents = " x ".join(map(str, self._shape))
            index = f", {self.name}[{', '.join(map(str, place))}] of {extents}"
        if element >= count:
            return f"past the end of {self.name}: {word} {element} of {count}{index}"
        return f"of {self.name}, {word} {element} of {count}{index}"

    def view(self, size: int) -> NDArray[Any]:
        """Return the content as elements of `size` bytes, to be read."""
        if size not in self._views:
            self._views[size] = self._bytes.view(moved_dtype(size))
        return self._views[size]

    def changeable(self, size: int) -> NDArray[Any]:
        """Return the content as elements of `size` bytes, to be changed."""
        self._own()
        return self.view(size)

    def _own(self) -> None:
        if self._borrowed:
            self._bytes, self._views, self._borrowed = self._bytes.copy(), {}, False

    def store(self, index: NDArray[np.intp], values: Lanes, size: int) -> None:
        """Store `values` at `index`, both in elements of `size` bytes, and remember what was written."""
        self.changeable(size)[index] = values
        self.mark(index, size)

    def mark(self, index: NDArray[np.intp], size: int) -> None:
        """Remember that something was written there, though perhaps not its value."""
        item = self._dtype.itemsize
        if self._written is None:
            self._written = np.zeros(self._bytes.size // item + 1, dtype=np.bool_)
        if size <= item:
            self._written[index if size == item else index * size // item] = True
        else:  # the marks of an access as one number: rows take several times as long
            each = size // item
            marks = self._written[: self._bytes.size // size * each].view(moved_dtype(each))
            marks[index] = np.ones(each, dtype=np.bool_).view(moved_dtype(each))[0]


class GlobalMemory:
    """All allocations of one device, by address; no pointer may touch the `gap` of bytes between them.

    `variables` are those that modules brought along, by the module's text and the variable's name; `heap` is
    what `malloc` in a kernel takes memory from, once one did; `objects` are textures and surfaces, by handle.
    """

    def __init__(self, gap: int = _GUARD) -> None:
        self._gap = gap
        self.buffers: list[Buffer] = []
        self.variables: dict[tuple[str, str], Buffer] = {}
        self.heap: object = None
        self.objects: dict[int, object] = {}
        self._next = _FIRST_ADDRESS
        self._constant: dict[str, int] = {}

    def constant_window(self, module: str) -> int:
        """Return where the constant memory of a module starts, by its text."""
        number = self._constant.setdefault(module, len(self._constant))
        return CONSTANT_WINDOW + number * CONSTANT_BYTES

    def allocate(
        self,
        array: NDArray[Any],
        name: str,
        *,
        read_only: bool = False,
        address: int | None = None,
        adopts: bool = False,
    ) -> Buffer:
        """Allocate the bytes of an array, with its content, under the name that faults call it by.

        An array that is `read_only` must stay as it is; one that the buffer `adopts` is the caller's no more.
        With an `address` it lies there, outside global memory.
        """
        start = self._next if address is None else address
        buffer = Buffer(start, np.asarray(array), name, read_only=read_only, adopts=adopts)
        self.buffers.append(buffer)
        if address is None:
            self._next = -(-(start + buffer.size + self._gap) // _ALIGNMENT) * _ALIGNMENT
        return buffer

    def holding(self, low: int, high: int) -> Buffer | None:
        """Return the buffer that holds every byte from `low` to `high` (exclusive), or None."""
        for buffer in self.buffers:
            if buffer.holds(low, high):
                return buffer
        return None

    def divided(
        self, start: Lanes, size: int, wanted: NDArray[np.bool_]
    ) -> tuple[list[tuple[Buffer, NDArray[np.bool_]]], NDArray[np.bool_]]:
        """Divide `wanted` places of `size` bytes by the buffer that holds them; and what none holds."""
        parts, left = [], wanted
        for buffer in self.buffers:
            inside = left & (start >= buffer.address) & (start + size <= buffer.address + buffer.size)
            if buffer.allotted is not None:
                first = np.where(inside, start - buffer.address, 0)[..., None]
                inside &= buffer.allotted[first + np.arange(size)].all(axis=-1)
            if inside.any():
                parts.append((buffer, inside))
                left = left & ~inside
        return parts, left

    def nearest(self, address: int) -> Buffer | None:
        """Return the buffer that starts last before `address`, or the first one; None where all are far."""
        below = [buffer for buffer in self.buffers if buffer.address <= address]
        found = max(below, key=lambda buffer: buffer.address) if below else next(iter(self.buffers), None)
        return found if found and abs(address - found.address) < _FAR else None
