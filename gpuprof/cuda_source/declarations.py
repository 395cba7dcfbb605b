# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A source cut into what stands at namespace scope: functions, types, variables, one after the other."""

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache

from msgspec import Struct

from gpuprof.cuda_source.brackets import without_parentheses, without_template_lists
from gpuprof.cuda_source.masking import masked, one_branch, without_directives
from gpuprof.records import replace

_STRUCTURE = re.compile(r"[{}()\[\];]")
_NAMESPACE = re.compile(r"\s*(?:inline\s+)?namespace\b\s*(?P<name>[\w:\s]*)\Z")
#: What is left of `extern "C"` when strings are blank.
_LINKAGE = re.compile(r"\s*extern\s*\Z")
#: Words that take parentheses and declare nothing by it.
_WITH_PARENTHESES = re.compile(
    r"\b(?:alignas|decltype|noexcept|explicit|requires|__attribute__|__align__|__declspec|__launch_bounds__"
    r"|__maxnreg__|__cluster_dims__|__block_size__)\s*\(\)"
    r"|\b\w+\s*\(\)(?=\s*(?:typedef|class|struct|union|enum)\b)"
)
_TYPE = re.compile(r"\s*(?:typedef|using|class|struct|union|enum)\b")
#: What parentheses may stand behind that declare nothing: another name, a type that derives from one.
_NO_FUNCTION = re.compile(r"\s*(?:typedef|using)\b|.*\b(?:class|struct)\b[^:]*(?:::[^:]*)*:(?!:)", re.DOTALL)
_OPERATOR = re.compile(r"\boperator\s*(?:\(\s*\)|[^\s\w(]+)")
_CONTINUES = re.compile(r"\s*[,{]")
#: What may stand in front of a type's member.
_ACCESS = re.compile(r"(?:\s*(?:public|private|protected)\s*:(?!:))*")
#: Namespaces within each other that anybody writes.
_DEEPEST = 64
_CLOSING = {")": "(", "]": "[", "}": "{"}


class Declaration(Struct, frozen=True):
    """One declaration at namespace scope.

    Args:
        begin: Where its text begins, blanks before it included.
        head: Its code up to a body's opening brace, or all of it; comments, literals and directives blank.
        code: All of its code, as blank.
        namespaces: Names of the namespaces around it, outermost first; empty text for one without a name.
    """

    begin: int
    end: int
    head: str
    code: str
    namespaces: tuple[str, ...]

    @property
    def outline(self) -> str:
        """Its head without template lists, without what stands in parentheses, and without attributes."""
        return _outline(self.head)

    @property
    def is_function(self) -> bool:
        """Whether it declares or defines a function, as far as its text tells."""
        return _is_function(self.outline)


@lru_cache(maxsize=64)
def declarations(source: str) -> tuple[Declaration, ...] | None:
    """What a source declares, in order; None where its brackets do not match.

    All branches of a conditional count, since conditions are not evaluated; where they hold a bracket each,
    the last of each, or the first.
    """
    code = masked(source)
    for branch in (None, -1, 0):
        with suppress(_Unbalanced):
            text = code if branch is None else one_branch(code, branch)
            return tuple(_cut(without_directives(text)))
    return None


def members(declared: Declaration) -> Iterator[Declaration]:
    """What the body of a type declares, without the words that say who may use it."""
    body = len(declared.head) + 1
    with suppress(_Unbalanced):
        for one in _cut(declared.code[body : declared.code.rfind("}")]):
            skipped = len(_ACCESS.match(one.head)[0])  # type: ignore[index]
            begin, end = (declared.begin + body + place for place in (one.begin + skipped, one.end))
            yield replace(one, begin=begin, end=end, head=one.head[skipped:], code=one.code[skipped:])


class _Unbalanced(Exception):
    """A closing bracket has no opening one, or the other way round."""


def _cut(code: str) -> Iterator[Declaration]:
    namespaces: list[tuple[str, ...]] = []
    opened: list[str] = []
    begin, body, ends_with_brace = 0, -1, False
    for match in _STRUCTURE.finditer(code):
        mark, end = match[0], match.end()
        if mark == "{" and not opened:
            head = code[begin : match.start()] if body < 0 else ""
            if body < 0 and (entered := _entered(head)) is not None:
                namespaces.append(entered)
                if len(namespaces) > _DEEPEST:
                    raise _Unbalanced
                begin = end
                continue
            if body < 0:
                body, ends_with_brace = match.start(), _has_body(head)
        if mark in "([{":
            opened.append(mark)
            continue
        if mark == "}" and not opened:
            if not namespaces:
                raise _Unbalanced
            namespaces.pop()
            begin, body = end, -1
            continue
        if mark != ";" and (not opened or opened.pop() != _CLOSING[mark]):
            raise _Unbalanced
        ends = mark == ";" or (mark == "}" and ends_with_brace and not _CONTINUES.match(code, end))
        if ends and not opened:
            around = tuple(name for names in namespaces for name in names)
            head = code[begin : end - 1 if body < 0 else body]
            yield Declaration(begin, end, head, code[begin:end], around)
            begin, body, ends_with_brace = end, -1, False
    if opened or namespaces:
        raise _Unbalanced
    if code[begin:].strip():  # calls of macros, which nothing need end
        yield Declaration(begin, len(code), code[begin:], code[begin:], ())


def _entered(head: str) -> tuple[str, ...] | None:
    """Names of the namespaces that a brace behind this text opens; None where it opens none."""
    if _LINKAGE.match(head):
        return ()
    match = _NAMESPACE.match(head)
    return None if match is None else tuple(name.strip() for name in match["name"].split("::"))


def _outline(head: str) -> str:
    plain = _OPERATOR.sub("operator_", without_template_lists(head)[0])
    return _WITH_PARENTHESES.sub(" ", without_parentheses(plain))


def _is_function(outline: str) -> bool:
    before, parenthesis, _ = outline.partition("(")
    return bool(parenthesis) and "=" not in before and not _NO_FUNCTION.match(before)


def _has_body(head: str) -> bool:
    """Whether a brace behind this text opens a function's body, which ends a declaration."""
    outline = _outline(head)
    if _is_function(outline):
        return True
    return not (_TYPE.match(outline) or "=" in outline)
