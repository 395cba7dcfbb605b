# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The ladder that folders and kernel files of a user's own make up."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from msgspec import Struct

from gpuprof.argument_types import require
from gpuprof.errors import HeaderError, InputError, nearest_file
from gpuprof.kernels.built_files import built_of_ptx
from gpuprof.kernels.catalog import check_choices, in_order, load_kernels, load_ladder
from gpuprof.kernels.header import read_kernels
from gpuprof.kernels.kernel import Kernel, Ladder
from gpuprof.kernels.preprocessing import NOTHING, Preprocessing
from gpuprof.kernels.shipped import shipped_names
from gpuprof.operation import Operation
from gpuprof.text import KERNEL_ENDINGS, SOURCE_ENDINGS


class Source(Struct, frozen=True):
    """A kernel file that exists as text only; it stands wherever a `.cu` file may, or a `.ptx` file."""

    text: str
    name: str
    ending: Literal[".cu", ".ptx"] = ".cu"

    def __post_init__(self) -> None:
        for name, kind in Source.__annotations__.items():
            require(name, getattr(self, name), kind)

    @property
    def path(self) -> Path:
        """What the file would be called."""
        return Path(f"{self.name}{self.ending}")

    def is_dir(self) -> bool:
        """It is no folder."""
        return False

    def __str__(self) -> str:
        return f"the source {self.name!r}"


def ladder_of(
    paths: Sequence[Path | Source], operation: Operation | None = None, command: Preprocessing = NOTHING
) -> Ladder:
    """The kernels of folders and files as one ladder, none for now of a folder that holds an operation only.

    Raises:
        InputError: A path is neither, or two kernels have one id.
        HeaderError: A file is faulty, or two compute different operations.
    """
    kernels: dict[str, Kernel] = {}
    # Folders first: their operation is what the files' headers may leave out.
    for path in sorted(paths, key=lambda path: not path.is_dir()):
        found = _load(path, operation, command)
        if operation is not None and found.operation != operation:
            other = found.operation.name != operation.name
            says = (
                f"computes {found.operation.name}, and the"
                if other
                else f"declares {operation.name} unlike the"
            )
            raise HeaderError(
                f"{path} {says} path before it{f' {operation.name}' if other else ''}.",
                fix="Measure one operation at a time." if other else "Declare it in one operation.toml.",
            )
        operation = found.operation
        for kernel in found.kernels:
            if kernels.setdefault(kernel.id, kernel) != kernel:
                raise InputError(f"Two kernels have the id {kernel.id!r}.", fix="Rename one of the files.")
    if operation is None:
        raise InputError("There is nothing to run.", fix="Name a folder or a kernel file.")
    for kernel in kernels.values():
        check_choices(kernel, kernels.values())
    return Ladder(operation, in_order(kernels.values()))


def _load(path: Path | Source, operation: Operation | None, command: Preprocessing) -> Ladder:
    if isinstance(path, Source):
        built = built_of_ptx(path.text, path.path) if path.ending == ".ptx" else None
        return read_kernels(path.text, path.path, operation, command, built)
    if path.is_dir():
        return load_ladder(path, command, may_be_empty=True)
    if path.suffix not in KERNEL_ENDINGS:
        raise InputError(f"{path} is no folder and no kernel file.", fix=instead_of(path))
    return load_kernels(path, operation, command)


def instead_of(path: Path, besides: str = "a folder with operation.toml, or") -> str:
    """What to name instead of a path that leads to no kernels: files, and what else may be named there."""
    if path.suffix == ".py":
        return "A function of Triton, Numba or CuTe is measured by a program: gpuprof.profile(function, …)."
    if path.suffix in SOURCE_ENDINGS and path.is_file():
        return f"gpuprof new {path} {path.stem}.cu writes a kernel file of it."
    if near := get_close_matches(str(path), shipped_names(), n=1):
        return f"Did you mean `gpuprof {near[0]}`, which comes with gpuprof?"
    return nearest_file(path) or f"Name {besides} .cu, .ptx or .cubin files."
