# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The text of a gate, as written behind `--fail-on`, read into a condition. Nothing is evaluated as code.

Python's own parser reads it, after each number with its unit, and each text, has become a blank literal:

gate      = all { "or" all }
all       = plain { "and" plain }
plain     = "not" plain | "(" gate ")" | word | operand relation value
word      = regressed | improved | same | uncertain | unmeasured | missing | new
operand   = NAME | "change" "(" NAME ")"
relation  = "<" | "<=" | ">" | ">=" | "==" | "!="
value     = ["+" | "-"] NUMBER [UNIT] | "'" text "'"
"""

import ast
import operator
import re
from collections.abc import Callable
from math import isfinite
from typing import NamedTuple

from msgspec import Struct

from gpuprof.analysis.figures import FIGURES, Figure, Subject, counter_figure
from gpuprof.bounds.parts import PARTS
from gpuprof.errors import InputError, did_you_mean
from gpuprof.operators import COMPARISONS
from gpuprof.text import format_extent

#: Longest gate: a person wrote it.
MOST_CHARACTERS = 500
_LITERAL = re.compile(
    r"""(?P<text>'[^']*'|"[^"]*")
    |(?<![\w.])(?P<value>(?:[+\-−]\s*)?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*
        (?P<unit>(?!(?:and|or)\b)[A-Za-z%µ×/][\w/]*)?""",
    re.VERBOSE,
)
_EXAMPLES = "Compare by < <= == != >= >, join with and, or, not: time > 3% and kernel != 'naive'"
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


class Clause(Struct, frozen=True):
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


class Conditions(Struct, frozen=True):
    """Several conditions, `and` or `or` between them; or `not` before one."""

    word: str
    parts: "tuple[Condition, ...]"


Condition = Clause | Conditions


class _GateValue(NamedTuple):
    """A number with its unit, empty without one, or a text; and their places in the gate."""

    value: float | str
    unit: str
    place: int
    unit_place: int


class GateError(InputError):
    """A gate that cannot be read, with a caret below what ails it."""

    def __init__(self, text: str, place: int, problem: str, fix: str) -> None:
        shown = text.translate({ord(c): " " for c in "\t\n\r"})
        super().__init__(f"Gate: {problem}", fix=f"{shown}\n  {' ' * place}^ {fix}")


def parse_gate(text: str, *, with_base: bool) -> Condition:
    """The condition that a text states.

    Raises:
        GateError: It states none, a name is unknown, a unit is not its figure's, or it needs a base; the
            message shows where it ails.
    """
    if len(text) > MOST_CHARACTERS:
        what = f"A gate of {len(text)} characters is longer than {MOST_CHARACTERS}."
        raise InputError(what, fix="Write several gates.")
    return _GateReader(text, with_base).condition()


def clauses_in(condition: Condition) -> list[Clause]:
    """Every clause within a condition."""
    if isinstance(condition, Clause):
        return [condition]
    return [clause for part in condition.parts for clause in clauses_in(part)]


class _GateReader:
    """Reads one gate, and ties each name to what it means."""

    def __init__(self, text: str, with_base: bool) -> None:
        self._text = text
        self._with_base = with_base
        #: By the place where a blank literal stands for them.
        self._literals: dict[int, _GateValue] = {}

    def condition(self) -> Condition:
        plain = _LITERAL.sub(self._blank, re.sub(r"[\t\n\r]", " ", self._text))
        start = len(plain) - len(plain.lstrip())
        try:
            if "#" in plain:
                raise SyntaxError("comment", ("", 1, plain.index("#") + 1 - start, plain))
            tree = ast.parse(plain[start:], mode="eval")
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            offset = getattr(error, "offset", 0)  # none at the end
            place = start + offset - 1 if offset else len(self._text)
            raise GateError(self._text, place, "it cannot be read from here.", _EXAMPLES) from None
        for node in ast.walk(tree):
            if isinstance(node, ast.expr):
                node.col_offset += start
        return self._read(tree.body)

    def _blank(self, match: re.Match[str]) -> str:
        """What Python reads for a number or a text: as long, so that places stay."""
        place, text = match.start(), match["text"]
        if text:
            self._literals[place] = _GateValue(text[1:-1], "", place, place)
            return "''".ljust(len(text))
        value = float("".join(match["value"].split()).replace("−", "-"))
        self._literals[place] = _GateValue(value, match["unit"] or "", place, match.start("unit"))
        return "0".ljust(len(match[0]))

    def _read(self, node: ast.expr) -> Condition:
        match node:
            case ast.BoolOp():
                word = "and" if isinstance(node.op, ast.And) else "or"
                return Conditions(word, tuple(map(self._read, node.values)))
            case ast.UnaryOp(op=ast.Not()):
                return Conditions("not", (self._read(node.operand),))
            case ast.Name(id=name) if name in WORDS:
                self._need_base(node)
                return Clause(name)
            case ast.Compare(
                left=ast.Call(func=ast.Name(id="change"), args=[named], keywords=[]),
                ops=[relation],
                comparators=[value],
            ):
                return self._clause(named, relation, value, changed=True)
            case ast.Compare(left=named, ops=[relation], comparators=[value]):
                return self._clause(named, relation, value, changed=False)
        raise self._error(node, "this is no condition.", _EXAMPLES)

    def _clause(self, named: ast.expr, relation: ast.cmpop, value: ast.expr, *, changed: bool) -> Clause:
        holds, given = COMPARISONS.get(type(relation)), self._literals.get(value.col_offset)
        if holds is None or given is None or not isinstance(named, ast.Name | ast.Attribute):
            if isinstance(named, ast.Name | ast.Attribute) and isinstance(value, ast.Name):
                raise self._error(value, f"{value.id} is no value.", f"Text stands in quotes: '{value.id}'")
            raise self._error(named, "this is no condition.", _EXAMPLES)
        name = ast.unparse(named)
        figure = None if name in IDENTITY or name == "verdict" else self._figure(named, name)
        if figure is None or figure.unit == "text":
            texts = self._texts(named, name, figure, holds, given, changed=changed)
            return Clause(name, figure, holds, texts=texts)
        if isinstance(given.value, str):
            raise self._error(given.place, f"{name} is a number, not text.", "Write a number here.")
        if not isfinite(given.value):
            raise self._error(given.place, "this number is too large.", "Write a smaller one.")
        if given.unit not in ("", *UNITS):
            known = f"Units are {', '.join(UNITS)}."
            raise self._error(given.unit_place, f"{given.unit!r} is not a unit.", known)
        if changed and given.unit != "%" and (given.unit or given.value):
            raise self._error(given.place, "a change is in percent.", "For example: change(time) > 3%")
        if changed or (given.unit == "%" and figure.unit not in ("%", "±%")):
            self._need_base(named)
            return Clause(name, figure, holds, given.value / 100, relative=True)
        return Clause(name, figure, holds, self._in_unit(name, figure, given.value, given))

    def _texts(
        self,
        named: ast.expr,
        name: str,
        figure: Figure | None,
        holds: Callable[[float, float], bool],
        given: _GateValue,
        *,
        changed: bool,
    ) -> tuple[str, ...]:
        if name == "verdict":
            self._need_base(named)
        if changed:
            raise self._error(named, f"{name} does not change.", "Name a figure, such as time.")
        if not isinstance(given.value, str):
            example = f"For example: {name} == 'shared'"
            fix = example if name.startswith("bound") else "Put it in quotation marks."
            raise self._error(given.place, f"{name} is text, not a number.", fix)
        if holds not in (operator.eq, operator.ne):
            raise self._error(named, f"{name} is text: it cannot be more or less.", "Write == or !=")
        if name == "verdict" and given.value not in WORDS[:4]:
            known = f"There are {', '.join(WORDS[:4])}."
            raise self._error(given.place, f"{given.value!r} is not a verdict.", known)
        return (given.value,) if figure is None else self._parts(figure, given.value, given.place)

    def _figure(self, named: ast.expr, text: str) -> Figure:
        name = ALIASES.get(text, text)
        if name in _UNFIT:
            fix = "Gate time, a rate, a resource, a bound or a counter."
            raise self._error(named, f"{name} {_UNFIT[name]}: no gate can use it.", fix)
        if name in FIGURES:
            return FIGURES[name]
        if "__" in name:  # a metric by Nsight Compute's own name
            return counter_figure(name)
        known = [*ALIASES, *IDENTITY, *(key for key in FIGURES if key not in _UNFIT), *WORDS]
        shown = [key for key, figure in FIGURES.items() if name == figure.short.lower() and key not in _UNFIT]
        fix = did_you_mean(name, known, "docs/compare.md lists the names.")
        fix = f"That column is {shown[0]}." if shown else fix
        raise self._error(named, f"there is no figure {name!r}.", fix)

    def _parts(self, figure: Figure, value: str, at: int) -> tuple[str, ...]:
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

    def _in_unit(self, name: str, figure: Figure, value: float, given: _GateValue) -> float:
        own = "bytes" if figure.unit == "B" else figure.unit
        factor, kept = UNITS[given.unit] if given.unit else (1.0, own)
        if kept != own:
            words = {"us": "a time", "%": "a share in %", "bytes": "a size in bytes"}
            its = words.get(own, f"counted in {own or 'ones'}")
            fix = f"Write the number alone, or change({name}) with % for its change."
            raise self._error(given.place, f"{name} is {its}, not in {given.unit}.", fix)
        return value * factor

    def _need_base(self, node: ast.expr) -> None:
        if not self._with_base:
            fix = "Use it with: gpuprof compare BASE NEW --fail-on …"
            what = f"{ast.unparse(node)} is compared with a base here, and there is none."
            raise self._error(node, what, fix)

    def _error(self, at: ast.expr | int, problem: str, fix: str) -> GateError:
        return GateError(self._text, at if isinstance(at, int) else at.col_offset, problem, fix)
