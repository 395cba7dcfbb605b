# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Puts the emulated driver in the place of CUDA's, in every Python that has this folder on its path."""

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder

_NAME = "cuda.bindings.driver"


class _Wrapping(Loader):
    """Loads the bindings, and lays the emulated functions over theirs."""

    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        self._loader.exec_module(module)
        from emulated_driver import EmulatedDriver

        EmulatedDriver(module).take_over()


class _Finder(MetaPathFinder):
    """Finds the bindings of the driver."""

    def find_spec(self, name, path, target=None):
        if name != _NAME:
            return None
        found = PathFinder.find_spec(name, path, target)
        return found and ModuleSpec(name, _Wrapping(found.loader), origin=found.origin)


sys.meta_path.insert(0, _Finder())
