# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A launch of control slices, which move only the values that decide where threads go and what they touch."""

from dataclasses import dataclass


class TooMuchWork(Exception):
    """A launch takes more steps than it may."""


@dataclass
class SliceRun:
    """A launch of control slices, and how many steps of single lanes it may still take."""

    left: float

    def spend(self, steps: int) -> None:
        """Take steps.

        Raises:
            TooMuchWork: There have been too many.
        """
        self.left -= steps
        if self.left < 0:
            raise TooMuchWork
