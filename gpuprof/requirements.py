# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What gpuprof requires of pip, held against what is installed: its own metadata say both."""

import re
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from typing import NamedTuple

from gpuprof.errors import ToolError, foreign

_REQUIREMENT = re.compile(r"([\w.-]+)\s*\(?>=\s*([\d.]+)\)?")
#: What a toolkit may bring too: whoever needs it looks there, and says so where it is nowhere.
_FOUND_ELSEWHERE = ("nvidia-cuda-nvdisasm", "nvidia-cuda-nvrtc")


class Unmet(NamedTuple):  # what tells of missing packages needs none
    """One package that is missing or too old."""

    name: str
    least: str
    found: str | None

    @property
    def text(self) -> str:
        if self.found is None:
            return "is not installed"
        return f"is version {self.found}, older than {self.least}"

    @property
    def needed(self) -> bool:
        """Whether nothing runs without it."""
        return self.found is not None or self.name not in _FOUND_ELSEWHERE

    @property
    def fix(self) -> str:
        return _install([self])


@cache
def required() -> tuple[tuple[str, str], ...]:
    """Required packages, each with the oldest version that works; none where gpuprof is not installed."""
    try:
        lines = requires("gpuprof") or ()
    except PackageNotFoundError:
        return ()
    found = (_REQUIREMENT.fullmatch(line.strip()) for line in lines if ";" not in line)
    return tuple((match[1], match[2]) for match in found if match)


@cache
def unmet() -> tuple[Unmet, ...]:
    """Required packages that are missing or too old."""
    lacking = []
    for name, least in required():
        try:
            found = version(name) or None  # nothing where its metadata are broken
        except PackageNotFoundError:
            found = None
        if found is None or _release(found) < _release(least):
            lacking.append(Unmet(name, least, found))
    return tuple(lacking)


def check() -> None:
    """Refuse to begin where a required package is missing or too old."""
    lacking = [one for one in unmet() if one.needed]
    if lacking:
        text = "; ".join(f"{one.name} {one.text}" for one in lacking)
        raise ToolError(f"What gpuprof requires is not here: {text}.", fix=_install(lacking))


def missing(error: ImportError) -> ToolError:
    """What to say of a module that is not there, or that cannot be loaded."""
    try:
        check()
    except ToolError as known:
        return known
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    if not isinstance(cause, ModuleNotFoundError):
        return ToolError(
            f"A module that gpuprof needs cannot be loaded: {foreign(cause)}.",
            fix="Raise the limit on memory, if there is one (ulimit -v, ulimit -d); else install it anew.",
        )
    return ToolError(
        f"gpuprof needs the module {cause.name}, which is not installed.",
        fix="Install gpuprof with pip, which brings what it requires.",
    )


def _release(text: str) -> list[int]:
    """A version's numbers, without zeros at its end."""
    match = re.match(r"\d+(\.\d+)*", text)
    numbers = [int(part) for part in match[0].split(".")] if match else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return numbers


def _install(lacking: list[Unmet]) -> str:
    wanted = " ".join(f"'{one.name}>={one.least}'" for one in lacking)
    return f"Install what is missing with: pip install {wanted}"
