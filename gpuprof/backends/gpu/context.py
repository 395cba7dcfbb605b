# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One device opened for work: its context, its stream, device buffers, loaded kernels and own functions."""

import ctypes
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof.backends.gpu import ahead
from gpuprof.backends.gpu.device_code import compiled_code, file_name
from gpuprof.backends.gpu.driver import DriverError, call, device_handle, driver, pci_bus_id
from gpuprof.cubin_file import misplaced_shared
from gpuprof.errors import CaseFailure, CompileError
from gpuprof.problems.dtypes import numpy_dtype
from gpuprof.problems.problem import ArraySpec
from gpuprof.text import Extent

_LOG_BYTES = 1 << 16


def link_ptx(context: Any, ptx: str, name: str) -> tuple[bytes, str]:
    """A cubin for the context's device, and what was said of it; from any thread.

    Raises:
        CompileError: The driver refuses the text.
    """
    api = driver()
    call("using the device", api.cuCtxSetCurrent(context))
    option = api.CUjit_option
    said, errors = bytearray(_LOG_BYTES), bytearray(_LOG_BYTES)
    logs = {
        option.CU_JIT_INFO_LOG_BUFFER: said,
        option.CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: _LOG_BYTES,
        option.CU_JIT_ERROR_LOG_BUFFER: errors,
        option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: _LOG_BYTES,
        option.CU_JIT_LOG_VERBOSE: 1,
        option.CU_JIT_GENERATE_LINE_INFO: 1,
    }
    state = call("linking", api.cuLinkCreate(len(logs), [*logs], [*logs.values()]))
    text = ptx.encode() + b"\0"
    try:
        kind = api.CUjitInputType.CU_JIT_INPUT_PTX
        call("linking", api.cuLinkAddData(state, kind, text, len(text), name.encode(), 0, [], []))
        address, nbytes = call("linking", api.cuLinkComplete(state))
        cubin = ctypes.string_at(int(address), nbytes)
        if align := misplaced_shared(ptx, cubin):
            raise CompileError(
                f"The driver's linker forgets that {name} aligns dynamic shared memory to {align} bytes.",
                log=_text(said),
                fix="ptxas does not: pip install nvidia-cuda-nvcc.",
            )
        return cubin, _text(said)
    except DriverError as error:
        log = _text(errors)
        first = next(iter(log.splitlines()), error.name)
        raise CompileError(
            f"The driver refuses {name}: {first}.",
            log=log,
            fix="A newer ptxas may take it: pip install -U nvidia-cuda-nvcc.",
        ) from error
    finally:
        api.cuLinkDestroy(state)


def _text(log: bytearray) -> str:
    return log.partition(b"\0")[0].decode(errors="replace").strip()


#: Poisoned bytes on either side of each buffer, to notice a kernel that writes beyond it. A multiple of every
#: alignment that the driver gives an allocation.
GUARD_BYTES = 4096
#: Every byte of a poisoned buffer; as float or double it is a NaN.
POISON = 0xFF


def settle_device() -> None:
    """Wait for fills and copies: they return before they are done, and kernels have a stream of their own."""
    call("waiting for the device", driver().cuCtxSynchronize())


def copy_on_device(target: int, source: int, nbytes: int) -> None:
    """Copy bytes from one address to another."""
    call("copying on the device", driver().cuMemcpyDtoD(target, source, nbytes))
    settle_device()


def queue_copy(target: int, source: int, nbytes: int, stream: Any) -> None:
    """Queue such a copy."""
    call("copying on the device", driver().cuMemcpyDtoDAsync(target, source, nbytes, stream))


def upload(address: int, content: NDArray[Any]) -> None:
    """Copy an array of the host to an address."""
    host = np.ascontiguousarray(content)
    call("copying to the device", driver().cuMemcpyHtoD(address, host.ctypes.data, host.nbytes))
    settle_device()


class DeviceBuffer:
    """A device allocation between two poisoned guards."""

    def __init__(self, nbytes: int, poison: int = POISON) -> None:
        self.nbytes = nbytes
        self.poison = poison
        pointer = call(f"allocating {nbytes} bytes", driver().cuMemAlloc(nbytes + 2 * GUARD_BYTES))
        self.address = int(pointer) + GUARD_BYTES
        self.fill(poison)
        self.poison_guards()

    def fill(self, byte: int) -> None:
        call("filling a buffer", driver().cuMemsetD8(self.address, byte, self.nbytes))
        settle_device()

    def poison_guards(self) -> None:
        for address in self._guards:
            call("filling a guard", driver().cuMemsetD8(address, POISON, GUARD_BYTES))
        settle_device()

    def upload(self, array: NDArray[Any]) -> None:
        """Copy a host array to the start of the buffer."""
        upload(self.address, array)

    def copy_from(self, other: "DeviceBuffer") -> None:
        """Copy another buffer's content of the same size."""
        copy_on_device(self.address, other.address, self.nbytes)

    def queue_fill(self, byte: int, stream: Any) -> None:
        call("filling a buffer", driver().cuMemsetD8Async(self.address, byte, self.nbytes, stream))

    def download(self, dtype: Any, *, count: int, offset: int = 0) -> Any:
        host = np.empty(count, dtype=dtype)
        source = self.address + offset * host.itemsize
        call("copying from the device", driver().cuMemcpyDtoH(host.ctypes.data, source, host.nbytes))
        return host

    def held(self, spec: ArraySpec) -> Any:
        return self.download(numpy_dtype(spec.dtype), count=spec.elements)

    def overrun(self) -> str:
        """Where something was written beyond the buffer: `before the start`, `past the end` or nowhere."""
        for place, address in zip(("before the start", "past the end"), self._guards, strict=True):
            guard = np.empty(GUARD_BYTES, dtype=np.uint8)
            call("reading a guard", driver().cuMemcpyDtoH(guard.ctypes.data, address, GUARD_BYTES))
            if (guard != POISON).any():
                return place
        return ""

    def free(self) -> None:
        """Give the memory back; the buffer must not be used again."""
        call("freeing a buffer", driver().cuMemFree(self._guards[0]))

    @property
    def _guards(self) -> tuple[int, int]:
        return self.address - GUARD_BYTES, self.address + self.nbytes


