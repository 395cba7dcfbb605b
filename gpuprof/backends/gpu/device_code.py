# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The measuring side's own device functions, compiled before anything else of it is loaded."""

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import resources

from gpuprof import timeline
from gpuprof.devices.measured import TENSOR_TYPES_MEASURED
from gpuprof.problems.dtypes import ELEMENT_TYPES, RESULT, RUN_TYPES, of_run
from gpuprof.toolchain.cache import compile_entries_cached
from gpuprof.toolchain.nvrtc import compiler_options, nvrtc_version, target_of

#: Has NVRTC of that version optimise functions side by side, which makes the same code of them.
_SPLITS, _SPLIT = (13, 0), ("--split-compile=4",)
#: How the functions of a source begin. One is named to the compiler, whose machine code has all of them.
_FUNCTION = re.compile(r'^extern "C" __global__ void (\w+)\(', re.MULTILINE)

#: Sources of the kernels that measure a device's rates, and one of each.
_RATES = {"rates.cu": "fma_f32", "tensor_rates.cu": f"tensor_{TENSOR_TYPES_MEASURED[0]}"}
#: The architecture whose tensor cores are measured, by its own instructions.
WGMMA = "sm_90"


def compiled_code(arch: str, dtype: str, source: str | None) -> bytes:
    """The machine code of all functions of a source: one by one, each would take nearly as long as all.

    None of them is timed, and each measurement waits for them: compiling takes a quarter as long this way.
    """
    fast = ("--Ofast-compile=min", *_SPLIT) if nvrtc_version() >= _SPLITS else ()
    text, options = device_source(source), compiler_options(arch, device_macros(dtype), fast)
    with timeline.span("compile", f"{file_name(source)} {dtype}"):
        return compile_entries_cached(text, file_name(source), _FUNCTION.findall(text)[:1], options)[0].cubin


def compiled_rates(arch: str) -> list[bytes]:
    """The machine code of the kernels that measure a device's rates; of those of its tensor cores, too."""

    def compiled(name: str) -> bytes:
        text = _text(name)
        os.nice(5)  # this thread alone: what is timed is compiled first
        with timeline.span("compile", name):
            split = _SPLIT if nvrtc_version() >= _SPLITS else ()
            options = compiler_options(target_of(arch, (text,)), extra=split)
            return compile_entries_cached(text, name, [_RATES[name]], options)[0].cubin

    with ThreadPoolExecutor() as threads:
        return list(threads.map(compiled, list(_RATES)[: 1 + (arch == WGMMA)]))


def file_name(source: str | None) -> str:
    """What a source of device functions is called; None for the measuring side's own."""
    return "device_code.cu" if source is None else "reference.cu"


def device_source(source: str | None = None) -> str:
    """The whole text of a source of device functions; None for the measuring side's own."""
    own = _text("device_code.cu") if source is None else source
    return "".join((_text("values.cu"), *_float_types(), own))


def _float_types() -> Iterator[str]:
    """What values.cu calls the types that C++ lacks."""
    for name, one in ELEMENT_TYPES.items():
        if one.header:
            bits, parts = ELEMENT_TYPES[f"u{8 * one.nbytes}"].c_type, (one.exponent_bits, one.fraction_bits)
            yield f"using {name}_bits = float_bits<{bits}, {parts[0]}, {parts[1]}, {int(one.is_finite)}>;\n"


def rates_source() -> str:
    """The text of the kernels that measure a device's rates."""
    return _text("rates.cu") + _text("tensor_rates.cu")


def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def device_macros(dtype: str) -> list[tuple[str, str]]:
    """`real` as device code sees it, and the type of what a run of `real` computes."""
    result = of_run(RESULT, dtype) if dtype in RUN_TYPES else dtype
    named = (("real", dtype), ("result_type", result))
    elements = ((name, kind, ELEMENT_TYPES[kind]) for name, kind in named)
    return [(name, f"{kind}_bits" if one.header else one.c_type) for name, kind, one in elements]
