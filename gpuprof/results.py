# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The one contract between measuring and showing: what a run learnt, as frozen data, and its JSON file.

Units live in the field's name. A block that was not measured is None, and the field named like it with
`_reason` says why; no figure is ever 0 for want of a measurement. Derived figures (`throughput`) can be
recomputed from the raw samples kept beside them.
"""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from msgspec import Meta, Struct

from gpuprof.case_parts import Bound as Bound
from gpuprof.case_parts import Cause as Cause
from gpuprof.case_parts import Clocks as Clocks
from gpuprof.case_parts import ClockState as ClockState
from gpuprof.case_parts import Counter as Counter
from gpuprof.case_parts import Explanation as Explanation
from gpuprof.case_parts import LaunchRecord as LaunchRecord
from gpuprof.case_parts import Model as Model
from gpuprof.case_parts import ModelLine as ModelLine
from gpuprof.case_parts import Occupancy as Occupancy
from gpuprof.case_parts import ProblemRecord as ProblemRecord
from gpuprof.case_parts import Resources as Resources
from gpuprof.case_parts import SourceLine as SourceLine
from gpuprof.case_parts import Timing as Timing
from gpuprof.case_parts import TimingPair as TimingPair
from gpuprof.case_parts import Verification as Verification
from gpuprof.case_parts import size_label as size_label
from gpuprof.devices.device import Device
from gpuprof.operation import Operation
from gpuprof.schema import Count, Extent, Integer, NonNegative, Positive, to_text

SCHEMA_VERSION = 2

Outcome = Literal["ok", "incorrect", "failed", "skipped", "timeout"]
BackendName = Literal["gpu", "sim", "none"]
#: How a condition bears on times: `disturbs` makes them untrue or unsteady, `broken` needs mending, and of
#: `absent` nothing can be told.
ConditionState = Literal["ok", "absent", "disturbs", "broken"]
#: What a figure does from one rung to the next, for the same problem.
Direction = Literal["falls", "rises", "stays"]
#: What tells how fast a case is: its measured time, the modelled one, or its bound where there is none.
By = Literal["time", "model", "bound"]


class Choice(Struct, frozen=True):
    """One of the kernels that a header chooses among.

    Args:
        when: Formula of the problem's dimensions and the device's figures.
        because: Why the kernel is there, or where the condition's numbers come from; may be empty.
        least: Formula of the kernel's constants: of neighbours with one condition, the one with least runs.
    """

    kernel: str
    when: str
    because: str = ""
    least: str = ""


class PublishedFigure(Struct, frozen=True):
    """What a kernel's authors reported, on their GPU: context, never a target.

    Args:
        size: The size, as a user types it.
        time_ms: Time of one launch; None where they gave none.
    """

    size: str
    time_ms: Positive | None = None
    note: str = ""


class Throughput(Struct, frozen=True):
    """Rates from the cold median; a share of a peak is None where the peak or the work is unknown.

    Effective bandwidth counts the fewest bytes that the problem must move, not what the kernel moved: for a
    copy 2 * bytes / time.

    Args:
        gflops: Floating-point operations that the problem needs over the time; None for a problem without
            any.
        pct_of_peak_compute: Share of the theoretical arithmetic peak.
        pct_of_peak_bandwidth: Share of the theoretical bandwidth.
    """

    gflops: Positive | None
    gbps: Positive
    pct_of_peak_compute: NonNegative | None
    pct_of_peak_bandwidth: NonNegative | None

    @classmethod
    def of(cls, problem: ProblemRecord, device: Device, median_us: float) -> "Throughput":
        """GFLOP/s, effective GB/s and their shares of the theoretical peaks."""
        gflops = problem.flops / median_us / 1e3 if problem.flops else None
        gbps = problem.min_bytes / median_us / 1e3
        peak_gflops = device.peak_gflops(problem.dtype)
        peak_gbps = device.peak_bandwidth_gbps
        return cls(
            gflops=gflops,
            gbps=gbps,
            pct_of_peak_compute=100 * gflops / peak_gflops if gflops and peak_gflops else None,
            pct_of_peak_bandwidth=100 * gbps / peak_gbps if peak_gbps else None,
        )


class Measurement(Struct, frozen=True):
    """Everything learnt about one case: one kernel, problem, launch shape and device.

    Args:
        block: Threads of a block in x, y and z; of several launches, of the one with the most threads.
        grid: Blocks in x, y and z; None when the case ended before its launch was worked out.
        outcome: How it ended; `skipped` is what a kernel or the device rules out beforehand, and
            what the executor has no time or the machine no memory for.
        source_hash: Of the source that ran; empty where none did: for a library, and where no choice could be
            made.
        device: Number of its device in `devices`.
        reason: Why the outcome is not `ok`, in a sentence.
        verification: How its output compared with the reference.
        event_floor_us: What the same clock gives for an empty kernel.
        event_pair_us: What events take themselves, already taken off each of the times; None where no
            events were used, and in files of before, whose times have it in them.
        resources: What a block occupies.
        occupancy: How many warps fit, and what binds.
        clocks: The GPU's clocks around the timing.
        counters: Event counts of one launch: Nsight Compute's on a GPU, the executor's in a run of the
            executor.
        executor_counters: The executor's, on a GPU run that it annotated.
        bounds: The least time that each part of the device needs, by the part.
        bound_by: The part whose bound is highest.
        model: A predicted time, where there is one.
        lines: Counts by line of the source.
        explanation: Where it went wrong, as the executor saw it.
        is_reference: Whether it is a library's or the host's implementation, to compare with.
        over_limit: Whether a failure only says that the case asks for more than the device has, such as
            shared memory.
        chosen: Id of the kernel that ran where `kernel` chooses one by size and device: block, parameters and
            `source_hash` are then that kernel's.
        launches: Those of a kernel that takes several, in order, and empty for any other: they are timed and
            counted as one.
        remarks: Sentences to read beside the figures of a case that ended well.
        planned: Its place in the plan of its run, from 0; None in a file that does not tell. In the file of a
            run that was stopped a later row of one place stands for the earlier ones.
        lost: Whether its process was taken from outside, so that nothing is known of the case: a run that
            goes on measures it again.
    """

    kernel: str
    problem: ProblemRecord
    block: tuple[Extent, Extent, Extent]
    grid: tuple[Extent, Extent, Extent] | None
    params: Mapping[str, Integer]
    outcome: Outcome
    source_hash: str
    device: Count = 0
    reason: str | None = None
    verification: Verification | None = None
    verification_reason: str | None = None
    timing: TimingPair | None = None
    timing_reason: str | None = None
    event_floor_us: Positive | None = None
    event_floor_reason: str | None = None
    event_pair_us: NonNegative | None = None
    throughput: Throughput | None = None
    throughput_reason: str | None = None
    resources: Resources | None = None
    resources_reason: str | None = None
    occupancy: Occupancy | None = None
    occupancy_reason: str | None = None
    clocks: Clocks | None = None
    clocks_reason: str | None = None
    counters: Mapping[str, Counter] = {}
    counters_reason: str | None = None
    executor_counters: Mapping[str, Counter] = {}
    bounds: Mapping[str, Bound] = {}
    bounds_reason: str | None = None
    bound_by: str | None = None
    model: Model | None = None
    model_reason: str | None = None
    lines: tuple[SourceLine, ...] | None = None
    lines_reason: str | None = None
    explanation: Explanation | None = None
    explanation_reason: str | None = None
    compile_options: tuple[str, ...] = ()
    log: str = ""
    is_reference: bool = False
    over_limit: bool = False
    chosen: str = ""
    launches: tuple[LaunchRecord, ...] = ()
    remarks: tuple[str, ...] = ()
    planned: Count | None = None
    lost: bool = False

    @property
    def ran(self) -> str:
        """Id of the kernel whose code this case is of."""
        return self.chosen or self.kernel

    @property
    def has_launch(self) -> bool:
        """Whether `block` is a launch's: a library tells none, and a choice may find no kernel."""
        return not self.is_reference and bool(self.source_hash)


