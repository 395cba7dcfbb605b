# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What executing one case left and counted, and whether a sample of its grid tells enough."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpuprof.backends.base import ExplainedFailure, Findings
from gpuprof.backends.verification import Proof, sentence_of
from gpuprof.executor import Buffer, KernelFault, Openness, Order, Stored, Witness
from gpuprof.problems.behaviour import Array
from gpuprof.problems.problem import ArraySpec, Problem
from gpuprof.results import Counter, SourceLine, Verification

#: Share of an output by which sums of weights may be off, which are ratios.
_COVERAGE_SLACK = 1e-9
RUN_WHOLE = "Choose a smaller --sizes, or --sim-blocks all, which takes longer."
ESTIMATES = (
    "extrapolated from {} sampled blocks of {}, which differ from the others; --sim-blocks all counts all"
)
NO_TIME = "the executor counts; it measures no time"
_ELSEWHERE = "the kernel stands in an included file, and lines are counted of the kernel file only"


@dataclass(frozen=True, slots=True)
class OtherOrders:
    """A case in other orders of its warps and blocks.

    Args:
        run: Launches it in fresh memory in another order; returns who wrote the arrays named, and all arrays.
        explain: Makes a failure of a fault.
        entries: The function of each launch.
        openness: Whether any order leaves something else behind.
        steps: Instructions that all batches took in the first order.
    """

    run: Callable[[Order, Sequence[str]], tuple[Witness, Mapping[str, Buffer]]]
    explain: Callable[[KernelFault], ExplainedFailure]
    entries: Sequence[str]
    openness: Openness
    steps: int


@dataclass(frozen=True, slots=True)
class Executed:
    """What executing one case left and counted.

    Args:
        buffers: Device memory, by array.
        counters: Of all launches together.
        caveat: Why the counts are estimates; None where they are not.
        lines: Counts by line of the kernel file; None where its functions stand in files that it includes.
        combined: Whether blocks changed global memory by atomic operations.
        remarks: What to say of the case beside its figures.
        stored: Of a sample of the grid, what stores did to each array.
        expected_instructions: What the whole grid would execute, summed over lanes, as far as a sample tells.
        followed: Whether values that nobody had written were followed to where they would count.
        again: Launches once more in the same memory, with other content of the problem's arrays; None where
            nothing in it can tell a launch that there was one before.
        others: The case in other orders of its warps and blocks; None where it was not launched with values.
    """

    buffers: Mapping[str, Buffer]
    counters: Mapping[str, Counter]
    caveat: str | None
    lines: tuple[SourceLine, ...] | None
    combined: bool
    remarks: tuple[str, ...]
    stored: Mapping[str, Stored]
    expected_instructions: float
    followed: bool
    again: Callable[[Mapping[str, Array]], None] | None = None
    others: OtherOrders | None = None

    @property
    def lines_reason(self) -> str | None:
        """Why there are no counts by line; None where there are."""
        return _ELSEWHERE if self.lines is None else None


class SampleFallsShort(Exception):
    """What a sample's blocks stored is not what its part of the outputs has."""

    def __init__(self, sentence: str, expected_instructions: float) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.expected_instructions = expected_instructions


class BlocksBuildOnEachOther(Exception):
    """Single blocks of a grid tell nothing: what they do depends on others that do not run.

    Args:
        sentence: What they do.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


def findings_of(proof: Proof, executed: Executed) -> Findings:
    """What a case is told to be, right or wrong, with what it counted."""
    passed = proof.verification.passed
    return Findings(
        "ok" if passed else "incorrect",
        reason=None if passed else sentence_of(proof.verification, later=False),
        remarks=(*proof.remarks, *executed.remarks),
        verification=proof.verification,
        timing_reason=NO_TIME,
        event_floor_reason=NO_TIME,
        clocks_reason=NO_TIME,
        counters=executed.counters,
        counters_reason=executed.caveat,
        lines=executed.lines,
        lines_reason=executed.lines_reason,
    )


def check_verdict(verification: Verification, executed: Executed) -> None:
    """Withhold the verdict of a sample where blocks that did not run may have had their part in the result.

    Raises:
        BlocksBuildOnEachOther: They may.
    """
    atomics = executed.counters["global_atomic_requests"].value
    if verification.checked_elements and not atomics:
        return
    how = "depend on each other through atomic operations" if atomics else "that ran wrote no result"
    raise BlocksBuildOnEachOther(
        f"Its blocks {how}, so that the executor would have to run the whole grid to verify it."
    )


def mistaken_shares(
    problem: Problem, buffers: Mapping[str, Buffer], stored: Mapping[str, Stored]
) -> Iterator[tuple[ArraySpec, float]]:
    """The outputs of which the grid would write another share than all, as its sample tells, in bytes.

    Then blocks that ran stand for others that do something else, as where tiles are numbered in another order
    than the grid's. A kernel may store an element several times: each block is taken to do so equally often.
    """
    for spec in problem.outputs:
        buffer, seen = buffers[spec.name], stored.get(spec.name, Stored())
        if buffer.combined or not seen.by_sample:
            continue
        covered = seen.by_grid * buffer.written_bytes / seen.by_sample
        if abs(covered - spec.nbytes) > _COVERAGE_SLACK * spec.nbytes:
            yield spec, covered


def check_coverage(problem: Problem, executed: Executed) -> None:
    """Hold what the grid would write, as its sample tells, against the outputs: nothing may be left out.

    Raises:
        SampleFallsShort: Elements are missing, or blocks differ so that a sample cannot tell.
    """
    for spec, covered in mistaken_shares(problem, executed.buffers, executed.stored):
        if spec.is_read:
            continue
        item = spec.nbytes // spec.elements
        raise SampleFallsShort(
            f"The sampled blocks stand for {covered / item:,.0f} of the {spec.elements:,} elements of"
            f" {spec.name}: whether the others are written, only the whole grid shows.",
            executed.expected_instructions,
        )
