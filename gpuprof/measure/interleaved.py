# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Two versions of kernels measured in turns, so that whatever drifts meanwhile drifts for both."""

from collections.abc import Callable

from gpuprof.measure.options import RunOptions
from gpuprof.measure.request import Request
from gpuprof.measure.run import Keep, Measuring, Progress
from gpuprof.results import Run


def measure_in_turns(
    requests: tuple[Request, Request],
    options: RunOptions,
    progress: Progress,
    *,
    argv: tuple[str, ...] = (),
    keep: tuple[Keep | None, Keep | None] = (None, None),
    on_turn: Callable[[int, int], None] = lambda version, number: None,
) -> tuple[Run, Run]:
    """Measure two requests round by round: first, second, second, first, and so on."""
    with (
        Measuring(requests[0], options, progress, argv=argv, keep=keep[0]) as base,
        Measuring(requests[1], options, progress, argv=argv, keep=keep[1]) as new,
    ):
        complete = True
        try:
            for number in range(base.rounds):
                for version in (0, 1) if number % 2 == 0 else (1, 0):
                    on_turn(version, number)
                    (base, new)[version].round(number)
        except KeyboardInterrupt:
            complete = False
        return base.finish(complete=complete), new.finish(complete=complete)
