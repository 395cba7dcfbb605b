# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The parts of what is learnt about one case, each measured, counted or derived for itself."""

from collections.abc import Mapping
from math import prod
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from gpuprof.schema import Count, Error, Extent, Integer, NonNegative, Positive, Tally

#: What an explanation says went wrong.
Cause = Literal[
    "illegal address",
    "misaligned address",
    "write to an input",
    "trap",
    "endless loop",
    "barrier",
    "mbarrier",
    "race",
    "undefined value",
    "asynchronous copy",
    "missing fence",
    "wrong store",
    "never written",
]


class ProblemRecord(Struct, frozen=True):
    """What a case computed.

    Args:
        operation: Its name; what it declares stands in `Run.operations`.
        sizes: Extents by the operation's dimensions, in their order.
        dtype: The type of the run, which `real` stands for; f32 where nothing is `real`.
        scalars: Numbers besides the sizes, as asked for.
        flops: Floating-point operations that it needs.
        min_bytes: Fewest bytes that it must move through device memory.
        output_bytes: How many of them are results at most, which may stay in the L2 cache; None in a file
            that does not tell.
    """

    operation: str
    sizes: Annotated[Mapping[str, Extent], Meta(min_length=1)]
    dtype: str
    scalars: Mapping[str, float]
    options: Mapping[str, str]
    flops: Annotated[int, Meta(ge=0)]
    min_bytes: Annotated[int, Meta(ge=1)]
    output_bytes: Annotated[int, Meta(ge=0)] | None = None

    def __post_init__(self) -> None:
        if max(self.flops, self.min_bytes, self.output_bytes or 0) > 10**60:
            raise ValueError("flops and bytes must be at most 1e60")

    @property
    def label(self) -> str:
        """The size as a user types it, for example `4096` or `512x1024x256`."""
        return size_label(tuple(self.sizes.values()))

    @property
    def edge(self) -> float:
        """The edge of the cube or square with as much in it, so that rectangles find a place on one axis."""
        extents = tuple(self.sizes.values())
        return float(prod(extents)) ** (1 / len(extents)) if extents else 1.0

    @property
    def key(self) -> tuple[Any, ...]:
        """The same for the same problem, and hashable."""
        parts = (self.sizes, self.scalars, self.options)
        return (self.operation, self.dtype, *(tuple(part.items()) for part in parts))


def size_label(extents: tuple[int, ...]) -> str:
    """Extents as users type them: one number where all are alike."""
    return str(extents[0]) if len(set(extents)) == 1 else "x".join(map(str, extents))


class Verification(Struct, frozen=True):
    """How a case's output compared with the float64 reference.

    Args:
        max_abs_error: Largest |result - expected| of any element.
        max_rel_error: Largest |result - expected| / magnitude, less `absolute_bound`: the figure held against
            `bound`. The operation says what an element's magnitude is.
        bound: Largest `max_rel_error` that passes; 0 demands equality.
        absolute_bound: What underflow may add to an error, whatever the magnitude.
        checked_elements: How many elements were compared.
        wrong_elements: How many exceeded the bound, or are NaN or still hold the poison.
        detail: What is wrong, in words, or an empty string.
        array: The output that is off most; empty where none was compared.
        first_wrong: Its first wrong element, counted in storage order; None where all are right.
    """

    max_abs_error: Error | None
    max_rel_error: Error | None
    bound: Error
    checked_elements: Count
    wrong_elements: Count = 0
    detail: str = ""
    absolute_bound: Error = 0.0
    array: str = ""
    first_wrong: Count | None = None

    @property
    def passed(self) -> bool:
        """Whether every element is within the bound and nothing else is wrong."""
        return not self.wrong_elements and not self.detail


