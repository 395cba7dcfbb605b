# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The one contract between measuring and showing: what a run learnt, as frozen data, and its JSON file.

Units live in the field's name. A block that was not measured is None, and the field named like it with
`_reason` says why; no figure is ever 0 for want of a measurement. Derived figures (`throughput`) can be
recomputed from the raw samples kept beside them.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from gpuprof.devices.device import Device
from gpuprof.errors import InputError, ResultsError
from gpuprof.files import replace_text
from gpuprof.kernels.header import Choice, Direction, Kernel, PublishedFigure
from gpuprof.problems.gemm import Gemm
from gpuprof.problems.transpose import Transpose
from gpuprof.schema import SchemaError, from_json, to_json

SCHEMA_VERSION = 1

Outcome = Literal["ok", "incorrect", "failed", "skipped", "timeout"]
BackendName = Literal["gpu", "sim", "none"]
Problem = Gemm | Transpose


@dataclass(frozen=True, slots=True)
class Verification:
    """How a case's output compared with the float64 reference.

    Args:
        max_abs_error: Largest |result - expected| of any element.
        max_rel_error: Largest |result - expected| / magnitude, less `absolute_bound`: the figure held against
            `bound`; for a GEMM the magnitude of an element is |alpha| * sum(|a*b|) + |beta| * |c|.
        bound: Largest `max_rel_error` that passes; 0 demands equality.
        absolute_bound: What underflow may add to an error, whatever the magnitude.
        checked_elements: How many elements were compared.
        wrong_elements: How many exceeded the bound, or are NaN or still hold the poison.
        detail: The first wrong element in words, or an empty string.
    """

    max_abs_error: float | None
    max_rel_error: float | None
    bound: float
    checked_elements: int
    wrong_elements: int = 0
    detail: str = ""
    absolute_bound: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether every element is within the bound and nothing else is wrong."""
        return not self.wrong_elements and not self.detail


@dataclass(frozen=True, slots=True)
class Timing:
    """Event-timed samples of one launch each.

    Args:
        median_us: Median sample.
        p05_us: 5th percentile.
        p95_us: 95th percentile.
        ci95_rel: Half width of the median's 95 % confidence interval, relative to the median (order
            statistics; no distribution is assumed).
        samples_us: Every kept sample, in the order taken.
        dropped: Samples set aside because the GPU was throttled while they were taken.
        launches_per_sample: Back-to-back launches that each sample is the mean of.
        throttled: How many of the kept samples were taken while the GPU was throttled: all or none of them,
            because such samples are kept only where there are no others.
    """

    median_us: float
    p05_us: float
    p95_us: float
    ci95_rel: float | None
    samples_us: tuple[float, ...]
    dropped: int = 0
    launches_per_sample: int = 1
    throttled: int = 0


@dataclass(frozen=True, slots=True)
class TimingPair:
    """Times with the L2 cache flushed before each launch (cold, the headline) and back to back (warm)."""

    cold: Timing | None
    warm: Timing | None


@dataclass(frozen=True, slots=True)
class Throughput:
    """Rates from the cold median; a share of a peak is None where the peak or the work is unknown."""

    gflops: float | None
    gbps: float
    pct_of_peak_compute: float | None
    pct_of_peak_bandwidth: float | None


@dataclass(frozen=True, slots=True)
class Resources:
    """What one launch occupies, from the compiler's report."""

    registers_per_thread: int
    static_shared_bytes: int
    dynamic_shared_bytes: int
    spill_bytes: int


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Resident warps per SM as a share of the device's limit.

    Args:
        theoretical_pct: From registers, shared memory and block size.
        limiter: What binds: `registers`, `shared memory`, `threads` or `blocks`, joined by "and" on a tie.
        blocks_per_sm: Blocks that fit on one SM at once.
        achieved_pct: Measured by Nsight Compute.
        achieved_reason: Why `achieved_pct` is None.
    """

    theoretical_pct: float
    limiter: str
    blocks_per_sm: int
    achieved_pct: float | None = None
    achieved_reason: str | None = "measured by Nsight Compute only: add --ncu"


@dataclass(frozen=True, slots=True)
class Counter:
    """One named event count.

    Args:
        value: The count, or None when it was not measured.
        unit: For example `requests`, `sectors`, `%`.
        source: `sim` or `ncu`.
        metric: Nsight Compute's own metric name, verbatim, for `ncu`.
        reason: Why `value` is None.
        sampled_blocks: Blocks that the executor ran.
        total_blocks: Blocks of the grid that the value stands for.
    """

    value: float | int | None
    unit: str
    source: Literal["sim", "ncu"]
    metric: str | None = None
    reason: str | None = None
    sampled_blocks: int | None = None
    total_blocks: int | None = None


@dataclass(frozen=True, slots=True)
class ClockState:
    """One reading of the GPU's clocks and of what holds them back."""

    sm_mhz: int | None
    memory_mhz: int | None
    temperature_c: int | None
    power_w: float | None
    throttle_reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Clocks:
    """Readings directly before and after a case was timed."""

    before: ClockState
    after: ClockState


