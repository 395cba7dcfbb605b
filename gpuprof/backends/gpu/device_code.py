# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The measuring side's own device functions, compiled for one element type when they are first needed."""

from collections.abc import Sequence
from importlib import resources
from typing import Any

from gpuprof import timeline
from gpuprof.backends.gpu.context import Arguments, Function, GpuContext, Module
from gpuprof.problems.dtypes import ELEMENT_TYPES
from gpuprof.text import Extent
from gpuprof.toolchain.cache import compile_cached
from gpuprof.toolchain.nvrtc import compiler_options

#: Grid and block of the elementwise device functions; they stride over any length.
_GRID = (1024, 1, 1)
_BLOCK = (256, 1, 1)

#: Types that device code takes as bits, and the macro that tells it which.
_HALVES = {"f16": "HALF", "bf16": "BFLOAT"}


class DeviceCode:
    """Device functions of one source for one element type.

    Args:
        context: The open device.
        arch: Its architecture.
        dtype: The element type that the source calls `real`.
        source: The source, which may call `value_of` for the number that an element is; None for
            `device_code.cu`.
    """

    def __init__(self, context: GpuContext, arch: str, dtype: str, source: str | None = None) -> None:
        self._context = context
        self._source = device_source(source)
        self._file_name = "device_code.cu" if source is None else "reference.cu"
        self._options = compiler_options(arch, device_macros(dtype))
        self._functions: dict[str, Function] = {}

    def launch(
        self, name: str, arguments: Sequence[Any], grid: Extent = _GRID, block: Extent = _BLOCK
    ) -> None:
        """Run one of the functions to its end.

        Raises:
            CaseFailure: It could not run.
        """
        self._function(name).launch(grid, block, 0, self._context.stream, Arguments(arguments))
        self._context.synchronize()

    def queue(self, name: str, arguments: Arguments) -> None:
        """Queue one of the elementwise functions."""
        self._function(name).launch(_GRID, _BLOCK, 0, self._context.stream, arguments)

    def load(self, name: str) -> Function:
        """One of the functions, for a caller that launches it itself."""
        return self._function(name)

    def _function(self, name: str) -> Function:
        if name not in self._functions:
            with timeline.span("compile", f"{self._file_name} {name}"):
                compiled = compile_cached(self._source, self._file_name, name, self._options)
            self._functions[name] = Module(compiled.cubin, name).function(name)
        return self._functions[name]


def device_source(source: str | None = None) -> str:
    """The whole text of a source of device functions; None for the measuring side's own."""
    folder = resources.files(__package__)
    own = folder.joinpath("device_code.cu").read_text("utf-8") if source is None else source
    return folder.joinpath("values.cu").read_text("utf-8") + own


def device_macros(dtype: str) -> list[tuple[str, str]]:
    """`real` as device code sees it; halves need no header as long as only their bits are moved."""
    if dtype in _HALVES:
        return [("real", "unsigned short"), (_HALVES[dtype], "1")]
    return [("real", ELEMENT_TYPES[dtype].c_type)]
