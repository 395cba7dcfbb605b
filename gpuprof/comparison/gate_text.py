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

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

from gpuprof.analysis.figures import FIGURES, Figure, Subject, counter_figure
from gpuprof.bounds.parts import PARTS
from gpuprof.errors import InputError, did_you_mean
from gpuprof.text import format_extent

#: Longest gate, and most brackets and nots within each other: a person wrote it.
MOST_CHARACTERS, _DEEPEST = 500, 50
_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<number>(?P<value>[+\-−]?\s*(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*
        (?P<unit>(?!(?:and|or)\b)[A-Za-z%µ×/][\w/]*)?)
    |(?P<text>'[^']*'|"[^"]*")
    |(?P<name>[A-Za-z_][\w.]*)
    |(?P<relation><=|>=|==|!=|<|>)
    |(?P<mark>[()])
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
#: Short names for what gates name most.
ALIASES = {"time": "median_us", "warm": "warm_us", "bound": "bound_by"}
#: What a case is, for gates that concern some cases only.
IDENTITY: dict[str, Callable[[Subject], str]] = {
    "kernel": lambda subject: subject.case.kernel,
    "operation": lambda subject: subject.case.problem.operation,
    "size": lambda subject: subject.case.problem.label,
    "dtype": lambda subject: subject.case.problem.dtype,
    "block": lambda subject: format_extent(subject.case.block),
    "outcome": lambda subject: subject.case.outcome,
}
#: Figures that say how a case was sampled, or compare it with its neighbours: no gate can hold them.
_UNFIT = {
    **dict.fromkeys(
        ("p05_us", "p95_us", "ci95_pct", "samples", "launches_per_sample", "dropped", "throttled"),
        "says how the case was sampled",
    ),
    **dict.fromkeys(("gain", "vs_reference", "vs_fastest"), "compares a case with others of its run"),
    "published_us": "was measured by others, elsewhere",
}
_RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True, slots=True)
class Clause:
    """One comparison of a figure with a value in its unit, or of its relative change with a share.

    Without a figure the name is part of a case's identity, or a verdict or what a case is to the comparison,
    which is compared with nothing. Of a text, `holds` is asked whether it is one of `texts`, in small letters
    but of an identity.
    """

    name: str
    figure: Figure | None = None
    holds: Callable[[float, float], bool] = operator.eq
    value: float = 0.0
    texts: tuple[str, ...] = ()
    relative: bool = False


@dataclass(frozen=True, slots=True)
class Conditions:
    """Several conditions, `and` or `or` between them; or `not` before one."""

    word: str
    parts: "tuple[Condition, ...]"


Condition = Clause | Conditions


class _Token(NamedTuple):
    kind: str
    text: str
    place: int


class GateError(InputError):
    """A gate that cannot be read, with a caret below what ails it."""

    def __init__(self, text: str, place: int, problem: str, fix: str) -> None:
        shown = text.translate({ord(c): " " for c in "\t\n\r"})
        super().__init__(f"--fail-on: {problem}", fix=f"{shown}\n  {' ' * place}^ {fix}")


def parse_gate(text: str, *, with_base: bool) -> Condition:
    """The condition that a text states.

    Raises:
        GateError: It states none, a name is unknown, a unit is not its figure's, or it needs a base; the
            message shows where it ails.
    """
    if len(text) > MOST_CHARACTERS:
        what = f"--fail-on: a gate of {len(text)} characters is longer than {MOST_CHARACTERS}."
        raise InputError(what, fix="Write several gates, each behind a --fail-on of its own.")
    return _Parser(text, with_base).whole()


def words_in(condition: Condition) -> set[str]:
    """Every bare word within a condition."""
    if isinstance(condition, Clause):
        return {condition.name} & {*WORDS}
    return set().union(*map(words_in, condition.parts))


