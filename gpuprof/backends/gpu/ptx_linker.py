# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Machine code made of PTX by the driver, for the device that is open."""

import ctypes
from typing import Any

from gpuprof.backends.gpu.driver import DriverError, call, driver
from gpuprof.errors import CompileError

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
        return ctypes.string_at(int(address), nbytes), _text(said)
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