class KernelRecord(Struct, frozen=True):
    """A kernel's header and source as they were when it was measured; or a reference, which has no source.

    Args:
        id: Its name in the ladder.
        rung: Where it stands in the ladder.
        idea: Its one idea, in a sentence.
        change: What changed from its predecessor.
        bottleneck: What its author takes for its limit.
        study: Name that the kernels of one publication share; `citation` says which.
        aliases: Names that it was published under.
        reference: What of its publication it follows.
        source: The whole file.
        is_reference: Whether it is a library's or the host's implementation.
        moves: What its header says the step from `after` does, by the name of the figure.
        after: Id of the kernel that the step starts from; empty for the rung below it in the run.
        choices: The kernels that it chooses among, in the order in which their conditions are tried.
        on_host: Whether it ran on the CPU, so that the GPU's peaks are not its limits.
        parameters: Integers that it can be tuned by, with their defaults.
    """

    id: str
    operation: str
    title: str
    rung: float
    idea: str
    change: str
    bottleneck: str
    study: str
    aliases: tuple[str, ...]
    reference: str
    source: str
    source_hash: str
    file_name: str
    published: tuple[PublishedFigure, ...] = ()
    is_reference: bool = False
    moves: Mapping[str, Direction] = {}
    after: str = ""
    choices: tuple[Choice, ...] = ()
    on_host: bool = False
    citation: str = ""
    citation_url: str = ""
    parameters: Mapping[str, Integer] = {}

    @classmethod
    def without_source(cls, id: str, operation: str, rung: float, title: str = "", idea: str = "") -> Self:
        """What has no header: a reference, or a kernel of which nothing is known."""
        absent = ("change", "bottleneck", "study", "reference", "source", "source_hash", "file_name")
        empty: dict[str, Any] = dict.fromkeys(absent, "")
        return cls(id=id, operation=operation, title=title, rung=rung, idea=idea, aliases=(), **empty)


