# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What lines of a PTX text say of the ways that threads take."""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

_END = re.compile(r"\s*(?:ret|exit)\b")
_CONTROL = re.compile(r"\s*(?:[\w$]+:\s*)?(?:@!?[\w$%]+\s+)?(?:bra|brx|ret|exit)\b")
_BRANCH = re.compile(r"\s*@!?[\w$%]+\s+bra(?:\.uni)?\s+([\w$]+)\s*;")
_LABEL = re.compile(r"\s*([\w$]+):(?!:)")
#: Instructions that read or write local memory, or any.
_ACCESS = re.compile(r"\s*(?:@!?[\w$%]+\s+)?(?:ld|st)\.(?!shared|global|param|const)")


class PtxText:
    """Lines of a PTX text, by their numbers from 1.

    `control` are those that are branches or ends; of them `ends` are unconditional ends, and `conditional`
    are under a predicate.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self.control = {number for number, text in enumerate(lines, 1) if _CONTROL.match(text)}
        self.ends = {number for number in self.control if _END.match(lines[number - 1])}
        self.conditional = {number for number in self.control if "@" in lines[number - 1]}

    def is_access(self, line: int) -> bool:
        """Whether a line may read or write local memory."""
        return bool(_ACCESS.match(self._lines[line - 1]))

    @cached_property
    def led_by(self) -> dict[int, int]:
        """Of branches, the one that alone leads there, where both lead to one place, as of `if (a && b)`."""
        return dict(self._pairs())

    def _pairs(self) -> Iterator[tuple[int, int]]:
        before: tuple[int, str] | None = None
        for number, text in enumerate(self._lines, 1):
            if _LABEL.match(text):
                before = None
            if number not in self.control:
                continue
            branch = _BRANCH.match(text)
            if branch and before and before[1] in (branch[1], *self._labels_behind(number)):
                yield number, before[0]
            before = (number, branch[1]) if branch else None

    def _labels_behind(self, number: int) -> Iterator[str]:
        """Yield the labels of what follows a line."""
        for text in self._lines[number:]:
            if label := _LABEL.match(text):
                yield label[1]
            elif text.strip() and not text.lstrip().startswith((".loc", "//")):
                return
