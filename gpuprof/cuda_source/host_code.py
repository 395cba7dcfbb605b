# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The part of a source that is for the device: what only the host could run is blanked, line by line.

NVRTC compiles device code and refuses all other. People keep both in one file: wrappers that launch, `main`,
helpers that check errors. A function that is not marked as one of the device cannot be called by kernels, so
that leaving it out changes nothing for them. Types, variables and `constexpr` functions are left out where
they speak of the host: of the CUDA runtime, of containers and streams of the standard library, or of what was
left out before.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpuprof.cuda_source.declarations import Declaration, declarations
from gpuprof.cuda_source.functions import annotations
from gpuprof.cuda_source.masking import DIRECTIVE, blank, masked

_DEVICE_WORDS = ("__global__", "__device__", "__constant__", "__shared__", "__managed__")
#: What device code may use although its name begins like the runtime's.
_OF_THE_DEVICE = r"cuda(?:TextureObject_t|SurfaceObject_t|BoundaryMode\w*|RoundMode\w*|ReadMode\w*)\b"
_HOST = re.compile(
    rf"<<<|\b(?!{_OF_THE_DEVICE})cu(?:da|blas|rand|sparse|solver|fft|dnn)[A-Z]\w*"
    r"|\bFILE\b|\bstd\s*::\s*(?:basic_\w+|c?(?:in|out|err|log)|endl|\w*string\w*|\w*stream\w*|vector|deque|list"
    r"|(?:unordered_)?(?:multi)?(?:map|set)|queue|stack|(?:unique|shared|weak)_ptr|make_(?:unique|shared)"
    r"|function|thread|mutex|atomic|future|chrono|random\w*|mt19937\w*|\w*_distribution|\w*exception|\w*_error"
    r"|filesystem|any|variant|optional|regex)\b"
)
#: Words in front of a function's name that hide no mark of the device.
_HARMLESS = re.compile(
    r"FILE|__(?:host|inline|forceinline|noinline|restrict|attribute|declspec)(?:__)?|[A-Z]"
)
#: A macro's name, or a compiler's own word, which may stand for a mark of the device.
_MAY_BE_A_MARK = re.compile(r"[A-Z][A-Z0-9_]*|__\w+")
_NAME = re.compile(r"(?<![\w:])(?P<name>[A-Za-z_][\w:]*)\s*(?:<[^()]*>\s*)?\Z")
_TYPE_NAME = re.compile(r"\b(?:class|struct|union|enum(?:\s+class|\s+struct)?|using)\s+(?P<name>\w+)")
_VARIABLE = re.compile(r"\b(?P<name>\w+)\s*(?:[=\[{].*)?;?\s*\Z", re.DOTALL)
#: Declarations of neither a function nor a variable.
_NO_OBJECT = re.compile(r"\s*(?:using|typedef|namespace|static_assert|enum)\b")
#: The longest name, with a template's arguments, that anybody writes.
_LONGEST_NAME = 1000
#: Rounds in which what was left out may make more be left out.
_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class DeviceParts:
    """What is left of files for the device.

    Args:
        unmarked: Whether functions or variables are left that nothing marks for the device.
    """

    texts: dict[str, str]
    unmarked: bool
    left_out: frozenset[str]


def device_parts(texts: Mapping[str, str]) -> DeviceParts:
    """Files that are compiled together, each without what is for the host.

    Returns:
        The files without it. One whose brackets do not match is left as it is, and taken to be unmarked.
    """
    code = "\n".join(map(masked, texts.values()))
    device = re.compile(rf"\b(?:{'|'.join(map(re.escape, annotations(code, _DEVICE_WORDS)))})\b")
    pending = {name: list(_candidates(text, device)) for name, text in texts.items()}
    left_out: dict[str, list[Declaration]] = {name: [] for name in texts}
    known: dict[str, str] = {}
    for _ in range(_ROUNDS):
        before = len(known)
        used = re.compile(rf"\b(?:{'|'.join(known.values())})") if known else None
        for name, candidates in pending.items():
            found, pending[name] = _split(candidates, used)
            left_out[name] += found
            for declaration in found:
                known |= _use_of(declaration)
        if len(known) == before:
            break
    unmarked = any(not _NO_OBJECT.match(one.head) for left in pending.values() for one in left)
    return DeviceParts(
        {name: _without(text, left_out[name]) for name, text in texts.items()},
        unmarked or any(declarations(text) is None for text in texts.values()),
        frozenset(known),
    )


def _candidates(text: str, device: "re.Pattern[str]") -> Iterator[Declaration]:
    """Declarations that are not marked for the device."""
    for declaration in declarations(text) or ():
        marked = declaration.head if declaration.is_function else declaration.code
        if declaration.code.strip(" \n\t;") and not device.search(marked):
            yield declaration


def _split(
    candidates: list[Declaration], used: "re.Pattern[str] | None"
) -> tuple[list[Declaration], list[Declaration]]:
    """Declarations that are for the host, and the others."""
    found: tuple[list[Declaration], list[Declaration]] = ([], [])
    for declaration in candidates:
        found[0 if _is_of_the_host(declaration, used) else 1].append(declaration)
    return found


def _is_of_the_host(declaration: Declaration, used: "re.Pattern[str] | None") -> bool:
    if declaration.is_function:
        before = declaration.outline.partition("(")[0]
        found: list[str] = re.findall(r"~?[\w:]+", before) or [""]
        *words, name = found
        if name in ("main", "static_assert"):
            return name == "main"
        if words == ["template"] or (not words and "::" not in name):
            return False  # a macro that stands for who knows what
        if any(_MAY_BE_A_MARK.fullmatch(word) and not _HARMLESS.fullmatch(word) for word in words):
            return False
        if not {"constexpr", "consteval"}.intersection(words):
            return True
    if _HOST.search(declaration.code):
        return True
    return bool(used and used.search(declaration.code))


def _use_of(declaration: Declaration) -> dict[str, str]:
    """What a declaration declares, with a pattern of how others use it: a function is called."""
    if declaration.is_function:
        match = _NAME.search(declaration.outline.partition("(")[0][-_LONGEST_NAME:])
        use = r"\s*[(<]"
    else:
        match = _TYPE_NAME.search(declaration.head) or _VARIABLE.search(declaration.head)
        use = r"\b"
    name = match["name"].rpartition("::")[2] if match else ""
    return {name: re.escape(name) + use} if name else {}


def _without(text: str, left_out: list[Declaration]) -> str:
    """A text whose declarations for the host are blank; directives among them stay."""
    code = masked(text)
    directives = [match.span() for match in DIRECTIVE.finditer(code)]
    parts, position = [], 0
    for declaration in sorted(left_out, key=lambda one: one.begin):
        parts.append(text[position : declaration.begin])
        position = declaration.begin
        first = bisect_left(directives, (position, 0))
        for begin, end in directives[first:]:
            if begin >= declaration.end:
                break
            parts += (blank(text[position:begin]), text[begin:end])
            position = end
        parts.append(blank(text[position : declaration.end]))
        position = declaration.end
    return "".join((*parts, text[position:]))
