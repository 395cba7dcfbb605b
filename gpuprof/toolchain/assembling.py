# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""PTX and cubins that come compiled: held against what they are to run on, and PTX assembled by ptxas."""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from gpuprof.cubin_file import architecture_in, function_of, kernels_in
from gpuprof.errors import CompileError
from gpuprof.ptx_directives import ptx_entries, target_of_ptx
from gpuprof.toolchain.cache import kept, kernels_named
from gpuprof.toolchain.cuda_headers import USUAL_TOOLKIT, named_toolkits
from gpuprof.toolchain.nvrtc import CompiledKernel, architecture_of, compiled_kernels

_PACKAGE = "nvidia-cuda-nvcc"
#: Where PTX has no machine code: why, and what to do about it.
PTXAS_FIX = f"pip install {_PACKAGE}"
NO_PTXAS = f"no ptxas here takes its PTX: pip install -U {_PACKAGE}"
_TIMEOUT_S = 300.0
_RELEASE = re.compile(r"release (\d+)\.(\d+)")
_VERSION = re.compile(r"^[ \t]*\.version\s+(\d+)\.(\d+)", re.MULTILINE)
_TOO_NEW = "Unsupported .version"

#: Assembles PTX, of a file of that name: returns the cubin and what was said of it.
Assembler = Callable[[str, str], tuple[bytes, str]]