class Tool(Struct, frozen=True):
    """Which gpuprof wrote the file."""

    name: str
    version: str


class Condition(Struct, frozen=True):
    """One thing that a GPU's driver tells of its state."""

    title: str
    state: ConditionState
    text: str
    fix: str = ""


class Place(Struct, frozen=True):
    """Where one of a run's devices is, and the state in which the run found it.

    Args:
        selector: What `--device` calls it: a GPU's number, `sim:CARD`, `none`.
        host: Name of its machine in a cluster; empty for the machine that the run was started on.
        bus_id: Where a GPU sits in its machine.
        environment: Versions there that differ from the run's own, by name.
        conditions: What the GPU's driver told before the run's first case.
        lost: Why it took no more cases, where it did not go to the end of the run.
    """

    selector: str
    host: str = ""
    bus_id: str = ""
    environment: Mapping[str, str] = {}
    conditions: tuple[Condition, ...] = ()
    lost: str | None = None

    @property
    def title(self) -> str:
        """What tells it from others of its kind, for example `GPU 1` or `node7, GPU 1`."""
        number = f"GPU {self.selector}" if self.selector.isdecimal() else self.selector
        return ", ".join(filter(None, (self.host, number)))


class TunedPoint(Struct, frozen=True):
    """One point of a search: a kernel with values for its parameters and a block.

    Args:
        params: Values of all its parameters.
        expected_us: What the search expects of it, in what decides (`Tuned.by`): never a time that was
            measured.
    """

    kernel: str
    params: Mapping[str, Integer]
    block: tuple[Extent, Extent, Extent]
    expected_us: Positive | None = None


#: What `Tuned.ruled_out` calls reasons that were too many to keep one by one.
OTHER_REASONS = "For other reasons."


class Tuned(Struct, frozen=True):
    """What a search found at one size. Times of its points stand with the cases.

    Args:
        combinations: Of all values, constraints aside.
        ruled_out: How many of them cannot run, by the reason.
        uncompiled: How many were never compiled, for want of time.
        by: What decided: measured `time`; where nothing was timed the modelled one (`model`), or the `bound`
            where nothing was modelled.
        evaluated: Points that were timed or counted.
        ties: The best point, then those that cannot be told apart from it; empty where none was right.
        ranked: The points that the model puts first, best first, whether or not they were timed.
        device: Which of the run's devices it was found on.
    """

    problem: ProblemRecord
    combinations: Count
    ruled_out: Mapping[str, Count]
    uncompiled: Count
    by: By
    evaluated: Count
    ties: tuple[TunedPoint, ...] = ()
    ranked: tuple[TunedPoint, ...] = ()
    device: Count = 0


