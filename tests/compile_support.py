# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One kernel, compiled anew."""

from collections.abc import Mapping, Sequence

from gpuprof.toolchain.nvrtc import CompiledKernel, compile_entries, nvrtc_version
from gpuprof.toolchain.nvrtc_program import make_program


def compile_source(
    source: str,
    file_name: str,
    entry: str,
    options: Sequence[str],
    headers: Mapping[str, str] | None = None,
) -> CompiledKernel:
    """Compile a source for one of its kernels; see `compile_entries`."""
    program = make_program(source, headers or {}, options, nvrtc_version()[0])
    return compile_entries(program, file_name, (entry,))[0]
