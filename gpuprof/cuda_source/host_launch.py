# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How a file's own host code launches a kernel: as formulas of what the kernel takes, as far as it tells."""

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from warnings import catch_warnings, simplefilter

from msgspec import Struct

from gpuprof.cuda_source.brackets import end_of
from gpuprof.cuda_source.declarations import declarations
from gpuprof.cuda_source.masking import masked, without_directives
from gpuprof.operators import ARITHMETIC, COMPARISONS
from gpuprof.records import replace
from gpuprof.text import renamed

#: What says nothing to a formula of integers: casts, namespaces, and the suffix of a number.
_CASTS = re.compile(
    r"\(\s*(?:(?:const|unsigned|signed|int|long|short|size_t|float|double|u?int\d+_t|uint|void|\*)\s*)+\)"
    r"|\b(?:static|reinterpret)_cast\s*<[^<>]*>|\b(?:unsigned|int|long|size_t|float|double|u?int\d+_t)\s*(?=\()"
    r"|\b[A-Za-z_]\w*\s*::|(?<=\bmin|\bmax|div)\s*<[\w\s]*>|\b(\d[\d.]*)[uUlLfF]+\b"
)
_NUMBER = re.compile(r"([-+]?(?!0\d)(?:\d{1,30}\.?\d*|\.\d+)(?:[eE][-+]?\d\d?)?)[fF]?")
#: A type whose values have no fraction.
_INTEGRAL = r"\b(?:int|long|short|char|bool|unsigned|size_t|u?int\d+_t|uint)\b"
#: A type that a variable is declared with.
_KIND = r"\b(?:dim3|int|long|unsigned|size_t|auto|float|double|(?:__)?half)\b"
#: What cannot stand before a variable: that is another's member.
_ALONE = r"(?<![.\w>])"
#: `a < b ? c : d`.
_CHOICE = re.compile(r"\s*([^?:]+)\?([^?:]+):([^?:]+)")
#: What everybody calls a division that rounds up, wherever it is defined.
_CDIV = re.compile(r"i?_?(?:cdiv|ceil_?div|div_?(?:ceil|up|ro?u?nd_?up))", re.IGNORECASE)
#: What a program is told when it runs.
_ASKED = re.compile(r"\bargv\b|\.\s*(?:size|numel)\b")
#: Definitions within each other that anybody writes.
_DEEPEST = 32
#: Texts to parse for one launch, each counted once more for every 100 characters: each use of a parameter or
#: variable is a text again, so definitions that each use the next twice would double the work at each step.
_MOST_PARSED = 2000
#: Of a `cudaLaunchConfig_t`.
_MEMBERS = ("gridDim", "blockDim", "dynamicSmemBytes")
#: The longest list of a template's arguments that anybody writes.
_LONGEST = 500


class UnreadableError(Exception):
    """The text does not tell."""


class _HostCall(Struct, frozen=True):
    """A launch or call: the head of the function around it, what stands before it, and what it gives."""

    head: str
    body: str
    configuration: list[str]
    arguments: list[str]
    template: list[str]

    @property
    def function(self) -> tuple[str, list[str]]:
        """The name of the function around it, and what that calls what it takes."""
        named = re.search(r"\b(\w+)\s*(?=\()", self.head)
        listed = _list_at(self.head, named.end()) if named else []
        return named[1] if named else "", _names(listed)

    @staticmethod
    def at(
        source: str, found: re.Match[str], configuration: Sequence[str] = (), template: Sequence[str] = ()
    ) -> "_HostCall":
        """The one whose parenthesis stands behind a match."""
        code, begin = without_directives(masked(source)), found.start()
        around = [one for one in declarations(source) or () if one.begin <= begin < one.end]
        head, body = (around[0].head, code[around[0].begin : begin]) if around else ("", "")
        arguments = [*map(_plain, _list_at(code, found.end()))]
        return _HostCall(head, body, [*configuration], arguments, [*template])


