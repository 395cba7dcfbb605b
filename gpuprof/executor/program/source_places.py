# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a PTX text says of the source: lines of its instructions, where it calls functions, names there."""

import re
from pathlib import PurePath

LOCATION = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+\d+(.*)")
_TRAP = re.compile(r"\s*(?:@!?%\w+\s+)?trap;")
_INLINED = re.compile(r"inlined_at\s+(\d+)\s+(\d+)")


def source_name(symbol: str) -> str:
    """Return a variable's name in the source: of a mangled one, which ends with it, the last part."""
    lengths, place = re.compile(r"\d+"), 0
    if nested := re.match("_ZZN?|_ZN", symbol):  # a name around it may hold what looks like a length
        place = last = nested.end()
        while length := lengths.match(symbol, place):
            last, place = place, length.end() + int(length[0])
        place = last if nested[0] == "_ZN" else place
    for length in lengths.finditer(symbol if symbol.startswith("_Z") else "", place):
        end = length.end() + int(length[0])
        if re.fullmatch(r"E?(_\d+)?", symbol[end:]) and end <= len(symbol):
            return symbol[length.end() : end]
    return symbol


def call_line(text: str, entry: str, ptx_line: int) -> int:
    """Return the line of a kernel's file that calls what a line of a PTX text is inlined from; 0 if none."""
    for line in reversed(text.splitlines()[: ptx_line - 1]):
        if found := LOCATION.match(line.strip()):
            return next(iter(_calls(found, _own_file(text, entry))), 0)
    return 0


def callers(text: str, entry: str, line: int) -> list[int]:
    """Return the lines of a kernel's file where it calls the function that a line of the file stands in.

    A text says so of what is inlined; none where the line stands in the kernel itself too.
    """
    own = _own_file(text, entry)
    start = _start(text, entry)
    body = re.split(r"\.(?:entry|func)\b", text[start:], maxsplit=1)[0] if start else text
    found = [match for match in LOCATION.finditer(body) if (match[1], int(match[2])) == (own, line)]
    called = [_calls(match, own) for match in found]
    return sorted({one[0] for one in called} - {line}) if all(called) else []


def trapped_in(text: str, entry: str, line: int) -> tuple[str, int] | None:
    """Return which file and line traps, where that is inlined in a line of the kernel's file from another."""
    own, start = _own_file(text, entry), _start(text, entry)
    places: list[tuple[str, int]] = []
    for statement in text[start:].splitlines():
        if found := LOCATION.match(statement.strip()):
            places = places_of(found)
        elif _TRAP.match(statement) and places and places[0][0] != own and (own, line) in places:
            file = re.search(rf'^\s*\.file\s+{places[0][0]}\s+"([^"]+)"', text, re.MULTILINE)
            return (PurePath(file[1]).name, places[0][1]) if file else None
    return None


def _calls(location: re.Match[str], own: str) -> list[int]:
    """Return the lines of the file numbered `own` where a location is inlined, the outermost first."""
    return [line for file, line in reversed(places_of(location)[1:]) if file == own]


def places_of(location: re.Match[str]) -> list[tuple[str, int]]:
    """Return the file's number and the line of a location, and where it is inlined, the outermost last."""
    found = [(location[1], location[2]), *_INLINED.findall(location[3])]
    return [(file, int(line)) for file, line in found]


def _own_file(text: str, entry: str) -> str:
    """Return the number of the file that a kernel stands in: its first location is its header."""
    first = LOCATION.search(text, _start(text, entry))
    return first[1] if first else ""


def _start(text: str, entry: str) -> int:
    """Return where the parameters of a kernel begin; 0 if there is no such kernel."""
    found = re.search(rf"\.entry\s+{re.escape(entry)}(?![\w$])", text)
    return found.end() if found else 0
