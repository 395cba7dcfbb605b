# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Sources whose directives lead to no file but those that they may read.

A compiler opens whatever a directive names and quotes its lines in what it complains of. Here a directive
that could name anything else becomes an `#error`, which matters only where the compiler gets to it. Nothing
hangs on both reading the text alike: comments are blank before, and every line that could begin with a
directive is taken for one, in whatever string it may stand.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import PurePosixPath

from gpuprof.cuda_source.masking import uncommented

#: What the error of a refused directive begins with.
REFUSED = "a kernel file may not"

#: What joins two lines, and what does so to some compilers and not to others.
_SPLICE = "\\\n"
_BLANK_SPLICE = re.compile(r"\\[^\S\n]+\n")
_TRIGRAPH_SPLICE = re.compile(r"\?\?/(?=[^\S\n]*\n)")
_LOGICAL_LINE = re.compile(r"(?:[^\\\n]+|\\\n?)*\n?")
#: A directive's mark, behind what may be blanks to a compiler.
_DIRECTIVE = re.compile(r"[^!-~]*(?:#|%:|\?\?=)[^!-~]*(?P<word>\w*)(?P<rest>.*)", re.DOTALL)
_NAME_FILES = ("include", "include_next", "import", "embed", "using", "include_alias")
_MAY_BE_ONE = re.compile(r"#|%:|\?\?=")
_DEFINE = re.compile(r"(?:#|%:|\?\?=)[^!-~]*define[^!-~]+(?P<name>\w+)(?P<value>.*)")
_OPTION = re.compile(r"(?:-D ?|--define-macro=)(?P<name>\w+)(?P<value>(?:\([^=]*\))?=.*)", re.DOTALL)
_NAME = re.compile(r'\s*(?:"(?P<quoted>[^"\n]*)"|<(?P<angled>[^>\n]*)>)[\s;]*')
#: Of a macro that no compiler knows by itself, as `__FILE__` is known; CUTLASS has one with a parameter.
_MACRO = re.compile(r"\s*(?P<name>[A-Za-z]\w*)\s*(?:\((?P<argument>[\w./]+)\)\s*)?", re.ASCII)
_OF_ONE = re.compile(r"\((?P<parameter>[A-Za-z]\w*)\)\s*(?P<text><[^#]*)", re.ASCII)
#: A question that is written out.
_ASKS = re.compile(
    r'(?P<word>__has_(?:include|embed)\w*)\s*\((?P<name>\s*(?:"[^"\n]{0,500}"|<[^>\n]{0,500}>)\s*|[^()]*)\)?'
)
#: Whether a condition asks, in words that macros make, whether a file is there: `__has_include` may be the
#: value of a macro, or be pasted together by `##`, and so may what it asks about. What a condition comes to
#: is not worked out: what its macros hold, and the macros in these, is gathered.
_Hidden = Callable[[str], bool]

_QUESTIONS = ("__has_include", "__has_embed")
#: What can be a part of one's word.
_PIECES = frozenset(
    word[begin:end]
    for word in _QUESTIONS
    for begin in range(len(word))
    for end in range(begin + 1, len(word) + 1)
)
_DEFINED = re.compile(r"\bdefined\s*(?:\(\s*\w+\s*\)|\w+)")
_WORD = re.compile(r"[^\W\d]\w*")
#: Gives what a directive may say in the place of what it names; None for nothing.
_Operand = Callable[[str], str | None]


def confined(texts: Mapping[str, str], options: Iterable[str], given: Container[str]) -> dict[str, str]:
    """Texts that are compiled together, with as many lines each as before.

    Args:
        options: The compiler's, each with its value: they define macros too.
        given: Names of files that the compiler is given as text. Others it is left to find in the folders
            that it is told of, and nowhere else: neither in the working directory nor by a path out of them.
    """
    # Lines are joined for every compiler alike.
    codes = {
        name: _TRIGRAPH_SPLICE.sub("?? ", _BLANK_SPLICE.sub(lambda _: _SPLICE, uncommented(text)))
        for name, text in texts.items()
    }
    definitions = [*_definitions(codes.values())]
    matches = [match for option in options if (match := _OPTION.fullmatch(option))]
    typed = [(match["name"], match["value"].replace("=", " ", 1)) for match in matches]
    values: dict[str, set[str]] = {}
    for name, value in (*typed, *definitions):
        values.setdefault(name, set()).add(value.strip())

    def named(value: str, argument: str | None) -> bool:
        """Whether a macro of this value is a name that may stand there, and no macro changes that."""
        if argument is not None:
            of_one = _OF_ONE.fullmatch(value)
            value = re.sub(rf"\b{of_one['parameter']}\b", argument, of_one["text"]) if of_one else ""
        changed = value.startswith("<") and any(word in values for word in _WORD.findall(value))
        return _operand(value, given) == value and not changed

    def operand(text: str) -> str | None:
        macro = _MACRO.fullmatch(text)
        if macro is None:
            return _operand(text, given)
        meant = values.get(macro["name"], ())
        return text if meant and all(named(value, macro["argument"]) for value in meant) else None

    def answered(text: str) -> str:
        return _ASKS.sub(lambda asked: _answered(asked, operand), text)

    # An option stays as it is, and with it whatever it asks.
    asking = [(name, '"') for name, value in typed if answered(value) != value]
    changed = ((name, answered(value)) for name, value in (*typed, *definitions))
    hidden = _hidden_questions((*asking, *changed))
    return {name: "".join(_lines(code, operand, hidden)) for name, code in codes.items()}


