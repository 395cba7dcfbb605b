# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Decode calls of what CUDA provides: `printf`, `assert`, `malloc` and `free`."""

import ctypes
import re
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpuprof.executor.faults import FaultKind
from gpuprof.executor.lanes.masks import Mask
from gpuprof.executor.lanes.scalars import ARITHMETIC
from gpuprof.executor.memory.heap import Heap
from gpuprof.executor.memory.windows import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES
from gpuprof.executor.program.ptx import Instruction
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step, where_active

_S32, _U64 = ARITHMETIC["s32"], ARITHMETIC["u64"]
#: Characters of a string that are read before it counts as one without an end.
_LONGEST = 4096
_NO_FORMAT = -1

Position = tuple[int, int, int]


def print_formatted(coder: Coder, item: Instruction) -> Step:
    """`vprintf`: each lane prints, one after the other; the result is how many arguments the format takes."""
    write = coder.target(item.operands[0], item)
    read_text, read_arguments = (coder.reader(operand, _U64, item) for operand in item.operands[1:3])
    reader = _CallReader(item.line, coder.shared_start)

    def step(batch: Batch, mask: Mask) -> None:
        texts, arguments = (batch.spread(read(batch)) for read in (read_text, read_arguments))
        counts = np.zeros(batch.shape, dtype=_S32)
        seen: dict[int, str] = {}
        for index in np.argwhere(batch.spread(mask.lanes)).tolist():
            position: Position = (index[0], index[1], index[2])
            address = int(texts[position])
            if not address:
                counts[position] = _NO_FORMAT
                continue
            if address not in seen:
                seen[address] = reader.string(batch, address, position)
            text, start = seen[address], int(arguments[position])
            places = offsets(text)
            counts[position] = len(places)
            batch.printed.add(partial(reader.printed, batch, text, start, position))
            batch.tally.least = True
        write(batch, counts, mask)

    return where_active(coder, item, step)


def assertion_fails(coder: Coder, item: Instruction) -> Step:
    """`__assertfail`: the condition of an `assert` does not hold, and the launch ends."""
    reads = [coder.reader(operand, _U64, item) for operand in item.operands[1:5]]
    reader = _CallReader(item.line, coder.shared_start)

    def step(batch: Batch, mask: Mask) -> None:
        position = mask.first()
        condition, file, number, function = (int(batch.spread(r(batch))[position]) for r in reads)
        told = [reader.string(batch, a, position) if a else "?" for a in (condition, file, function)]
        text = f"fails the assertion `{told[0]}` ({told[1]}:{number & 0xFFFF_FFFF}, in {told[2]})"
        batch.fault(FaultKind.TRAP, text, item.line, position)

    return where_active(coder, item, step)


def allocate(coder: Coder, item: Instruction) -> Step:
    """`malloc`: memory of the device's heap for each lane, or 0 where there is none left."""
    write, read = coder.target(item.operands[0], item), coder.reader(item.operands[1], _U64, item)

    def step(batch: Batch, mask: Mask) -> None:
        heap, lanes = Heap.of(batch.memory), batch.spread(mask.lanes)
        batch.tally.least = True
        result = np.zeros(batch.shape, dtype=_U64)
        result[lanes] = [heap.take(size) for size in batch.spread(read(batch))[lanes].tolist()]
        write(batch, result, mask)

    return where_active(coder, item, step)


def free(coder: Coder, item: Instruction) -> Step:
    """`free`: what `malloc` gave each lane goes back; address 0 is no memory."""
    read, line = coder.reader(item.operands[1], _U64, item), item.line

    def step(batch: Batch, mask: Mask) -> None:
        heap = Heap.of(batch.memory)
        addresses = batch.spread(read(batch))
        for index in np.argwhere(batch.spread(mask.lanes)).tolist():
            position: Position = (index[0], index[1], index[2])
            address = int(addresses[position])
            if address and not heap.give_back(address):
                text = f"frees {address:#x}, which malloc has not given out, or which is freed already"
                batch.fault(FaultKind.OUT_OF_BOUNDS, text, line, position, address)

    return where_active(coder, item, step)


