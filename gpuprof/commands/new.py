# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof new`: a kernel file to start from."""

import shlex
from pathlib import Path

from gpuprof.commands.output import print_written
from gpuprof.commands.own_header import with_own_header
from gpuprof.console import say
from gpuprof.errors import PATH_ERRORS, HeaderError, InputError, did_you_mean, reason
from gpuprof.files import check_writable, read_input, replace_text, same_file
from gpuprof.kernels.catalog import Ladder, load_ladder, shipped_ladder
from gpuprof.kernels.shipped import shipped_names, shipped_operation
from gpuprof.kernels.starting_point import starting_point
from gpuprof.operation import Operation
from gpuprof.problems.declaration import FILE_NAME, load_operation


def write_starting_point(what: str, path: Path, *, force: bool) -> None:
    """Write a kernel file, and say how to measure it."""
    if path.suffix != ".cu":
        raise InputError(f"{path} does not end in .cu.", fix=f"Name it {path.stem or 'mine'}.cu.")
    if what.endswith(".cu") and Path(what).is_file():
        _write(path, with_own_header(Path(what), read_input(Path(what))), force)
        say(f"Next: complete what it says, above all [check]; gpuprof run {shlex.quote(str(path))}")
        return
    operation, ladder, command = _found(what, path)
    for kernel in ladder.kernels if ladder else ():
        taken = path.stem.lower() in (name.lower() for name in (kernel.id, *kernel.aliases))
        if taken and not same_file(path, Path(what, kernel.file_name)):
            raise InputError(
                f"The {operation.name} ladder has a kernel called {path.stem}.",
                fix="Choose another name.",
            )
    _write(path, starting_point(operation, ladder, path.stem), force)
    say(f"Next: {command}")


def _write(path: Path, text: str, force: bool) -> None:
    check_writable(path, force)
    try:
        replace_text(path, text)
    except PATH_ERRORS as error:
        raise InputError(f"Cannot write {path}: {reason(error)}.", fix="Name another path.") from error
    print_written(path)


def _found(what: str, path: Path) -> tuple[Operation, Ladder | None, str]:
    """The operation, its kernels where there are any, and the command that measures the new file."""
    file = shlex.quote(str(path))
    folder = Path(what)
    if what in shipped_names():
        return shipped_operation(what), shipped_ladder(what), f"gpuprof {what} -k {file}"
    if not (folder / FILE_NAME).is_file():
        if folder.is_dir():
            raise InputError(
                f"{folder} holds no {FILE_NAME}.", fix="docs/operations.md says how to write one."
            )
        listed = (
            f"Choose one of {', '.join(shipped_names())}, or write your own: docs/operations.md says how."
        )
        raise InputError(
            f"There is no operation {what!r}, and no folder of that name.",
            fix=did_you_mean(what, shipped_names(), listed, most=1),
        )
    operation = load_operation(folder / FILE_NAME)
    try:
        ladder = load_ladder(folder, may_be_empty=True)
    except HeaderError:  # a kernel that is being written
        ladder = None
    inside = path.absolute().parent == folder.absolute()
    command = f"gpuprof run {shlex.quote(str(folder))} -k {path.stem if inside else file}"
    return operation, ladder, command
