# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The CUDA driver API with its status codes turned into exceptions, and what it says of its devices."""

from functools import cache
from typing import Any

from gpuprof.devices.device import (
    Device,
    fma_per_cycle,
    theoretical_bandwidth_gbps,
    theoretical_gflops,
)
from gpuprof.errors import BackendUnavailable, CaseFailure, foreign

#: Errors after which a context answers every call with the same error (CUDA driver API, CUresult): ECC,
#: hardware stack, illegal instruction, misaligned or illegal address, launch timeout, assert, launch failure.
_FATAL = {214, 700, 702, 710, 714, 715, 716, 717, 718, 719, 720, 999}


class DriverError(CaseFailure):
    """A driver call that did not return CUDA_SUCCESS."""

    def __init__(self, name: str, code: int, description: str, doing: str) -> None:
        super().__init__(f"{name} ({description}) while {doing}.", fatal=code in _FATAL)
        self.name = name
        self.code = code


@cache
def driver() -> Any:
    """The bindings of the driver API, with `cuInit` done.

    Raises:
        BackendUnavailable: cuda-bindings or the driver library is missing, or no device can be used.
    """
    try:
        from cuda.bindings import driver as bindings
    except ImportError as error:
        raise BackendUnavailable(
            f"cuda-bindings cannot be imported: {foreign(error)}.",
            fix="Install it with: pip install cuda-bindings",
        ) from error
    try:
        (status,) = bindings.cuInit(0)
    except (RuntimeError, OSError) as error:
        raise BackendUnavailable(
            "No NVIDIA driver is installed here (libcuda.so.1 is missing).",
            fix="Kernels can be executed on the CPU instead: --device sim. Rates and times take a GPU.",
        ) from error
    if status != bindings.CUresult.CUDA_SUCCESS:
        raise BackendUnavailable(f"The NVIDIA driver cannot be used: {status.name}.")
    return bindings


def call(doing: str, result: tuple[Any, ...]) -> Any:
    """The value of a driver call.

    Raises:
        DriverError: The status is not CUDA_SUCCESS.
    """
    status, *values = result
    if status.value:
        api = driver()
        name, text = (reply[1] for reply in (api.cuGetErrorName(status), api.cuGetErrorString(status)))
        raise DriverError(
            name.decode() if name else str(status),
            int(status),
            text.decode() if text else "no description",
            doing,
        )
    return values[0] if len(values) == 1 else tuple(values) or None


def device_count() -> int:
    """Number of devices the driver shows."""
    return int(call("counting devices", driver().cuDeviceGetCount()))


def device_handle(ordinal: int) -> Any:
    """The driver's handle of a device."""
    count = device_count()
    if not 0 <= ordinal < count:
        raise BackendUnavailable(
            f"There is no GPU {ordinal}: the driver shows {count}.", fix="See `gpuprof devices`."
        )
    return call("opening a device", driver().cuDeviceGet(ordinal))


def pci_bus_id(ordinal: int) -> str:
    """Where a device sits, which names it for NVML too."""
    handle = device_handle(ordinal)
    found = call("reading the device's bus id", driver().cuDeviceGetPCIBusId(64, handle))
    return str(found.split(b"\0")[0].decode())


def query_device(ordinal: int) -> Device:
    """Limits and theoretical peaks of a device, from its attributes."""
    api = driver()
    handle = device_handle(ordinal)
    attributes = api.CUdevice_attribute

    def attribute(name: str) -> int:
        key = getattr(attributes, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(call(f"reading {name}", api.cuDeviceGetAttribute(key, handle)))

    name = call("reading the device's name", api.cuDeviceGetName(128, handle))
    memory_bytes = call("reading the device's memory", api.cuDeviceTotalMem(handle))
    capability = (attribute("COMPUTE_CAPABILITY_MAJOR"), attribute("COMPUTE_CAPABILITY_MINOR"))
    sm_count = attribute("MULTIPROCESSOR_COUNT")
    sm_clock_mhz = attribute("CLOCK_RATE") / 1e3
    memory_clock_mhz = attribute("MEMORY_CLOCK_RATE") / 1e3
    bus_width = attribute("GLOBAL_MEMORY_BUS_WIDTH")
    rates = fma_per_cycle(capability) if sm_clock_mhz else None
    return Device(
        name=name.split(b"\0")[0].decode(),
        compute_capability=f"{capability[0]}.{capability[1]}",
        sm_count=sm_count,
        sm_clock_mhz=sm_clock_mhz,
        memory_clock_mhz=memory_clock_mhz or None,
        memory_bus_width_bits=bus_width or None,
        memory_bytes=int(memory_bytes),
        l2_bytes=attribute("L2_CACHE_SIZE"),
        max_threads_per_block=attribute("MAX_THREADS_PER_BLOCK"),
        max_threads_per_sm=attribute("MAX_THREADS_PER_MULTIPROCESSOR"),
        max_blocks_per_sm=attribute("MAX_BLOCKS_PER_MULTIPROCESSOR"),
        registers_per_sm=attribute("MAX_REGISTERS_PER_MULTIPROCESSOR"),
        registers_per_block=attribute("MAX_REGISTERS_PER_BLOCK"),
        shared_bytes_per_sm=attribute("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
        shared_bytes_per_block=attribute("MAX_SHARED_MEMORY_PER_BLOCK"),
        shared_bytes_per_block_optin=attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        reserved_shared_bytes_per_block=attribute("RESERVED_SHARED_MEMORY_PER_BLOCK"),
        max_grid=(
            attribute("MAX_GRID_DIM_X"),
            attribute("MAX_GRID_DIM_Y"),
            attribute("MAX_GRID_DIM_Z"),
        ),
        peak_bandwidth_gbps=(
            theoretical_bandwidth_gbps(memory_clock_mhz, bus_width)
            if memory_clock_mhz and bus_width
            else None
        ),
        peak_fp32_gflops=theoretical_gflops(rates[0], sm_count, sm_clock_mhz) if rates else None,
        peak_fp64_gflops=theoretical_gflops(rates[1], sm_count, sm_clock_mhz) if rates else None,
        source="driver",
    )


def driver_versions() -> dict[str, str]:
    """The CUDA version that the driver implements, for a run's environment."""
    version = int(call("reading the driver's version", driver().cuDriverGetVersion()))
    return {"cuda_driver_api": f"{version // 1000}.{version % 1000 // 10}"}
