# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Whether a kernel is right: in its first launch, in all that were timed, and with other inputs."""

from collections.abc import Callable
from dataclasses import replace

from gpuprof.backends.gpu.arrays import ProblemArrays
from gpuprof.backends.gpu.launch_checks import LaunchChecks
from gpuprof.results import Verification

#: A kernel that takes longer than its timed launches with inputs that it has not seen, this often and each
#: time with new ones, kept something.
_UNSEEN = 5

#: Launches, and waits for the end.
LaunchOnce = Callable[[], None]
#: The same, and says by how much that took longer than it should; empty where it did not.
LaunchTimed = Callable[[], str]


def verify_again(
    arrays: ProblemArrays,
    checks: LaunchChecks,
    follow: LaunchOnce,
    verify_anew: Callable[[], Verification],
    time_again: LaunchOnce,
    launch_timed: LaunchTimed,
) -> tuple[Verification, tuple[str, ...]]:
    """Look at what the timed launches did, then at more launches.

    What they left behind is compared as a whole, and of each launch the elements that were spoiled before it.
    Launches behind them, before which every element is spoiled, show a kernel that stopped writing, or that
    tells by the clock or by poison when it is looked at; one with other inputs beside the last result one
    that keeps results, or was given them, and its time one that keeps them wherever it found memory, and
    knows by its inputs when they hold. Where each launch builds on the one before, what many leave behind has
    no reference.

    Returns:
        The first verification that fails, or the last with the first inputs; and what could not be looked at.
    """
    if not arrays.reads_output:
        left = arrays.verify()
        if not left.passed:
            return left, ()
    follow()
    # Nothing that is queued changes CUDA arrays, or what they hold before a launch.
    opaque = any(spec.name in arrays.in_cuda_arrays for spec in arrays.problem.outputs)
    last = verify_anew() if opaque else arrays.verify()
    if not last.passed:
        return last, ()
    if wrong := checks.sentence():
        return replace(last, detail=wrong, array=""), ()
    slower = ""
    for attempt in range(_UNSEEN):
        if attempt:
            arrays.renew_others()
        # At first the launches that followed each other have just worked with the first inputs. Then they are
        # timed again: others may have begun to use the card.
        with arrays.other_inputs(time_again if attempt else lambda: None) as missing:
            if missing:
                return last, (missing,)
            slower = launch_timed()
            others = arrays.verify_others()
        if not others.passed:
            return others, ()
        if not slower:
            return last, ()
    return replace(last, detail=slower, array=""), ()
