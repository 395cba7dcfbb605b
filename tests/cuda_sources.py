# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""CUDA sources that stand in files: whole kernel files, and tables of kernels with what their tests say."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "kernel_files"


def kernel_file(name: str, old: str = "", new: str = "") -> str:
    """The text of one of `kernel_files`, with what it includes of them, and one text in it replaced."""
    source = (FOLDER / f"{name}.cu").read_text(encoding="utf-8")
    text = re.sub('#include "(hopper.cuh)"', lambda found: (FOLDER / found[1]).read_text(), source)
    assert old in text
    return text.replace(old, new) if old else text


def write_kernel_file(directory: Path, name: str, old: str = "", new: str = "", to: str = "") -> Path:
    """That text as a file of its own, which may have another name."""
    path = directory / f"{to or name}.cu"
    path.write_text(kernel_file(name, old, new))
    return path


@dataclass(frozen=True)
class Row:
    """A kernel's text, and what the file says of it."""

    text: str
    told: dict[str, Any]


def kernel_table(path: Path) -> dict[str, Row]:
    """The kernels of a file, by their names.

    `//:: NAME` begins one, and lines of TOML behind it, `//: key = value`, tell of it. A name in capitals is
    that of a piece. A kernel is put into FRAME, or what its `frame` names, in the place of the word BODY. A
    key in capitals is a word in the text or the frame; its value, or the piece of that name, stands in its
    place. `before` names a piece.
    """
    pieces = {}
    for part in re.split(r"^//:: ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, told, text = re.match(r"(.*)\n((?://: .*\n)*)((?:.|\n)*)", part).groups()
        pieces[name] = Row(text, tomllib.loads(re.sub("^//: ", "", told, flags=re.MULTILINE)))
    return {name: _whole(row, pieces) for name, row in pieces.items() if not name.isupper()}


def _whole(row: Row, pieces: dict[str, Row]) -> Row:
    frame = pieces.get(row.told.get("frame", "FRAME"))
    told = {**(frame.told if frame else {}), **row.told}
    told.pop("frame", None)
    text = frame.text if frame else row.text
    for word in [word for word in told if word.isupper()]:
        value = told.pop(word)
        text = text.replace(word, pieces[value].text if value in pieces else value)
    if "before" in told:
        told["before"] = pieces[told["before"]].text
    return Row(text.replace("BODY", row.text) if frame else text, told)


def either(text: str, *, first: bool) -> str:
    """Of each «one¦other» in a text the one or the other: what is wrong, and what is right."""
    return re.sub("«(.*?)¦(.*?)»", lambda found: found[1 if first else 2], text, flags=re.DOTALL)


def line_of(source: str, text: str) -> int:
    """Return the number of the first line that contains a text."""
    return next(number for number, line in enumerate(source.splitlines(), 1) if text in line)