class Arguments:
    """Kernel arguments, ctypes scalars and buffers, packed once, so that a launch costs one driver call."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = [
            ctypes.c_void_p(each.address) if isinstance(each, DeviceBuffer) else each for each in values
        ]
        self._pointers = (ctypes.c_void_p * max(1, len(self._values)))(
            *(ctypes.addressof(value) for value in self._values)
        )
        self.address = ctypes.addressof(self._pointers)


class LoadedModule:
    """A loaded cubin, whose kernels share its variables."""

    def __init__(self, cubin: bytes, name: str) -> None:
        self._name = name
        self._handle = call(f"loading {name}", driver().cuModuleLoadData(cubin))

    def function(self, entry: str) -> "LoadedFunction":
        return LoadedFunction(self._handle, entry)

    def variable(self, name: str) -> tuple[int, int] | None:
        """Address and bytes of one of its variables; None where machine code has none of that name."""
        try:
            address, nbytes = call(f"finding {name}", driver().cuModuleGetGlobal(self._handle, name.encode()))
        except DriverError as error:
            if error.name == "CUDA_ERROR_NOT_FOUND":
                return None
            raise
        return int(address), int(nbytes)

    def unload(self) -> None:
        """Free it; its functions must not be used again."""
        call(f"unloading {self._name}", driver().cuModuleUnload(self._handle))


class LoadedFunction:
    """One kernel of a loaded module."""

    def __init__(self, module: Any, entry: str) -> None:
        self.name = entry
        self._handle = call(f"finding {entry}", driver().cuModuleGetFunction(module, entry.encode()))

    def reserve_shared(self, dynamic_bytes: int, static_bytes: int, limit: int) -> None:
        """Raise the kernel's limit of dynamic shared memory."""
        api = driver()
        key = api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        try:
            call("raising the shared-memory limit", api.cuFuncSetAttribute(self._handle, key, dynamic_bytes))
        except DriverError as error:
            raise CaseFailure(
                f"{self.name} needs {_kib(dynamic_bytes + static_bytes)} of shared memory per block;"
                f" this device allows {_kib(limit)}: {error.name}.",
                fatal=error.fatal,
                over_limit=True,
            ) from error

    def launch(
        self,
        grid: Extent,
        block: Extent,
        dynamic_bytes: int,
        stream: Any,
        arguments: Arguments,
        *,
        cooperative: bool = False,
    ) -> None:
        api = driver()
        shape = (self._handle, *grid, *block, dynamic_bytes, stream, arguments.address)
        result = api.cuLaunchCooperativeKernel(*shape) if cooperative else api.cuLaunchKernel(*shape, 0)
        if result[0].value:
            call(f"launching {self.name}", result)


class GpuContext:
    """The primary context of one device, current in the calling thread, and one stream."""

    def __init__(self, ordinal: int) -> None:
        api = driver()
        self.context = call("opening the device", api.cuDevicePrimaryCtxRetain(device_handle(ordinal)))
        call("opening the device", api.cuCtxSetCurrent(self.context))
        flags = api.CUstream_flags.CU_STREAM_NON_BLOCKING
        self.stream = call("creating a stream", api.cuStreamCreate(flags))
        self.pci_bus_id = pci_bus_id(ordinal)

    def synchronize(self) -> None:
        call("waiting for the kernel", driver().cuCtxSynchronize())

    def free_bytes(self) -> int:
        """Device memory that can still be allocated."""
        free, _total = call("reading free memory", driver().cuMemGetInfo())
        return int(free)


#: Grid and block of the elementwise device functions; they stride over any length.
_GRID = (1024, 1, 1)
_BLOCK = (256, 1, 1)


class DeviceCode:
    """Device functions of one source for one element type, loaded when the first is needed."""

    def __init__(self, context: GpuContext, arch: str, dtype: str, source: str | None) -> None:
        self._context = context
        self._text = arch, dtype, source
        self._module: LoadedModule | None = None
        self._functions: dict[str, LoadedFunction] = {}

    def launch(
        self, name: str, arguments: Sequence[Any], grid: Extent = _GRID, block: Extent = _BLOCK
    ) -> None:
        """Run one of the functions to its end."""
        self.load(name).launch(grid, block, 0, self._context.stream, Arguments(arguments))
        self._context.synchronize()

    def queue(self, name: str, arguments: Arguments) -> None:
        self.load(name).launch(_GRID, _BLOCK, 0, self._context.stream, arguments)

    @cached_property
    def _sum(self) -> DeviceBuffer:
        return DeviceBuffer(8)

    def checksum(self, buffer: DeviceBuffer, key: int) -> int:
        """A sum of a buffer's words that nobody can keep who does not know the key."""
        self._sum.fill(0)
        self.launch(
            "checksum", [ctypes.c_longlong(buffer.nbytes), buffer, ctypes.c_ulonglong(key), self._sum]
        )
        return int(self._sum.download(np.uint64, count=1)[0])

    def load(self, name: str) -> LoadedFunction:
        if self._module is None:
            cubin = ahead.result(compiled_code, *self._text)
            self._module = LoadedModule(cubin, file_name(self._text[2]))
        if name not in self._functions:
            self._functions[name] = self._module.function(name)
        return self._functions[name]


def _kib(nbytes: int) -> str:
    return f"{nbytes / 1024:g} KiB"
