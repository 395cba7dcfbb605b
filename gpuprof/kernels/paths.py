# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The ladder that folders and kernel files of a user's own make up."""

from collections.abc import Sequence
from pathlib import Path

from gpuprof.errors import HeaderError, InputError
from gpuprof.kernels.catalog import Ladder, check_choices, in_order, load_kernels, load_ladder
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.preprocessing import NOTHING, Preprocessing
from gpuprof.operation import Operation


def ladder_of(paths: Sequence[Path], command: Preprocessing = NOTHING) -> Ladder:
    """The kernels of folders and files as one ladder; all must compute one operation.

    Args:
        paths: Folders that hold an `operation.toml`, and `.cu` files. A file whose header declares no
            operation is of that of the folders or of the other files, or of one that comes with gpuprof.
        command: Folders of headers and macros from the command line.

    Raises:
        InputError: A path is neither, or two kernels have one id.
        HeaderError: A file is faulty, or two compute different operations.
    """
    operation: Operation | None = None
    kernels: dict[str, Kernel] = {}
    # Folders first: their operation is what the files' headers may leave out.
    for path in sorted(paths, key=lambda path: not path.is_dir()):
        found = _load(path, operation, command)
        if operation is not None and found.operation != operation:
            raise HeaderError(
                f"{path} is of the operation {found.operation.name}, the paths before it of "
                f"{operation.name}.",
                fix="Measure one operation at a time.",
            )
        operation = found.operation
        for kernel in found.kernels:
            if kernels.setdefault(kernel.id, kernel) != kernel:
                raise InputError(f"Two kernels have the id {kernel.id!r}.", fix="Rename one of the files.")
    if operation is None:
        raise InputError("There is nothing to run.", fix="Name a folder or a .cu file.")
    for kernel in kernels.values():
        check_choices(kernel, kernels.values())
    return Ladder(operation, in_order(kernels.values()))


def _load(path: Path, operation: Operation | None, command: Preprocessing) -> Ladder:
    if path.is_dir():
        return load_ladder(path, command)
    if path.suffix != ".cu":
        raise InputError(
            f"{path} is no folder and no kernel file.", fix="Name a folder with operation.toml, or .cu files."
        )
    file = load_kernels(path, operation, command)
    return Ladder(file.operation, file.kernels)
