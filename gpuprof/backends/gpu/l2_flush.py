# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The flush of the L2 cache in front of a cold launch."""

import ctypes
import secrets
from typing import Any

import numpy as np

from gpuprof.backends.gpu.context import Arguments, Buffer
from gpuprof.backends.gpu.device_code import DeviceCode

#: The L2 cache of a device that tells none.
_LEAST_BYTES = 1 << 20


class L2Flush:
    """Reads twice as much as the cache holds.

    Args:
        code: The measuring side's device functions.
        l2_bytes: What the cache holds.
    """

    def __init__(self, code: DeviceCode, l2_bytes: int) -> None:
        self._code = code
        self._buffer = Buffer(2 * max(l2_bytes, _LEAST_BYTES) // 16 * 16)
        self._sink = Buffer(16)
        self._sum = Buffer(8)
        self._key = secrets.randbits(63) | 1
        size: Any = ctypes.c_longlong(self._buffer.nbytes // 16)
        pointers = [ctypes.c_void_p(buffer.address) for buffer in (self._buffer, self._sink)]
        self._arguments = Arguments([size, *pointers])
        self._buffer.fill(0)
        self._clean = self._checksum()

    def queue(self) -> None:
        """Queue a flush."""
        self._code.queue("flush_l2", self._arguments)

    def written_to(self) -> bool:
        """Whether anybody wrote to the memory that is read; it is mended then."""
        if self._checksum() == self._clean:
            return False
        self._buffer.fill(0)
        return True

    def _checksum(self) -> int:
        self._sum.fill(0)
        arguments = [
            *(ctypes.c_longlong(self._buffer.nbytes), ctypes.c_void_p(self._buffer.address)),
            *(ctypes.c_ulonglong(self._key), ctypes.c_void_p(self._sum.address)),
        ]
        self._code.launch("checksum", arguments)
        return int(self._sum.download(np.uint64, count=1)[0])