class _Parser:
    """Reads one gate, from its first token to its last, and ties each name to what it means."""

    def __init__(self, text: str, with_base: bool) -> None:
        self._text = text
        self._with_base = with_base
        self._tokens = self._split()
        self._next = 0
        self._depth = 0

    def _split(self) -> list[_Token]:
        found, place = [], 0
        while place < len(self._text):
            match, sign = _TOKEN.match(self._text, place), self._text[place]
            if match is None:
                fix = "Text goes between two quotation marks." if sign in "'\"" else "This sign is not known."
                fix = "Write == or != to compare, and, or, not to join." if sign in "=&|!" else fix
                raise GateError(self._text, place, f"{sign!r} cannot be read.", fix)
            if match.lastgroup != "space":
                found.append(_Token(str(match.lastgroup), match[0], place))
            place = match.end()
        return [*found, _Token("end", "", len(self._text))]

    def whole(self) -> Condition:
        found = self._joined("or")
        token = self._peek
        if token.kind != "end":
            what = f"{token.text!r} follows a condition that is complete."
            raise self._error(token, what, "Join with and or or.")
        return found

    def _joined(self, by: str) -> Condition:
        parts: list[Condition] = []
        while not parts or self._takes(by):
            parts.append(self._joined("and") if by == "or" else self._plain())
        return parts[0] if len(parts) == 1 else Conditions(by, tuple(parts))

    def _plain(self) -> Condition:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._error(self._peek, "it is nested too deeply.", "Write it shorter.")
        found: Condition
        if self._takes("not"):
            found = Conditions("not", (self._plain(),))
        elif self._takes("("):
            found = self._joined("or")
            self._expect(")", "A bracket is open.")
        else:
            found = self._clause()
        self._depth -= 1
        return found

    def _clause(self) -> Condition:
        token = self._take("name", "a figure's name is missing.", "For example: time > 3%")
        changed = token.text == "change" and self._takes("(")
        if changed:
            token = self._take("name", "a figure's name is missing.", "For example: change(time) > 3%")
            self._expect(")", "A bracket is open.")
        name = token.text
        if name in WORDS and self._peek.kind != "relation":
            self._need_base(token)
            return Clause(name)
        what = f"what {name} is compared with is missing."
        relation = self._take("relation", what, "Write <, <=, >, >=, == or !=").text
        at, (value, unit) = self._peek, self._value()
        if name in IDENTITY or name == "verdict":
            return self._identity(token, changed, relation, value, at)
        figure = self._figure(token)
        if figure.unit == "text":
            wanted = self._text_value(token, changed, relation, value, at)
            return Clause(name, figure, _RELATIONS[relation], texts=self._parts(figure, wanted, at))
        if isinstance(value, str):
            raise self._error(at, f"{name} is a number, not text.", "Write a number here.")
        if changed and unit != "%":
            raise self._error(at, "a change is in percent.", "For example: change(time) > 3%")
        if changed or (unit == "%" and figure.unit not in ("%", "±%")):
            self._need_base(token)
            return Clause(name, figure, _RELATIONS[relation], value / 100, relative=True)
        return Clause(name, figure, _RELATIONS[relation], self._in_unit(name, figure, value, unit, at))

    def _identity(
        self, token: _Token, changed: bool, relation: str, value: float | str, at: _Token
    ) -> Clause:
        is_verdict = token.text == "verdict"
        if is_verdict:
            self._need_base(token)
        if changed:
            raise self._error(token, f"{token.text} does not change.", "Name a figure, such as time.")
        wanted = self._text_value(token, changed, relation, value, at)
        if is_verdict and wanted not in WORDS[:4]:
            raise self._error(at, f"{wanted!r} is not a verdict.", f"There are {', '.join(WORDS[:4])}.")
        return Clause(token.text, None, _RELATIONS[relation], texts=(wanted,))

    def _text_value(self, token: _Token, changed: bool, relation: str, value: float | str, at: _Token) -> str:
        name = token.text
        if not isinstance(value, str):
            example = f"For example: {name} == 'shared'"
            fix = example if name.startswith("bound") else "Put it in quotation marks."
            raise self._error(at, f"{name} is text, not a number.", fix)
        if relation not in ("==", "!="):
            raise self._error(token, f"{name} is text: it cannot be more or less.", "Write == or !=")
        if changed:
            raise self._error(token, "the change of a text is not a number.", "Drop change( ).")
        return value

    def _figure(self, token: _Token) -> Figure:
        name = ALIASES.get(token.text, token.text)
        if name in _UNFIT:
            fix = "Gate time, a rate, a resource, a bound or a counter."
            raise self._error(token, f"{name} {_UNFIT[name]}: no gate can use it.", fix)
        if name in FIGURES:
            return FIGURES[name]
        if "__" in name:  # a metric by Nsight Compute's own name
            return counter_figure(name)
        known = [*ALIASES, *IDENTITY, *(key for key in FIGURES if key not in _UNFIT), *WORDS]
        fix = did_you_mean(name, known, "docs/compare.md lists the names.")
        raise self._error(token, f"there is no figure {name!r}.", fix)

    def _parts(self, figure: Figure, value: str, at: _Token) -> tuple[str, ...]:
        """The values of a text figure that a word stands for: `shared` for `shared/L1`."""
        wanted = value.strip().lower()
        if figure.key != "bound_by":
            return (wanted,)
        if wanted in PARTS:
            return (PARTS[wanted].short.lower(),)
        found = tuple(
            part.short.lower()
            for part in PARTS.values()
            for names in [(part.key, part.short.lower(), part.label.lower())]
            if wanted and any(name.startswith(wanted) for name in names)
        )
        if not found:
            shorts = [part.short for part in PARTS.values()]
            fix = did_you_mean(wanted, shorts, f"There are {', '.join(shorts)}.", most=2)
            raise self._error(at, f"no part of a device is called {wanted!r}.", fix)
        return found

    def _in_unit(self, name: str, figure: Figure, value: float, unit: str, at: _Token) -> float:
        own = "bytes" if figure.unit == "B" else figure.unit
        factor, kept = UNITS[unit] if unit else (1.0, own)
        if kept != own:
            words = {"us": "a time", "%": "a share in %", "bytes": "a size in bytes"}
            its = words.get(own, f"counted in {own or 'ones'}")
            fix = f"Write the number alone, or change({name}) with % for its change."
            raise self._error(at, f"{name} is {its}, not in {unit}.", fix)
        return value * factor

    def _value(self) -> tuple[float | str, str]:
        """A text, or a number and its unit, which is empty without one."""
        if self._peek.kind == "text":
            return self._take("text").text[1:-1], ""
        what = "a number, or a text in quotation marks, is missing."
        token = self._take("number", what, "For example: 128, 3%, 'shared'")
        match = _TOKEN.match(self._text, token.place)
        assert match is not None
        value, unit = float("".join(match["value"].split()).replace("−", "-")), match["unit"] or ""
        if not isfinite(value):
            raise self._error(token, "this number is too large.", "Write a smaller one.")
        if unit not in ("", *UNITS):
            at = token._replace(place=match.start("unit"))
            raise self._error(at, f"{unit!r} is not a unit.", f"Units are {', '.join(UNITS)}.")
        return value, unit

    @property
    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _takes(self, text: str) -> bool:
        found = self._peek.text == text and self._peek.kind not in ("text", "end")
        self._next += found
        return found

    def _expect(self, text: str, problem: str) -> None:
        if not self._takes(text):
            raise self._error(self._peek, problem, f"Write {text} here.")

    def _take(self, kind: str, problem: str = "", fix: str = "") -> _Token:
        token = self._peek
        if token.kind != kind or token.text in ("and", "or", "not"):
            raise self._error(token, problem, fix)
        self._next += 1
        return token

    def _need_base(self, token: _Token) -> None:
        if not self._with_base:
            fix = "Use it with: gpuprof compare BASE NEW --fail-on …"
            raise self._error(token, f"{token.text} is compared with a base here, and there is none.", fix)

    def _error(self, token: _Token, problem: str, fix: str) -> GateError:
        return GateError(self._text, token.place, problem, fix)
