# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What is run of a case too large for all of it: a sample of its blocks, its slices, and a smaller size.

Where blocks or launches build on others, or sums are dear, the grid, or a sample of it, runs its control
slice alone, which counts it and tells what is stored to. What its values are worth shows at a smaller size of
the same kind, which runs whole.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import product

import numpy as np
from numpy.typing import NDArray

from gpuprof.backends.base import Findings
from gpuprof.backends.sim.executed import BlocksBuildOnEachOther, mistaken_shares
from gpuprof.backends.verification import verification_of
from gpuprof.devices.device import Device
from gpuprof.executor import WARP, Buffer, LaunchResult, Sample, choose_blocks
from gpuprof.executor.sampling import Stratum
from gpuprof.kernels.shape import ConfiguredCase, OneLaunch
from gpuprof.kernels.smaller_sizes import expected_instructions, smaller_cases
from gpuprof.problems.check import ErrorComparison
from gpuprof.problems.problem import ArraySpec, Problem
from gpuprof.problems.wrong_places import describe_places
from gpuprof.records import replace
from gpuprof.results import Verification
from gpuprof.text import Extent

#: Largest problem whose whole grid is run: multiply-adds, and elements written.
_FULL_GRID_FMAS = 1 << 25
_FULL_GRID_ELEMENTS = 1 << 23
#: The same of a grid of so few blocks: a sample would be a large part of it.
_FEW_BLOCKS = 512
_FEW_BLOCKS_FMAS = 1 << 27
#: Largest launch that is run whole, in lanes of all warps. A header may ask for 2^31-1 blocks however small
#: the problem is, and running them would take hours. This many, which the narrowest of those problems need
#: where a tile has 32 x 32 threads, take seconds when most threads have nothing to do.
_FULL_GRID_LANES = 1 << 28
#: Blocks run of a larger grid: its kinds (interior, right and bottom edge, corner), the larger ones twice.
_SAMPLED_BLOCKS = 6
#: Seconds that sums of tensor cores may take in a sample, and what those of one operation of a problem take:
#: they are made bit for bit, an instruction at a time, and of wide types it adds half as many.
_SUMS_S, _SUM_S, _WIDE_SUM_S = 2.5, 2e-9, 4e-9
_WIDE = frozenset({"tf32", "f64"})
#: What to say of blocks that wait for each other where nothing else helps.
WAIT = "Its blocks wait for each other, so that the executor would have to run the whole grid."
#: What a smaller size may take that is run whole, in instructions of lanes, very roughly: three seconds.
_MOST_INSTRUCTIONS = 2.1e8
#: And on the card itself where one of few multiprocessors has another grid: blocks of that one do as much as
#: those of a large grid, and the card shows what many hand over, and whether a second launch is as right.
_FEW_INSTRUCTIONS = _MOST_INSTRUCTIONS / 8
#: So few that blocks of a smaller size have several tiles each, and seldom equally many.
_FEW_MULTIPROCESSORS = 7
#: Why values are computed and verified at a smaller size.
DEPENDS = "as blocks depend on each other"
FOLLOWS = "as launches depend on each other"
DEAR = "as tensor cores' sums take long to compute"
_VERIFIED_SMALLER = "Counted at this size, verified at {}, {}"


