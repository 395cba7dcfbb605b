# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Typed fields out of a TOML table: each is checked as it is taken, and none is left over unseen."""

import difflib
import math
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from gpuprof.errors import HeaderError

#: Where a field stands: names of tables, a number behind that of a list of tables, and its own name.
Field = tuple[str | int, ...]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_TABLE = re.compile(r"[ \t]*\[(?P<list>\[?)(?P<name>[^\[\]=\n]+)\]")
#: Where tomllib says that a text is none, and the most of its line that is shown on either side.
_PLACE = re.compile(r" \(at line (?P<line>\d+), column (?P<column>\d+)\)\Z")
_MOST_SHOWN = 60
_FIELD = re.compile(r"[ \t]*(?P<name>(?:[\w.-]|\"[^\"\n]*\"|'[^'\n]*')+)[ \t]*=(?!=)")


@cache
def bundled(package: str, name: str) -> dict[str, Any]:
    """What a TOML file of a package holds."""
    return tomllib.loads(files(package).joinpath(name).read_text(encoding="utf-8"))


class FilePlace(str):
    """A file's name, for messages, that knows on which lines its fields stand."""

    def __new__(cls, name: str, text: str, line: int = 1) -> "FilePlace":
        """The name, with the lines of the fields."""
        place = super().__new__(cls, name)
        place._lines = {(): line, **_lines_of(text, line)}
        return place

    _lines: dict[Field, int]

    def at(self, field: Field) -> str:
        """The file and the line of a field, or of the nearest table around it: `mine.cu:7`."""
        while field not in self._lines:
            field = field[:-1]
        return f"{self}:{self._lines[field]}"


def _lines_of(text: str, first: int) -> dict[Field, int]:
    """The line of each table and of each field that begins one; those within a value have none."""
    lines: dict[Field, int] = {}
    table: Field = ()
    counts: dict[Field, int] = {}
    quotes = ""
    for number, line in enumerate(text.split("\n"), first):
        if quotes:
            quotes = "" if line.count(quotes) % 2 else quotes
            continue
        if match := _TABLE.match(line):
            table = _path_of(match["name"])
            if match["list"]:
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            lines.setdefault(table, number)
        elif match := _FIELD.match(line):
            lines.setdefault((*table, *_path_of(match["name"])), number)
        quotes = next((mark for mark in ('"""', "'''") if line.count(mark) % 2), "")
    return lines


#: What TOML calls the types of fields.
_KINDS: dict[type, str] = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}

#: How alike a field is to a missing one that it may be meant for.
_ALIKE = 0.75


def _path_of(name: str) -> Field:
    return tuple(part.strip().strip("\"'") for part in name.split("."))


def read_toml(text: str, where: str, line: int = 0) -> dict[str, Any]:
    """The table that a text holds.

    `line` is where a header's text starts in its file, 0 for a whole file.
    """
    try:
        # Behind as many empty lines as stand before it, so that the parser counts those of the file.
        return tomllib.loads(text := "\n" * (line - 1) + text)
    except (ValueError, RecursionError) as error:  # not only TOMLDecodeError: also a number of 5000 digits
        what, fix = str(error).removesuffix(" (at end of document)"), ""
        if place := _PLACE.search(what):
            what, line, column = what[: place.start()], int(place["line"]), int(place["column"])
            shown = text.split("\n")[line - 1][max(0, column - _MOST_SHOWN) : column + _MOST_SHOWN]
            fix = f"{shown}\n  {' ' * min(column - 1, _MOST_SHOWN - 1)}^"
            fix += " Write a number, true, false, or text in quotes." * (what == "Invalid value")
        kind = "file" if where.endswith(".toml") else "header"
        raise HeaderError(f"{where}:{line or 1}: the {kind} is not TOML: {what}.", fix=fix) from error