class HostLaunch:
    """The first launch of a kernel in a file; every question may be an `UnreadableError`.

    Args:
        bytes_of: The size of a type of C.
        known: What formulas call the integers that the kernel takes, by the place of the parameter; of a
            struct, by its members.
        template: What they call those of its template; a launch that names them alike is read so.
        taken: What they use for something else.
        beside: Files that it includes.
        plainly: Whether it is no kernel, but called as functions are.
    """

    def __init__(
        self,
        source: str,
        kernel: str,
        bytes_of: Callable[[str], int | None],
        known: Mapping[int, str | Mapping[str, str]] = MappingProxyType({}),
        template: Sequence[str] = (),
        taken: Collection[str] = (),
        *,
        beside: Collection[str] = (),
        plainly: bool = False,
    ) -> None:
        self._source, self._beside, self._plainly = source, beside, plainly
        texts, self._taken, self._bytes_of = (source, *beside), taken, bytes_of
        self._file = "\n".join(map(masked, texts))
        every = (one for text in texts for one in declarations(text) or ())
        self._outside = "".join(one.code for one in every if not one.is_function)
        self._call = (_call if plainly else _launch)(source, kernel)
        self._depth = self._cost = 0
        #: What formulas name that the kernel is not told.
        self.free: list[str] = []
        self._known: dict[str, set[str]] = {}
        for place, name in known.items():
            for argument in self._call.arguments[place : place + 1]:
                for member, word in {"": name}.items() if isinstance(name, str) else name.items():
                    self._known.setdefault(f"{argument}{member}", set()).add(word)
        for word, name in zip(self._call.template, template, strict=False):
            if name and re.fullmatch(r"[A-Za-z_]\w*", word):
                self._known.setdefault(word, set()).add(name)

    def argument(self, place: int, member: str = "") -> str:
        given = self._call.arguments[place : place + 1]
        return self.formula(f"{given[0]}{member}" if given else "")

    def number(self, place: int) -> float:
        """What is given for a float: a number, or a variable that is defined as one."""
        text, integral = "".join(self._call.arguments[place : place + 1]), None
        for _ in range(_DEEPEST):
            integral = integral or re.search(_INTEGRAL, text)
            text = _CASTS.sub(r"\1", text).removeprefix("dim3(").strip(" ()")
            if (found := _NUMBER.fullmatch(text)) and (not integral or float(found[1]).is_integer()):
                return float(found[1])
            if not text.isidentifier():
                break
            declared = rf"{_INTEGRAL}[^;(){{}}]*\b{text}\b"
            integral = integral or re.search(declared, f"{self._call.body};{self._outside}")
            text = self._definition(text)
        raise UnreadableError

    def extents(self, place: int) -> list[str]:
        """The grid, place 0, or the block, place 1."""
        if place >= len(self._call.configuration):
            raise UnreadableError
        return [ast.unparse(one) for one in self._extents(self._call.configuration[place])]

    def shared_bytes(self) -> str:
        """Bytes of dynamic shared memory."""
        if not self._call.configuration:
            raise UnreadableError
        return self.formula((*self._call.configuration, "0", "0")[2])

    def formula(self, text: str) -> str:
        return ast.unparse(self._parsed(text))

    def shape(self, place: int, nbytes: int, member: str = "") -> list[str]:
        """Extents of what is given for a parameter, elements of so many bytes, as `cudaMalloc` has them."""
        if place >= len(self._call.arguments):
            raise UnreadableError
        name = re.escape(self._call.arguments[place] + member)
        found = re.search(rf"\bcudaMalloc(?:Managed)?\s*(?=\([^;]*?&\s*{name}\s*,)", self._call.body)
        size = _list_at(self._call.body, found.end())[1:2] if found else []
        if not size:
            return self._outer_shape(place, nbytes, member)
        constant, extents = 1, []
        for one in _parts(self._parsed(size[0]), ast.Mult):
            factor = _constant(one)
            constant *= 1 if factor is None else factor
            extents += [ast.unparse(one)] * (factor is None)
        if constant % nbytes:
            raise UnreadableError
        return [*extents, *[str(constant // nbytes)] * (constant > nbytes or not extents)]

    def _outer_shape(self, place: int, nbytes: int, member: str) -> list[str]:
        """Extents of an array that the function around the launch is given, as its caller allocates it."""
        function, taken = self._call.function
        if self._plainly or self._call.arguments[place] not in taken:
            raise UnreadableError
        told = enumerate(self._known.get(one, set()) for one in taken)
        known = {index: next(iter(names)) for index, names in told if len(names) == 1}
        outer = HostLaunch(
            self._source,
            function,
            self._bytes_of,
            known,
            (),
            self._taken,
            beside=self._beside,
            plainly=True,
        )
        extents = outer.shape(taken.index(self._call.arguments[place]), nbytes, member)
        if any(one.isdecimal() and one != "1" for one in extents):  # perhaps what a size is computed of
            raise UnreadableError
        self.free += [name for name in outer.free if name not in self.free]
        return extents

    def _extents(self, text: str, deepest: int = _DEEPEST) -> list[ast.expr]:
        """What a `dim3`, or an integer for one, holds."""
        if listed := re.fullmatch(r"\s*(?:dim3\s*[({]|{)(.*)[)}]\s*", text, re.DOTALL):
            return [self._parsed(one) for one in _split(listed[1])]
        if deepest and re.fullmatch(r"[A-Za-z_]\w*", text.strip()) and text.strip() not in self._known:
            axes = [_after(self._call.body, rf"{_ALONE}{text}\s*\.\s*{axis}\s*=") for axis in "xyz"]
            if axes[0]:
                return [self._parsed(one[0]) for one in axes if one]
            with suppress(UnreadableError):
                return self._extents(self._definition(text), deepest - 1)
        return [self._parsed(text)]

    def _definition(self, name: str) -> str:
        """What a variable or macro is defined as, if once."""
        changed = rf"\b{name}\s*(?:[-+*/%&|^]=|<<=|>>=|\+\+|--)|(?:\+\+|--)\s*{name}\b|[(,]\s*&\s*{name}\b"
        changed += rf"|(?:\bcin\s*|[;{{}}]\s*[\w.]+\s*)>>[^;=]*?\b{name}\b"
        kind = rf"{_KIND}[^;=]*?\b{name}\s*"
        macro = rf"^[ \t]*#[ \t]*define[ \t]+{name}[ \t]+([^\n]+)"
        if name in self._call.function[1]:
            raise UnreadableError
        for code in (self._call.body, self._outside, self._file):
            found = {*re.findall(macro, code, re.MULTILINE)}
            if code is not self._file:
                found |= {*_after(code, rf"{_ALONE}{name}\s*=(?!=)"), *_after(code, rf"{kind}(?=[({{])")}
            if len(found) > 1:  # what stands until it is computed, or told otherwise
                found = {one for one in found if one.strip() != "0" and not _ASKED.search(one)} or found
            seen = self._call.body if code is self._call.body else self._file
            if len(found) > 1 or (found and re.search(changed, seen)):
                break
            if found:
                return str(found.pop()).strip()
        raise UnreadableError

    def _body_of(self, name: str) -> tuple[list[str], str] | None:
        """What a macro of one line, or a function that only returns, takes and makes of it, if told once."""
        macro = rf"^[ \t]*#[ \t]*define[ \t]+{name}\b()(?:\(([^()\n]*)\)[ \t]*([^\\\n]+)$)?"
        function = (
            rf"(?:\btemplate\s*<([^<>;]*)>[^;{{}}()]*)?\b{name}\s*\(((?:[^()]|\([^()]*\))*)\)"
            r"(?:\s*\{\s*return\b([^#;{}]+);\s*\}|[\w\s>:-]*\{)"
        )
        macros, functions = re.findall(macro, self._file, re.MULTILINE), re.findall(function, self._file)
        found = {tuple(" ".join(part.split()) for part in one) for one in (*macros, *functions)}
        if not found:
            return None
        template, listed, body = found.pop()
        names = _names(listed.split(","))
        around = {*re.findall(r"\w+", f"{self._call.head} {template}")}
        plain = re.sub(r"\bsizeof\s*\([^()]*\)", "", _CASTS.sub(r"\1", body)) if functions else ""
        free = {*re.findall(r"\b[A-Za-z_]\w*\b(?!\s*\()", plain)}.difference(names)
        for one in free:  # a function does not see what its caller calls so
            local = rf"\b{one}\s*(?:=(?!=)|[({{])|{_KIND}[^;=(){{}}]*\b{one}\b"
            if one in around or re.search(local, self._call.body):
                raise UnreadableError
        if found or not body:
            raise UnreadableError
        return names, body

    def _value(self, name: str) -> ast.expr:
        if names := self._known.get(name):
            if len(names) > 1:  # which is meant is not told
                raise UnreadableError
            return ast.Name(next(iter(names)))
        asked = _ASKED.search("".join(_after(self._call.body, rf"{_ALONE}{name}\s*=(?!=)")))
        try:
            if asked and self._taken:  # a formula names it
                raise UnreadableError
            return self._parsed(self._definition(name))
        except UnreadableError:
            if name in self._taken or not (asked or name in self._call.function[1]):
                raise
            self.free += [name] * (name not in self.free)
            return ast.Name(name)

    def _parsed(self, text: str) -> ast.expr:
        text = re.sub(r"\bsizeof\s*\(([^()]*)\)", lambda one: str(self._bytes_of(one[1].strip())), text)
        self._depth += 1
        try:
            self._cost += 1 + len(text) // 100
            if self._depth > _DEEPEST or self._cost > _MOST_PARSED:
                raise UnreadableError
            plain = _CASTS.sub(r"\1", text)
            if chosen := _CHOICE.fullmatch(plain):
                plain = f"({chosen[2]}) if ({chosen[1]}) else ({chosen[3]})"
            with catch_warnings():
                simplefilter("error")  # of what only looks like a number
                return self._read(ast.parse(f"({plain})", mode="eval").body)
        except (
            SyntaxError,
            SyntaxWarning,
            ValueError,
            ArithmeticError,
            MemoryError,
            RecursionError,
        ) as error:
            raise UnreadableError from error
        finally:
            self._depth -= 1

    def _read(self, node: ast.expr) -> ast.expr:
        match node:
            case ast.Constant(value=int() | float() as value) if value == int(value):
                return ast.Constant(int(value))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
                return ast.Constant(-value)
            case ast.Name(id=name):
                return self._value(name)
            case ast.IfExp(
                test=ast.Compare(left=left, ops=[op], comparators=[right]), body=body, orelse=other
            ):
                sides = _constant(self._read(left)), _constant(self._read(right))
                if None in sides or type(op) not in COMPARISONS:
                    raise UnreadableError
                return self._read(body if COMPARISONS[type(op)](*sides) else other)
            case ast.Attribute(value=ast.Name(id=name), attr=member) if f"{name}.{member}" in self._known:
                return self._value(f"{name}.{member}")
            case ast.Attribute(attr="multiProcessorCount"):
                return ast.Name("sm_count")
            case ast.Attribute(value=ast.Name(id=name), attr="x" | "y" | "z" as axis):
                return [*self._extents(name), ast.Constant(1), ast.Constant(1)]["xyz".index(axis)]
            case ast.Attribute(value=ast.Name(id=name), attr=member):
                return self._parsed(self._definition(rf"{name}\s*\.\s*{member}"))
            case ast.BinOp(
                left=left, op=ast.LShift() | ast.RShift() as op, right=ast.Constant(value=int() as bits)
            ):
                op = ast.Mult() if isinstance(op, ast.LShift) else ast.FloorDiv()
                return _combined(self._read(left), op, ast.Constant(1 << min(bits, 63)))
            case ast.BinOp(left=left, op=op, right=right):
                op = ast.FloorDiv() if isinstance(op, ast.Div) else op
                return _combined(self._read(left), op, self._read(right))
            case ast.Call(
                func=ast.Name(id="ceil" | "ceilf"), args=[ast.BinOp(left=left, op=ast.Div(), right=right)]
            ):
                below = self._read(right)
                while isinstance(left, ast.BinOp) and isinstance(left.op, ast.Div):  # of floats
                    below, left = _combined(self._read(left.right), ast.Mult(), below), left.left
                return ast.Call(ast.Name("cdiv"), [self._read(left), below], [])
            case ast.Call(func=ast.Name(id=name), args=[left, right]) if _CDIV.fullmatch(name):
                return ast.Call(ast.Name("cdiv"), [self._read(left), self._read(right)], [])
            case ast.Call(func=ast.Name(id="dim3"), args=[given]):  # `int n{64}`
                return self._read(given)
            case ast.Call(func=ast.Name(id="min" | "max") as function, args=arguments):
                return ast.Call(function, [*map(self._read, arguments)], [])
            case ast.Call(func=ast.Name(id=name), args=given) if made := self._body_of(name):
                texts = (f"({ast.unparse(one)})" for one in given)
                return self._parsed(renamed(made[1], dict(zip(made[0], texts, strict=True))))  # or ValueError
        raise UnreadableError


def _launch(source: str, kernel: str) -> _HostCall:
    code = without_directives(masked(source))
    template = rf"(?:<((?:[^;(){{}}]|\([^;(){{}}]*\)){{0,{_LONGEST}}})>\s*)?"
    launched = r"<<\s*<([^;]*?)>>\s*>\s*(?=\()"
    if written := re.search(rf"\b{kernel}\s*{template}{launched}", code):
        return _HostCall.at(source, written, _split(written[2]), _split(written[1] or ""))
    for written in re.finditer(rf"\b(\w+)\s*{launched}", code):
        call = _HostCall.at(source, written, _split(written[2]))
        for value in _after(call.body, rf"\b{written[1]}\s*=(?!=)"):
            if kernel in _words_behind(value, source):
                instance = re.search(rf"\b{kernel}\s*{template}", value)
                return replace(call, template=_split(instance[1] or "") if instance else [])
    called = re.search(rf"\bcudaLaunch(?:Cooperative)?Kernel(?P<ex>ExC?)?\s*(?=\([^;]*\b{kernel}\b)", code)
    if called is None:
        return _HostCall("", "", [], [], [])
    call = _HostCall.at(source, called)
    given = call.arguments
    if called["ex"]:
        set_to = (_after(call.body, rf"\b{re.escape(given[0])}\s*\.\s*{name}\s*=") for name in _MEMBERS)
        return replace(call, configuration=[(one or ["0"])[-1] for one in set_to], arguments=given[2:])
    values = _after(call.body, rf"\b{re.escape(given[3])}\s*\[\s*\w*\s*\]\s*=") if given[3:] else []
    arguments = _split(values[0].strip("{} \n")) if values else []
    return replace(call, configuration=[*given[1:3], *given[4:5]], arguments=[*map(_plain, arguments)])


def _words_behind(value: str, source: str) -> set[str]:
    """The words of a value, and of the functions of a file that it calls: one may pick a kernel."""
    words = {*re.findall(r"\w+", value)}
    picked = (one for one in declarations(source) or () if one.is_function)
    named = (one.code for one in picked if words & {*re.findall(r"(\w+)\s*\(", one.head)})
    return words.union(*(re.findall(r"\w+", code) for code in named))


def _call(source: str, function: str) -> _HostCall:
    """The first call of a function in another's body."""
    bodies = [one for one in declarations(source) or () if not re.search(rf"\b{function}\s*\(", one.head)]
    for found in re.finditer(rf"\b{function}\s*(?=\()", without_directives(masked(source))):
        if any(one.begin + len(one.head) < found.start() < one.end for one in bodies):
            return _HostCall.at(source, found)
    return _HostCall("", "", [], [], [])


def _names(parameters: Sequence[str]) -> list[str]:
    """What a function or macro calls what it takes."""
    return [words[-1] for one in parameters if (words := re.findall(r"\w+", one.partition("=")[0]))]


def _plain(argument: str) -> str:
    """An argument without casts, and without the `&` of its address."""
    plain = _CASTS.sub(r"\1", argument).replace("&", "").strip()
    return re.sub(r"\A\(\s*(\w+)\s*\)\Z", r"\1", plain)


def _after(code: str, pattern: str) -> list[str]:
    """What stands behind each match: a bracket and what is in it, or all up to a comma or semicolon."""
    found = []
    for match in re.finditer(pattern, code):
        position = match.end()
        if match.re.pattern.endswith("(?=[({])"):
            found.append(f"dim3({', '.join(_list_at(code, position))})")
            continue
        found.append(code[match.end() : _end(code, position)])
    return found


def _end(code: str, position: int) -> int:
    """Where a part of a list ends; what stands between angle brackets is no part, but compared or shifted."""
    while position < len(code) and code[position] not in ",;)}]":
        position = (end_of(code, position) or len(code)) if code[position] in "({[" else position + 1
    return position


def _split(text: str) -> list[str]:
    parts, position = [], 0
    while position < len(text):
        end = _end(text, position)
        parts.append(text[position:end].strip())
        position = end + 1
    return parts


def _list_at(code: str, position: int) -> list[str]:
    """The parts of the list in the bracket at a position."""
    return _split(code[position + 1 : (end_of(code, position) or position + 2) - 1])


def _constant(node: ast.expr) -> int | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None


def _parts(node: ast.expr, kind: type[ast.operator]) -> Iterator[ast.expr]:
    """Factors of a product, or terms of a sum."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, kind):
        yield from _parts(node.left, kind)
        yield from _parts(node.right, kind)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and kind is ast.Add:
        yield from _parts(node.left, kind)
        less = _constant(node.right)
        yield ast.UnaryOp(ast.USub(), node.right) if less is None else ast.Constant(-less)
    else:
        yield node


def _combined(left: ast.expr, op: ast.operator, right: ast.expr) -> ast.expr:
    """An operation on two formulas, in its plainest form."""
    compute, first, second = ARITHMETIC.get(type(op)), _constant(left), _constant(right)
    if compute is None:
        raise UnreadableError
    if first is not None and second is not None:
        return ast.Constant(compute(first, second))
    if second == 1 and isinstance(op, ast.Mult | ast.FloorDiv):
        return left
    if isinstance(op, ast.FloorDiv):  # (n + 255) / 256: the terms of n, once 255 - 256 + 1 is taken off
        terms = [*_parts(left, ast.Add), ast.Constant(1)]
        terms.append(ast.UnaryOp(ast.USub(), right) if second is None else ast.Constant(-second))
        rest = [ast.unparse(one) for one in terms if _constant(one) is None]
        divisor = ast.unparse(right)
        if f"-{divisor}" in rest and divisor in rest:
            rest = [one for one in rest if one not in (f"-{divisor}", divisor)]
        if sum(_constant(one) or 0 for one in terms) == 0 and rest and not any(one[0] == "-" for one in rest):
            return ast.Call(ast.Name("cdiv"), [ast.parse(" + ".join(rest), mode="eval").body, right], [])
    match left, op, second:
        case ast.BinOp(left=above, op=ast.FloorDiv() as down, right=below), ast.Add(), 1:  # (n - 1) / 256 + 1
            whole = _combined(ast.BinOp(above, op, below), down, below)
            return whole if isinstance(whole, ast.Call) else ast.BinOp(left, op, right)
    return ast.BinOp(left, op, right)
