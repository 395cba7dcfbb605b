# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The text of a gate, as written behind `--fail-on`, read into a condition. Nothing is evaluated as code.

gate      = all { "or" all }
all       = plain { "and" plain }
plain     = "not" plain | "(" gate ")" | word | operand relation value
word      = regressed | improved | same | uncertain | unmeasured | missing | new
operand   = NAME | "change" "(" NAME ")"
relation  = "<" | "<=" | ">" | ">=" | "==" | "!="
value     = ["+" | "-"] NUMBER [UNIT] | "'" text "'"
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from gpuprof.errors import InputError

Relation = Literal["<", "<=", ">", ">=", "==", "!="]
#: Longest gate: a person wrote it.
MOST_CHARACTERS = 500
_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<text>'[^']*'|"[^"]*")
    |(?P<name>[A-Za-z_][\w.]*)
    |(?P<relation><=|>=|==|!=|<|>)
    |(?P<sign>[+\-−])
    |(?P<mark>[()])
    |(?P<unit>[%µ×/][\w/]*)
    """,
    re.VERBOSE,
)
#: By how much a number of a unit is multiplied for the unit that figures are kept in, and which that is.
UNITS: dict[str, tuple[float, str]] = {
    "%": (1.0, "%"),
    "ns": (1e-3, "us"),
    "us": (1.0, "us"),
    "µs": (1.0, "us"),
    "ms": (1e3, "us"),
    "s": (1e6, "us"),
    "B": (1.0, "bytes"),
    "bytes": (1.0, "bytes"),
    "KiB": (1024.0, "bytes"),
    "MiB": (1024.0**2, "bytes"),
    "GiB": (1024.0**3, "bytes"),
    "MB/s": (1e-3, "GB/s"),
    "GB/s": (1.0, "GB/s"),
    "TB/s": (1e3, "GB/s"),
    "GFLOP/s": (1.0, "GFLOP/s"),
    "TFLOP/s": (1e3, "GFLOP/s"),
}
WORDS = ("regressed", "improved", "same", "uncertain", "unmeasured", "missing", "new")


@dataclass(frozen=True, slots=True)
class Word:
    """A verdict, or what a case is to the comparison."""

    word: str


@dataclass(frozen=True, slots=True)
class Clause:
    """One comparison of a figure with a value.

    Args:
        name: Of the figure, as written.
        changed: Whether its change since the base is meant, and not its value.
        relation: How it is compared.
        value: The number, in the unit that was written; or the text.
        unit: That unit; empty without one.
        place: Where the name stands in the gate's text.
        value_place: Where the value stands.
    """

    name: str
    changed: bool
    relation: Relation
    value: float | str
    unit: str
    place: int
    value_place: int


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a condition."""

    inner: "Condition"


@dataclass(frozen=True, slots=True)
class Join:
    """Several conditions: all of them, or any."""

    every: bool
    parts: "tuple[Condition, ...]"


Condition = Word | Clause | Not | Join


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    place: int


class GateError(InputError):
    """A gate that cannot be read, with a caret below what ails it."""

    def __init__(self, text: str, place: int, problem: str, fix: str) -> None:
        shown = text.translate({ord(c): " " for c in "\t\n\r"})
        super().__init__(f"--fail-on: {problem}", fix=f"{shown}\n  {' ' * place}^ {fix}")


def parse_gate(text: str) -> Condition:
    """The condition that a text states.

    Raises:
        GateError: It states none; the message shows where it ails.
    """
    if len(text) > MOST_CHARACTERS:
        what = f"--fail-on: a gate of {len(text)} characters is longer than {MOST_CHARACTERS}."
        raise InputError(what, fix="Write several gates, each behind a --fail-on of its own.")
    return _Parser(text).whole()


def _tokens(text: str) -> list[_Token]:
    found, place = [], 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            fix = (
                "Text goes between two quotation marks."
                if text[place] in "'\""
                else "This sign is not known."
            )
            if text[place] in "=&|!":
                fix = "Write == or != to compare, and, or, not to join."
            raise GateError(text, place, f"{text[place]!r} cannot be read.", fix)
        if match.lastgroup != "space":
            found.append(_Token(str(match.lastgroup), match[0], place))
        place = match.end()
    return found


