# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Ladders: a folder's operation and its kernels in rung order, found by id or by published alias."""

import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from gpuprof.errors import PATH_ERRORS, HeaderError, nearest_file, reason
from gpuprof.files import read_code
from gpuprof.kernels.built_files import read_built
from gpuprof.kernels.header import read_kernels
from gpuprof.kernels.kernel import Kernel, Ladder, Study
from gpuprof.kernels.preprocessing import NOTHING, Preprocessing
from gpuprof.kernels.shipped import KERNEL_ROOT, shipped_operation
from gpuprof.operation import Operation
from gpuprof.problems.declaration import FILE_NAME, load_operation
from gpuprof.problems.formulas import variables
from gpuprof.records import replace
from gpuprof.text import KERNEL_ENDINGS

_STUDIES = "studies.toml"


@cache
def shipped_ladder(name: str, wanted: tuple[str, ...] = ()) -> Ladder:
    """The ladder of an operation that comes with gpuprof, or its part that has these kernels."""
    operation, folder = shipped_operation(name), KERNEL_ROOT / name
    kernels = _found_by_name(folder, operation, wanted) if wanted else None
    return load_ladder(folder) if kernels is None else Ladder(operation, in_order(kernels))


def _found_by_name(folder: Path, operation: Operation, wanted: Iterable[str]) -> list[Kernel] | None:
    """Kernels and those that they choose among, without reading other files; None where one is not found."""
    studies = _load_studies(folder)
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.cu"))}
    kernels: dict[str, Kernel] = {}
    names = [*wanted]
    for name in names:
        if name not in kernels:
            homes = [path for path in texts if path.stem == name]
            for path in homes or [path for path, text in texts.items() if f'"{name}"' in text]:
                for kernel in load_kernels(path, operation).kernels:
                    kernels |= dict.fromkeys((kernel.id, *kernel.aliases), _cited(kernel, studies))
        if name not in kernels:
            return None
        names += [choice.kernel for choice in kernels[name].choices if choice.kernel not in names]
    return [*{kernel.id: kernel for kernel in kernels.values()}.values()]


def load_ladder(folder: Path, command: Preprocessing = NOTHING, *, may_be_empty: bool = False) -> Ladder:
    """The ladder of a folder: its `operation.toml` and every kernel file beside it.

    Raises:
        HeaderError: A file is faulty, computes something else, or the folder holds no kernel; two kernels
            share an id or alias, one comes `after` none of them or is a shape of no rung, or one chooses
            what it cannot.
    """
    operation = load_operation(folder / FILE_NAME)
    studies = _load_studies(folder)
    kernels: list[Kernel] = []
    for path in sorted(path for path in folder.glob("*.*") if path.suffix in KERNEL_ENDINGS):
        file = load_kernels(path, operation, command)
        if file.operation != operation:
            raise HeaderError(f"{path} computes {file.operation.name}; {folder} holds {operation.name}.")
        kernels += [_cited(kernel, studies) for kernel in file.kernels]
    if not kernels and not may_be_empty:
        raise HeaderError(f"{folder} holds no kernel, no file that ends in .cu, .ptx or .cubin.")
    check_ladder(kernels, str(folder))
    return Ladder(operation, in_order(kernels))


def load_kernels(path: Path, asked: Operation | None = None, command: Preprocessing = NOTHING) -> Ladder:
    """Read one kernel file; of a header without declarations the operation is a shipped one.

    Raises:
        HeaderError: The file cannot be read or its header is faulty.
    """
    if path.suffix != ".cu":
        built = read_built(path)
        return read_kernels(built.source, path, asked, command, built)
    return read_kernels(read_source(path), path, asked, command)


def read_source(path: Path) -> str:
    """The text of a kernel file.

    Raises:
        HeaderError: It cannot be read.
    """
    try:
        return read_code(path)
    except PATH_ERRORS as error:
        what = f"Cannot read the kernel file {path}: {reason(error)}."
        raise HeaderError(what, fix=nearest_file(path)) from error


def in_order(kernels: Iterable[Kernel]) -> tuple[Kernel, ...]:
    """Kernels as they stand in a ladder."""
    return tuple(sorted(kernels, key=lambda kernel: (kernel.rung, kernel.id)))


def check_ladder(kernels: list[Kernel], where: str) -> None:
    """Refuse kernels that contradict each other."""
    taken: dict[str, Kernel] = {}
    for kernel in kernels:
        for name in (kernel.id, *kernel.aliases):
            if name.lower() in taken:
                other = taken[name.lower()].file_name
                raise HeaderError(f"{where}: {kernel.file_name} and {other} both use the name {name!r}.")
            taken[name.lower()] = kernel
    ids = sorted(kernel.id for kernel in kernels)
    for kernel in kernels:
        if kernel.after and kernel.after not in ids:
            raise HeaderError(
                f"{where}: after of {kernel.id} is {kernel.after!r}, not one of {', '.join(ids)}."
            )
        rungs = sorted(other.id for other in kernels if not other.shape_of)
        if kernel.shape_of and kernel.shape_of not in rungs:
            raise HeaderError(
                f"{where}: shape_of of {kernel.id} is {kernel.shape_of!r}, not one of {', '.join(rungs)}."
            )
        check_choices(kernel, kernels)


def check_choices(kernel: Kernel, others: Iterable[Kernel]) -> None:
    """Refuse a choice that could never run in the kernel's place."""
    kernels = {other.id: other for other in others}
    stated = [kernel] if kernel.options else []
    first: dict[str, Kernel] = {}  # of each type
    for choice in kernel.choices:
        other = kernels.get(choice.kernel)
        if other is None:
            problem = f"not one of {', '.join(sorted(kernels))}"
        elif other.choices:
            problem = "which chooses among others itself"
        elif differing := _differing(
            other, stated + [first.setdefault(dtype, other) for dtype in other.dtypes]
        ):
            problem = f"whose {min(differing)} is another one"
        elif unknown := sorted(variables(choice.least or "0") - {*other.integers, *other.derived}):
            problem = f"which has no constant {unknown[0]!r}"
        else:
            continue
        raise HeaderError(f"{kernel.file_name}: choose.kernel is {choice.kernel!r}, {problem}.")


def _differing(kernel: Kernel, others: Iterable[Kernel]) -> set[str]:
    """The options that a kernel does not share with all others."""
    return {name for other in others for name, _ in {*kernel.options.items()} ^ {*other.options.items()}}


def _load_studies(folder: Path) -> dict[str, Study]:
    """Where the kernels of a ladder were published, by the names that their headers use."""
    path = folder / _STUDIES
    if not path.exists():
        return {}
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return {name: Study(name, entry["citation"], entry.get("url", "")) for name, entry in table.items()}


def _cited(kernel: Kernel, studies: dict[str, Study]) -> Kernel:
    study = kernel.study
    if study.citation or study.name not in studies:
        return kernel
    return replace(kernel, study=studies[study.name])
