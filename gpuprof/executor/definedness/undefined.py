# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which bits of a value are undefined, and where they come from: memory or a register never written."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import Bools
from gpuprof.executor.lanes.scalars import Lanes

#: A read as one integer: its source line, and the byte of shared memory that it found undefined. Of a
#: register that nothing had written it is `REGISTER`, of a thread's own memory `LOCAL`.
Origins = NDArray[np.int64]
REGISTER = 1
LOCAL = 2
#: Stands for the byte where a lane was read that took no part in a shuffle.
ABSENT_LANE = (1 << 32) - 1

_BYTE_BITS = 32


def origins_of(line: int, byte: Any) -> Origins:
    """Return the origins of what a source line read from these bytes of shared memory; none is 0."""
    return np.asarray((np.int64(line + 1) << _BYTE_BITS) + byte)


def line_and_byte(origin: int) -> tuple[int, int]:
    """Return the source line of an origin, and its byte of shared memory."""
    return (origin >> _BYTE_BITS) - 1, origin & ((1 << _BYTE_BITS) - 1)


def bits_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type that holds the bits of a value; as signed as the value, so that both extend alike."""
    return np.dtype(f"u{dtype.itemsize}") if dtype.kind == "f" else dtype


class Undefined(Struct, frozen=True, eq=False):
    """What of a value is undefined; a value without such bits has none of these.

    Attributes:
        bits: One where a bit of the value is undefined: broadcasts to the batch, as the value does.
        origin: Where each lane's come from; 0, or anything, in lanes without.
    """

    bits: Lanes
    origin: Origins

    @property
    def lanes(self) -> Bools:
        return np.asarray(self.bits != 0)

    def within(self, lanes: Bools) -> Self | None:
        """Return it for these lanes alone; None if they have no such bits."""
        bits = self.bits if lanes.all() else np.where(lanes, self.bits, self.bits.dtype.type(0))
        return type(self)(bits, self.origin) if bits.any() else None


def never_written(dtype: np.dtype[Any]) -> Undefined:
    """Return what is undefined of a register before anything is written to it: everything."""
    kind = bits_dtype(dtype)
    bits = np.ones((1, 1, 1), np.bool_) if kind == np.bool_ else np.invert(np.zeros((1, 1, 1), kind))
    return Undefined(bits, np.full((1, 1, 1), REGISTER, dtype=np.int64))


def first_origin(sources: Sequence[Undefined]) -> Origins:
    """Return for each lane the origin of the first source that is undefined there."""
    *others, last = sources
    origin = np.where(last.lanes, last.origin, 0)
    for source in reversed(others):
        origin = np.where(source.lanes, source.origin, origin)
    return origin


def either(first: Undefined | None, second: Undefined | None) -> Undefined | None:
    """Return what is undefined of a value whose lanes came from two places."""
    if first is None or second is None:
        return first or second
    return Undefined(first.bits | second.bits, first_origin((first, second)))


def of_another_lane(origin: Origins) -> Origins:
    """Give lanes without an origin that of another lane of their warp."""
    return np.where(origin != 0, origin, origin.max(axis=2, keepdims=True))
