# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Cases too large to be run with their values: of blocks or launches that build on others, or of dear sums.

The grid, or a sample of it, runs its control slice alone, which counts it and tells what is stored to. What
its values are worth shows at a smaller size of the same kind, which runs whole.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gpuprof.backends.base import Findings
from gpuprof.backends.sim.executed import mistaken_shares
from gpuprof.backends.verification import verification_of
from gpuprof.devices.device import Device
from gpuprof.executor import Buffer, LaunchResult, Program, Sample
from gpuprof.kernels.shape import ConfiguredCase
from gpuprof.kernels.smaller_sizes import smaller_cases
from gpuprof.problems.check import ErrorComparison
from gpuprof.problems.problem import ArraySpec, Problem
from gpuprof.problems.wrong_places import describe_places
from gpuprof.results import Verification

#: What a smaller size may take that is run whole, in instructions of lanes, very roughly: three seconds.
_MOST_INSTRUCTIONS = 2.1e8
#: So few that blocks of a smaller size have several tiles each, and seldom equally many.
_FEW_MULTIPROCESSORS = 7
#: Why values are computed and verified at a smaller size.
DEPENDS = "as its blocks depend on each other"
FOLLOWS = "as its launches depend on each other"
DEAR = "as tensor cores' sums take long to compute"
_VERIFIED_SMALLER = "Counted at this size, verified at {}, {}"


class NotConclusive(Exception):
    """Blocks that build on each other cannot be told apart here: the whole grid must run.

    `instructions` is what that takes, summed over lanes, where it is known.
    """

    def __init__(self, instructions: float | None = None) -> None:
        super().__init__()
        self.instructions = instructions


def cards_like(device: Device) -> tuple[Device, Device]:
    """The card, and one whose few multiprocessors give blocks of a small grid as much as those of a large."""
    return device, replace(device, sm_count=_FEW_MULTIPROCESSORS)


def smaller_case(case: ConfiguredCase, device: Device) -> ConfiguredCase | None:
    """The largest smaller size of the same kind that can be run whole; None where there is none."""
    cases = list(smaller_cases(case, device, _MOST_INSTRUCTIONS))
    return cases[-1] if cases else None


def at_smaller_size(found: Findings, problem: Problem, why: str) -> Findings:
    """What is said of a case that was verified at a smaller size, and why."""
    if found.outcome == "ok":
        return replace(found, remarks=(_VERIFIED_SMALLER.format(problem.label, why), *found.remarks))
    reason = found.reason or ""
    return replace(found, reason=f"At size {problem.label}: {reason[:1].lower()}{reason[1:]}")


def never_written(
    problem: Problem, buffers: Mapping[str, Buffer]
) -> Iterator[tuple[ArraySpec, NDArray[np.bool_]]]:
    """Yield the outputs that have elements to which a grid stores nothing, and which those are."""
    for spec in problem.outputs:
        missing = ~buffers[spec.name].written_mask().reshape(-1)
        if missing.any() and not spec.is_read:
            yield spec, missing


def stands_for_grid(problem: Problem, buffers: Mapping[str, Buffer], result: LaunchResult) -> bool:
    """Whether the blocks of samples store what their part of the grids stores, by themselves.

    What they store nothing to, a launch that ran whole must have written.
    """
    others = [spec.name for spec in problem.outputs if spec.name not in result.stored]
    return (
        not result.counters["global_atomic_requests"]
        and all(buffers[name].written_mask().all() for name in others)
        and not any(mistaken_shares(problem, buffers, result.stored))
    )


def by_work(problem: Problem, buffers: Mapping[str, Buffer], result: LaunchResult) -> Sample | None:
    """A sample that stands for a grid of which one does not: by what its blocks store, if they tell."""
    if result.sample is None or result.counters["global_atomic_requests"]:
        return None
    for spec, _ in mistaken_shares(problem, buffers, result.stored):
        stored = result.stored[spec.name]
        # Each element may be stored several times.
        whole = spec.nbytes * stored.by_sample / buffers[spec.name].written_bytes
        return result.sample.divided(stored.each, whole)
    return None


def verification_of_missing(problem: Problem, spec: ArraySpec, missing: NDArray[np.bool_]) -> Verification:
    """The verdict on an output of which elements are never written."""
    count, first = int(missing.sum()), int(missing.argmax())
    places = describe_places(missing.reshape(spec.shape), problem.axes(spec.name))
    detail = (
        f"{count} of {spec.elements} elements of {spec.name} ({100 * count / spec.elements:.3g} %) are never"
        f" written{f': {places}' if places else ''}; first: {problem.describe_element(spec.name, first)}"
    )
    compared = ErrorComparison(missing, float("inf"), float("inf"))
    return verification_of(spec, problem.bound(spec.name), compared, detail, indices=range(spec.elements))


def may_wait(programs: Iterable[Program]) -> bool:
    """Whether programs have loops that others' threads may have to end."""
    return any(block.back_edges for program in programs for block in program.blocks)
