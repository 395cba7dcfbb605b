# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Ask the user's own Numba for the PTX of one of its CUDA functions, for a card that need not be here."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from gpuprof.cubin_file import function_of
from gpuprof.errors import foreign
from gpuprof.ptx_directives import ptx_entries
from gpuprof.toolchain.asking import ask


@dataclass(frozen=True, slots=True)
class NumbaCode:
    """What Numba made of a function, or why nothing."""

    ptx: str = ""
    entry: str = ""
    error: str = ""


def compile_function(function: Any, values: Mapping[str, Any], arch: str, timeout_s: float) -> NumbaCode:
    """Compile for values of these types, arrays among them."""
    question = partial(_compiled, function, values, arch)
    (answer,) = ask([question], [_told], "Numba", timeout_s, 1)
    return NumbaCode(error=answer) if isinstance(answer, str) else answer


def _told(error: BaseException) -> str:
    return f"Numba does not compile it: {foreign(error)}."


def _compiled(function: Any, values: Mapping[str, Any], arch: str) -> NumbaCode:
    from numba import cuda, typeof, void

    number = int(arch.removeprefix("sm_"))
    ptx, _ = cuda.compile(
        function.py_func,
        void(*map(typeof, values.values())),
        device=False,
        abi="numba",
        cc=divmod(number, 10),
        lineinfo=True,
        fastmath=bool(function.targetoptions.get("fastmath")),
    )
    first = next(iter(ptx_entries(ptx)), None)
    if first is None:
        raise ValueError("its PTX has no kernel")
    plain = function_of(first)
    return NumbaCode(ptx, plain if plain == function.py_func.__name__ else first)
