# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Compile a kernel with NVRTC to the cubin of one architecture and its PTX; no driver needed."""

import ctypes
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

from msgspec import Struct

from gpuprof.cubin_file import kernels_in
from gpuprof.cuda_source.functions import is_one_of_several, kernel_functions, split_types
from gpuprof.errors import BackendUnavailable, CompileError, foreign
from gpuprof.records import replace
from gpuprof.toolchain.complaints import NAMES, explain, lost_macro, no_such_kernel, without_foreign_lines
from gpuprof.toolchain.fork_server import ForkServer
from gpuprof.toolchain.host_headers import HALVES_APART
from gpuprof.toolchain.nvrtc_program import GROUPS_ALONE, NvrtcProgram, folders_of
from gpuprof.toolchain.signature import BlockLimits, Parameter, block_limits_of, parameters_of, untyped

_SPILLS = re.compile(r"(?<!\d)(\d+) bytes spill stores, (\d+) bytes spill loads")
_INSTALL = "Install it with: pip install nvidia-cuda-nvrtc"
_NOT_APART = "Compiled by no process of its own, as none can be had: other runs may get other code.\n"
#: The architecture whose own instructions are known, and what of a source tells that it uses them.
_SPECIFIC = "sm_90"
_SUCCESS = "NVRTC_SUCCESS"
#: Rounds in which what an error is about is left out.
_ROUNDS = 16
_WORDS = re.compile(r"\bwgmma\s*\.|\bsetmaxnreg\s*\.")


class CompiledKernel(Struct, frozen=True):
    """What a compiler made of one source.

    Args:
        entry: Name of the kernel function in the machine code, mangled where C++ does so.
        cubin: Empty where only its PTX is known; the figures are then nothing.
        ptx: Empty where only its machine code is known.
        spill_bytes: Bytes of spill stores plus spill loads per thread; None where nothing tells.
    """

    entry: str
    arch: str
    cubin: bytes
    ptx: str
    registers_per_thread: int
    static_shared_bytes: int
    spill_bytes: int | None
    log: str
    options: tuple[str, ...]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        if self.ptx:
            return parameters_of(self.ptx, self.entry)
        return tuple(map(untyped, kernels_in(self.cubin)[self.entry].parameter_bytes))

    @property
    def block_limits(self) -> BlockLimits:
        if self.ptx:
            return block_limits_of(self.ptx, self.entry)
        held = kernels_in(self.cubin)[self.entry]
        return BlockLimits(held.reqntid, held.maxntid)


@cache
def _nvrtc() -> Any:
    """The bindings, loaded on first use: they are slow to import and absent on some machines."""
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise BackendUnavailable(
            f"The compiler NVRTC needs cuda-bindings, which cannot be imported: {foreign(error)}.",
            fix="Install it with: pip install cuda-bindings",
        ) from error
    try:
        _load_matching_library()
        nvrtc.nvrtcVersion()
    except (RuntimeError, OSError) as error:
        raise BackendUnavailable(
            f"The compiler library NVRTC cannot be loaded: {foreign(error)}.", fix=_INSTALL
        ) from error
    return nvrtc


def _load_matching_library() -> None:
    """With the cu12 extra, load its NVRTC before the bindings look for one.

    The bindings would take the newest NVRTC that is installed, whose machine code a driver of CUDA 12
    refuses; they use a library that is loaded already.
    """
    with suppress(ImportError, StopIteration, OSError):
        if import_module("cuda.bindings").__version__.startswith("12."):
            from importlib.metadata import distribution

            files = distribution("nvidia-cuda-nvrtc-cu12").files or []
            library = next(file for file in files if file.name == "libnvrtc.so.12")
            ctypes.CDLL(str(library.locate()), mode=ctypes.RTLD_GLOBAL)


def nvrtc_version() -> tuple[int, int]:
    """Major and minor version of the NVRTC library."""
    _, major, minor = _nvrtc().nvrtcVersion()
    return int(major), int(minor)


def software_versions() -> dict[str, str]:
    """Versions of what decides the measured code, by name; nothing that names the user or the machine."""
    found = {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "nvrtc": ".".join(map(str, nvrtc_version())),
    }
    for package in ("numpy", "cuda-bindings"):
        with suppress(ImportError):
            found[package] = import_module(package.replace("-", ".")).__version__
    return found


def supported_archs() -> tuple[int, ...]:
    """Architectures that this NVRTC compiles for, as `90` for sm_90."""
    _, archs = _nvrtc().nvrtcGetSupportedArchs()
    return tuple(archs)