def blocks_at_the_ends(launch: OneLaunch) -> Sample:
    """The first, the last and the middle block along each axis, and all combinations: edges come first."""
    axes = [dict.fromkeys((0, extent - 1, extent // 2)) for extent in launch.grid]
    return _listed([(x, y, z) for z, y, x in product(*reversed(axes))])


def blocks_near(launch: OneLaunch, spec: ArraySpec, element: int) -> Sample:
    """The blocks that may write an element, if grid and array lie along each other in any usual way."""
    position = [int(index) for index in np.unravel_index(element, spec.shape)]
    shares = [(index, extent) for index, extent in zip(position, spec.shape, strict=True)]
    shares += [(element, spec.elements), (0, 1)]
    # A grid that is rounded up covers more than the array: its tiles tell better than its share.
    per_axis = [
        dict.fromkeys(
            block
            for index, whole in shares
            for block in (index // -(-whole // blocks), index * blocks // whole)
        )
        for blocks in launch.grid
    ]
    return _listed([(x, y, z) for x, y, z in product(*per_axis)])


def _listed(blocks: list[Extent]) -> Sample:
    """Exactly these blocks; those that are left out are not spoken for."""
    return Sample(
        tuple(Stratum((range(x, x + 1), range(y, y + 1), range(z, z + 1)), 1) for x, y, z in blocks)
    )


def sample_of(problem: Problem, one: OneLaunch, blocks: int | None) -> Sample | None:
    """The blocks to run of a launch, as many as the user asks for: 0 for all; None for all of them.

    Raises:
        BlocksBuildOnEachOther: Blocks wait for each other, and are too many to run all.
    """
    if blocks == 0:
        return None
    total, threads = math.prod(one.grid), math.prod(one.block)
    small = (
        problem.flops <= 2 * (_FEW_BLOCKS_FMAS if total <= _FEW_BLOCKS else _FULL_GRID_FMAS)
        and max(spec.elements for spec in problem.arrays) <= _FULL_GRID_ELEMENTS
        and total * -(-threads // WARP) * WARP <= _FULL_GRID_LANES
    )
    if blocks is None and small:
        return None
    if one.cooperative:
        raise BlocksBuildOnEachOther(WAIT)
    wanted = blocks or _SAMPLED_BLOCKS
    return choose_blocks(one.grid, wanted) if wanted < total else None


def are_dear(operations: float, sums: Iterable[Set[str]], *, verified: bool = False) -> bool:
    """Whether computing so many operations of a problem takes many times what counting them does.

    Any do that are `verified` elsewhere. `sums` are the types of matrices that each program of a case
    multiplies; asked for where it matters.
    """
    most_s = 0.0 if verified else _SUMS_S
    if operations * _WIDE_SUM_S <= most_s:
        return False
    types = frozenset().union(*sums)
    return bool(types) and operations * (_WIDE_SUM_S if types & _WIDE else _SUM_S) > most_s


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


def cases_to_verify(case: ConfiguredCase, device: Device) -> Iterator[tuple[int, ConfiguredCase]]:
    """Yield smaller sizes of the same kind to run whole, each with its card, by number among `cards_like`."""
    own, few = (list(smaller_cases(case, card, _MOST_INSTRUCTIONS))[-1:] for card in cards_like(device))
    if own == few:
        few = []
    elif own and few and expected_instructions(own[0]) > _FEW_INSTRUCTIONS:
        lighter = smaller_cases(own[0], device, _FEW_INSTRUCTIONS)
        own += (one for one in lighter if (one.entries, one.defines) == (own[0].entries, own[0].defines))
    yield from ((number, cases[-1]) for number, cases in enumerate((own, few)) if cases)


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


def of_two_kinds(
    problem: Problem, buffers: Mapping[str, Buffer], result: LaunchResult
) -> tuple[Sample, LaunchResult] | None:
    """What stands for a grid for which a sample does not: by what its blocks store, if they tell.

    Return the blocks to run for certainty, and what was counted if the grid is as those that ran.
    """
    if result.sample is None or result.of_kinds is None or result.counters["global_atomic_requests"]:
        return None
    for spec, _ in mistaken_shares(problem, buffers, result.stored):
        stored = result.stored[spec.name]
        # Each element may be stored several times.
        whole = spec.nbytes * stored.by_sample / buffers[spec.name].written_bytes
        count = result.sample.of_first_kind(stored.each, whole)
        if count is None:
            break
        kinds = np.array(stored.each) != stored.each[0]
        sizes = np.array([count, result.sample.total - count], dtype=np.float64)
        return result.sample.divided(count), result.of_kinds(kinds.astype(np.intp), sizes)
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
