# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof new`: a kernel file to start from, or a header for a kernel that has none."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from threading import Timer

from gpuprof.commands.output import print_written
from gpuprof.commands.own_header import built_header, with_own_header
from gpuprof.console import say, tell
from gpuprof.errors import HeaderError, InputError
from gpuprof.files import check_writable, same_file, write_file
from gpuprof.kernels.catalog import load_ladder, read_source, shipped_ladder
from gpuprof.kernels.kernel import Ladder
from gpuprof.kernels.paths import instead_of
from gpuprof.kernels.preprocessing import parse_preprocessing
from gpuprof.kernels.shipped import shipped_names, shipped_operation, unknown
from gpuprof.kernels.starting_point import starting_point
from gpuprof.operation import Operation
from gpuprof.problems.declaration import FILE_NAME, load_operation
from gpuprof.text import SOURCE_ENDINGS

#: A compiler that takes longer is told of.
_PATIENCE_S = 5.0


def write_starting_point(
    what: str, path: Path, *, force: bool, include: Sequence[Path] = (), define: Sequence[str] = ()
) -> None:
    """Write a kernel file, and say how to measure it."""
    given = Path(what)
    built = given.suffix in (".ptx", ".cubin") and given.is_file()
    if built and path != given.with_suffix(".toml"):
        raise InputError(
            f"The header of {given} cannot be {path}.",
            fix=f"Name it {given.with_suffix('.toml')}, beside it.",
        )
    if path.suffix != ".cu" and not built:
        raise InputError(f"{path} does not end in .cu.", fix=f"Name it {path.stem or 'mine'}.cu.")
    if built or (given.suffix in SOURCE_ENDINGS and given.is_file()):
        text = built_header(given) if built else ""
        slow = Timer(_PATIENCE_S, tell, (f"The compiler still works on {given}.",))
        slow.start()
        try:
            text = text or with_own_header(
                given, read_source(given), path.stem, parse_preprocessing(include, define)
            )
        finally:
            slow.cancel()
        _write(path, text, force)
        words = ["gpuprof", "run", what if built else str(path), *(f"-I{folder}" for folder in include)]
        words += [f"-D{one}" for one in define]
        say(f"Next: complete what {path.name} marks TODO; {shlex.join(words)}")
        return
    if given.suffix in SOURCE_ENDINGS and path.is_file():
        fix = f"What there is comes first: {shlex.join(['gpuprof', 'new', str(path), what])}"
        raise InputError(f"There is no file {given}.", fix=fix)
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
    write_file(path, text)
    print_written(path)


def _found(what: str, path: Path) -> tuple[Operation, Ladder | None, str]:
    """The operation, its kernels where there are any, and the command that measures the new file."""
    file = shlex.quote(str(path))
    folder = Path(what)
    if what in shipped_names():
        return shipped_operation(what), shipped_ladder(what), f"gpuprof {what} -k {file}"
    if folder.is_file():
        raise InputError(f"{what} is no folder and no kernel file.", fix=instead_of(folder))
    if not folder.is_dir():
        raise unknown(what)
    if not (folder / FILE_NAME).is_file():
        raise InputError(
            f"There is no {folder / FILE_NAME}, which would say what to compute.",
            fix=f"docs/operations.md shows one; or name one of {', '.join(shipped_names())}.",
        )
    operation = load_operation(folder / FILE_NAME)
    try:
        ladder = load_ladder(folder, may_be_empty=True)
    except HeaderError:  # a kernel that is being written
        ladder = None
    inside = path.absolute().parent == folder.absolute()
    command = f"gpuprof run {shlex.quote(str(folder))} -k {path.stem if inside else file}"
    return operation, ladder, command
