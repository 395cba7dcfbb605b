# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the threads of a launch print, up to a limit."""

from collections.abc import Callable

#: Calls of `printf` whose text is kept.
_MOST_CALLS = 4096


class Printed:
    """Collects what `printf` prints."""

    def __init__(self) -> None:
        self.calls = 0
        self._texts: list[str] = []

    def add(self, text: Callable[[], str]) -> None:
        """Take the text of one call, which is made up only if it is kept."""
        self.calls += 1
        if len(self._texts) < _MOST_CALLS:
            self._texts.append(text())

    @property
    def text(self) -> str:
        """What the kept calls printed, one after the other."""
        return "".join(self._texts)
