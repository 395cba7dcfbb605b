# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Compile the functions of a case, whoever asks for them."""

from gpuprof.backends.base import Functions
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.shape import LaunchShape
from gpuprof.problems.dtypes import ELEMENT_TYPES
from gpuprof.toolchain.cache import compile_entries_cached
from gpuprof.toolchain.nvrtc import compiler_options
from gpuprof.toolchain.targets import target_of


def compile_kernel(kernel: Kernel, shape: LaunchShape, arch: str) -> Functions:
    """A kernel as one case needs it: its functions by their entries, all of one module.

    Args:
        kernel: The kernel, with what it includes.
        shape: Gives its macros, and its functions with their values.
        arch: For example `sm_90`.

    Raises:
        CompileError: NVRTC rejected it.
        BackendUnavailable: NVRTC is not installed.
    """
    target = target_of(arch, (kernel.source, *kernel.headers.values()))
    options = compiler_options(target, shape.defines, kernel.compile_options)
    # The source that says `real` cannot know that a run's type needs a header.
    types = (element for element in ELEMENT_TYPES.values() if ("real", element.c_type) in shape.defines)
    options += tuple(f"--pre-include={element.header}" for element in types if element.header)
    made = compile_entries_cached(kernel.source, kernel.file_name, shape.entries, options, kernel.headers)
    return dict(zip(shape.entries, made, strict=True))
