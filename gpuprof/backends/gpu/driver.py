# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The CUDA driver API with its status codes turned into exceptions."""

from functools import cache
from typing import Any

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
            fix="Without a GPU kernels are executed on the CPU: --device sim.",
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
