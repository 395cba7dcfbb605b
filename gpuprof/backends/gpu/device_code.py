# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The measuring side's own device functions, compiled for one element type when the first is needed."""

import re
from collections.abc import Sequence
from importlib import resources
from typing import Any

from gpuprof import timeline
from gpuprof.backends.gpu.ahead import Ahead
from gpuprof.backends.gpu.context import Arguments, GpuContext, LoadedFunction, LoadedModule
from gpuprof.problems.dtypes import ELEMENT_TYPES, RESULT, RUN_TYPES, of_run
from gpuprof.text import Extent
from gpuprof.toolchain.cache import compile_entries_cached
from gpuprof.toolchain.nvrtc import compiler_options

#: Grid and block of the elementwise device functions; they stride over any length.
_GRID = (1024, 1, 1)
_BLOCK = (256, 1, 1)

#: How the functions of a source begin.
_FUNCTION = re.compile(r'^extern "C" __global__ void (\w+)\(', re.MULTILINE)

#: Types that device code takes as bits: what values.cu calls them.
_AS_BITS = {"f16": "half_bits", "bf16": "bfloat_bits", "e4m3": "e4m3_bits"}


class DeviceCode:
    """Device functions of one source for one element type."""

    def __init__(self, context: GpuContext, arch: str, dtype: str, source: str | None, ahead: Ahead) -> None:
        self._context = context
        self._text = arch, dtype, source
        self._ahead = ahead
        self._module: LoadedModule | None = None
        self._functions: dict[str, LoadedFunction] = {}

    def launch(
        self, name: str, arguments: Sequence[Any], grid: Extent = _GRID, block: Extent = _BLOCK
    ) -> None:
        """Run one of the functions to its end."""
        self._function(name).launch(grid, block, 0, self._context.stream, Arguments(arguments))
        self._context.synchronize()

    def queue(self, name: str, arguments: Arguments) -> None:
        """Queue one of the elementwise functions."""
        self._function(name).launch(_GRID, _BLOCK, 0, self._context.stream, arguments)

    def load(self, name: str) -> LoadedFunction:
        """One of the functions, for a caller that launches it itself."""
        return self._function(name)

    def _function(self, name: str) -> LoadedFunction:
        if self._module is None:
            cubin = self._ahead.result(compiled_code, *self._text)
            self._module = LoadedModule(cubin, _file_name(self._text[2]))
        if name not in self._functions:
            self._functions[name] = self._module.function(name)
        return self._functions[name]


def compiled_code(arch: str, dtype: str, source: str | None) -> bytes:
    """The machine code of all functions of a source: one by one, each would take nearly as long as all."""
    text, options = device_source(source), compiler_options(arch, device_macros(dtype))
    with timeline.span("compile", f"{_file_name(source)} {dtype}"):
        return compile_entries_cached(text, _file_name(source), _FUNCTION.findall(text), options)[0].cubin


def _file_name(source: str | None) -> str:
    return "device_code.cu" if source is None else "reference.cu"


def device_source(source: str | None = None) -> str:
    """The whole text of a source of device functions; None for the measuring side's own."""
    folder = resources.files(__package__)
    own = folder.joinpath("device_code.cu").read_text("utf-8") if source is None else source
    return folder.joinpath("values.cu").read_text("utf-8") + own


def device_macros(dtype: str) -> list[tuple[str, str]]:
    """`real` as device code sees it, and the type of what a run of `real` computes."""
    result = of_run(RESULT, dtype) if dtype in RUN_TYPES else dtype
    named = (("real", dtype), ("result_type", result))
    return [(name, _AS_BITS.get(kind) or ELEMENT_TYPES[kind].c_type) for name, kind in named]