@dataclass(frozen=True, slots=True)
class SourceLine:
    """Counts attributed to one line of the kernel's source, by the contract's counter names."""

    line: int
    counters: Mapping[str, float | int]


@dataclass(frozen=True, slots=True)
class Measurement:
    """Everything learnt about one case: one kernel, problem, launch shape and device.

    `grid` is None when the case ended before its launch was worked out. `over_limit` marks a failure that
    only says that the case asks for more than the device has, such as more shared memory.
    `executor_counters` are the SIMT executor's, on a GPU run that it annotated; in a run of the executor
    itself they are in `counters`. `chosen` is the id of the kernel that ran where `kernel` chooses one by
    size and device: block, parameters and `source_hash` are then that kernel's. `source_hash` is empty where
    no source ran: for a library, and where no choice could be made.
    """

    kernel: str
    problem: Problem
    block: tuple[int, int, int]
    grid: tuple[int, int, int] | None
    params: Mapping[str, int]
    outcome: Outcome
    source_hash: str
    reason: str | None = None
    verification: Verification | None = None
    verification_reason: str | None = None
    timing: TimingPair | None = None
    timing_reason: str | None = None
    throughput: Throughput | None = None
    throughput_reason: str | None = None
    resources: Resources | None = None
    resources_reason: str | None = None
    occupancy: Occupancy | None = None
    occupancy_reason: str | None = None
    clocks: Clocks | None = None
    clocks_reason: str | None = None
    counters: Mapping[str, Counter] = field(default_factory=dict)
    counters_reason: str | None = None
    executor_counters: Mapping[str, Counter] = field(default_factory=dict)
    lines: tuple[SourceLine, ...] | None = None
    lines_reason: str | None = None
    compile_options: tuple[str, ...] = ()
    log: str = ""
    is_reference: bool = False
    over_limit: bool = False
    chosen: str = ""

    @property
    def ran(self) -> str:
        """Id of the kernel whose code this case is of."""
        return self.chosen or self.kernel

    @property
    def has_launch(self) -> bool:
        """Whether `block` is a launch's: a library tells none, and a choice may find no kernel."""
        return not self.is_reference and bool(self.source_hash)


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """A kernel's header and source as they were when it was measured.

    Args:
        moves: What its header says the step from `after` does, by the name of the figure.
        after: Id of the kernel that the step starts from; empty for the rung below it in the run.
        choices: The kernels that it chooses among, in the order in which their conditions are tried.
    """

    id: str
    op: str
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
    moves: Mapping[str, Direction] = field(default_factory=dict)
    after: str = ""
    choices: tuple[Choice, ...] = ()

    @classmethod
    def of(cls, kernel: Kernel) -> "KernelRecord":
        """The record of a kernel file."""
        return cls(
            id=kernel.id,
            op=kernel.op,
            title=kernel.title,
            rung=kernel.rung,
            idea=kernel.idea,
            change=kernel.change,
            bottleneck=kernel.bottleneck,
            study=kernel.study,
            aliases=kernel.aliases,
            reference=kernel.reference,
            source=kernel.source,
            source_hash=kernel.source_hash,
            file_name=kernel.path.name,
            published=kernel.published,
            moves=kernel.moves,
            after=kernel.after,
            choices=kernel.choices,
        )


