# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Cases whose blocks build on each other, and whose grid is too large to be run as it is.

The grid is run without values, which counts it; then, with values, a few elements of the outputs are followed
through every block that has a part in them.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from gpuprof.backends.sim.located import FOLLOWED
from gpuprof.backends.sim.sim_references import References
from gpuprof.executor import (
    Argument,
    Buffer,
    ClosedSample,
    GlobalMemory,
    GridLaunch,
    GridTrace,
    KernelFault,
    LaunchResult,
    TooMuchWork,
    ValueNeeded,
    choose_elements,
)
from gpuprof.problems.problem import ArraySpec, Problem
from gpuprof.problems.wrong_places import describe_places
from gpuprof.results import Verification

#: Steps of single lanes that a grid may take without values: some thirty seconds.
_MOST_STEPS = 2e10
_SAMPLE_VERIFIED = (
    "Its blocks depend on each other: all blocks are counted, but values are computed and verified in a"
    " sample only"
)


class NotConclusive(Exception):
    """Blocks that build on each other cannot be told apart here: the whole grid must run.

    Args:
        instructions: What that takes, summed over lanes; None where it is not known.
    """

    def __init__(self, instructions: float | None = None) -> None:
        super().__init__()
        self.instructions = instructions


class WaitingGrid:
    """One launch of a case whose blocks build on each other.

    Args:
        problem: The case's.
        launch: How it is launched.
        arguments: What it is given, by device memory.
        fresh: Makes device memory as it is before the case; the argument as for `device_memory`.
    """

    def __init__(
        self,
        problem: Problem,
        launch: GridLaunch,
        arguments: Callable[[GlobalMemory, Mapping[str, Buffer]], list[Argument]],
        fresh: Callable[[float | None], tuple[GlobalMemory, dict[str, Buffer]]],
    ) -> None:
        self.problem = problem
        self.launch = launch
        self._arguments = arguments
        self._fresh = fresh
        self.memory, self.buffers = fresh(None)

    @property
    def counted(self) -> LaunchResult:
        """What the grid counts.

        Raises:
            KernelFault: The kernel broke a rule of CUDA.
            NotConclusive: What blocks do depends on the values that they compute, or they do too much.
        """
        return self._counted[0]

    @property
    def _trace(self) -> GridTrace:
        return self._counted[1]

    @cached_property
    def _counted(self) -> tuple[LaunchResult, GridTrace]:
        arguments = self._arguments(self.memory, self.buffers)
        try:
            return self.launch.without_values(arguments, self.memory, _MOST_STEPS)
        except (ValueNeeded, TooMuchWork):
            raise NotConclusive from None

    @cached_property
    def _sample(self) -> ClosedSample:
        outputs = [self.buffers[spec.name].address for spec in self.problem.outputs]
        sample = choose_elements(self._trace, outputs)
        if sample is None:
            raise NotConclusive(self.counted.lane_instructions)
        self._trace.keep_only(outputs)
        return sample

    def verify(self, references: References, unread: float | None) -> Verification:
        """Run a sample of the blocks with values, and compare what they finish.

        Args:
            references: What it is compared with.
            unread: As for `device_memory`.

        Raises:
            KernelFault: The kernel broke a rule of CUDA.
            NotConclusive: The sample finishes nothing.
        """
        missing = never_written(self.problem, self.buffers, self._trace)
        if missing is not None:
            return verification_of_missing(self.problem, *missing)
        # What was loaded before values moved is missing: only a run with all of them tells what is wrong.
        for sample in dict.fromkeys((self._sample, self._sample.throughout())):
            found = self._run(sample, references, unread)
            if found.passed and found.checked_elements:
                break
        if not found.checked_elements:
            raise NotConclusive(self.counted.lane_instructions)
        return found

    def _run(self, sample: ClosedSample, references: References, unread: float | None) -> Verification:
        del self.memory, self.buffers  # there may not be room for both
        self.memory, self.buffers = self._fresh(unread)
        try:
            trace = self.launch.with_values(self._arguments(self.memory, self.buffers), self.memory, sample)
        except KernelFault as fault:
            # Whether a value matters, only following it tells. And what orders blocks may not be seen where
            # some run in part, and others not at all.
            if fault.kind in FOLLOWED or fault.is_race:
                raise NotConclusive(self.counted.lane_instructions) from None
            raise
        judged = finished(self.problem, self.buffers, self._trace, trace)
        return references.verify(self.buffers, whole=False, judged=judged)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to say of a verdict that a sample gave."""
        if never_written(self.problem, self.buffers, self._trace) is not None:
            return ()
        return () if len(self._sample.parts) == prod(self.launch.grid) else (_SAMPLE_VERIFIED,)


def finished(
    problem: Problem, buffers: Mapping[str, Buffer], of_grid: GridTrace, of_sample: GridTrace
) -> dict[str, NDArray[np.bool_]]:
    """Return the elements of each output to which a sample has stored all that the grid stores there."""
    found = {}
    for spec in problem.outputs:
        address = buffers[spec.name].address
        grid, sample = of_grid.maps.get(address), of_sample.maps.get(address)
        found[spec.name] = np.zeros(spec.elements, dtype=np.bool_)
        if grid is not None and sample is not None:
            done = (sample.stored() == grid.stored()) & (sample.stored() > 0) & ~sample.stored_hollow()
            found[spec.name] = done.reshape(found[spec.name].shape)
    return found


def never_written(
    problem: Problem, buffers: Mapping[str, Buffer], trace: GridTrace
) -> tuple[ArraySpec, NDArray[np.bool_]] | None:
    """Return the first output that has elements to which the grid stores nothing, and which those are."""
    for spec in problem.outputs:
        if spec.is_read:
            continue
        stores = trace.maps.get(buffers[spec.name].address)
        missing = np.ones(spec.elements, dtype=np.bool_) if stores is None else stores.stored() == 0
        if missing.any():
            return spec, missing
    return None


def verification_of_missing(problem: Problem, spec: ArraySpec, missing: NDArray[np.bool_]) -> Verification:
    """The verdict on an output of which elements are never written."""
    count, first = int(missing.sum()), int(missing.argmax())
    places = describe_places(missing.reshape(spec.shape), problem.axes(spec.name))
    bound = problem.bound(spec.name)
    detail = (
        f"{count} of {spec.elements} elements of {spec.name} ({100 * count / spec.elements:.3g} %) are never"
    )
    detail += (
        f" written{f': {places}' if places else ''}; first: {problem.describe_element(spec.name, first)}"
    )
    return Verification(
        max_abs_error=None,
        max_rel_error=None,
        bound=bound.relative,
        absolute_bound=bound.absolute,
        checked_elements=spec.elements,
        wrong_elements=count,
        detail=detail,
        array=spec.name,
        first_wrong=first,
    )
