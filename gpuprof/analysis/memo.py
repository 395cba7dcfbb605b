# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What was worked out of a run once and is asked for again: a report reads each case's figures many times."""

import functools
from collections.abc import Callable
from typing import TypeVar

from gpuprof.results import Run

T = TypeVar("T")
R = TypeVar("R")


def remembered(function: Callable[[Run, T], R]) -> Callable[[Run, T], R]:
    """Keep what a pure function of a run and of one thing in it returned, until it is asked of another run.

    Things are told apart by identity: they are immutable, and comparing two measurements takes longer than
    most of what is worked out of them. One run at a time is held, so that no other one is kept alive.
    """
    held: tuple[Run | None, dict[int, tuple[T, R]]] = (None, {})

    @functools.wraps(function)
    def ask(run: Run, thing: T) -> R:
        nonlocal held
        of, known = held
        if of is not run:
            known = {}
            held = (run, known)
        found = known.get(id(thing))
        # The thing is kept with its answer: no other one can get its id meanwhile.
        if found is None:
            found = known[id(thing)] = (thing, function(run, thing))
        return found[1]

    return ask
