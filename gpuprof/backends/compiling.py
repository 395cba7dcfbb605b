# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Compile the functions of a case, whoever asks for them, and tell how many of its blocks an SM holds."""

from math import prod

from gpuprof import timeline
from gpuprof.backends.base import Functions
from gpuprof.devices.device import Device
from gpuprof.devices.occupancy import TheoreticalOccupancy, theoretical_occupancy
from gpuprof.errors import CompileError
from gpuprof.kernels.shape import ConfiguredCase, OneLaunch
from gpuprof.problems.dtypes import ELEMENT_TYPES
from gpuprof.toolchain.assembling import Assembler, load_cubin, load_ptx, runs_on
from gpuprof.toolchain.cache import compile_entries_cached
from gpuprof.toolchain.nvrtc import CompiledKernel, compiler_options, target_of

_REAL = "gpuprof/real.h"


def compile_kernel(case: ConfiguredCase, arch: str, assemble: Assembler | None = None) -> Functions:
    """What a case launches: functions by their entries, all of one module.

    `assemble` makes machine code of PTX where no ptxas can.

    Raises:
        CompileError: NVRTC rejected it.
        BackendUnavailable: NVRTC is not installed.
    """
    kernel = case.kernel
    if (built := kernel.built) is not None:
        if built.error:
            raise CompileError(built.error, log="")
        with timeline.span("compile", kernel.id):
            if built.cubin and (not built.ptx or runs_on(built.cubin, arch)):
                loaded = load_cubin(built.cubin, case.entries, arch, kernel.file_name, built.ptx)
            else:
                loaded = load_ptx(built.ptx, case.entries, arch, kernel.file_name, assemble)
        return dict(zip(case.entries, loaded, strict=True))
    target = target_of(arch, (kernel.source, *kernel.headers.values()))
    macros = dict(case.defines)
    headers = {**kernel.headers, **_declaring(macros.pop("real", ""))}
    options = compiler_options(target, tuple(macros.items()), kernel.compile_options)
    if _REAL in headers:
        options += (f"--pre-include={_REAL}",)
    with timeline.span("compile", kernel.id):
        made = compile_entries_cached(kernel.source, kernel.file_name, case.entries, options, headers)
    return dict(zip(case.entries, made, strict=True))


def occupancy_of(device: Device, one: OneLaunch, function: CompiledKernel) -> TheoreticalOccupancy:
    """Resident blocks and warps of a launch; raises as `theoretical_occupancy` does."""
    return theoretical_occupancy(
        device,
        threads_per_block=prod(one.block),
        registers_per_thread=function.registers_per_thread,
        shared_bytes_per_block=function.static_shared_bytes + one.dynamic_shared_bytes,
    )


def _declaring(c_type: str) -> dict[str, str]:
    """What comes before a source that says `real`: its type, of which the source cannot know the header.

    A macro of that name would rewrite the member `real` of complex numbers too. One that is itself rewrites
    nothing, and `#ifndef real` finds it.
    """
    headers = {element.header for element in ELEMENT_TYPES.values() if element.c_type == c_type} - {""}
    lines = [
        *(f"#include <{header}>" for header in headers),
        f"typedef {c_type} real;",
        "#define real real",
        "",
    ]
    return {_REAL: "\n".join(lines)} if c_type else {}
