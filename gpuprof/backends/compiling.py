# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Compile the kernel of a case, whoever asks for it."""

from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.shape import LaunchShape
from gpuprof.toolchain.cache import compile_cached
from gpuprof.toolchain.nvrtc import CompiledKernel, compiler_options


def compile_kernel(kernel: Kernel, shape: LaunchShape, arch: str) -> CompiledKernel:
    """A kernel as one case needs it.

    Args:
        kernel: The kernel, with what it includes.
        shape: Gives its macros, and its function with their values.
        arch: For example `sm_90`.

    Raises:
        CompileError: NVRTC rejected it.
        BackendUnavailable: NVRTC is not installed.
    """
    options = compiler_options(arch, shape.defines, kernel.compile_options)
    return compile_cached(kernel.source, kernel.file_name, shape.entry, options, kernel.headers)