class Tuning(Struct, frozen=True):
    """That a run was a search, among what, and what it found.

    Args:
        values: By kernel, the values of each parameter that was searched.
        blocks: By kernel, the blocks that were searched; none for a kernel that kept its own.
        budget: Points that it was allowed to time, or to count, at each size.
        sizes: What it found at each size on each device; those that the search had not finished are missing.
    """

    values: Mapping[str, Mapping[str, tuple[Integer, ...]]]
    blocks: Mapping[str, tuple[tuple[Extent, Extent, Extent], ...]]
    budget: Count
    sizes: tuple[Tuned, ...] = ()


class Run(Struct, frozen=True, kw_only=True, dict=True):
    """All measurements of one invocation and the environment they were taken in.

    Args:
        argv: The command line, with what a project's settings added.
        environment: Versions of everything that decides the measured code, by name.
        devices: Those that cases ran on; a case names its own by number.
        backend: What ran the kernels: a GPU, the executor on the CPU, or nothing.
        backend_reason: Why it is not what one would expect.
        complete: Whether every case was measured; False for a run that was stopped.
        seed: Of the random inputs.
        operations: What each operation of a case declares, by its name.
        kernels: Every kernel and reference that a case names, with its source.
        asked: What was asked for, by the option that says it: only the same request continues the run. Empty
            in a file that does not tell.
        resumed_utc: When it went on after it had been stopped.
        places: Where each of `devices` is, in their order; empty where nobody noted it.
        labels: What the user said of where it ran, by names of his own: a host, a rack, a card's number.
        tuning: What was searched and found, where the run is a search; its cases are the points that it timed
            or counted.
        cases: Every case, by device, then by size, then in rung order, references last.
    """

    schema_version: Annotated[int, Meta(ge=1, le=SCHEMA_VERSION)]
    tool: Tool
    created_utc: str
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    devices: Annotated[tuple[Device, ...], Meta(min_length=1)]
    backend: BackendName
    backend_reason: str | None
    complete: bool
    seed: Count
    operations: Mapping[str, Operation]
    kernels: tuple[KernelRecord, ...]
    asked: Mapping[str, str] = {}
    resumed_utc: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()
    labels: Mapping[str, str] = {}
    tuning: Tuning | None = None
    cases: tuple[Measurement, ...]

    def place(self, number: int) -> Place:
        """Where a device is, as far as the file tells."""
        return self.places[number] if number < len(self.places) else Place("")

    def device_label(self, number: int) -> str:
        """A device's name, and in a run on several of that name what tells it from them."""
        name = self.devices[number].name
        if sum(device.name == name for device in self.devices) == 1:
            return name
        return f"{name} ({self.place(number).title or f'device {number}'})"

    @property
    def device_labels(self) -> tuple[str, ...]:
        return tuple(map(self.device_label, range(len(self.devices))))

    @property
    def device(self) -> Device:
        """The first device: of a run on one, the device."""
        return self.devices[0]

    @cached_property
    def _records(self) -> dict[str, KernelRecord]:
        return {record.id: record for record in reversed(self.kernels)}

    def kernel(self, kernel_id: str) -> KernelRecord:
        """The record of one kernel.

        Raises:
            KeyError: No case of this run used it.
        """
        return self._records[kernel_id]


#: A text, in which nothing is a list, or a list of numbers as `json.dumps` spreads it over lines.
_TEXT_OR_NUMBERS = re.compile(r'"(?:[^"\\]++|\\.)*+"|\[\s++(-?[0-9][^\[\]{}"]*+)\]')
#: How a results file ends: after its last case, and without any.
CASES_END = b"\n ]\n}\n"
NO_CASES_END = b"]\n}\n"
#: How its list of cases begins, which stands last.
CASES_BEGIN = '\n "cases": ['


def dumps(run: Run) -> str:
    """The results file's text; a list of numbers stays on one line, and the cases stand last."""
    return _text_of(run) + "\n"


def dumps_case(measurement: Measurement) -> str:
    """The text of one case as it stands in a results file, without what separates it from its neighbours."""
    return "  " + _text_of(measurement).replace("\n", "\n  ")


def _text_of(value: Any) -> str:
    text = to_text(value, indent=1, ensure_ascii=False)
    return _TEXT_OR_NUMBERS.sub(_on_one_line, text)


def _on_one_line(match: re.Match[str]) -> str:
    return match[0] if match[1] is None else f"[{' '.join(match[1].split())}]"
