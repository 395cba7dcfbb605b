# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Device memory of inputs that the hardware keeps from being written.

A kernel that writes to an input what is there already is found so: nothing else tells. It takes a launch with
the inputs elsewhere, since times are to be those of memory as `cudaMalloc` gives it.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from gpuprof.backends.gpu.context import GUARD_BYTES, Buffer
from gpuprof.backends.gpu.driver import DriverError, call, driver
from gpuprof.errors import CaseFailure


class InputBuffer(Buffer):
    """A buffer in pages of its own.

    Args:
        nbytes: Usable size.

    Raises:
        CaseFailure: The device has no room, or no memory of this kind.
    """

    def protect(self, *, read_only: bool) -> None:
        """Make writes of kernels a fault, or allow them again."""
        api = driver()
        access = api.CUmemAccessDesc()
        access.location = self._where().location
        flags = api.CUmemAccess_flags
        access.flags = (
            flags.CU_MEM_ACCESS_FLAGS_PROT_READ if read_only else flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        )
        start = self.address - GUARD_BYTES
        call("setting access to memory", api.cuMemSetAccess(start, self._mapped_bytes, [access], 1))

    def _allocate(self, nbytes: int) -> int:
        api = driver()
        where = self._where()
        minimum = api.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
        page = int(call("asking for a page's size", api.cuMemGetAllocationGranularity(where, minimum)))
        whole = -(-nbytes // page) * page
        memory = call(f"allocating {nbytes} bytes", api.cuMemCreate(whole, where, 0))
        try:
            start = int(call("reserving addresses", api.cuMemAddressReserve(whole, 0, 0, 0)))
            call("mapping memory", api.cuMemMap(start, whole, 0, memory, 0))
        finally:
            # What is mapped stays until it is unmapped.
            call("releasing memory", api.cuMemRelease(memory))
        self._mapped_bytes = whole
        self.address = start + GUARD_BYTES
        self.protect(read_only=False)
        return start

    def _release(self) -> None:
        api, start = driver(), self._guards[0]
        call("unmapping memory", api.cuMemUnmap(start, self._mapped_bytes))
        call("giving addresses back", api.cuMemAddressFree(start, self._mapped_bytes))

    @staticmethod
    def _where() -> Any:
        """This device's memory."""
        api = driver()
        where = api.CUmemAllocationProp()
        where.type = api.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        where.location.type = api.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        where.location.id = int(call("asking for the device", api.cuCtxGetDevice()))
        return where


@contextmanager
def protected(buffers: Iterable[InputBuffer]) -> Iterator[None]:
    """Let the hardware refuse writes to them meanwhile.

    Raises:
        CaseFailure: A kernel wrote to one; its context is lost.
    """
    for buffer in buffers:
        buffer.protect(read_only=True)
    try:
        yield
    except DriverError as error:
        if error.name != "CUDA_ERROR_ILLEGAL_ADDRESS":
            raise
        raise CaseFailure(
            "The kernel writes to one of its inputs, if only what was there: declare that array inout.",
            fatal=True,
        ) from error
