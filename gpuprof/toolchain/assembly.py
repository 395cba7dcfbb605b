# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Assemble PTX so that each machine instruction tells which PTX instruction it came from.

Machine code carries a source line for each of its instructions. `with_own_lines` gives every PTX instruction
a line of its own, in place of those of the CUDA source, and `assemble` makes machine code of that: the same
code, since lines change nothing else, which whoever uses it should hold against the code that runs.

NVRTC has the assembler inside, and takes CUDA C++ only. What stands in an inline assembly statement reaches
the assembler as it is, so that one which ends the function around it may go on with functions of its own.
"""

import re
from collections.abc import Iterator, Sequence

from gpuprof.toolchain.cache import compile_cached
from gpuprof.toolchain.nvrtc_program import DEVICE_BY_DEFAULT

#: The functions before and after those of the PTX; no kernel of a user's is called so.
_BEFORE, _AFTER = "gpuprof_before_ptx", "gpuprof_after_ptx"
_HEADER = re.compile(r"^\s*\.(?:version|target|address_size)\b.*$", re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*")
_PLACE = re.compile(r"^[ \t]*\.(?:loc|file)\b.*$", re.MULTILINE)
_DEBUG_SECTION = re.compile(r"^\s*\.section\s+\.debug\w*\s*\{.*?^\s*\}", re.MULTILINE | re.DOTALL)
_LABEL = re.compile(r"\s*[\w$%]+\s*:(?!:)")
_INSTRUCTION = re.compile(r"\s*(?:@!?[\w$%]+\s+)?[a-z]")
#: Options that say where the compiler finds things, and what the PTX says already.
_OF_THE_SOURCE = (
    "-D",
    "-I",
    "-include",
    "--pre-include",
    "--include-path",
    "--define-macro",
    *DEVICE_BY_DEFAULT,
)


def with_own_lines(ptx: str) -> str:
    """Return a PTX text in which each line of a function that begins an instruction is a source line.

    Line `n` of file 1 is line `n` of the text that is returned.

    Args:
        ptx: As NVRTC prints it.
    """
    text = _DEBUG_SECTION.sub("", _PLACE.sub("", _COMMENT.sub("", ptx)))
    result: list[str] = []
    for line, begins in _lines(text):
        if begins:
            result.append(f".loc 1 {len(result) + 2} 0")
        result.append(line)
    return "\n".join(result) + "\n"


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines that say anything, and whether an instruction begins there."""
    depth, between = 0, True
    for line in text.splitlines():
        rest = line
        if between:
            while label := _LABEL.match(rest):
                rest = rest[label.end() :]
        if line.strip():
            yield line, depth > 0 and between and bool(_INSTRUCTION.match(rest))
        depth += line.count("{") - line.count("}")
        if rest.strip():
            # A vector operand's braces stand between other words of its instruction.
            between = rest.rstrip()[-1] in ";{}"


def assemble(ptx: str, options: Sequence[str]) -> bytes:
    """Return the machine code of a PTX text, with its line information.

    Args:
        ptx: As `with_own_lines` returns it.
        options: NVRTC's that the text was compiled with, as `compiler_options` makes them.

    Raises:
        CompileError: The assembler does not take it.
        BackendUnavailable: NVRTC is not installed.
    """
    quoted = _HEADER.sub("", ptx).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    source = f'__global__ void {_BEFORE}(){{asm volatile("ret;\\n}}\\n{quoted}\\n.entry {_AFTER}(){{");}}\n'
    kept = [option for option in options if not option.startswith((*_OF_THE_SOURCE, *DEVICE_BY_DEFAULT))]
    return compile_cached(source, "ptx.cu", _BEFORE, [*kept, DEVICE_BY_DEFAULT[0]]).cubin