@dataclass(frozen=True, slots=True)
class Tool:
    """Which gpuprof wrote the file."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class Run:
    """All measurements of one invocation and the environment they were taken in."""

    schema_version: int
    tool: Tool
    created_utc: str
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    device: Device
    backend: BackendName
    backend_reason: str | None
    complete: bool
    seed: int
    kernels: tuple[KernelRecord, ...]
    cases: tuple[Measurement, ...]

    def kernel(self, kernel_id: str) -> KernelRecord:
        """The record of one kernel.

        Raises:
            KeyError: No case of this run used it.
        """
        for record in self.kernels:
            if record.id == kernel_id:
                return record
        raise KeyError(kernel_id)


#: A list of numbers as `json.dumps` spreads it over lines.
_NUMBERS = re.compile(r"\[\s+(-?[0-9][^\[\]{}\"]*?)\s+\]")
#: How a results file ends: after its last case, and without any.
CASES_END = b"\n ]\n}\n"
NO_CASES_END = b"]\n}\n"
_CASES_BEGIN = '\n "cases": ['
_CASE_END = re.compile(r"^  \}", re.MULTILINE)


def dumps(run: Run) -> str:
    """The results file's text; a list of numbers stays on one line, and the cases stand last."""
    return _text_of(run) + "\n"


def dumps_case(measurement: Measurement) -> str:
    """The text of one case as it stands in a results file, without what separates it from its neighbours."""
    return "  " + _text_of(measurement).replace("\n", "\n  ")


def _text_of(value: Any) -> str:
    text = json.dumps(to_json(value), indent=1, ensure_ascii=False, allow_nan=False)
    return _NUMBERS.sub(lambda match: f"[{' '.join(match[1].split())}]", text)


def write_run(run: Run, path: Path) -> None:
    """Write a results file so that a crash leaves either the old file or the new one.

    Raises:
        InputError: The path cannot be written.
    """
    try:
        replace_text(path, dumps(run))
    except OSError as error:
        raise InputError(
            f"Cannot write {path}: {error.strerror}.", fix="Name another path with --json or -o."
        ) from error


def read_run(path: Path) -> Run:
    """Read and check a results file.

    Raises:
        ResultsError: The file is missing, not JSON, of a newer schema, or does not match the schema.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ResultsError(
            f"Cannot read {path}: {why}.", fix="Name a results.json that gpuprof wrote."
        ) from error
    try:
        return parse_run(_document(text), str(path))
    except json.JSONDecodeError as error:
        raise ResultsError(
            f"{path} is not valid JSON (line {error.lineno}, column {error.colno}: {error.msg}).",
            fix="It may be truncated: measure again.",
        ) from error
    except (ValueError, RecursionError) as error:
        raise ResultsError(
            f"{path} is not a gpuprof results file: it is nested too deeply, or a number is too long."
        ) from error


def _document(text: str) -> Any:
    """A results file as JSON, up to its last whole case where its process died while it appended one.

    Raises:
        json.JSONDecodeError: It is none, and was not cut off in a case either.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        begin = text.find(_CASES_BEGIN)
        if begin < 0:
            raise
        ends = [match.end() for match in _CASE_END.finditer(text, begin)]
        whole = text[: ends[-1] if ends else begin + len(_CASES_BEGIN)]
        document = json.loads(whole + (CASES_END if ends else NO_CASES_END).decode())
        return {**document, "complete": False}


def parse_run(document: Any, name: str) -> Run:
    """Check a parsed results document.

    Args:
        document: What `json.load` returned.
        name: The file's name, for messages.

    Raises:
        ResultsError: It is not a results file of a schema version that this gpuprof reads.
    """
    version = document.get("schema_version") if isinstance(document, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise ResultsError(f"{name} is not a gpuprof results file: it has no schema_version.")
    if version > SCHEMA_VERSION:
        raise ResultsError(
            f"{name} has schema version {version}; this gpuprof reads up to {SCHEMA_VERSION}.",
            fix="Update gpuprof.",
        )
    try:
        return from_json(Run, document)
    except SchemaError as error:
        raise ResultsError(f"{name} does not match the results schema: {error}.") from error