class _CallReader(Struct, frozen=True):
    """Reads what a call's generic addresses point to, as one lane sees it."""

    line: int
    shared_start: int

    def printed(self, batch: Batch, text: str, start: int, position: Position) -> str:
        """Return what one call prints whose arguments lie at `start`."""
        places = zip(offsets(text), argument_sizes(text), strict=True)
        content = [self._bytes(batch, start + place, size, position, size) for place, size in places]
        return formatted(text, content, lambda address: self.string(batch, address, position))

    def string(self, batch: Batch, address: int, position: Position) -> str:
        content = self._bytes(batch, address, _LONGEST, position, 1)
        return content.partition(b"\0")[0].decode("utf-8", "replace")

    def _bytes(self, batch: Batch, address: int, most: int, position: Position, least: int) -> bytes:
        """Return up to `most` bytes; a fault where there are not even `least`."""
        memory: NDArray[np.uint8]
        if LOCAL_WINDOW <= address < LOCAL_WINDOW + WINDOW_BYTES:
            first = int(batch.local.starts[position])
            memory, start = batch.local.content[first : first + batch.local_bytes], address - LOCAL_WINDOW
        elif SHARED_WINDOW <= address < SHARED_WINDOW + WINDOW_BYTES:
            memory, start = batch.shared.content[position[0]], address - SHARED_WINDOW - self.shared_start
        else:
            buffer = batch.memory.holding(address, address + least)
            memory = buffer.view(1)[: buffer.size] if buffer else np.zeros(0, dtype=np.uint8)
            start = address - (buffer.address if buffer else 0)
        found = memory[start : start + most].tobytes() if start >= 0 else b""
        if len(found) < least:
            text = f"gives printf or assert the address {address:#x}, where nothing is allocated"
            batch.fault(FaultKind.OUT_OF_BOUNDS, text, self.line, position, address)
        return found


_CONVERSION = re.compile(
    r"%[-+ #0]*(?P<width>\d+|\*)?(?:\.(?P<precision>\d*|\*))?(?P<length>hh|h|ll|l|j|z|t|L)?"
    r"(?P<kind>[diouxXeEfFgGaAcsp%])"
)
_FLOATS = "eEfFgGaA"
_WIDE = {"l", "ll", "j", "z", "t"}
#: Bytes of the longest that one conversion prints.
_MOST = 8192


@lru_cache(maxsize=256)
def argument_sizes(text: str) -> tuple[int, ...]:
    """Return the bytes of each argument that a format string takes, widths given as `*` included."""
    sizes: list[int] = []
    for found in _CONVERSION.finditer(text):
        if (kind := found["kind"]) != "%":
            sizes += [4] * [found["width"], found["precision"]].count("*")
            sizes.append(8 if kind in f"{_FLOATS}sp" or found["length"] in _WIDE else 4)
    return tuple(sizes)


def offsets(text: str) -> list[int]:
    """Return where each argument lies in the buffer that `vprintf` is given."""
    places, end = [], 0
    for size in argument_sizes(text):
        start = -(-end // size) * size
        places.append(start)
        end = start + size
    return places


def formatted(text: str, arguments: list[bytes], string: Callable[[int], str]) -> str:
    """Return what `printf` prints; what is no conversion is text.

    `arguments` are the bytes of each; `string` returns the text at an address, for `%s`.
    """
    given = iter(arguments)

    def printed(found: re.Match[str]) -> str:
        kind, how = found["kind"], found[0]
        if kind == "%":
            return "%"
        if kind not in "diouxX" and found["length"]:
            how = how.replace(found["length"], "")
        stars = [found["width"], found["precision"]].count("*")
        values: list[object] = [ctypes.c_int.from_buffer_copy(next(given)) for _ in range(stars)]
        content = next(given)
        if kind in _FLOATS:
            values.append(ctypes.c_double.from_buffer_copy(content))
        elif kind == "s":
            values.append(string(int.from_bytes(content, "little")).encode())
        else:
            values.append(ctypes.c_longlong(int.from_bytes(content, "little")))
        # One conversion, with what it takes, and in so many bytes: whatever a kernel asks for.
        made = ctypes.create_string_buffer(_MOST)
        length = ctypes.CDLL(None).snprintf(made, ctypes.c_size_t(_MOST), how.encode(), *values)
        return made.raw[: max(0, min(length, _MOST - 1))].decode("utf-8", "replace")

    return _CONVERSION.sub(printed, text)