def target_of(arch: str, texts: Iterable[str]) -> str:
    """The compiler's target for an architecture."""
    return f"{arch}a" if arch == _SPECIFIC and any(_WORDS.search(text) for text in texts) else arch


def architecture_of(target: str) -> str:
    """The architecture that a target compiles for."""
    return target.removesuffix("a")


def compiler_options(
    arch: str, defines: Sequence[tuple[str, str]] = (), extra: Sequence[str] = ()
) -> tuple[str, ...]:
    """NVRTC's options: line information for attribution, and ptxas' report of what the kernel uses."""
    # From 12.9 on NVRTC keeps a cache of its own, and what comes out of it lacks ptxas' report.
    no_cache = ("--no-cache",) if nvrtc_version() >= (12, 9) else ()
    return (
        f"--gpu-architecture={arch}",
        "--std=c++17",
        "-lineinfo",
        "--ptxas-options=-v",
        *no_cache,
        *(f"-D{name}={value}" for name, value in defines),
        *extra,
    )


def compile_entries(
    program: NvrtcProgram, file_name: str, entries: Sequence[str]
) -> tuple[CompiledKernel, ...]:
    """Compile one source file, without what the compiler refuses in it that the kernels do without.

    Raises:
        CompileError: NVRTC rejected the source, or it does not define one of the kernels.
        BackendUnavailable: NVRTC is not installed.
        MemoryError: The compiler got no more.
    """
    told: CompileError | None = None
    known = program.left_out
    wanted = [split_types(entry)[0].partition("<")[0].rpartition("::")[2].strip() for entry in entries]
    for _ in range(_ROUNDS):
        left_out = program.left_out - known
        try:
            compiled = _compile(program, file_name, entries)
        except CompileError as error:
            if GROUPS_ALONE in program.options:  # what takes that library may be all that is wrong
                options = tuple(option for option in program.options if option != GROUPS_ALONE)
                program = replace(program, options=options)
                continue
            if _APART not in program.options and _LACKS_OF_HALVES.search(error.log):
                program = replace(program, options=(*program.options, _APART))
                continue
            less = program.without_errors(file_name, error.log, wanted)
            if less is None:
                # Where that is missed now it was no code of the host's, and what is wrong with it counts.
                raise (told if told and left_out & _missed(error.log) else error) from None
            told, program = told or error, less
        else:
            if compiled and (lost := lost_macro(compiled[0].log, program.options)):
                raise lost
            note = f"Left out, as the compiler refuses it: {', '.join(sorted(left_out))}.\n" if told else ""
            return tuple(replace(one, log=note + one.log) for one in compiled)
    raise told or AssertionError


#: What the halves of tensors have and CUDA's lack, which stand for them where that suffices.
_APART = f"-D{HALVES_APART}"
_LACKS_OF_HALVES = re.compile(r'class "__(?:half|nv_bfloat16)" has no member')


def _missed(log: str) -> set[str]:
    """Words of what the first error says, which is told, and of the code where it points."""
    if (error := re.search(r": error\b(.*)\n(.*)\n( *)\^", log)) is None:
        return set()
    says, code, blanks = error.groups()
    return {*re.findall(r"\w+", f"{says} {code[len(blanks) :].partition(' ')[0]}")}


def _compile(program: NvrtcProgram, file_name: str, entries: Sequence[str]) -> tuple[CompiledKernel, ...]:
    """Compile exactly this program."""
    options = (*program.options, *(program.cuda_headers.options if program.cuda_headers else ()))
    told = (program.source + _used(entries), file_name, dict(program.headers), options, entries)
    _nvrtc()
    made = _FORKS.ask(*told)
    status, log, ptx, cubin, symbols = made or _call(*told)
    log = without_foreign_lines(log, (file_name, *program.headers), folders_of(options))
    if status == "NVRTC_ERROR_OUT_OF_MEMORY" or (
        status == "NVRTC_ERROR_COMPILATION" and not _names_error(log)
    ):
        raise MemoryError(f"the compiler cannot get the memory that {file_name} takes")
    typed = tuple(_with_types(entry, program.source) for entry in entries)
    if typed != tuple(entries) and "which instance of overloaded function" in log:
        return _compile(program, file_name, typed)
    if status != _SUCCESS:
        raise explain(program, file_name, entries, status, log)
    for entry, symbol in zip(entries, symbols, strict=True):
        if f".entry {symbol}(" not in ptx:
            raise no_such_kernel(program, file_name, entry, log)
    arch = next(option.split("=")[1] for option in options if option.startswith("--gpu-architecture="))
    return compiled_kernels(ptx, symbols, arch, cubin, log if made else log + _NOT_APART, options)


