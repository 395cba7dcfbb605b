# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Opens a device and begins to compile for it while the process still loads its code."""

from contextlib import suppress
from threading import Lock

from gpuprof.backends.gpu.ahead import Ahead
from gpuprof.backends.gpu.device_code import compiled_code, compiled_rates
from gpuprof.backends.gpu.driver import driver
from gpuprof.errors import BackendUnavailable
from gpuprof.toolchain.nvrtc import supported_archs

with suppress(ImportError):  # told where it is used
    import cuda.bindings.driver  # noqa: F401

#: What this process has begun.
ahead = Ahead()
_compiling: set[str] = set()
_lock = Lock()


def wake(ordinal: int) -> None:
    """Start the driver and open a device; whoever uses it finds what is wrong, and tells it."""
    ahead.begin(supported_archs)  # loads the compiler
    with suppress(BackendUnavailable):
        api = driver()
        status, device = api.cuDeviceGet(ordinal)
        if status.value:
            return
        which, ask = api.CUdevice_attribute, api.cuDeviceGetAttribute
        _, major = ask(which.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device)
        _, minor = ask(which.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device)
        begin_compiling(f"sm_{major}{minor}")
        api.cuDevicePrimaryCtxRetain(device)


def begin_compiling(arch: str) -> None:
    """Begin to load the compiler, and to compile what every measurement on an architecture needs; once."""
    with _lock:
        if arch not in _compiling:
            _compiling.add(arch)
            ahead.begin(supported_archs)
            ahead.begin(compiled_code, arch, "f32", None)
            ahead.begin(compiled_rates, arch)
