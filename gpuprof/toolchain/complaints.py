# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What NVRTC complains of, as one sentence with what to do about it."""

import os
import re
from collections.abc import Collection, Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches
from pathlib import Path

from gpuprof.cuda_source.confined import REFUSED
from gpuprof.cuda_source.functions import KernelFunction, kernel_functions, split_types
from gpuprof.cuda_source.include_names import included_names
from gpuprof.cuda_source.masking import conditions_at, line_of, masked
from gpuprof.errors import CompileError
from gpuprof.text import listed
from gpuprof.toolchain.cuda_headers import HEADERS_FIX, is_for_device, package_of
from gpuprof.toolchain.nvrtc_program import NvrtcProgram

#: The name under which NVRTC reports on the kernels that are asked for.
NAMES = "__nv_name_map"
#: How many errors there were.
_COUNT = re.compile(r"\d+ (?:catastrophic )?errors? detected")
_ERROR = re.compile(r"\berrors?\b(?: detected|[^:(]*:)|ptxas fatal")
_NO_FILE = re.compile(r'(?:could not|cannot) open source file "(?P<name>[^"\n]+)"')
_ERROR_AT = re.compile(r"(?P<file>[^\n]+?)\((?P<line>\d+)\): (?:catastrophic )?error:")
#: Characters of a line that an error quotes.
_LONGEST_QUOTE = 80
#: What NVRTC adds to that where it was told of no folder.
_NO_FOLDERS = " (no directories in search list)"
_UNDEFINED = re.compile(r'identifier "(?P<name>\w+)" is undefined')
_TELLS_WHY = re.compile(r'identifier "\w+" is undefined|has no member "|is not a template')
_NO_MEMBER = re.compile(r'namespace "(?:cuda::)?std" has no member')
_CONFINED = (
    "A kernel includes what stands in its own folder and below, no hidden file, and CUDA's headers; for"
    " others, type their folder: -I DIR."
)
#: How to define a macro.
_DEFINE = "by define in the header, or -D NAME[=VALUE]."
_UNKNOWN = (
    "Neither the file nor what it includes declares it. Look for a misspelling; include the header of"
    f" yours that declares it, if one does; if the build defines it as a macro, say so {_DEFINE}"
)
#: May come with a header of the author's too.
_HALF = "Add #include <cuda_fp16.h>."
_EXPECTED = re.compile(r"\((?P<line>\d+)\): error: expected an? \S+")
_STATEMENTS = "NVRTC has no `({ … })` of GNU C: make it a __device__ function."
#: A name that a line declares, of a type in one word or as a pointer.
_DECLARED = re.compile(r"(?:\b(?:int|unsigned|long|char|bool|float|double|\w+_t)\s|[*&])(?=\s*(?P<name>\w+))")
_MACRO = r"^[ \t]*#[ \t]*define[ \t]+{name}[ \t]+(?P<body>.+)"
#: Functions of a warp before they were told which lanes take part.
_WITHOUT_MASK = ("__shfl", "__shfl_up", "__shfl_down", "__shfl_xor", "__ballot", "__any", "__all")
_BUILT_IN = (
    *("threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "__syncthreads", "__syncwarp", "__ldg"),
    *("atomicAdd", *(f"{name}_sync" for name in _WITHOUT_MASK)),
)
#: How alike a name is to one that nothing declares, for it to be meant.
_ALIKE = 0.8
_MOST_LISTED = 8
_MOST_ABSENT = 3
#: What a diagnostic begins with; the line that it is about stands indented below.
_DIAGNOSTIC = re.compile(
    r"(?P<place>[^\n]+?)\(\d+\): (?:catastrophic )?(?:error|warning|remark|note)\b[^:\n]*:"
)


def without_foreign_lines(log: str, given: Collection[str], folders: Iterable[Path]) -> str:
    """A log that quotes no file of this machine but those that the compiler was to read."""
    allowed = [os.path.join(os.path.abspath(folder), "") for folder in folders]
    kept, quotes = [], True
    for line in log.splitlines(keepends=True):
        if match := _DIAGNOSTIC.match(line):
            place = match["place"]
            quotes = place in given or not os.path.exists(place)
            quotes = quotes or os.path.abspath(place).startswith(tuple(allowed))
            if not quotes:
                kept.append(f"{match[0]} in a file that {REFUSED} read.\n")
        elif not line.startswith((" ", "\t")):
            quotes = True
        if quotes:
            kept.append(line)
    return "".join(kept)


def explain(
    program: NvrtcProgram, file_name: str, entries: Sequence[str], status: str, log: str
) -> CompileError:
    """The error of a source that NVRTC rejected."""
    lines = log.replace(_NO_FOLDERS, "").splitlines()
    errors = [line.strip() for line in lines if _ERROR.search(line)]
    own = [line for line in errors if not (line.startswith(NAMES) or _COUNT.match(line))]
    if own or not errors:
        first = own[0] if own else "see the log"
        if "does not apply here" in first:  # a mark on what could not be read as a function
            first = next((line for line in own if _TELLS_WHY.search(line)), first)
        about = log[log.find(first) :].partition("\n\n")[0]
        fix = _fix_of(program, first) or _about_given_macro(program.options, about)
        meant, _, unknown = fix.rpartition("? ")
        if own and not first.startswith(f"{file_name}("):
            first += _whence(about, file_name)
        # Those of them that a directive came to: each warns.
        absent = [name for name in program.absent if f'"{name} is not found' in log]
        if absent and unknown in ("", _HALF, _UNKNOWN):
            first += f"; of what it includes {listed(absent, _MOST_ABSENT)} was not found"
            meant = "" if package_of(absent[0]) else meant
            fix = f"{meant}? Else: " * bool(meant) + _about_file(program, absent[0])
        stop = "." if (fix or not own) and not first.endswith(".") else ""
        return CompileError(f"{file_name} does not compile ({status}): {first}{stop}", log=log, fix=fix)
    why = re.sub(rf"^{NAMES}\(\d+\): error: ", "", errors[0]).rstrip(".")
    if "Error in parsing name" in why or "Extra tokens" in why:
        why = "it is not the name of a function"
    wanted = next((entry for entry in entries if entry.split("<")[0].strip() in log), entries[0])
    return no_such_kernel(program, file_name, wanted, log, why)


def lost_macro(log: str, options: Iterable[str]) -> CompileError | None:
    """The error of a source that gives a macro another value than these options do; None where none does."""
    given = "|".join(option[2:].partition("=")[0] for option in options if option.startswith("-D"))
    found = re.search(rf'^(.+\(\d+\)): warning .*redefinition of macro "({given})"', log, re.MULTILINE)
    if found is None:
        return None
    what = f"{found[1]} defines {found[2]} too, and wins over define in the header and -D."
    return CompileError(what, log=log, fix=f"Remove it there, or put #ifndef {found[2]} around it.")


def no_such_kernel(
    program: NvrtcProgram, file_name: str, entry: str, log: str, why: str = ""
) -> CompileError:
    """The error of a kernel that a file does not define."""
    wanted = split_types(entry)[0].partition("<")[0].strip()
    texts = (program.source, *program.headers.values())
    functions = sorted(
        (function for text in texts for function in kernel_functions(text)),
        key=lambda function: -SequenceMatcher(None, wanted.lower(), function.name.lower()).ratio(),
    )
    if not functions:
        return CompileError(
            f"{file_name} defines no kernel {entry}: there is no __global__ function in it.", log=log
        )
    near = functions[0]
    undefined = match["name"] if (match := _UNDEFINED.search(why)) else ""
    if near.name == wanted and undefined in near.template_names:
        return CompileError(
            f"{file_name} has a kernel {near.entry} in line {near.line}, and {undefined} has no value.",
            log=log,
            fix=f"Write it in entry, or an integer as {undefined} = … under [parameters] or [constants].",
        )
    is_hidden = undefined == wanted.rpartition("::")[2] or "must be a class or namespace name" in why
    if near.name == wanted and is_hidden:
        code = next(masked(text) for text in texts if near in kernel_functions(text))
        begin = sum(map(len, code.splitlines(keepends=True)[: near.line - 1]))
        asked = " and ".join(f"`{text}`" for text in conditions_at(code, begin)) or "a condition around it"
        what = f"{file_name} has a kernel {wanted} in line {near.line}, but the preprocessor leaves it out"
        absent = f"; not found: {listed(program.absent, _MOST_ABSENT)}" if program.absent else ""
        fix = f"Define what that asks for, {_DEFINE}"
        if absent:
            fix = f"{_about_file(program, program.absent[0])} Or: {fix}"
        return CompileError(f"{what}: {asked} does not hold{absent}.", log=log, fix=fix)
    if near.name == wanted and not near.has_body:
        what = f"{file_name} only declares the kernel {wanted}, in line {near.line}."
        return CompileError(what, log=log, fix="Run the file that defines it.")
    if near.name == wanted and "overloaded function" in why:
        return CompileError(
            f"{file_name} has several kernels {wanted}, the first in line {near.line}.",
            log=log,
            fix=f'Say which by the types that it takes, as in entry = "{entry}({near.types})".',
        )
    reason = f": {why}" if near.name.rpartition("::")[2] == wanted.rpartition("::")[2] and why else ""
    known = listed([f"{one.entry} (line {one.line})" for one in functions], _MOST_LISTED)
    return CompileError(
        f"{file_name} defines no kernel {entry}{reason}. Its __global__ functions: {known}.",
        log=log,
        fix=f'Set entry in the header, for example entry = "{near.entry}"{_with_values(near)}.',
    )


def _with_values(function: KernelFunction) -> str:
    """What stands for the parameters of a function's template."""
    if not (names := function.template_names):
        return ""
    stands = "stands" if len(names) == 1 else "stand"
    return (
        f", where {listed(names, _MOST_LISTED)} {stands} for a type such as real, a number, or an integer of"
        " [parameters]"
    )


def _about_given_macro(options: Iterable[str], about: str) -> str:
    """What to do about an error at a name, in its quoted line, that these options make a macro."""
    found = re.search(r"^(?P<line>.+)\n(?P<before> *)\^", about, re.MULTILINE)
    word = re.match(r"\w*", found["line"][len(found["before"]) :]) if found else None
    if word is None or not any(re.match(rf"-D{word[0]}(?:=|$)", option) for option in options):
        return ""
    return f"{word[0]} is a macro there, of the kernel's header or -D: give it another name."


def _whence(about: str, file_name: str) -> str:
    """The line of the kernel file that a header's error comes from."""
    found = re.search(rf'at line (?P<line>\d+) of "?{re.escape(file_name)}\b', about)
    return f", from line {found['line']} of {file_name}" if found else ""


def _fix_of(program: NvrtcProgram, first: str) -> str:
    """What to do about an error, where gpuprof knows; else nothing."""
    if REFUSED in first:
        above = re.search(r"(\.\.\S*)/", first)
        return _CONFINED.replace(
            "DIR", f"{above[1]}, seen from the file that includes it" if above else "DIR"
        )
    match = _ERROR_AT.match(first)
    if match and match["file"].startswith("/"):
        match = None  # in an installed header, whose text is not here
    if match:
        text = program.headers.get(match["file"]) or program.source
        line = text.splitlines()[int(match["line"]) - 1 :][:1]
        if "unrecognized token" in first and line:
            return f"The line is no C++: {line[0].strip()[:_LONGEST_QUOTE]}"
    if match and "#error" in first:
        code = masked(text)
        lines = code.splitlines(keepends=True)[: int(match["line"]) - 1]
        asked = " and ".join(f"`{text}`" for text in conditions_at(code, sum(map(len, lines))))
        return f"The file says so itself, under {asked}: define what it wants, {_DEFINE}"
    if match := _NO_FILE.search(first):
        return _about_file(program, match["name"])
    if _NO_MEMBER.search(first) and _lacks_cuda_headers(program):
        return f"For the device, std:: is part of CUDA's headers, which were not found. {HEADERS_FIX}"
    if match := _UNDEFINED.search(first):
        return _about_name(program, match["name"])
    if match := _EXPECTED.search(first):
        fix = _about_macro(program.source, int(match["line"]))
        is_statement = "expected an expression" in first and re.search(
            r"(?<!\w)\(\s*\{", masked(program.source)
        )
        return fix or _STATEMENTS * bool(is_statement)
    if "Unresolved extern function" in first:
        return "Another file defines it: a kernel file includes all that its kernels call."
    if "static assertion failed" in first:
        return "The file demands what the template's values, of entry or [parameters], or its macros are not."
    if "too much shared data" in first:
        return "More than 48 KiB must be extern __shared__, and dynamic_shared_bytes in the header."
    if "device-side kernel launch" in first:
        return "Kernels that launch others cannot be run: keep it between #ifndef __CUDACC_RTC__ and #endif."
    if '"register" storage class' in first:
        return 'C++17 has none: compile_options = ["--std=c++14"] in the header.'
    if "host function" in first or "__host__ function" in first:
        return "Mark it __device__, or keep host code between #ifndef __CUDACC_RTC__ and #endif."
    return ""


def _about_file(program: NvrtcProgram, name: str) -> str:
    if is_for_device(name):
        if _lacks_cuda_headers(program):
            return f"CUDA's headers were not found. {HEADERS_FIX}"
        return "CUDA's headers were found, but not this one: see gpuprof doctor; others' need -I DIR."
    if package := package_of(name):
        return f"It comes with the package {package}, or a whole toolkit: name its folder with -I DIR."
    return (
        f"{name} is looked for beside the file that includes it and the kernel file, in the header's include"
        f" folders and as DIR/{name} of -I DIR."
    )


def _lacks_cuda_headers(program: NvrtcProgram) -> bool:
    return (
        program.cuda_headers is None
        or not program.cuda_headers.directories
        or bool(program.cuda_headers.missing)
    )


def _about_macro(source: str, number: int) -> str:
    """What to do about a line that declares a name which is a macro."""
    lines = source.splitlines()
    if not 0 < number <= len(lines):
        return ""
    for match in _DECLARED.finditer(lines[number - 1]):
        for macro in re.finditer(_MACRO.format(name=match["name"]), source, re.MULTILINE):
            where, body = line_of(source, macro.start()), macro["body"].strip()
            return (
                f"{match['name']} is a macro in this line, {body} since line {where}: rename one of the two."
            )
    return ""


def _about_name(program: NvrtcProgram, name: str) -> str:
    if (
        name in ("half", "__half", "half2", "__half2")
        and "cuda_fp16.h" not in included_names(program.source).names
    ):
        return _HALF
    if re.match("cuda[A-Z]", name):
        return "It is of CUDA's runtime, for the host: keep it between #ifndef __CUDACC_RTC__ and #endif."
    if name in _WITHOUT_MASK:
        return f"CUDA has {name}_sync(mask, …) since version 9: 0xffffffff where all lanes take part."
    if re.search(rf"\btex[123]D\w*\s*(?:<[^<>()]*>)?\s*\(\s*{name}\b", program.source):
        return f"CUDA 12 has no texture references: make {name} an argument, a cudaTextureObject_t."
    if name in program.left_out:
        return f"{name} is taken for the host's, and left out: what kernels call is marked __device__."
    declares = re.compile(
        rf"#[ \t]*define[ \t]+{name}\b|\b(?:typedef\b[^;{{}}]*|(?:struct|class|enum|using)\s+){name}\b"
    )
    fix = _UNKNOWN
    for file, text in {"": program.source, **program.headers}.items():
        code = masked(text)
        if match := declares.search(code):
            fix = ""
            if conditions := conditions_at(code, match.start()):
                where = f"line {line_of(code, match.start())}{file and f' of {file}'}"
                asked = " and ".join(f"`{text}`" for text in conditions)
                return f"It is declared in {where}, under {asked}: define what that asks for, {_DEFINE}"
    code = re.sub(r"^[ \t]*#[ \t]*include\b.*", "", masked(program.source), flags=re.MULTILINE)
    words = (*_BUILT_IN, *re.findall(r"[A-Za-z_]\w*", code))
    spellings = {word.lower(): word for word in words if word != name}
    near = get_close_matches(name.lower(), spellings, n=1, cutoff=_ALIKE) if name[2:] else ()
    return f"Did you mean {spellings[near[0]]}? {fix}" if near and fix else fix
