# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""CUDA's driver API on a machine without a GPU: launches run on the executor, and time is what they count.

What gpuprof does on a GPU can be run and debugged with it: every call with its arguments, every byte that a
kernel leaves behind, faults that end the context. What only a GPU knows it cannot show: true times, what runs
at the same time, what the real driver refuses.

Commands are carried out when they are queued, unless the stream waits for a value in memory. Then they wait
behind it, at most 1,024 of them, and every call blocks that the driver does not document to return at once: a
further command, the first launch of a function that is not loaded yet (`CUDA_MODULE_LOADING=EAGER` loads all
with their module), and whatever is no command of the stream.

`EMULATED_GPUS` is how many devices there are. `EMULATED_DEATH=1:40` ends the second at its 40th launch.
`EMULATED_BLOCKED=FILE` takes the name of each call that blocked. `EMULATED_BLOCKING=NAME` makes a driver's
function, or launches of a kernel, block behind a wait.
"""

import ctypes
import json
import os
import random
import re
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from gpuprof.devices.cards import load_card
from gpuprof.executor import (
    FaultKind,
    GlobalMemory,
    KernelFault,
    LaunchRefused,
    launch,
    launch_template,
    load_program,
)
from gpuprof.executor.observers.global_races import GlobalRaces
from gpuprof.schema import from_json
from gpuprof.toolchain.cache import cache_directory
from gpuprof.toolchain.nvrtc import CompiledKernel

#: The card that every device is, with less memory and cache than it has.
CARD = "h200"
MEMORY_BYTES = 256 << 20
L2_BYTES = 1 << 16
#: Commands that a stream takes before it blocks, and calls that never wait for a stream.
QUEUE_COMMANDS = 1024
_QUEUED = (
    *("cuEventRecord", "cuLaunchCooperativeKernel", "cuLaunchKernel", "cuMemcpyDtoDAsync"),
    *("cuMemsetD8Async", "cuStreamWaitValue32"),
)
_IMMEDIATE = ("cuCtxSetCurrent", "cuGetErrorName", "cuGetErrorString")
_POLL_S = 0.002
#: What changes nothing that a kernel sees here: no cache is kept, and no shared memory outlasts a launch.
_UNSEEN = ("nothing", "flush_l2", "scribble_shared", "demote")
#: Functions of the measuring side that stride over their arrays with any grid: few blocks are faster here.
_STRIDING = (
    "compare",
    "checksum",
    "compare_picked",
    "spoil",
    "hide",
    "exchange",
    "restore",
)
#: The modules that measure a card's rates: minutes of work, for nothing.
_RATES = (".entry dram_copies", ".entry straight_code")
_ENTRY = re.compile(r"\.entry\s+([\w$]+)")
_EMPTY_US = 2.0
_INSTRUCTIONS_PER_US = 500
#: Share of a launch's time by which two launches of it may differ.
_NOISE = 0.002


class Unjudged(GlobalRaces):
    """Looks for no races in global memory, and tells nobody of others: a GPU goes on."""

    def __init__(self, buffers, *about, **how):
        super().__init__([], *about, **how)

    def report(self, race):
        """Go on."""


@dataclass
class Gpu:
    """One device: what it holds and how far it is."""

    ordinal: int
    memory: GlobalMemory = field(default_factory=GlobalMemory)
    now_us: float = 0.0
    launches: int = 0
    error: int = 0
    #: What the stream waits for, as address and value, and the commands behind it, in order.
    waiting: deque = field(default_factory=deque)
    #: Copies and fills that have begun.
    unsettled: list = field(default_factory=list)

    @property
    def used_bytes(self):
        return sum(buffer.size for buffer in self.memory.buffers)


@dataclass
class Handle:
    """Something that the driver made."""

    content: object

    def __int__(self) -> int:
        """What a library is given of it; none works with this driver."""
        return 0


class EmulatedDriver:
    """The functions of the API that gpuprof calls, under their names.

    Args:
        bindings: The module of cuda-bindings; its types and numbers stay.
    """

    def __init__(self, bindings):
        self._results = bindings.CUresult
        self._attributes = bindings.CUdevice_attribute
        self._bindings = bindings
        self._device = load_card(CARD)
        self._gpus = [Gpu(number) for number in range(int(os.environ.get("EMULATED_GPUS", "1")))]
        self._gpu = None
        self._ptx = {}
        self._programs = {}
        self._noise = random.Random(0)
        self._pinned = []
        self._loaded = set()
        self._modules = 0
        self._eager = os.environ.get("CUDA_MODULE_LOADING") == "EAGER"
        self._blocking = os.environ.get("EMULATED_BLOCKING", "")
        died, _, at = os.environ.get("EMULATED_DEATH", "-1:0").partition(":")
        self._death = int(died), int(at)

    def take_over(self):
        """Put them in the place of the bindings' own."""
        launch_template.GlobalRaces = Unjudged
        for name in dir(self):
            if name.startswith("cu"):
                setattr(self._bindings, name, self._in_order(name, getattr(self, name)))

    # The stream's order.

    def _in_order(self, name, function):
        """A function that blocks where the driver's own may."""

        def called(*arguments):
            if name not in _IMMEDIATE and (name not in _QUEUED or name == self._blocking):
                self._block(name)
            return function(*arguments)

        return called

    def _is_held(self):
        """Whether the stream waits; what no longer does is carried out."""
        waiting = self._gpu.waiting if self._gpu else ()
        while waiting:
            first = waiting[0]
            if isinstance(first, tuple):
                address, value = first
                if ctypes.c_uint32.from_address(address).value < value:
                    return True
                waiting.popleft()
            else:
                waiting.popleft()()
        return False

    def _block(self, name, least=1):
        """Wait for the stream while so many commands wait in it; each call that had to is noted."""
        if not self._is_held() or len(self._gpu.waiting) < least:
            return
        if noted := os.environ.get("EMULATED_BLOCKED"):
            with Path(noted).open("a") as file:
                file.write(f"{name}\n")
        while self._is_held():
            time.sleep(_POLL_S)

    def _queue(self, name, command):
        """Carry a command out, or keep it behind what the stream waits for."""
        self._block(name, QUEUE_COMMANDS)
        if self._is_held():
            self._gpu.waiting.append(command)
            return self._good()
        return command() or self._good()

    # Devices and contexts.

    def cuInit(self, flags):
        return (self._results.CUDA_SUCCESS,)

    def cuDriverGetVersion(self):
        return self._good(13000)

    def cuGetErrorName(self, error):
        return self._results.CUDA_SUCCESS, error.name.encode()

    def cuGetErrorString(self, error):
        return self._results.CUDA_SUCCESS, b"said by the emulated driver"

    def cuDeviceGetCount(self):
        return self._good(len(self._gpus))

    def cuDeviceGet(self, ordinal):
        return self._good(ordinal)

    def cuDeviceGetName(self, length, device):
        return self._good(b"Emulated " + self._device.name.encode() + b"\0")

    def cuDeviceTotalMem(self, device):
        return self._good(MEMORY_BYTES)

    def cuDeviceGetPCIBusId(self, length, device):
        return self._good(b"0000:%02x:00.0\0" % device)

    def cuDeviceGetAttribute(self, attribute, device):
        return self._good(self._attribute(attribute.name.removeprefix("CU_DEVICE_ATTRIBUTE_")))

    def _attribute(self, name):
        card = self._device
        major, minor = card.capability
        held = {
            "COMPUTE_CAPABILITY_MAJOR": major,
            "COMPUTE_CAPABILITY_MINOR": minor,
            "MULTIPROCESSOR_COUNT": card.sm_count,
            "CLOCK_RATE": int(1000 * card.sm_clock_mhz),
            "MEMORY_CLOCK_RATE": int(1000 * (card.memory_clock_mhz or 0)),
            "GLOBAL_MEMORY_BUS_WIDTH": card.memory_bus_width_bits or 0,
            "L2_CACHE_SIZE": L2_BYTES,
            "MAX_THREADS_PER_BLOCK": card.max_threads_per_block,
            "MAX_THREADS_PER_MULTIPROCESSOR": card.max_threads_per_sm,
            "MAX_BLOCKS_PER_MULTIPROCESSOR": card.max_blocks_per_sm,
            "MAX_REGISTERS_PER_MULTIPROCESSOR": card.registers_per_sm,
            "MAX_REGISTERS_PER_BLOCK": card.registers_per_block,
            "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": card.shared_bytes_per_sm,
            "MAX_SHARED_MEMORY_PER_BLOCK": card.shared_bytes_per_block,
            "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": card.shared_bytes_per_block_optin,
            "RESERVED_SHARED_MEMORY_PER_BLOCK": card.reserved_shared_bytes_per_block,
            **dict(zip(("MAX_GRID_DIM_X", "MAX_GRID_DIM_Y", "MAX_GRID_DIM_Z"), card.max_grid, strict=True)),
        }
        return held.get(name, 0)

    def cuDevicePrimaryCtxRetain(self, device):
        return self._good(Handle(self._gpus[device]))

    def cuCtxSetCurrent(self, context):
        self._gpu = context.content
        return self._good()

    def cuCtxSynchronize(self):
        self._settle()
        return self._good()

    def cuProfilerStart(self):
        return self._good()

    def cuProfilerStop(self):
        return self._good()

    def cuStreamCreate(self, flags):
        return self._good(Handle("stream"))

    def cuStreamSynchronize(self, stream):
        return self._good()

    # Memory.

    def cuMemAlloc(self, nbytes):
        if self._gpu.used_bytes + nbytes > MEMORY_BYTES:
            return self._results.CUDA_ERROR_OUT_OF_MEMORY, None
        content = np.zeros(nbytes, np.uint8)
        return self._good(self._gpu.memory.allocate(content, "an allocation", adopts=True).address)

    def cuMemFree(self, address):
        self._settle()
        (buffer,) = [buffer for buffer in self._gpu.memory.buffers if buffer.address == int(address)]
        self._gpu.memory.buffers.remove(buffer)
        return self._good()

    def cuMemGetInfo(self):
        return self._good(MEMORY_BYTES - self._gpu.used_bytes, MEMORY_BYTES)

    def cuMemHostAlloc(self, nbytes, flags):
        self._pinned.append(ctypes.create_string_buffer(nbytes))
        return self._good(ctypes.addressof(self._pinned[-1]))

    def cuMemHostGetDevicePointer(self, host, flags):
        return self._good(host)

    def cuMemsetD8(self, address, byte, nbytes):
        return self._soon(lambda: self._fill(address, byte, nbytes))

    def cuMemsetD8Async(self, address, byte, nbytes, stream):
        return self._queue("cuMemsetD8Async", lambda: self._fill(address, byte, nbytes))

    def cuMemcpyHtoD(self, target, source, nbytes):
        content = np.frombuffer(ctypes.string_at(int(source), nbytes), np.uint8)
        return self._soon(lambda: self._fill(target, content, nbytes))

    def cuMemcpyDtoH(self, target, source, nbytes):
        self._settle()
        found = self._good()
        if self._succeeded(found):
            ctypes.memmove(int(target), self._bytes(source, nbytes).tobytes(), nbytes)
        return found

    def cuMemcpyDtoD(self, target, source, nbytes):
        return self._soon(lambda: self._fill(target, self._bytes(source, nbytes), nbytes))

    def cuMemcpyDtoDAsync(self, target, source, nbytes, stream):
        def copy():
            self._gpu.now_us += nbytes / 1e6
            return self._fill(target, self._bytes(source, nbytes), nbytes)

        return self._queue("cuMemcpyDtoDAsync", copy)

    def _fill(self, address, content, nbytes):
        self._bytes(address, nbytes)[:] = content
        return self._good()

    def _soon(self, work):
        """A copy or fill without a stream returns before it is done; a stream of its own does not wait."""
        self._gpu.unsettled.append(work)
        return self._good()

    def _settle(self):
        """Do what such copies and fills have begun, in their order."""
        while self._gpu.unsettled:
            self._gpu.unsettled.pop(0)()

    def _bytes(self, address, nbytes):
        """What lies there, as a view."""
        start = int(address)
        buffer = self._gpu.memory.holding(start, start + nbytes)
        if buffer is None:
            raise AssertionError(f"the host copies {nbytes} bytes at {start:#x}, where nothing is")
        offset = start - buffer.address
        return buffer.changeable(1)[offset : offset + nbytes]

    # Modules and launches.

    def cuModuleLoadData(self, cubin):
        ptx = self._found(bytes(cubin)).ptx
        if any(rates in ptx for rates in _RATES):
            return self._results.CUDA_ERROR_NO_BINARY_FOR_GPU, None
        self._modules += 1
        return self._good(Handle((self._modules, ptx)))

    def cuModuleUnload(self, module):
        memory, (_, ptx) = self._gpu.memory, module.content
        for key in [key for key in memory.variables if key[0] == ptx]:
            memory.buffers.remove(memory.variables.pop(key))
        return self._good()

    def cuModuleGetGlobal(self, module, name):
        """A variable; one that starts with addresses cannot be had before a launch."""
        _, ptx = module.content
        key = ptx, name.decode()
        if key not in self._gpu.memory.variables:
            program = self._program(ptx, _ENTRY.search(ptx)[1])
            space = ("global", "const")
            variables = {one.name: one for one in program.interface.variables if one.space in space}
            found = variables.get(key[1])
            if found is None or found.references:
                return self._results.CUDA_ERROR_NOT_FOUND, None, None
            content = np.frombuffer((found.data or b"").ljust(found.size, b"\0"), np.uint8)
            place = program.interface.constants.get(key[1])
            address = None if place is None else self._gpu.memory.constant_window(ptx) + place
            self._gpu.memory.variables[key] = self._gpu.memory.allocate(content, key[1], address=address)
        buffer = self._gpu.memory.variables[key]
        return self._good(buffer.address, buffer.size)

    def cuModuleGetFunction(self, module, name):
        return self._good(Handle((*module.content, name.decode())))

    def cuFuncSetAttribute(self, function, attribute, value):
        return self._good()

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(self, function, threads, dynamic_bytes):
        return self._good(1)

    def cuLaunchCooperativeKernel(self, *arguments):
        return self._launched("cuLaunchCooperativeKernel", *arguments, cooperative=True)

    def cuLaunchKernel(self, *arguments):
        return self._launched("cuLaunchKernel", *arguments[:-1], cooperative=False)

    def _launched(self, name, function, *shape_and_arguments, cooperative):
        module, ptx, entry = function.content
        *shape, dynamic_bytes, _, pointers = shape_and_arguments
        if entry == self._blocking:
            self._block(name)
        if not self._eager and (module, entry) not in self._loaded:
            self._block(f"{name} of {entry}, which is not loaded")
        self._loaded.add((module, entry))
        if entry in _STRIDING:
            shape[0] = 2
        program, arguments = None, []
        if entry not in _UNSEEN:
            program = self._program(ptx, entry)
            given = (ctypes.c_void_p * max(1, len(program.interface.parameters))).from_address(int(pointers))
            arguments = [
                ctypes.string_at(place, variable.size)
                for place, (variable, _) in zip(given, program.interface.parameters, strict=False)
            ]
        return self._queue(name, lambda: self._run(program, shape, arguments, dynamic_bytes, cooperative))

    def _run(self, program, shape, arguments, dynamic_bytes, cooperative):
        """Carry a launch out."""
        gpu, taken_us = self._gpu, 0.0
        gpu.launches += 1
        if (gpu.ordinal, gpu.launches) == self._death:
            gpu.error = int(self._results.CUDA_ERROR_ECC_UNCORRECTABLE)
        if gpu.error:
            return self._good()
        if program is not None:
            grid, block = tuple(shape[:3]), tuple(shape[3:])
            options = {"cooperative": cooperative}
            try:
                counted = launch(program, grid, block, arguments, gpu.memory, dynamic_bytes, **options)
                taken_us = counted.lane_instructions / _INSTRUCTIONS_PER_US
            except LaunchRefused:
                return (self._results.CUDA_ERROR_INVALID_VALUE,)
            except KernelFault as fault:
                if not _is_silent(fault):
                    gpu.error = int(self._results.CUDA_ERROR_ILLEGAL_ADDRESS)
        gpu.now_us += (_EMPTY_US + taken_us) * self._noise.gauss(1.0, _NOISE)
        return self._good()

    def _program(self, ptx, entry):
        if (ptx, entry) not in self._programs:
            self._programs[ptx, entry] = load_program(ptx, entry)
        return self._programs[ptx, entry]

    def _found(self, cubin):
        """What NVRTC made together with that machine code: gpuprof keeps it in its cache."""
        if cubin not in self._ptx:
            kept = Path(cache_directory()).glob("?" * 64 + ".json")
            for path in sorted(kept, key=lambda path: path.stat().st_mtime, reverse=True):
                made = json.loads(path.read_text())["made"]
                for kernel in made if isinstance(made, list) else ():  # and no rates of a device
                    compiled = from_json(CompiledKernel, kernel)
                    self._ptx[compiled.cubin] = compiled
                if cubin in self._ptx:
                    break
        return self._ptx[cubin]

    # Time.

    def cuEventCreate(self, flags):
        return self._good(Handle(0.0))

    def cuEventRecord(self, event, stream):
        def record():
            event.content = self._gpu.now_us

        return self._queue("cuEventRecord", record)

    def cuEventElapsedTime(self, start, end):
        return self._good((end.content - start.content + 1.0) / 1e3)

    def cuStreamWaitValue32(self, stream, address, value, flags):
        self._block("cuStreamWaitValue32", QUEUE_COMMANDS)
        self._gpu.waiting.append((int(address), value))
        return self._good()

    def _good(self, *values):
        """Success with what was asked for, or the error that ended the context."""
        return self._results(self._gpu.error if self._gpu else 0), *values

    def _succeeded(self, result):
        return not int(result[0])


def _is_silent(fault):
    """Whether hardware goes on as if nothing were: what only the executor calls a fault."""
    return fault.kind in (FaultKind.SHARED_RACE, FaultKind.UNINITIALISED_SHARED, FaultKind.PROXY)