class Timing(Struct, frozen=True):
    """Event-timed samples of one launch each.

    Args:
        median_us: Median sample; of several rounds the median of their medians.
        ci95_rel: Half width of the median's 95 % confidence interval, relative to the median (order
            statistics, without a distribution; of two to five samples Student's t): of the rounds' medians
            from six rounds on, before of the samples, or half the range of the medians where that is more.
        rounds_us: Every kept sample in the order taken, by the round that it was taken in: each round is a
            process of its own.
        dropped: Samples set aside because the GPU was throttled while they were taken.
        launches_per_sample: Back-to-back launches that each sample is the mean of.
        throttled: How many of the kept samples were taken while the GPU was throttled: all or none of them,
            because such samples are kept only where there are no others.
    """

    median_us: Positive
    p05_us: Positive
    p95_us: Positive
    ci95_rel: NonNegative | None
    rounds_us: tuple[tuple[NonNegative, ...], ...]
    dropped: Count = 0
    launches_per_sample: Extent = 1
    throttled: Count = 0

    @property
    def samples_us(self) -> tuple[float, ...]:
        if len(self.rounds_us) == 1:
            return self.rounds_us[0]
        return tuple(sample for samples in self.rounds_us for sample in samples)


class TimingPair(Struct, frozen=True):
    """Times with the L2 cache flushed before each launch (cold, the headline) and back to back (warm).

    Args:
        cold: Each launch after a flush of the L2 cache.
        warm: Launches back to back; None where they were not timed.
    """

    cold: Timing | None
    warm: Timing | None


class Resources(Struct, frozen=True):
    """What one launch occupies, from the compiler's report.

    Args:
        static_shared_bytes: Shared memory of a block that the source declares.
        dynamic_shared_bytes: Shared memory of a block that the launch asks for.
        spill_bytes: Registers spilled to local memory, of one thread; null where machine code alone is known.
    """

    registers_per_thread: Count
    static_shared_bytes: Count
    dynamic_shared_bytes: Count
    spill_bytes: Count | None

    @property
    def shared_bytes(self) -> int:
        """Shared memory of one block, static and dynamic."""
        return self.static_shared_bytes + self.dynamic_shared_bytes


class Occupancy(Struct, frozen=True):
    """Resident warps per SM as a share of the device's limit.

    Args:
        theoretical_pct: From registers, shared memory and block size.
        limiter: What binds: `registers`, `shared memory`, `threads` or `blocks`, joined by "and" on a tie.
        blocks_per_sm: Blocks that fit on one SM at once.
        achieved_pct: Measured by Nsight Compute.
        achieved_reason: Why `achieved_pct` is None.
    """

    theoretical_pct: NonNegative
    limiter: str
    blocks_per_sm: Count
    achieved_pct: NonNegative | None = None
    achieved_reason: str | None = "measured by Nsight Compute only: add --ncu"


class LaunchRecord(Struct, frozen=True):
    """One of the launches that a case takes.

    Args:
        resources: What it occupies.
        occupancy: Its theoretical occupancy; what Nsight Compute measures stands with the case.
        occupancy_reason: Why `occupancy` is None.
    """

    entry: str
    block: tuple[Extent, Extent, Extent]
    grid: tuple[Extent, Extent, Extent]
    resources: Resources
    occupancy: Occupancy | None = None
    occupancy_reason: str | None = None


class Counter(Struct, frozen=True):
    """One named event count.

    Args:
        value: The count, or None when it was not measured.
        unit: For example `requests`, `sectors`, `%`.
        source: `sim` or `ncu`.
        metric: Nsight Compute's own metric name, verbatim, for `ncu`.
        reason: Why `value` is None.
        sampled_blocks: Blocks that the executor ran.
        total_blocks: Blocks of the grid that the value stands for.
        is_least: Whether there were at least so many, and perhaps more.
        has_waits: Whether there are more of them the longer threads wait for others.
        busiest_sm: The least of it that the busiest SM does, whichever blocks it is given; None where that is
            not known.
        is_estimate: Whether sampled blocks, or lanes that access together, represent others that behave
            differently: no bound uses it.
    """

    value: Tally | None
    unit: str
    source: Literal["sim", "ncu"]
    metric: str | None = None
    reason: str | None = None
    sampled_blocks: Count | None = None
    total_blocks: Count | None = None
    is_least: bool = False
    has_waits: bool = False
    busiest_sm: Tally | None = None
    is_estimate: bool = False


class ClockState(Struct, frozen=True):
    """One reading of the GPU's clocks and of what holds them back.

    Args:
        throttle_reasons: What holds the clocks back, in the driver's words.
    """

    sm_mhz: Count | None
    memory_mhz: Count | None
    temperature_c: Integer | None
    power_w: NonNegative | None
    throttle_reasons: tuple[str, ...]


