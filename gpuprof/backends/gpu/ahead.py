# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What is begun in the background before anybody needs what comes of it: compilations, inputs, a device."""

from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from gpuprof.backends.gpu.device_code import compiled_code
from gpuprof.backends.gpu.driver import device_handle, driver, query_device
from gpuprof.errors import GpuprofError
from gpuprof.machine import available_memory_bytes
from gpuprof.toolchain.nvrtc import supported_archs

if TYPE_CHECKING:
    from gpuprof.problems.problem import Problem

with suppress(ImportError):  # told where it is used
    import cuda.bindings.driver  # noqa: F401

T = TypeVar("T")
#: Compilations and inputs side by side.
_THREADS = 4
#: The part of the host's memory that inputs may take which nobody needs yet.
_MEMORY_SHARE = 0.1


_threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="ahead")
#: What this process has begun: functions under way, each with its arguments.
_begun: dict[Hashable, Future[Any]] = {}


def begin(work: Callable[..., T], *arguments: Hashable) -> None:
    """Call a function in the background, unless that was begun before."""
    key = (work, *arguments)
    if key not in _begun:
        _begun[key] = _threads.submit(work, *arguments)


def begin_inputs(make: "Callable[[Problem, int], Any]", problem: "Problem", seed: int) -> None:
    """Make what comes of a problem's inputs where the host has room for what nobody needs yet."""
    if problem.array_bytes <= _MEMORY_SHARE * available_memory_bytes():
        begin(make, problem, seed)


def result(work: Callable[..., T], *arguments: Hashable) -> T:
    """What a function returns: from the background, once, or called now where that failed."""
    future: Future[T] | None = _begun.pop((work, *arguments), None)
    if future is not None:
        with suppress(Exception):
            return future.result()
    return work(*arguments)


def forget(work: Callable[..., T], *arguments: Hashable) -> None:
    """Keep no result that nobody needs any more."""
    if (future := _begun.pop((work, *arguments), None)) is not None:
        future.cancel()


def wake(ordinal: int) -> None:
    """Start the driver, and what a device's measurements need first; who uses it finds what is wrong."""
    begin(supported_archs)  # loads the compiler
    with suppress(GpuprofError):
        begin(compiled_code, query_device(ordinal).arch, "f32", None)
        driver().cuDevicePrimaryCtxRetain(device_handle(ordinal))
