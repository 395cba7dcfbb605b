# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The measuring side's own device functions, loaded for one element type when the first is needed."""

from collections.abc import Sequence
from typing import Any

from gpuprof.backends.gpu.ahead import Ahead
from gpuprof.backends.gpu.context import Arguments, GpuContext, LoadedFunction, LoadedModule
from gpuprof.backends.gpu.own_code import compiled_code, file_name
from gpuprof.text import Extent

#: Grid and block of the elementwise device functions; they stride over any length.
_GRID = (1024, 1, 1)
_BLOCK = (256, 1, 1)


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
        self._function(name).launch(_GRID, _BLOCK, 0, self._context.stream, arguments)

    def load(self, name: str) -> LoadedFunction:
        """One of the functions, for a caller that launches it itself."""
        return self._function(name)

    def _function(self, name: str) -> LoadedFunction:
        if self._module is None:
            cubin = self._ahead.result(compiled_code, *self._text)
            self._module = LoadedModule(cubin, file_name(self._text[2]))
        if name not in self._functions:
            self._functions[name] = self._module.function(name)
        return self._functions[name]