class _Parser:
    """Reads one gate, from its first token to its last."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._next = 0
        self._depth = 0

    def whole(self) -> Condition:
        """The condition of the whole text."""
        found = self._any()
        token = self._peek()
        if token is not None:
            raise self._error(
                token, f"{token.text!r} follows a condition that is complete.", "Join with and or or."
            )
        return found

    def _any(self) -> Condition:
        parts = [self._all()]
        while self._takes("or"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else Join(False, tuple(parts))

    def _all(self) -> Condition:
        parts = [self._plain()]
        while self._takes("and"):
            parts.append(self._plain())
        return parts[0] if len(parts) == 1 else Join(True, tuple(parts))

    def _plain(self) -> Condition:
        self._depth += 1
        if self._depth > 50:
            raise self._error(self._peek(), "it is nested too deeply.", "Write it shorter.")
        try:
            if self._takes("not"):
                return Not(self._plain())
            if self._takes("("):
                inner = self._any()
                self._expect(")", "A bracket is open.")
                return inner
            return self._clause()
        finally:
            self._depth -= 1

    def _clause(self) -> Condition:
        token = self._take("name", "a figure's name is missing.", "For example: time > 3%")
        name, place, changed = token.text, token.place, False
        if name == "change" and self._takes("("):
            token = self._take("name", "a figure's name is missing.", "For example: change(time) > 3%")
            name, place, changed = token.text, token.place, True
            self._expect(")", "A bracket is open.")
        following = self._peek()
        if name in WORDS and (following is None or following.kind != "relation"):
            return Word(name)
        relation = self._take(
            "relation", f"what {name} is compared with is missing.", "Write <, <=, >, >=, == or !="
        )
        value_place = (self._peek() or _Token("", "", len(self._text))).place
        value, unit = self._value()
        return Clause(name, changed, _RELATIONS[relation.text], value, unit, place, value_place)

    def _value(self) -> tuple[float | str, str]:
        sign = self._peek()
        if sign is not None and sign.kind == "sign":
            self._next += 1
        token = self._peek()
        if token is not None and token.kind == "text" and (sign is None or sign.kind != "sign"):
            self._next += 1
            return token.text[1:-1], ""
        token = self._take(
            "number", "a number, or a text in quotation marks, is missing.", "For example: 128, 3%, 'shared'"
        )
        value = float(token.text)
        if not isfinite(value):
            raise self._error(token, "this number is too large.", "Write a smaller one.")
        if sign is not None and sign.kind == "sign" and sign.text != "+":
            value = -value
        return value, self._unit()

    def _unit(self) -> str:
        """The unit behind a number, which may be of several tokens: `GB/s`; empty without one."""
        token = self._peek()
        if token is None or token.kind not in ("unit", "name") or token.text in ("and", "or"):
            return ""
        self._next += 1
        unit = token.text
        following = self._peek()
        if following is not None and following.kind == "unit" and following.text.startswith("/"):
            self._next += 1
            unit += following.text
        if unit not in UNITS:
            raise self._error(token, f"{unit!r} is not a unit.", f"Units are {', '.join(UNITS)}.")
        return unit

    def _peek(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _takes(self, text: str) -> bool:
        token = self._peek()
        if token is None or token.text != text or token.kind == "text":
            return False
        self._next += 1
        return True

    def _expect(self, text: str, problem: str) -> None:
        if not self._takes(text):
            raise self._error(self._peek(), problem, f"Write {text} here.")

    def _take(self, kind: str, problem: str, fix: str) -> _Token:
        token = self._peek()
        if token is None or token.kind != kind or token.text in ("and", "or", "not"):
            raise self._error(token, problem, fix)
        self._next += 1
        return token

    def _error(self, token: _Token | None, problem: str, fix: str) -> GateError:
        return GateError(self._text, len(self._text) if token is None else token.place, problem, fix)


_RELATIONS: dict[str, Relation] = {"<": "<", "<=": "<=", ">": ">", ">=": ">=", "==": "==", "!=": "!="}


def names_in(condition: Condition) -> Sequence[Clause]:
    """Every comparison within a condition, from left to right."""
    match condition:
        case Clause():
            return (condition,)
        case Not(inner):
            return names_in(inner)
        case Join(_, parts):
            return [clause for part in parts for clause in names_in(part)]
    return ()


def words_in(condition: Condition) -> Sequence[str]:
    """Every bare word within a condition."""
    match condition:
        case Word(word):
            return (word,)
        case Not(inner):
            return words_in(inner)
        case Join(_, parts):
            return [word for part in parts for word in words_in(part)]
    return ()