class Clocks(Struct, frozen=True):
    """Readings directly before and after a case was timed."""

    before: ClockState
    after: ClockState


class SourceLine(Struct, frozen=True):
    """Counts attributed to one line of the kernel's source, by the contract's counter names.

    Args:
        line: The line, from 1.
    """

    line: Extent
    counters: Mapping[str, Tally]


class Bound(Struct, frozen=True):
    """The least time that one part of the device needs for a case.

    Args:
        least_us: The time: no launch of the case can take less.
        formula: How it follows from counts and rates.
        source: Where the rate comes from.
        most_us: Where caches may absorb work, the time if they absorb nothing; None elsewhere.
        even_us: The time if all SMs shared the work evenly, where that is less.
        reachable_us: The time at the rate that a small kernel reached on this device; None where that was not
            measured.
        counters: Those that the work is made of, whose share in each line is that line's.
    """

    least_us: Positive
    formula: str
    source: str
    most_us: Positive | None = None
    even_us: Positive | None = None
    reachable_us: Positive | None = None
    counters: tuple[str, ...] = ()


class ModelLine(Struct, frozen=True):
    """What a source line takes of a modelled time.

    Args:
        line: The line, from 1.
        share: Of the time: what `reasons` add up to.
        reasons: The same by reason, as in `Model.reasons`.
    """

    line: Extent
    share: float
    reasons: Mapping[str, float]


class Model(Struct, frozen=True):
    """A predicted time: never one that was measured.

    Args:
        reasons: Where it goes, as shares of it that add up to 1: `issue` (instructions, or others' turn),
            `dependency` (results of arithmetic and shared memory), `latency` (an answer of global memory on
            its way), `bandwidth` (requests in a queue), `barrier`, `tail` (the last blocks leave SMs idle),
            and `launch` (an empty launch, cold code and arguments). Shares of less than a thousandth are
            left out.
        lines: Of lines that take at least a two-hundredth of it, in the order of the source: what they add to
            `reasons`, but for tail and launch, which belong to no line.
    """

    median_us: Positive
    low_us: Positive
    high_us: Positive
    reasons: Mapping[str, float] = {}
    lines: tuple[ModelLine, ...] = ()


class Explanation(Struct, frozen=True):
    """Where a case that failed, hung or is wrong went wrong, as a run on the SIMT executor showed it.

    Args:
        cause: What went wrong.
        text: Line, thread, and what it did, as a clause.
        sizes: Extents of the problem that was run: those of the case, or smaller ones.
        line: Line of the kernel file; None where the code does not tell it.
        block: blockIdx of the thread; None where nobody did what should have been done.
        thread: threadIdx of the thread; None likewise.
        array: The array that it is about; empty where it is about none.
        offset: The byte of that array, from its start; outside of it for an illegal address.
        repetition: Which of several runs of the case showed it, from 1.
        is_another: Whether it is of another kind than what the device showed, and was only met first.
        source: What ran it.
    """

    cause: Cause
    text: str
    sizes: Mapping[str, Extent]
    line: Count | None
    entry: str
    block: tuple[Integer, Integer, Integer] | None = None
    thread: tuple[Integer, Integer, Integer] | None = None
    array: str = ""
    offset: Integer | None = None
    repetition: Extent = 1
    is_another: bool = False
    source: Literal["sim"] = "sim"

    def sentence(self, measured: "ProblemRecord | None") -> str:
        """The explanation as the end of a case's reason.

        Args:
            measured: What the case computed on the device; None where the executor itself was the device.
        """
        found = []
        if measured is not None:
            found.append("found by the executor")
            if dict(self.sizes) != dict(measured.sizes):
                found.append(f"at size {size_label(tuple(self.sizes.values()))}")
        if self.repetition > 1:
            found.append(f"in run {self.repetition} of the same launches")
        end = f" ({' '.join(found)})" if found else ""
        if self.is_another:
            return f"Another fault comes first: {self.cause}: {self.text}{end}."
        return f"{self.cause[:1].upper()}{self.cause[1:]}: {self.text}{end}."