def _operand(text: str, given: Container[str]) -> str | None:
    """What an include directive may say in the place of a name in quotes or brackets; None for nothing."""
    match = _NAME.fullmatch(text)
    if match is None:
        return None
    name = match["angled"] or match["quoted"] or ""
    if name in given:
        return text
    path = PurePosixPath(name)
    inward = path.parts and not path.is_absolute() and ".." not in path.parts
    # In brackets it is not looked for beside the file that includes it, or in the working directory.
    if not inward or not re.fullmatch(r"[^<>\\]+", name):
        return None
    return text if match["angled"] else f" <{name}>"


def _definitions(codes: Iterable[str]) -> Iterator[tuple[str, str]]:
    for code in codes:
        for line in _LOGICAL_LINE.findall(code):
            if _MAY_BE_ONE.search(line):
                for match in _DEFINE.finditer(_without_comments(line.replace(_SPLICE, ""))):
                    yield match["name"], match["value"]


def _lines(code: str, operand: _Operand, hidden: _Hidden) -> Iterator[str]:
    for line in _LOGICAL_LINE.findall(code):
        new = None
        if _MAY_BE_ONE.search(line):
            # What stands behind the end of a comment may begin a line too.
            heads = line.replace(_SPLICE, "").split("*/")
            new = next(filter(None, (_in_place_of(head, operand, hidden) for head in heads)), None)
        yield line if new is None else new + "\n" * line.count("\n")


def _in_place_of(head: str, operand: _Operand, hidden: _Hidden) -> str | None:
    """What to write where a line would begin so; None to leave it as it is."""
    match = _DIRECTIVE.match(head)
    if match is None:
        return None
    word, rest = match["word"], _without_comments(match["rest"])
    if word == "line" or word.isdigit():
        return " "  # it renames the file, for messages and for __FILE__
    if word in _NAME_FILES:
        new = operand(rest) if word == "include" else None
        if new is None:
            plain = re.sub(r"[^\w./+-]", " ", rest[:200]).strip()  # nothing that is read as a literal
            return f"#error {REFUSED} {word} {plain}"
        return None if new == rest else f"#include{new}"
    answered = _ASKS.sub(lambda asked: _answered(asked, operand), rest)
    if word in ("if", "elif") and hidden(answered):
        answered = " 0"
    return None if answered == rest else f"#{word}{answered}".rstrip("\n")


def _answered(asked: "re.Match[str]", operand: _Operand) -> str:
    """A question whether there is a file: left to the compiler, or answered with no."""
    new = operand(asked["name"]) if _NAME.fullmatch(asked["name"]) else None
    return "0" if new is None else f"{asked['word']}({new})"


def _without_comments(line: str) -> str:
    *ended, last = line.split("*/")
    return " ".join((*(part.partition("/*")[0] for part in ended), last))


def _hidden_questions(definitions: Iterable[tuple[str, str]]) -> _Hidden:
    """Tells the conditions that may ask about a file in other words than `_ASKS` finds."""
    held: dict[str, set[str]] = defaultdict(set)
    users: dict[str, list[str]] = defaultdict(list)
    for name, value in definitions:
        held[name] |= _marks(value)
        for word in set(_WORD.findall(value)):
            users[word].append(name)
    pending = list(held)
    while pending:  # each gains a mark only so often
        name = pending.pop()
        for user in users.get(name, ()):
            if not held[name] <= held[user]:
                held[user] |= held[name]
                pending.append(user)

    def hides(condition: str) -> bool:
        plain = _DEFINED.sub(" ", _ASKS.sub(" ", condition))
        marks = _marks(plain).union(*(held.get(word, ()) for word in _WORD.findall(plain)))
        # No other condition holds a text; the name in brackets could be a comparison.
        return '"' in marks or ("<" in marks and any(_spelled(word, marks) for word in _QUESTIONS))

    return hides


def _marks(text: str) -> set[str]:
    """What of a text may take part in a question."""
    text = _ASKS.sub(" ", text)
    words = set(_WORD.findall(text))
    spelled = (question for question in _QUESTIONS if any(question[2:] in word.lower() for word in words))
    return {*chain(_PIECES & words, spelled), *(mark for mark in '"<' if mark in text)}


def _spelled(word: str, pieces: set[str]) -> bool:
    reached = {0}
    for end in range(1, len(word) + 1):
        if any(word[begin:end] in pieces for begin in reached):
            reached.add(end)
    return len(word) in reached
