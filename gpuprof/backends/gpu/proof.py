# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Whether a kernel is right: in its first launch, after all the launches that were timed, and in one more."""

from collections.abc import Callable
from typing import Protocol

from gpuprof.results import Verification


class Arrays(Protocol):
    """A problem's arrays, which know what a kernel should make of them."""

    @property
    def reads_output(self) -> bool:
        """Whether a kernel reads the output's old content, so that launches build on each other."""
        ...

    def prepare(self, unread: float | None = None) -> None:
        """Make all as if no kernel had run."""
        ...

    def verify(self) -> Verification:
        """Compare the output with the reference, and look whether anything else was written."""
        ...


#: Launches once and waits for the end.
LaunchOnce = Callable[[], None]


def verify_first(arrays: Arrays, launch: LaunchOnce, unread: float | None = None) -> Verification:
    """Launch on clean arrays and look at the result.

    Args:
        arrays: The problem's.
        launch: Runs the case once.
        unread: What outputs hold that it must not read, though it may for other scalars; None for poison.
    """
    arrays.prepare(unread)
    launch()
    return arrays.verify()


def verify_again(arrays: Arrays, launch: LaunchOnce, unread: float | None = None) -> Verification:
    """Look at what the timed launches left behind, then at one more launch on clean arrays.

    The first alone would miss a kernel that stopped writing, because an earlier launch's output is still
    there; the second alone one that was wrong for a while. Where each launch builds on the one before, what
    many leave behind has no reference, and only the second is looked at.
    """
    if not arrays.reads_output:
        left = arrays.verify()
        if not left.passed:
            return left
    return verify_first(arrays, launch, unread)


def sentence_of(verification: Verification, *, later: bool) -> str:
    """A wrong kernel's sentence.

    Args:
        verification: What is wrong.
        later: Whether it was right in its first launch.
    """
    detail = verification.detail
    if later:
        return f"Right in its first launch, wrong in a later one: {detail}."
    return f"{detail[:1].upper()}{detail[1:]}."