def check_target(ptx: str, arch: str, name: str) -> None:
    """Refuse PTX that is for another architecture.

    Raises:
        CompileError: It can never run there; the message says for what to compile it instead.
    """
    target = target_of_ptx(ptx)
    if target is None or _VERSION.search(ptx) is None:
        raise CompileError(f"{name} is no PTX: it has no .version and .target.", log="")
    (wanted, letter), own = target, int(arch.removeprefix("sm_"))
    alone = {"a": wanted != own, "f": wanted // 10 != own // 10}.get(letter, False)
    if wanted > own or alone:
        only = {"a": "runs on that architecture alone", "f": "runs on its family alone"}.get(
            letter, "is newer"
        )
        raise CompileError(
            f"{name} has the target sm_{wanted}{letter}, which {only}; this card is {arch}.",
            log="",
            fix=f"Compile it for compute_{own} or lower.",
        )


def load_ptx(
    ptx: str, entries: Sequence[str], arch: str, name: str, assemble: Assembler | None = None
) -> tuple[CompiledKernel, ...]:
    """Kernels of a PTX text, with the machine code that the newest ptxas makes of them, if one does.

    `assemble` is asked where none takes it.

    Raises:
        CompileError: The text is for another architecture, is refused, or lacks one of the kernels.
    """
    check_target(ptx, arch, name)
    names = tuple(_entry_named(entry, ptx_entries(ptx), name) for entry in entries)
    target = target_in(ptx, arch)
    for path, release in found_ptxas():
        said = ("ptxas {}.{}".format(*release), f"--gpu-name={target}")
        identity = [*said, name, *names, hashlib.sha256(ptx.encode()).hexdigest()]

        def make(path: Path = path, said: tuple[str, ...] = said) -> tuple[CompiledKernel, ...]:
            return compiled_kernels(ptx, names, arch, *assemble_with(path, ptx, name, target=target), said)

        try:
            return kept(kernels_named(names), identity, make)
        except CompileError as error:
            if _TOO_NEW not in error.log:
                raise
    if assemble is not None:
        return compiled_kernels(ptx, names, arch, *assemble(ptx, name), ("the driver's linker",))
    return compiled_kernels(ptx, names, arch, b"", "", ())


def load_cubin(
    cubin: bytes, entries: Sequence[str], arch: str, name: str, ptx: str = ""
) -> tuple[CompiledKernel, ...]:
    """Kernels of a cubin, perhaps with the PTX that it was made of.

    Raises:
        CompileError: It is damaged, for another architecture, or lacks one of the kernels.
    """
    try:
        kernels = kernels_in(cubin)
    except ValueError as error:
        raise CompileError(f"{name} is no cubin: {error}.", log="") from error
    if not runs_on(cubin, arch):
        raise CompileError(
            f"{name} is machine code for sm_{architecture_in(cubin)}, which does not run on {arch}.",
            log="",
            fix=f"Compile it for {arch}, or name its PTX.",
        )
    names = tuple(_entry_named(entry, tuple(kernels), name) for entry in entries)
    return compiled_kernels(ptx, names, arch, cubin, "", ())


def runs_on(cubin: bytes, arch: str) -> bool:
    """Whether machine code does: on its own architecture, and on later ones of the same generation."""
    own, wanted = architecture_in(cubin), int(arch.removeprefix("sm_"))
    return own // 10 == wanted // 10 and own <= wanted


def _entry_named(wanted: str, entries: Sequence[str], name: str) -> str:
    """A kernel by its name in the source, or as the compiler mangled it."""
    found = [entry for entry in entries if entry == wanted]
    found = found or [entry for entry in entries if function_of(entry) == wanted.rpartition("::")[2]]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(entries) or "none"
    raise CompileError(
        f"{name} has {len(found) or 'no'} kernel{'s' * (len(found) > 1)} called {wanted}; it holds {listed}.",
        log="",
        fix=f'Set entry in the header, for example entry = "{(found or entries)[0]}".' if entries else "",
    )


def target_in(ptx: str, arch: str) -> str:
    """What ptxas is to make of a PTX text: code with the architecture's own instructions if it says so."""
    _, letter = target_of_ptx(ptx) or (0, "")
    return f"{architecture_of(arch)}{letter}"


def packaged(name: str, package: str) -> list[Path]:
    """A program of NVIDIA's where its package has it."""
    from importlib.metadata import PackageNotFoundError, distribution

    with suppress(PackageNotFoundError):
        files = distribution(package).files or ()
        found = (Path(str(file.locate())) for file in files if file.name == name)
        return [path for path in found if os.access(path, os.X_OK)]
    return []


def installed(name: str) -> list[Path]:
    """A program of NVIDIA's wherever it is on the path, then in the toolkits that are installed."""
    places = os.environ.get("PATH", "").split(os.pathsep)
    places += [str(toolkit / "bin") for toolkit in (*named_toolkits(), USUAL_TOOLKIT)]
    found = (shutil.which(name, path=place) for place in places if place)
    return [Path(path) for path in found if path]


@cache
def found_ptxas() -> tuple[tuple[Path, tuple[int, int]], ...]:
    """Every ptxas of this machine with its release, the newest first."""
    known: dict[tuple[int, int], Path] = {}
    for path in (*installed("ptxas"), *packaged("ptxas", _PACKAGE)):
        if release := _release_of(path):
            known.setdefault(release, path)
    return tuple((known[release], release) for release in sorted(known, reverse=True))


def _release_of(path: Path) -> tuple[int, int] | None:
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _RELEASE.search(done.stdout)
    return (int(match[1]), int(match[2])) if match else None


def assemble_with(path: Path, ptx: str, name: str, *, target: str) -> tuple[bytes, str]:
    """A cubin made by one ptxas, and its report.

    Raises:
        CompileError: It refused the text, or took too long.
    """
    # Files without a folder, which go with the last process that has them open.
    with (
        os.fdopen(os.memfd_create("kernel.ptx"), "wb") as source,
        os.fdopen(os.memfd_create("kernel.cubin"), "rb") as made,
    ):
        source.write(ptx.encode())
        source.flush()
        files = [f"/proc/self/fd/{file.fileno()}" for file in (source, made)]
        options = (f"--gpu-name={target}", "--verbose", "--generate-line-info", "--output-file")
        try:
            done = subprocess.run(
                [path, *options, files[1], files[0]],
                pass_fds=[source.fileno(), made.fileno()],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise CompileError(f"ptxas took longer than {_TIMEOUT_S:g} s for {name}.", log="") from error
        except OSError as error:
            raise CompileError(f"{path} cannot be run: {error}.", log="") from error
        log = done.stderr.decode(errors="replace").replace(files[0], name)
        cubin = made.read()
    if done.returncode or not cubin:
        raise _refused(name, log)
    return cubin, log


def first_refusal(log: str) -> tuple[str, str] | None:
    """The line of the PTX, if it is told, and the words of the first error in what a ptxas printed."""
    told = re.search(r"^ptxas\S*\s+(?:.*?, (line \d+); )?(?:error|fatal)\s*:\s*(.*?)\.*$", log, re.MULTILINE)
    return (told[1] or "", told[2]) if told else None


def _refused(name: str, log: str) -> CompileError:
    where, first = first_refusal(log) or ("", "it says nothing")
    fix = ""
    if _TOO_NEW in log:
        fix = f"A newer ptxas takes it: pip install -U {_PACKAGE}. Or compile it with an older toolkit."
    return CompileError(f"ptxas refuses {name}{where and ', '}{where}: {first}.", log=log, fix=fix)