def _call(
    source: str, file_name: str, headers: Mapping[str, str], options: Sequence[str], entries: Sequence[str]
) -> tuple[str, str, str, bytes, list[str]]:
    """Have NVRTC compile; return its status and log, and the PTX, the cubin and the kernels' symbols."""
    nvrtc = _nvrtc()
    texts = [text.encode() for text in headers.values()]
    names = [_name(name) for name in headers]
    status, handle = nvrtc.nvrtcCreateProgram(source.encode(), _name(file_name), len(names), texts, names)
    if status.name != _SUCCESS:
        raise CompileError(f"NVRTC cannot start on {file_name}: {status.name}.", log="")
    try:
        for entry in entries:
            nvrtc.nvrtcAddNameExpression(handle, _expression(entry).encode())
        encoded = [os.fsencode(option) for option in options]
        (status,) = nvrtc.nvrtcCompileProgram(handle, len(encoded), encoded)
        log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, handle)
        if status.name != _SUCCESS:
            return status.name, log, "", b"", []
        ptx = _text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, handle)
        cubin = _bytes(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, handle)
        lowered = [nvrtc.nvrtcGetLoweredName(handle, _expression(entry).encode()) for entry in entries]
    finally:
        nvrtc.nvrtcDestroyProgram(handle)
    return status.name, log, ptx, cubin, [name.decode() if name else "" for _, name in lowered]


def _begin() -> None:
    """Compile nothing, with which NVRTC loads what all compilations need."""
    _call("", "nothing.cu", {}, (f"--gpu-architecture={_SPECIFIC}",), ())


#: What NVRTC makes of some sources depends on where its memory lies: five processes made five machine codes
#: of a GEMM with a split k.
_FORKS = ForkServer(_begin, _call)


def _expression(entry: str) -> str:
    """What names a kernel; one of an overloaded function by the types of its parameters."""
    name, types = split_types(entry)
    return name if types is None else f"(void (*)({types})){name}"


def _used(entries: Sequence[str]) -> str:
    """A use of each instance of a template: of the mere name of one that it cannot read NVRTC dies."""
    instances = [entry for entry in entries if "<" in split_types(entry)[0]]
    uses = [f"using gpuprof_{i} = decltype({_expression(one)});" for i, one in enumerate(instances)]
    return "\n".join(("", f'#line 1 "{NAMES}"', *uses, "")) if uses else ""


def _with_types(entry: str, source: str) -> str:
    """A kernel that is called like a function of CUDA's mathematics, with the types of its parameters."""
    function = next((one for one in kernel_functions(source) if one.name == entry), None)
    if function is None or function.template is not None:
        return entry
    if is_one_of_several(source, entry):
        return entry  # the header says which
    return f"{entry}({function.types})"


def _name(name: str) -> bytes:
    """A file's name as texts write it, stray bytes of a path included: no matter of the locale."""
    return name.encode("utf-8", "surrogateescape")


def _names_error(log: str) -> bool:
    """Whether the compiler says what is wrong: without memory, ptxas does not."""
    lines = (line for line in log.splitlines() if "aborted due to errors" not in line)
    return any(re.search("error|fatal(?!.*Memory allocation failure)", line) for line in lines)


def compiled_kernels(
    ptx: str, names: Sequence[str], arch: str, cubin: bytes, log: str, options: tuple[str, ...]
) -> tuple[CompiledKernel, ...]:
    """Kernels with what their machine code and ptxas' report say of them; without code, nothing."""
    held = kernels_in(cubin) if cubin else {}
    parts = re.split(r"Compiling entry function '([^']*)'", log)
    reports = dict(zip(parts[1::2], parts[2::2], strict=True))

    def spilled(name: str) -> int | None:
        if name in reports:
            spills = _SPILLS.search(reports[name])
            return int(spills[1]) + int(spills[2]) if spills else 0
        # Nothing is spilled where a thread has no local memory; else code does not tell what for.
        return 0 if name in held and not held[name].frame_bytes else None

    return tuple(
        CompiledKernel(
            entry=name,
            arch=arch,
            cubin=cubin,
            ptx=ptx,
            registers_per_thread=held[name].registers_per_thread if held else 0,
            static_shared_bytes=held[name].static_shared_bytes if held else 0,
            spill_bytes=spilled(name),
            log=log.strip(),
            options=options,
        )
        for name in names
    )


def _bytes(size_of: Any, read: Any, program: Any) -> bytes:
    _, size = size_of(program)
    buffer = bytes(size)
    read(program, buffer)
    return buffer


def _text(size_of: Any, read: Any, program: Any) -> str:
    return _bytes(size_of, read, program).replace(b"\0", b"").decode(errors="replace")