def is_integer(value: Any) -> bool:
    """True for an integer that is no truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_identifier(text: str) -> bool:
    """True for a name that C and formulas take."""
    return _IDENTIFIER.match(text) is not None


class TableReader:
    """Takes typed fields out of a TOML table and remembers which are left.

    `name` stands in front of the fields' names: `launch.` for those of a table `launch`; `path` is where the
    table stands in the file, told by `name` when None.
    """

    def __init__(
        self, table: Mapping[str, Any], where: str, name: str = "", fix: str = "", path: Field | None = None
    ) -> None:
        self.path: Field = tuple(name.split(".")[:-1]) if path is None else path
        self.table = dict(table)
        self.where = where
        self.name = name
        self.fix = fix
        self._is_empty = not table
        self._taken: set[str] = set()

    @property
    def _kind(self) -> str:
        return "the file" if self.where.endswith(".toml") else "the header"

    def __contains__(self, key: str) -> bool:
        return key in self.table

    def take(self, key: str, kind: type, default: Any = None) -> Any:
        """A field; without a default it must be there."""
        self._taken.add(key)
        if key not in self.table:
            if default is None:
                near = difflib.get_close_matches(key, self.table, n=1, cutoff=_ALIKE)
                fix = f"It has {near[0]}: did you mean {key}?" if near else self._to_add(key)
                raise HeaderError(f"{self._at(key)}: {self._kind} lacks {self.name}{key}.", fix=fix)
            return default
        value = self.table.pop(key)
        if kind is float and is_integer(value) and abs(value) < 2**63:
            value = float(value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            told = f"must be {_KINDS[kind]}, not {value!r}"
            if kind is list and isinstance(value, dict):
                told = f"must be a list of tables: [[{self.name}{key}]] begins each"
            elif kind is dict and isinstance(value, list) and value and isinstance(value[0], dict):
                told = f"must be one table: [{self.name}{key}] begins it"
            raise self.error(key, told)
        if isinstance(value, float) and not math.isfinite(value):
            raise self.error(key, f"must be a finite number, not {value}")
        return value

    def formula(self, key: str, default: str | None = None) -> str:
        """A formula; a number is one too."""
        number = type(self.table.get(key)) in (int, float)
        return str(self.take(key, type(self.table[key]) if number else str, default))

    def strings(self, key: str, default: list[str] | None = None) -> tuple[str, ...]:
        values = self.take(key, list, default)
        if not all(isinstance(value, str) for value in values):
            raise self.error(key, f"must be a list of strings, not {values!r}")
        return tuple(values)

    def formulas(self, key: str, default: list[str] | None = None) -> tuple[str, ...]:
        """A list of formulas; an integer is one too."""
        values = self.take(key, list, default)
        if not all(isinstance(value, str) or is_integer(value) for value in values):
            raise self.error(key, f"must be a list of integers and formulas, not {values!r}")
        return tuple(map(str, values))

    def choice(self, key: str, words: Sequence[str], default: str) -> str:
        value: str = self.take(key, str, default)
        self.require(key, value, words)
        return value

    def require(self, key: str, value: object, known: Collection[object], verb: str = "is") -> None:
        """Refuse what a field is, has or names if it is not known."""
        if value not in known:
            raise self.error(key, f"{verb} {value!r}, not one of {', '.join(map(str, known))}")

    def section(self, key: str, default: dict[str, Any] | None = None) -> "TableReader":
        table = self.take(key, dict, default)
        return TableReader(table, self.where, f"{self.name}{key}.", self.fix, (*self.path, key))

    def sections(self, key: str) -> list["TableReader"]:
        entries = self.take(key, list, [])
        if not all(isinstance(entry, dict) for entry in entries):
            raise self.error(key, f"must be a list of tables, not {entries!r}")
        return [
            TableReader(entry, self.where, f"{self.name}{key}.", self.fix, (*self.path, key, index))
            for index, entry in enumerate(entries)
        ]

    def named_sections(self, key: str) -> list[tuple[str, "TableReader"]]:
        """The tables of a table, by their names, which must be identifiers."""
        tables = self.section(key, {})
        found = []
        for name in list(tables.table):
            if not is_identifier(name):
                raise tables.error(name, "must be a name of letters, digits and _")
            found.append((name, tables.section(name)))
        return found

    def error(self, key: str, problem: str, fix: str = "") -> HeaderError:
        return HeaderError(f"{self._at(key)}: {self.name}{key} {problem}.", fix=fix)

    def _to_add(self, key: str) -> str:
        """What to do about a missing field: the example's lines that say it, else what to write where."""
        table = ".".join(part for part in self.path if isinstance(part, str))
        under = f" under [[{table}]]" if table and isinstance(self.path[-1], int) else f" under [{table}]"
        found, section = [], ""
        for line in self.fix.removesuffix("*/").splitlines():
            section = match["name"] if (match := _TABLE.match(line)) else section
            if section == f"{table}.{key}".lstrip(".") or (section == table and line.startswith(f"{key} =")):
                found.append(line)
        if not table and (self._is_empty or not found):
            return self.fix
        listed = "\n".join(found)
        return f"Write{under * bool(table)}:\n{listed}" if found else f"Write {key} = …{under}."

    def _those_known(self) -> str:
        """What a table within the header takes: one of the header's own fields may stand too far down."""
        if not self.path or not self._taken:
            return ""
        return (
            f"{self.name.rstrip('.')} takes {', '.join(sorted(self._taken))}; "
            f"fields of {self._kind} itself stand above its first [table]."
        )

    def _at(self, key: str) -> str:
        """The file, with the line of a field where that is known."""
        path = (*self.path, *key.split("."))
        return self.where.at(path) if isinstance(self.where, FilePlace) else self.where

    def finish(self) -> None:
        """Refuse fields that nobody took."""
        for key in self.table:
            near = difflib.get_close_matches(key, self._taken, n=1)
            fix = f"Did you mean {self.name}{near[0]}?" if near else self._those_known()
            raise HeaderError(
                f"{self._at(key)}: {self._kind} has an unknown field {self.name}{key}.", fix=fix
            )
