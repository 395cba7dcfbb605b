# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels without a header, of which the caller says what a header would."""

from collections.abc import Mapping, Sequence

from gpuprof.cuda_source.functions import kernel_functions
from gpuprof.errors import InputError
from gpuprof.kernels.compiler_options import joined
from gpuprof.kernels.kernel import Kernel, Launch, Study
from gpuprof.kernels.texture import TextureSpec


def kernels_in(source: str) -> tuple[str, ...]:
    """Names of the kernels that a source defines, as far as its text tells."""
    return tuple(function.name for function in kernel_functions(source))


def entry_in(source: str, stem: str) -> str:
    """The kernel of a source: the one that is called like its file, else the only one."""
    found = kernels_in(source)
    if stem in found or not found:
        return stem
    if len(found) > 1:
        raise InputError(
            f"{stem} holds {len(found)} kernels: {', '.join(found)}.", fix=f'Say which: entry="{found[0]}".'
        )
    return found[0]


def bare_kernel(
    source: str,
    stem: str,
    *,
    operation: str,
    dtypes: Sequence[str],
    entry: str,
    arguments: Sequence[str],
    launch: Launch,
    parameters: Mapping[str, int],
    rung: float = 0.0,
    compile_options: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
    textures: Mapping[str, TextureSpec] | None = None,
) -> Kernel:
    """A kernel of which a program says everything."""
    return Kernel(
        id=stem,
        file_name=f"{stem}.cu",
        source=source,
        operation=operation,
        title=stem,
        rung=rung,
        idea="",
        change="",
        bottleneck="",
        study=Study(),
        reference="",
        aliases=(),
        options={},
        dtypes=tuple(dtypes),
        entry=entry,
        arguments=tuple(arguments),
        launch=launch,
        parameters=dict(parameters),
        constants={},
        requirements=(),
        published=(),
        compile_options=joined(compile_options),
        headers=headers or {},
        textures=textures or {},
    )
