# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The part of a source that is for the device: what only the host could run is blanked, line by line.

NVRTC compiles device code and refuses all other. People keep both in one file: wrappers that launch, `main`,
helpers that check errors. A function that is not marked as one of the device cannot be called by kernels, so
that leaving it out changes nothing for them; nor can a variable that is neither marked nor constant. What
else speaks of the host, types, aliases, constants, calls of macros, the compiler finds: what it refuses is
left out where no kernel that is wanted can need it.
"""

import re
from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain, takewhile

from msgspec import Struct

from gpuprof.cuda_source.brackets import end_of
from gpuprof.cuda_source.declarations import Declaration, declarations, members
from gpuprof.cuda_source.functions import annotations, kernel_functions
from gpuprof.cuda_source.masking import DIRECTIVE, blank, masked, without_directives, without_spans
from gpuprof.cuda_source.unfolding import half_brackets, makers
from gpuprof.records import replace

_DEVICE_WORDS = ("__global__", "__device__", "__constant__", "__shared__", "__managed__")
#: Words in front of a function's name that hide no mark of the device.
_HARMLESS = re.compile(
    r"FILE|__(?:host|inline|forceinline|noinline|restrict|attribute|declspec)(?:__)?|[A-Z]"
)
#: A macro's name, or a compiler's own word, which may stand for a mark of the device.
_MAY_BE_A_MARK = re.compile(r"[A-Z][A-Z0-9_]*|__\w+")
#: Of a lambda, which in device code is for the device anyway.
_LAMBDA_MARKS = re.compile(r"(\[[^\[\]\n]*\]\s*)((?:__(?:host|device)__\s*)+)(?=[({])")
_NAME = re.compile(r"(?<![\w:])(?P<name>[A-Za-z_][\w:]*)\s*(?:<[^()]*>\s*)?\Z")
_TYPE_NAME = re.compile(
    r"\b(?:class|struct|union|enum(?:\s+class|\s+struct)?|using(?!\s+namespace))\s+(?:[\w:]*::)?(?P<name>\w+)"
)
_MARKED_TYPE = re.compile(r"\b(?:class|struct|union)\b")
_VARIABLE = re.compile(r"\b(?P<name>\w+)\s*\Z")
#: A type that a function's parameters name may so be declared: that much of the function stays.
_NAMES_TYPE = re.compile(r"(\bstruct[ \t]+\w+)[ \t]*[*&,)]")
#: An explicit instantiation, and a macro of a word in its place.
_INSTANCE = re.compile(r"\s*(?:extern\s+)?template\b(?!\s*<)")
_MACRO = re.compile(r"[ \t]*#[ \t]*define[ \t]+(\w+)\([^()]*\)")
_BEFORE_VALUE = re.compile(r"[=\[{;]")
#: Declarations of neither a function nor a variable.
_NO_OBJECT = re.compile(r"\s*(?:using|typedef|namespace|static_assert|enum)\b")
#: What keeps a declaration from being a variable of the host alone; `struct tag name;` declares one.
_KEPT = re.compile(
    r"\s*(?:(?:extern|static|inline)\b\s*)*"
    r"(?:template|typedef|using|(?:class|struct|union|enum)\b(?!\s+\w+[\s*]+\w+\s*[;=,\[])"
    r"|namespace|asm|static_assert|friend)\b"
)
_CONSTANT = re.compile(r"\bconst(?:expr|init)?\b")
#: A type that a constant for the device has not either.
_CONTAINER = re.compile(r"\bstd\s*::\s*(?:(?:unordered_)?(?:multi)?(?:map|set)|vector|string|function)\b")
#: A macro that is called at namespace scope, or an attribute, which is none.
_CALL = re.compile(r"\s*(?!__|alignas\b|decltype\b)[A-Za-z_]\w*\s*\(")
#: The longest name, with a template's arguments, that anybody writes.
_LONGEST_NAME = 1000


def device_parts(texts: Mapping[str, str]) -> tuple[dict[str, str], frozenset[str], bool]:
    """Files that are compiled together, each without what is for the host.

    Returns:
        The files without it; names of what that was; and whether functions or variables are left that nothing
        marks for the device. A file whose brackets do not match is left as it is, and taken to be unmarked.
    """
    code = "\n".join(map(masked, texts.values()))
    device = _device_marks(code)
    left_out: dict[str, list[Declaration]] = {name: [] for name in texts}
    kept: list[Declaration] = []
    for name, text in texts.items():
        for declaration in declarations(text) or ():
            marked = declaration.head if declaration.is_function else declaration.code
            if declaration.code.strip(" \n\t;") and not device.search(marked):
                (left_out[name] if _is_of_the_host(declaration) else kept).append(declaration)
    unmarked = any(not _NO_OBJECT.match(one.head) for one in kept)
    # Of a type with members for the device, others may not be marked, such as its constructor.
    unmarked |= any(
        _MARKED_TYPE.search(one.head) and not one.is_function and device.search(one.code)
        for text in texts.values()
        for one in declarations(text) or ()
    )
    return (
        {
            name: _LAMBDA_MARKS.sub(
                lambda match: match[1] + blank(match[2]), _without_instances(_without(text, left_out[name]))
            )
            for name, text in texts.items()
        },
        frozenset(map(_name_of, chain.from_iterable(left_out.values()))) - {""},
        unmarked or any(declarations(text) is None for text in texts.values()),
    )


def _without_instances(text: str) -> str:
    """A file without explicit instantiations: compiling them takes long, and what is wanted is named."""
    if "template" not in text:
        return text
    code = masked(text)
    written = [r"(?:extern\s+)?template\b(?!\s*<)[^;{}]*;"]
    for directive in DIRECTIVE.findall(code):
        if macro := _MACRO.match(directive):
            statements = directive[macro.end() :].replace("\\\n", " ").split(";")
            if "{" not in directive and all(_INSTANCE.match(one) for one in statements if one.strip()):
                written += [rf"{macro[1]}\s*\([^()]*\)[ \t]*;?"] if statements[0].strip() else []
    places = re.finditer(rf"^[ \t]*(?:{'|'.join(written)})", without_directives(code), re.MULTILINE)
    found, position = [], 0
    for begin, end in (match.span() for match in places):
        before = code[position:begin].rstrip()
        if "#" not in code[begin:end] and not before.endswith((".", ">", ":", ",")):
            found.append((begin, end))
        position = end
    return without_spans(text, found)


def _device_marks(code: str) -> "re.Pattern[str]":
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, annotations(code, _DEVICE_WORDS)))})\b")


def without_lines(
    texts: Mapping[str, str], lines: Iterable[tuple[str, int]], wanted: Container[str]
) -> tuple[dict[str, str], frozenset[str]]:
    """Files without what some lines of them declare, and its names.

    Of what is marked for the device, kernels go but the wanted, and functions of a name that no other has;
    whether the wanted call them, the compiler tells. Of a type a member goes before the whole, since kernels
    may use the rest of it; what it holds only where no kernel takes the type, whose layout would not be the
    host's.
    """
    code = "\n".join(map(masked, texts.values()))
    kernels = (one for text in texts.values() if "__global__" in text for one in kernel_functions(text))
    taken = {word for one in kernels for word in re.findall(r"\w+\b(?!\s*::)", " ".join(one.parameters))}
    cut = [one for text in texts.values() for one in declarations(text) or ()]
    functions = [_name_of(one) for one in cut if one.is_function]
    device = _device_marks(code)
    making, opening = makers(code, device), half_brackets(code)
    found = _Removable(device, making, opening, taken, wanted, functions)
    left_out: dict[str, dict[int, Declaration]] = {}
    for file, line in lines:
        begin = sum(map(len, texts[file].splitlines(keepends=True)[: line - 1]))
        begin += len(texts[file][begin:]) - len(texts[file][begin:].lstrip())
        opened = opening.findall(without_directives(masked(texts[file])), 0, begin)
        if opened and opened[-1] in making:
            continue  # what a kernel does that a macro opens
        one = found.around(begin, declarations(texts[file]) or ())
        if one is not None:
            left_out.setdefault(file, {})[one.begin] = one
    names = frozenset(_name_of(one) for found in left_out.values() for one in found.values()) - {""}
    return {file: _without(texts[file], [*found.values()]) for file, found in left_out.items()}, names


class _Removable(Struct, frozen=True):
    """Finds what may be left out.

    Args:
        device: Finds what marks a declaration for the device.
        making: Macros whose calls make one.
        opening: Finds macros that open or close what goes on behind a declaration.
        taken: Words of what kernels take, types among them.
        wanted: Names of the kernels that stay.
        names: Of all functions, each as often as it is declared.
    """

    device: "re.Pattern[str]"
    making: Container[str]
    opening: "re.Pattern[str]"
    taken: set[str]
    wanted: Container[str]
    names: Sequence[str]

    def around(
        self, position: int, cut: Iterable[Declaration], is_member: bool = False
    ) -> Declaration | None:
        one = next((one for one in cut if one.begin <= position < one.end), None)
        if one is None or not one.code.strip(" \n\t;") or "static_assert" in one.head:
            return None
        called = [*_calls(one.head)]
        at = next(
            (i for i, (_, begin, end) in enumerate(called) if begin <= position - one.begin < end), None
        )
        if at is not None and not self.opening.match(called[at][0]):
            macro, begin, end = called[at]
            if any(word in self.wanted for word in re.findall(r"\w+", one.head[begin:end])):
                return None
            # Behind what it cannot read the compiler reads none of the host's.
            if not self.device.search(macro):
                *_, (_, _, end) = takewhile(lambda call: call[0] == macro, called[at:])
            code = one.head[begin:end]
            return Declaration(one.begin + begin, one.begin + end, code, code, ())
        made = max((end for macro, _, end in called if macro.rstrip("( ") in self.making), default=0)
        made = max([made, *(macro.end() for macro in self.opening.finditer(one.head))])
        one = replace(one, begin=one.begin + made, head=one.head[made:], code=one.code[made:])
        if not one.is_function and _MARKED_TYPE.search(one.head):
            inner = self.around(position, members(one), is_member=True)
            held = inner is not None and not (inner.is_function or _NO_OBJECT.match(inner.head))
            if inner is not None and not (held and _name_of(one) in self.taken):
                return inner
        if not one.is_function:
            return None if self.device.search(one.code) else one
        marks = set(self.device.findall(one.head))
        name = _name_of(one)
        if not marks or (marks == {"__global__"} and name not in self.wanted):
            return one
        alone = self.names.count(name) == 1 and not name.startswith("operator")
        return one if marks == {"__device__"} and alone and not is_member else None


def _calls(head: str) -> Iterator[tuple[str, int, int]]:
    """Calls of macros at the beginning of a text that goes on behind each: what is called, and where."""
    begin = 0
    while (
        (match := _CALL.match(head, begin)) and (end := end_of(head, match.end() - 1)) and head[end:].strip()
    ):
        yield match[0].strip(), begin, end
        begin = end


def _is_of_the_host(declaration: Declaration) -> bool:
    """Whether no kernel may use it, as far as its text tells; the compiler finds out the rest."""
    if declaration.is_function:
        before = declaration.outline.partition("(")[0]
        found: list[str] = re.findall(r"~?[\w:]+", before) or [""]
        *words, name = found
        if name in ("main", "static_assert"):
            return name == "main"
        if words == ["template"] or (not words and "::" not in name):
            return False  # a macro that stands for who knows what
        if "__host__" not in words and _may_be_marked(words):
            return False
        if words[-1:] in (["struct"], ["class"], ["union"]):
            return False  # a type, whose attribute a macro makes
        if words[:1] == ["auto"] and "{" not in declaration.code:
            return False  # what has no body is there for its type, as where a template asks for a member
        return not {"constexpr", "consteval"}.intersection(words)
    is_constant = _CONSTANT.search(declaration.head) and not _CONTAINER.search(declaration.head)
    if _KEPT.match(declaration.code) or is_constant:
        return False
    words = re.findall(r"\w+", _BEFORE_VALUE.split(declaration.head, maxsplit=1)[0])
    return len(words) != 1 and not _may_be_marked(words[:-1])  # a word alone is a macro too


def _may_be_marked(words: list[str]) -> bool:
    return any(_MAY_BE_A_MARK.fullmatch(word) and not _HARMLESS.fullmatch(word) for word in words)


def _name_of(declaration: Declaration) -> str:
    """What a declaration declares; empty where its text does not tell."""
    if declaration.is_function:
        match = _NAME.search(declaration.outline.partition("(")[0][-_LONGEST_NAME:])
    else:
        before = _BEFORE_VALUE.split(declaration.head, maxsplit=1)[0]
        match = _TYPE_NAME.search(declaration.head) or _VARIABLE.search(before[-_LONGEST_NAME:])
    return match["name"].rpartition("::")[2] if match else ""


def _without(text: str, left_out: list[Declaration]) -> str:
    """A text whose declarations for the host are blank; directives among them stay."""
    code = masked(text)
    directives = [match.span() for match in DIRECTIVE.finditer(code)]
    parts, position = [], 0
    for declaration in sorted(left_out, key=lambda one: one.begin):
        if declaration.begin < position:
            continue  # a member of what is blank already
        parts.append(text[position : declaration.begin])
        position = declaration.begin
        first = bisect_left(directives, (position, 0))
        for begin, end in directives[first:]:
            if begin >= declaration.end:
                break
            parts += (blank(text[position:begin]), text[begin:end])
            position = end
        rest = blank(text[position : declaration.end])
        if declaration.is_function and not declaration.namespaces:
            for match in _NAMES_TYPE.finditer(declaration.head, position - declaration.begin):
                begin, end = (declaration.begin - position + place for place in match.span())
                rest = rest[:begin] + f"{match[1]};".ljust(end - begin) + rest[end:]
        parts.append(rest)
        position = declaration.end
    return "".join((*parts, text[position:]))
