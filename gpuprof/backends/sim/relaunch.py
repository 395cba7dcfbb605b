# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A second launch of a case that may find out that there was a first one."""

from dataclasses import replace

from gpuprof.backends.base import Findings
from gpuprof.backends.sim.executed import NO_TIME, Executed
from gpuprof.backends.sim.verification import References
from gpuprof.backends.verification import sentence_of
from gpuprof.problems.problem import Problem
from gpuprof.results import Verification

_NOT_COUNTED = "a kernel that is wrong in a later launch is not counted"


def verify_again(problem: Problem, executed: Executed, seed: int) -> Verification:
    """Launch a case once more, with other inputs, and compare what it makes of them.

    Its outputs hold the result already, which nobody has written: a kernel that leaves out what it finds done
    has left it out.

    Args:
        problem: What it computes.
        executed: Its first launch.
        seed: Of the other inputs.

    Raises:
        CaseFailure: Only its first launch keeps to the rules of CUDA.
    """
    assert executed.again is not None
    inputs = problem.inputs(seed)
    references = References(problem, inputs)
    results = {spec.name: references.result(spec) for spec in problem.outputs if not spec.is_read}
    executed.again({**results, **inputs})
    verification = references.verify(executed.buffers, whole=True)
    if verification.passed:
        return verification
    # Its place is no place of the first launch, which is the one that can be explained.
    detail = f"with other inputs (--seed {seed}) {verification.detail}"
    return replace(verification, detail=detail, array="", first_wrong=None)


def wrong_later(verification: Verification) -> Findings:
    """What is said of a case that is right in its first launch only."""
    return Findings(
        "incorrect",
        reason=sentence_of(verification, later=True),
        verification=verification,
        timing_reason=NO_TIME,
        event_floor_reason=NO_TIME,
        clocks_reason=NO_TIME,
        counters_reason=_NOT_COUNTED,
        lines_reason=_NOT_COUNTED,
    )
